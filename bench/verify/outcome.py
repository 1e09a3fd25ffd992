"""What a check finds, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# The checks of any site, then those that only a caching layer can fail, in the order they are made and shown in.
BEHAVIOUR = "behaviour"
GROUPS = {
    BEHAVIOUR: "the site gives its right answers",
    "caching": "it keeps what may be kept and nothing else",
    "privacy": "nobody sees another's page",
    "web": "cookies, query strings and hosts made up by clients neither split nor flood it",
    "freshness": "a write shows soon, and what is old does not come back",
    "stampede": "many at once cost few renderings",
    "bytes": "a kept answer is the rendered one, byte for byte and header by header",
    "names": "odd URLs break nothing, read no other file and share no entry",
    "files": "no reader sees half a page, whatever dies meanwhile",
    "service": "pages keep coming when the caching service stops, and hits return with it",
    "advisories": "published faults of cache middleware and Vary stay mended",
}


# Why a check is not tried of a site of which only the address is known.
NEEDS = "it needs the site's database: give --database as the URL that the running site uses"


@dataclass(frozen=True)
class Mismatch:
    """One wrong answer, in words."""

    expected: str
    got: str


@dataclass(frozen=True)
class Figure:
    """Something measured on the way, neither right nor wrong; the unit is in the name."""

    name: str
    value: float | int | None


@dataclass(frozen=True)
class NotTried:
    """The check cannot be made of this kind of target, and why."""

    reason: str


class NotAsked(Exception):
    """What a check needs cannot be had of this target; the text says why. It makes the check NotTried."""


Finding = Mismatch | Figure | NotTried


@dataclass(frozen=True)
class Outcome:
    """What one check found on one deployment; a line of verify.jsonl.

    ok         False when it met a wrong answer
    declared   the reason why the stack or layer does not support it, or None
    group      one of GROUPS
    figures    what was measured on the way, by name
    not_tried  the reason why it was not made, or None; then `ok` says nothing
    """

    stack: str
    layer: str
    check: str
    ok: bool
    expected: str | None = None
    got: str | None = None
    declared: str | None = None
    group: str = BEHAVIOUR
    figures: Mapping[str, float | int | None] = field(default_factory=dict)
    not_tried: str | None = None

    @property
    def word(self) -> str:
        """`FAIL`, `declared`, `not tried` or `pass`."""
        if not self.ok:
            return "FAIL"
        if self.declared:
            return "declared"
        return "not tried" if self.not_tried else "pass"
