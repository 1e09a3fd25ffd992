"""A page as it was rendered in process, and what differs by its nature between two renderings of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property

from bench.verify.page_parser import normalised
from bench.verify.wire import Target

# The host that pages are rendered for; bench/inside/management/commands/renderpages.py.
ORIGIN = "http://127.0.0.1"
SHOWN_BEFORE, SHOWN = 20, 60
_TAGS = re.compile(r"(?<=[>\n])")
_WORDS = re.compile(r"\w+|\W")


@dataclass(frozen=True)
class Expected:
    """An answer rendered in process.

    content_type  as in Answer.content_type
    again         the body of a second rendering; None when it was the same
    location      where a redirect leads
    reads         the names of the `headers` and `cookies` that the rendering looked for
    """

    status: int
    content_type: str
    body: str
    again: str | None = None
    location: str | None = None
    reads: Mapping[str, list[str]] = field(default_factory=dict, compare=False)

    @property
    def is_html(self) -> bool:
        return self.content_type.startswith("text/html")

    @property
    def redirects(self) -> bool:
        return 300 <= self.status < 400

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """What every rendering has, in this order; between two parts each rendering has its own text."""
        body = normalised(self.body)
        return (body,) if self.again is None else tuple(_common(body, normalised(self.again)))

    @property
    def varies(self) -> bool:
        """Whether it differs from one rendering to the next, by more than its CSRF tokens."""
        return len(self.parts) > 1

    @property
    def lasts(self) -> bool:
        """Whether every rendering has the very same bytes: it holds no CSRF token either."""
        return self.parts == (self.body,)

    def same(self, other: Expected) -> bool:
        """Whether another rendering has the same status, type and parts."""
        alike = (self.status, self.content_type) == (other.status, other.content_type)
        return alike and self.difference(other.body) is None

    def difference(self, text: str) -> tuple[str, str] | None:
        """The first difference of a rendering, as the right and the wrong words; None when there is none."""
        text = normalised(text)
        at, last = 0, len(self.parts) - 1
        for number, part in enumerate(self.parts):
            if number == 0 or number == last:
                # The last part ends the page, the first begins it; the only one does both.
                start = 0 if number == 0 else max(at, len(text) - len(part))
                if text[start : start + len(part)] != part or (number == last and start + len(part) != len(text)):
                    return _shown(part, text[start:], start, len(text))
            else:
                start = text.find(part, at)
                if start < 0:
                    return _shown(part, text[at:], at, len(text))
            at = start + len(part)
        return None


def as_in_process(text: str, target: Target) -> str:
    """A page as it would be under the origin that pages in process are asked under."""
    return text.replace(target.origin, ORIGIN).replace(target.netloc, ORIGIN.partition("//")[2])


def _shown(right: str, got: str, start: int, length: int) -> tuple[str, str]:
    at = next((n for n, (a, b) in enumerate(zip(right, got, strict=False)) if a != b), min(len(right), len(got)))
    begin = max(0, at - SHOWN_BEFORE)
    return (
        f"from character {start + begin} on {right[begin : at + SHOWN]!r}",
        f"{got[begin : at + SHOWN]!r}, of {length} characters",
    )


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
    """What is the same and what is not, tag by tag and within tags that differ word by word."""
    tags, others = _TAGS.split(one), _TAGS.split(other)
    for kind, begin, end, other_begin, other_end in SequenceMatcher(None, tags, others, autojunk=False).get_opcodes():
        text = "".join(tags[begin:end])
        if kind == "equal":
            yield True, text
            continue
        words, new = _WORDS.findall(text), _WORDS.findall("".join(others[other_begin:other_end]))
        for how, first, last, _, _ in SequenceMatcher(None, words, new).get_opcodes():
            yield how == "equal", "".join(words[first:last])
