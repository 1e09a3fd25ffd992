"""The published benchmarks as data: the files in `published/`, one a benchmark, and what each key of them means.

Machines and versions of then are gone, so that absolute figures are history: a reproduction is about the ratios and the
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
    own_database  no other database replaces it where it is not installed
    faults        made on the stacks instead of a run
    quick         what --quick replaces, besides that of the benchmark
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
    """A published conclusion, in a form that can be computed. Places are completed by those of the benchmark (`here`).

    left, right  the ratio of their `metric` is at_least or at_most so much
    published    that ratio as it was published
    order        places: the ratio of each to the one before is at_least so much
    rating       of the stability of `left`, `because` of one of these criteria; a rating of fewer requests than
                 began_at_request disproves nothing
    fails        whether trials of `left` fail or have errors
    survives     before its load fails, `left` gets so many times as many answers as `right`
    loses        the fault by which `left` loses no request
    check        a check of verify that `left` passes, which then `says` something
    untested     why it is not tested
    left_open    the publication asked it and did not answer
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
        """Within which a ratio holds, in words; empty for a claim that is about none."""
        least = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        most = [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(least + most)


class Column(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure of every row, under its `key` there: a `metric`, at the row's place with what stands here.

    variant  added to the name of the row's stack
    """

    key: str
    title: str
    metric: str
    workload: str = ""
    pick: str = ""
    variant: str = ""


class Publication(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published benchmark: what it asked and how, the runs that repeat it, its table and its conclusions.

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
        """One of its parts, shortened with --quick."""
        found = next(part for part in self.parts if part.name == name)
        return structs.replace(found, **({**self.quick, **found.quick} if quick else {}))


@cache
def publications() -> dict[str, Publication]:
    """The published benchmarks by name."""
    found = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
    return {name: convert(content, Publication) for name, content in found.items()}
