"""Stability ratings of a run's cases, over all their rounds and levels. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.words import plural
from bench.report.model import CaseRow, Report
from bench.report.numbers import DASH
from bench.results import stability
from bench.results.stability import BOUNDS, HIGH, ORDER, Rating

# What each criterion measures, with its unit; the bounds come from the formula.
CRITERIA = {
    "errors": "share of failed requests",
    "spread": "spread of requests/s between rounds, as a share of their median",
    "growth": "memory gained during a trial, as a share of its start",
    "kills": "processes killed for lack of memory",
    "restarts": "worker processes replaced during a trial",
    "absence": "trials after which the site did not recover by itself",
}


@dataclass(frozen=True)
class RatedCase:
    """One case and its rating."""

    stack: str
    layer: str
    workload: str
    size: str
    rating: Rating


def rated(report: Report) -> list[RatedCase]:
    """Every case with trials, in the order of the report."""
    cases: dict[tuple[str, str, str, str, str], list[CaseRow]] = {}
    for row in report.rows:
        setting = row.setting
        cases.setdefault((row.stack, row.layer, setting.workload, setting.size, setting.database), []).append(row)
    found = []
    for (stack, layer, workload, size, _), rows in cases.items():
        if trials := [trial for row in rows for trial in row.trials]:
            found.append(RatedCase(stack, layer, workload, size, stability.rate(trials)))
    return found


def below_high(report: Report) -> list[RatedCase]:
    """The cases that are not rated HIGH."""
    return [item for item in rated(report) if item.rating.rating != HIGH]


@dataclass(frozen=True)
class BelowHigh:
    """Cases that one criterion rates alike, with the worst of them in words."""

    word: str
    criterion: str
    worst: str
    cases: tuple[str, ...]


def by_reason(report: Report) -> list[BelowHigh]:
    """The cases that are not rated HIGH, by rating and criterion, LOW first; a case may have several reasons."""
    found: dict[tuple[str, str], list[tuple[float, str, str]]] = {}
    for item in below_high(report):
        size = f", {item.size}" if item.size != "unlimited" else ""
        name = f"{item.stack} with {item.layer}, {item.workload}{size}"
        criteria = [each for each in item.rating.criteria if each.rating not in (None, HIGH)]
        for each in criteria:
            found.setdefault((each.rating or "", each.name), []).append((each.value or 0.0, each.text, name))
        if not criteria:
            found.setdefault((item.rating.word, DASH), []).append((0.0, "no valid trial", name))
    order = [*reversed(ORDER), stability.NOT_RATED]
    return [
        BelowHigh(word, criterion, max(cases)[1], tuple(name for _, _, name in cases))
        for (word, criterion), cases in sorted(found.items(), key=lambda group: order.index(group[0][0]))
    ]


def high(report: Report) -> str:
    """How many cases are rated HIGH, and what was not measured for some of them, in one sentence."""
    every = rated(report)
    found = [item.rating for item in every if item.rating.rating == HIGH]
    unknown = [name for name in CRITERIA if any(name in rating.unknown for rating in found)]
    missing = f"; not measured for all of them: {', '.join(unknown)}" if unknown else ""
    return f"{len(found)} of {plural(len(every), 'case')} are rated HIGH{missing}."


def worst(report: Report, stack: str, layer: str) -> Rating | None:
    """The lowest rating of a deployment on any workload of the run; None when none was rated."""
    found = [item.rating for item in rated(report) if (item.stack, item.layer) == (stack, layer) and item.rating.rating]
    return max(found, key=lambda rating: ORDER.index(rating.rating or ORDER[0]), default=None)


def explanation() -> str:
    """How a case is rated, in one sentence."""
    return (
        "Each case is rated HIGH, MEDIUM or LOW over all its rounds and levels. The worst criterion decides; "
        "one that was not measured does not count. A case without a valid trial is not rated, or LOW when its "
        "load failed."
    )


def bounds() -> list[tuple[str, str, str, str]]:
    """Criterion, its meaning, and the largest values that still rate HIGH and MEDIUM."""
    return [(name, CRITERIA[name], _bound(name, high), _bound(name, medium)) for name, (high, medium) in BOUNDS.items()]


def _bound(name: str, value: float) -> str:
    return f"{100 * value:g} %" if name in ("errors", "spread", "growth") else f"{value:g}"
