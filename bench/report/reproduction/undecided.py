"""Which measurements may decide the claims that are open: the cases on both sides of each, at their levels. Pure.

Only ratios become clearer with more rounds. A side that failed in every round, that gave wrong answers or that cannot
run here stays unmeasured however often it is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from bench.report.reproduction.claims import INCONCLUSIVE, Claim, judge
from bench.report.reproduction.measured import Cell, MeasuredFigures, Place


def undecided(data: Mapping[str, Any], measured: MeasuredFigures) -> dict[int, list[Cell]]:
    """Index of a run -> what to measure further in it."""
    found: dict[int, list[Cell]] = {}
    for claim in data["claims"]:
        for left, right in _compared(claim, data.get("here", {})):
            if _is_open(claim, left, right, measured):
                for run, cell in (*measured.cells(left), *measured.cells(right)):
                    found.setdefault(run, []).append(cell)
    return {run: list(dict.fromkeys(cells)) for run, cells in found.items()}


def _compared(claim: Claim, here: Place) -> list[tuple[Place, Place]]:
    """The pairs of places that a claim compares."""
    if "order" in claim:
        return [({**here, **after}, {**here, **before}) for before, after in pairwise(claim["order"])]
    return [({**here, **claim["left"]}, {**here, **claim["right"]})] if "right" in claim else []


def _is_open(claim: Claim, left: Place, right: Place, measured: MeasuredFigures) -> bool:
    ratio, _ = measured.ratio(left, right, claim.get("metric", "requests_per_second"))
    if ratio is None:
        # Of voided trials alone there is no figure, but there may be one next time.
        return bool(measured.cells(left) and measured.cells(right))
    return judge(ratio, claim.get("at_least"), claim.get("at_most")) == INCONCLUSIVE
