"""The published benchmarks as data: the files in `published/`, one a benchmark, and the meaning of each key.

Machines and versions of then are gone, so absolute figures are history: a reproduction is about the ratios and the
questions. Figures are as published and never recomputed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert, structs

FOLDER = Path(__file__).resolve().parent / "published"

# Of a case: stack (or stacks and a name for their median, round by round), layer, workload, size, database, and its
# level: by default the highest; or `pick`, the lowest or highest figure of all levels in each round.
Place = Mapping[str, Any]


class Part(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One run, or one of `faults`.

    set           values changed, as of `run`
    own_database  no other database replaces one without an installed service
    faults        made on the stacks instead of a run
    quick         keys replaced by --quick, besides those of the benchmark
    """

    name: str
    stacks: list[str]
    layers: tuple[str, ...] = ("none",)
    workloads: list[str] = []
    levels: list[int] = []
    sizes: tuple[str, ...] = ("unlimited",)
    rounds: int
    duration_s: int = 0
    database: str = "sqlite"
    own_database: bool = False
    set: list[str] = []
    faults: list[str] = []
    quick: dict[str, int] = {}


class Claim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published conclusion, in a form for computing. The benchmark's `here` completes the places.

    left, right  places: the ratio of `metric` is at_least or at_most so much
    published    the ratio as published
    order        places: the ratio of each to the one before is at_least so much
    rating       of the stability of `left`, `because` of one of some criteria; a rating of fewer requests than
                 began_at_request disproves nothing
    fails        whether trials of `left` fail or have errors
    survives     before the load fails, `left` gets so many times as many responses as `right`
    loses        the fault by which `left` loses no request
    check        a check of verify passed by `left`, and then `says` is the conclusion
    untested     the reason for no test
    left_open    a question that the publication left open
    """

    claim: str
    left: dict[str, Any] = {}
    right: dict[str, Any] = {}
    metric: str = "requests_per_second"
    published: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    order: list[dict[str, Any]] = []
    rating: Literal["HIGH", "MEDIUM", "LOW", ""] = ""
    because: list[str] = []
    began_at_request: int = 0
    fails: bool | None = None
    survives: float | None = None
    loses: str = ""
    check: str = ""
    says: str = ""
    untested: str = ""
    left_open: bool = False

    @property
    def bounds(self) -> str:
        """The bounds of a ratio in words; empty for a claim without a ratio."""
        least = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        most = [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(least + most)


class Column(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure of every row, under `key`: a `metric`, at the row's place with the keys of this entry.

    variant  added to the name of the row's stack
    """

    key: str
    title: str
    metric: str
    workload: str = ""
    pick: str = ""
    variant: str = ""


class Publication(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published benchmark: the question and the method, the runs of a reproduction, the table and the conclusions.

    rows  each a place of this project with a title, and the published figures; `added`: not in the publication
    """

    title: str
    source: str
    year: int
    question: str
    load: str
    machine: str = ""
    here: dict[str, Any]
    quick: dict[str, int]
    parts: list[Part]
    columns: list[Column]
    claims: list[Claim]
    rows: list[dict[str, Any]]

    def part(self, name: str, quick: bool) -> Part:
        """A part, shortened with --quick."""
        named_part = next(part for part in self.parts if part.name == name)
        return structs.replace(named_part, **({**self.quick, **named_part.quick} if quick else {}))


@cache
def publications() -> dict[str, Publication]:
    """The published benchmarks by name."""
    documents = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
    return {name: convert(content, Publication) for name, content in documents.items()}
