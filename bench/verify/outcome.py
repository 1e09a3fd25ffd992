"""What a check finds, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass

from bench.results.records import Outcome

__all__ = ["BEHAVIOUR", "GROUPS", "NEEDS", "Figure", "Finding", "Mismatch", "NotAsked", "NotTried", "Outcome"]

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
