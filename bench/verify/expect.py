"""Expectations of a response; with a request they form the rows of the checks' tables (`Context.ask`)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from bench.verify.wire import Answer

REFUSED = range(400, 500)


@dataclass(frozen=True)
class Expectation:
    """One expectation in words; `wrong` returns the difference in words, or None."""

    words: str
    wrong: Callable[[Answer], str | None]


def status(*right: int) -> Expectation:
    """Expect one of these statuses."""
    return status_in(right, f"status {' or '.join(map(str, right))}")


def status_in(right: Container[int], words: str) -> Expectation:
    """Expect a status among these, described by `words`."""
    return Expectation(words, lambda answer: None if answer.status in right else f"status {answer.status}")


refused = status_in(REFUSED, "status 400 to 499")
no_server_error = status_in(range(500), "a status below 500")
redirect = status_in(range(300, 400), "a redirect")


def has(*words: str, what: str = "") -> Expectation:
    """Expect each of these texts in the page, described by `what`."""

    def wrong(answer: Answer) -> str | None:
        missing = [word for word in words if word not in answer.text]
        if not missing:
            return None
        return f"status {answer.status} without {what or ', '.join(missing)}"

    return Expectation(what or ", ".join(words), wrong)


def lacks(*words: str, what: str) -> Expectation:
    """Expect none of these texts in the page; `what` describes a right page."""

    def wrong(answer: Answer) -> str | None:
        return ", ".join(word for word in words if word in answer.text) or None

    return Expectation(what, wrong)


def lacks_bytes(words: Iterable[bytes], what: str) -> Expectation:
    """Expect none of these bytes in the body; `what` describes a right body."""

    def wrong(answer: Answer) -> str | None:
        found = [word for word in words if word in answer.body]
        if not found:
            return None
        return f"status {answer.status} with {found[0].decode()!r}"

    return Expectation(what, wrong)


def header(name: str, right: Callable[[str], bool], words: str) -> Expectation:
    """Expect a right value of the header, empty if absent; `words` describe a right one."""
    return Expectation(words, lambda answer: None if right(answer.header(name) or "") else given(answer, name))


def no_header(name: str, words: str = "") -> Expectation:
    return header(name, lambda value: not value, words or f"no {name}")


def same_header(other: Answer, name: str) -> Expectation:
    """Expect the same header as in another response."""
    return header(name, (other.header(name) or "").__eq__, given(other, name))


def given(answer: Answer, name: str) -> str:
    """A header of the response in words."""
    return f"{name}: {answer.header(name) or 'none'}"


def names(header_name: str, name: str) -> Expectation:
    """Expect a list header such as Vary to contain this name."""
    right = f"{header_name}: {name}"
    return Expectation(
        right, lambda answer: None if name.lower() in answer.names(header_name) else given(answer, header_name)
    )


def varies_if_coded() -> Expectation:
    """Expect `Vary: Accept-Encoding` with a compressed response."""
    varies = names("Vary", "Accept-Encoding")
    return Expectation(varies.words, lambda answer: None if answer.coding == "identity" else varies.wrong(answer))


def body(right: bytes, words: str) -> Expectation:
    """Exactly this content."""

    def wrong(answer: Answer) -> str | None:
        if answer.content == right:
            return None
        return f"status {answer.status}, {len(answer.content)} other bytes"

    return Expectation(words, wrong)


def wrong_of(answer: Answer, expectations: Iterable[Expectation]) -> tuple[str, str] | None:
    """The first unmet expectation and the difference, in words; None if all are met."""
    for item in expectations:
        if (got := item.wrong(answer)) is not None:
            return item.words, got
    return None
