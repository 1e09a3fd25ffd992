"""Expectations of a response; with a request they form the rows of the checks' tables (`Context.expect`)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from bench.verify.wire import PageResponse

REFUSED = range(400, 500)


@dataclass(frozen=True)
class Expectation:
    """One expectation in words; `wrong` returns the difference in words, or None."""

    words: str
    wrong: Callable[[PageResponse], str | None]


def status(*right: int) -> Expectation:
    """Expect one of these statuses."""
    return status_in(right, f"status {' or '.join(map(str, right))}")


def status_in(right: Container[int], words: str) -> Expectation:
    """Expect a status among these, described by `words`."""

    def wrong(response: PageResponse) -> str | None:
        if response.status in right:
            return None
        return f"status {response.status}"

    return Expectation(words, wrong)


refused = status_in(REFUSED, "status 400 to 499")
no_server_error = status_in(range(500), "a status below 500")
redirect = status_in(range(300, 400), "a redirect")


def has(*words: str, what: str = "") -> Expectation:
    """Expect each of these texts in the page, described by `what`."""

    def wrong(response: PageResponse) -> str | None:
        missing = [word for word in words if word not in response.text]
        if not missing:
            return None
        return f"status {response.status} without {what or ', '.join(missing)}"

    return Expectation(what or ", ".join(words), wrong)


def lacks(*words: str, what: str) -> Expectation:
    """Expect none of these texts in the page; `what` describes a right page."""

    def wrong(response: PageResponse) -> str | None:
        return ", ".join(word for word in words if word in response.text) or None

    return Expectation(what, wrong)


def lacks_bytes(words: Iterable[bytes], what: str) -> Expectation:
    """Expect none of these bytes in the body; `what` describes a right body."""

    def wrong(response: PageResponse) -> str | None:
        present_words = [word for word in words if word in response.body]
        if not present_words:
            return None
        return f"status {response.status} with {present_words[0].decode()!r}"

    return Expectation(what, wrong)


def header(name: str, right: Callable[[str], bool], words: str) -> Expectation:
    """Expect a right value of the header, empty if absent; `words` describe a right one."""

    def wrong(response: PageResponse) -> str | None:
        if right(response.header(name) or ""):
            return None
        return header_words(response, name)

    return Expectation(words, wrong)


def no_header(name: str, words: str = "") -> Expectation:
    return header(name, lambda value: not value, words or f"no {name}")


def same_header(other: PageResponse, name: str) -> Expectation:
    """Expect the same header as in another response."""
    return header(name, (other.header(name) or "").__eq__, header_words(other, name))


def header_words(response: PageResponse, name: str) -> str:
    """A header of the response in words."""
    return f"{name}: {response.header(name) or 'none'}"


def names(header_name: str, name: str) -> Expectation:
    """Expect a list header such as Vary to contain this name."""

    def wrong(response: PageResponse) -> str | None:
        if name.lower() in response.names(header_name):
            return None
        return header_words(response, header_name)

    return Expectation(f"{header_name}: {name}", wrong)


def varies_if_coded() -> Expectation:
    """Expect `Vary: Accept-Encoding` with a compressed response."""
    varies = names("Vary", "Accept-Encoding")

    def wrong(response: PageResponse) -> str | None:
        if response.coding == "identity":
            return None
        return varies.wrong(response)

    return Expectation(varies.words, wrong)


def body(right: bytes, words: str) -> Expectation:
    """Exactly this content."""

    def wrong(response: PageResponse) -> str | None:
        if response.content == right:
            return None
        return f"status {response.status}, {len(response.content)} other bytes"

    return Expectation(words, wrong)


def wrong_of(response: PageResponse, expectations: Iterable[Expectation]) -> tuple[str, str] | None:
    """The first unmet expectation and the difference, in words; None if all are met."""
    for item in expectations:
        if (got := item.wrong(response)) is not None:
            return item.words, got
    return None
