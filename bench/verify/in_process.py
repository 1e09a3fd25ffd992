"""A page rendered in process, and the parts of the page that differ between renderings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from bench.errors import BenchError
from bench.serve.machine.http import Target
from bench.verify.page_parser import decoded, normalised

# The host that pages are rendered for; bench/serve/inside/management/commands/renderpages.py.
ORIGIN = "http://127.0.0.1"
SHOWN_BEFORE, SHOWN = 20, 60
# Placeholder for the words that differ in each rendering.
GAP = "\0"
# The rest of a word changes less often than its end, as in a time of day.
_AROUND_GAP = re.compile(r"[\w.:,+-]*\0[\w.:,+-]*")
_TAGS = re.compile(r"(?<=[>\n])")
_WORDS = re.compile(r"\w+|\W")


@dataclass(frozen=True)
class ExpectedPage:
    """A response rendered in process.

    content_type  as in PageResponse.content_type
    again         the other bodies of further renderings
    location      target of a redirect
    varying       the names of headers, in lower case, that differ between renderings
    streams       whether the response is streamed
    confirmed     False if a further rendering lacked a part common to all others
    reads         the names of the `headers` and `cookies` read by the rendering
    """

    status: int
    content_type: str
    body: str
    again: tuple[str, ...] = ()
    location: str | None = None
    varying: frozenset[str] = frozenset()
    streams: bool = False
    confirmed: bool = True
    reads: Mapping[str, list[str]] = field(default_factory=dict, compare=False)

    @property
    def is_html(self) -> bool:
        return self.content_type.startswith("text/html")

    @property
    def redirects(self) -> bool:
        return 300 <= self.status < 400

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts common to all renderings, in order; each rendering has its own text between two parts."""
        parts: tuple[str, ...] = tuple(normalised(self.body).split(GAP))
        for other in map(normalised, self.again):
            if _difference(parts, other):
                text = _AROUND_GAP.sub(GAP, GAP.join(_common(GAP.join(parts), other)))
                parts = tuple(text.split(GAP))
        return parts

    @cached_property
    def compared(self) -> bool:
        """True if the text is compared: the next difference can be predicted."""
        bodies = map(normalised, self.again)
        first = normalised(self.body)
        return self.confirmed and not any(_is_reordered(first, other) for other in bodies)

    @property
    def varies(self) -> bool:
        """True if renderings differ by more than their CSRF tokens."""
        return not self.compared or len(self.parts) > 1

    @property
    def scope(self) -> str:
        """The compared part of a varying page, in words."""
        if self.compared:
            return "only what stays is compared"
        return "its text is not compared"

    @property
    def lasts(self) -> bool:
        """True if every rendering has the very same bytes, without a CSRF token."""
        return self.compared and self.parts == (self.body,)

    def same(self, other: ExpectedPage) -> bool:
        """True if other renderings have the same status, type and parts."""
        alike = (self.status, self.content_type) == (other.status, other.content_type)
        return alike and all(self.difference(body) is None for body in (other.body, *other.again))

    def difference(self, text: str) -> tuple[str, str] | None:
        """The first difference, as the right and the wrong words; None if equal."""
        if not self.compared:
            return None
        return _difference(self.parts, normalised(text))


def expected_page(path: str, rendered: Mapping[str, Any]) -> ExpectedPage:
    """The page at this path in the output of `manage.py renderpages`; raises BenchError if missing."""
    try:
        response = rendered[path]
        content_type, location = response["content_type"], response.get("location")
        text, *again = [_text(body, content_type) for body in (response["body"], *response.get("again", ()))]
        return ExpectedPage(
            response["status"],
            "".join(content_type.lower().split()),
            text,
            tuple(again),
            location and location.removeprefix(ORIGIN),
            varying=frozenset(response.get("varying", ())),
            streams=response.get("streams", False),
            reads=response.get("reads", {}),
        )
    except (KeyError, TypeError, AttributeError):
        raise BenchError(f"manage.py renderpages {path}: no status, content_type and body in its output") from None


def _text(body: str, content_type: str) -> str:
    """The text of a body as visitors read it; `renderpages` prints bodies as if they were UTF-8."""
    return decoded(body.encode("utf-8", "surrogateescape"), content_type)


def as_in_process(text: str, target: Target) -> str:
    """Replace the target's origin by the origin used in process."""
    return text.replace(target.origin, ORIGIN).replace(target.netloc, ORIGIN.partition("//")[2])


def _difference(parts: tuple[str, ...], text: str) -> tuple[str, str] | None:
    """The first part missing in a text, as the right and the wrong words; None if no part is missing."""
    at, last = 0, len(parts) - 1
    for number, part in enumerate(parts):
        if number == 0 or number == last:
            # The last part ends the page, the first begins it; the only one does both.
            start = 0
            if number:
                start = max(at, len(text) - len(part))
            if text[start : start + len(part)] != part or (number == last and start + len(part) != len(text)):
                return _shown(part, text[start:], start, len(text))
        else:
            start = text.find(part, at)
            if start < 0:
                return _shown(part, text[at:], at, len(text))
        at = start + len(part)
    return None


def _shown(right: str, got: str, start: int, length: int) -> tuple[str, str]:
    at = 0
    for one, other in zip(right, got, strict=False):
        if one != other:
            break
        at += 1
    begin = max(0, at - SHOWN_BEFORE)
    return (
        f"from character {start + begin} on {right[begin : at + SHOWN]!r}",
        f"{got[begin : at + SHOWN]!r}, of {length} characters",
    )


def _is_reordered(one: str, other: str) -> bool:
    """True if two renderings have the same tags, or the same words of a text, in another order.

    Parts common to such renderings are common by chance: the next rendering may lack each of them.
    """
    tags, others = _TAGS.split(one), _TAGS.split(other)
    in_both = _single(tags) & _single(others)
    if [tag for tag in tags if tag in in_both] != [tag for tag in others if tag in in_both]:
        return True
    changed = {tuple(sorted(_WORDS.findall(tag))) for tag in {*tags} - {*others}}
    new = {tuple(sorted(_WORDS.findall(tag))) for tag in {*others} - {*tags}}
    return bool(changed & new)


def _single(tags: list[str]) -> set[str]:
    """Tags with one occurrence."""
    return {tag for tag, count in Counter(tags).items() if count == 1}


def _common(one: str, other: str) -> Iterator[str]:
    """The parts that two renderings share, the first and the last one perhaps empty."""
    part = ""
    for same, text in _blocks(one, other):
        if same:
            part += text
        else:
            yield part
            part = ""
    yield part


def _blocks(one: str, other: str) -> Iterator[tuple[bool, str]]:
    """Equal and different blocks, tag by tag, and word by word within different tags."""
    tags, others = _TAGS.split(one), _TAGS.split(other)
    for kind, begin, end, other_begin, other_end in SequenceMatcher(None, tags, others, autojunk=False).get_opcodes():
        text = "".join(tags[begin:end])
        if kind == "equal":
            yield True, text
            continue
        words, new = _WORDS.findall(text), _WORDS.findall("".join(others[other_begin:other_end]))
        for how, first, last, _, _ in SequenceMatcher(None, words, new).get_opcodes():
            yield how == "equal", "".join(words[first:last])
