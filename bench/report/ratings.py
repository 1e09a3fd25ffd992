"""Stability ratings of a run's cases, over all their rounds and levels. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.report.model import Report, Row
from bench.results import stability
from bench.results.stability import BOUNDS, ORDER, Rating

# What each part of the formula looks at; its bounds come from the formula itself.
PARTS = {
    "errors": "requests that failed",
    "spread": "how far the rounds lie apart",
    "growth": "memory gained in a trial",
    "kills": "processes killed for want of memory",
    "restarts": "workers replaced in a trial",
    "absence": "trials after which the site did not answer again by itself",
}


@dataclass(frozen=True)
class Rated:
    """One case and its rating."""

    stack: str
    layer: str
    workload: str
    size: str
    rating: Rating


def rated(report: Report) -> list[Rated]:
    """Every case that can be rated, in the order of the report."""
    cases: dict[tuple[str, str, str, str, str], list[Row]] = {}
    for row in report.rows:
        setting = row.setting
        cases.setdefault((row.stack, row.layer, setting.workload, setting.size, setting.database), []).append(row)
    found = []
    for (stack, layer, workload, size, _), rows in cases.items():
        rating = stability.rate(trial for row in rows for trial in row.trials)
        if rating.rating:
            found.append(Rated(stack, layer, workload, size, rating))
    return found


def worst(report: Report, stack: str, layer: str) -> Rating | None:
    """The lowest rating that a deployment has on any of the run's workloads; None when none was rated."""
    found = [item.rating for item in rated(report) if (item.stack, item.layer) == (stack, layer)]
    return max(found, key=lambda rating: ORDER.index(rating.rating), default=None)


def formula() -> str:
    """The formula in a sentence, with its bounds."""
    parts = [f"{PARTS[name]} ({high:g} / {medium:g})" for name, (high, medium) in BOUNDS.items()]
    return (
        "A case is rated as its worst part, over all rounds and levels. Parts, with the most that is still HIGH and "
        f"the most that is still MEDIUM: {', '.join(parts)}."
    )
