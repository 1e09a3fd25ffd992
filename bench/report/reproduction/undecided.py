"""Which measurements may decide the claims that are open: the cases on both sides of each, at their levels. Pure.

Only ratios become clearer with more rounds. A rating takes the worst of all rounds, `fails` and `survives` take each
trial by itself: they only need enough trials that count, which a voided one does not. A side that failed in every
round, that gave wrong answers or that cannot run here stays unmeasured however often it is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from bench.report.reproduction.claims import INCONCLUSIVE, Claim, judge
from bench.report.reproduction.measured import Cell, MeasuredFigures, Place

# How many trials a claim about single ones needs.
ENOUGH = 2
OF_TRIALS = {"rating", "fails", "survives"}


def undecided(data: Mapping[str, Any], measured: MeasuredFigures) -> dict[int, list[Cell]]:
    """Index of a run -> what to measure further in it."""
    found: dict[int, list[Cell]] = {}
    for claim in data["claims"]:
        for run, cell in _too_few(claim, data.get("here", {}), measured):
            found.setdefault(run, []).append(cell)
        for left, right in _compared(claim, data.get("here", {})):
            if _is_open(claim, left, right, measured):
                for run, cell in (*measured.cells(left), *measured.cells(right)):
                    found.setdefault(run, []).append(cell)
    return {run: list(dict.fromkeys(cells)) for run, cells in found.items()}


def _too_few(claim: Claim, here: Place, measured: MeasuredFigures) -> Iterator[tuple[int, Cell]]:
    """The cases of a claim about single trials that have too few of them. A rating takes all levels of its case."""
    if not OF_TRIALS & claim.keys():
        return
    for side in (claim[name] for name in ("left", "right") if name in claim):
        run, rows = measured.rows({**here, **side})
        for row in rows if "rating" in claim else rows[:1]:
            if run is not None and row.trials and not row.wrong and len(row.ok) + len(row.failed) < ENOUGH:
                yield run, (row.trials[0].case_id, row.setting.level)


def _compared(claim: Claim, here: Place) -> list[tuple[Place, Place]]:
    """The pairs of places that a claim compares."""
    if "order" in claim:
        return [({**here, **after}, {**here, **before}) for before, after in pairwise(claim["order"])]
    if "right" in claim and "survives" not in claim:
        return [({**here, **claim["left"]}, {**here, **claim["right"]})]
    return []


def _is_open(claim: Claim, left: Place, right: Place, measured: MeasuredFigures) -> bool:
    ratio, _ = measured.ratio(left, right, claim.get("metric", "requests_per_second"))
    if ratio is None:
        # Of voided trials alone there is no figure, but there may be one next time.
        return bool(measured.cells(left) and measured.cells(right))
    return judge(ratio, claim.get("at_least"), claim.get("at_most")) == INCONCLUSIVE
