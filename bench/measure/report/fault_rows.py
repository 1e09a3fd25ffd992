"""Effects of faults on visitors, case by case. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import Run
from bench.measure.report.document import FaultCase, FaultRow
from bench.measure.report.loads import median_of, median_or_none
from bench.words import one_line

DEPLOY = "application"
STOPS_AT = "stops_at"
WORST_FIRST = ("failed", "known limitation", "passed", "discarded", "skipped")
# The most slow clients that a fault tries.
MAX_SLOW = 200

Key = tuple[str, str, str, str]  # stack, layer, size, database


def columns(every: Iterable[FaultCase], *key: str) -> dict[str, Any]:
    """Columns of a case's row, of this stack, layer, size and database, from its faults."""
    rows = chain.from_iterable(case.faults for case in every if _key(case) == key)
    slow: list[Mapping[str, float | None]] = []
    slow_clients = tried = deploy_lost = None
    for row in rows:
        if row.requests_lost is None:
            continue
        if row.fault.startswith("slow-"):
            slow.append(row.figures)
        elif row.fault == DEPLOY and deploy_lost is None:
            deploy_lost = row.requests_lost
    if slow:
        slow_clients, tried = round(_fewest(slow) or 0), MAX_SLOW
    return {"slow_clients": slow_clients, "slow_clients_tried": tried, "deploy_lost": deploy_lost}


def _fewest(every: Iterable[Mapping[str, float | None]]) -> float | None:
    """The fewest slow clients that stopped the site; None if none did."""
    stops = [figures.get(STOPS_AT) for figures in every]
    return min(filter(None, stops), default=None)


def cases(run: Run, number: int) -> tuple[FaultCase, ...]:
    """Each case with its faults."""
    outcomes: dict[Key, dict[str, list[FaultOutcome]]] = {}
    for outcome in run.latest_outcomes.values():
        outcomes.setdefault(_key(outcome), {}).setdefault(outcome.fault, []).append(outcome)
    return tuple(FaultCase(number, *key, tuple(map(_row, each.values()))) for key, each in outcomes.items())


def _key(item: FaultOutcome | FaultCase) -> Key:
    return item.stack, item.layer, item.size, item.database


def _row(outcomes: list[FaultOutcome]) -> FaultRow:
    worst = min(outcomes, key=lambda outcome: WORST_FIRST.index(outcome.word))
    finished = [item for item in outcomes if item.status in ("ok", "failed") and item.failed is not None]
    every = [item.figures or {} for item in finished]
    figures: dict[str, float | None] = {}
    for name in dict.fromkeys(chain.from_iterable(every)):
        figures[name] = median_or_none(each.get(name) for each in every)
    # The worst of the rounds, if any stopped the site.
    if stops := _fewest(every):
        figures[STOPS_AT] = stops
    recovery_s = median_of(finished, "recovery_s")
    # Without recovery in a round, the others do not show how long recovery takes.
    if any(item.recovery_s is None for item in finished):
        recovery_s = None
    return FaultRow(
        fault=worst.fault,
        group=worst.group,
        outcome=worst.word,
        reason=worst.known_limitation or worst.reason,
        requests_lost=median_of(finished, "failed"),
        recovery_s=recovery_s,
        longest_gap_s=median_of(finished, "longest_gap_s"),
        stale_s=median_of(finished, "stale_s"),
        mixed_s=median_of(finished, "mixed_s"),
        wrong=median_of(finished, "wrong"),
        figures=figures,
        operator=worst.operator,
    )


def reasons(every: Iterable[FaultCase], outcome: str) -> dict[str, tuple[str, ...]]:
    """Reason of the faults with this outcome -> their names, each with its stack."""
    by_reason: dict[str, list[str]] = {}
    for case in every:
        for row in case.faults:
            if row.outcome == outcome and row.reason:
                by_reason.setdefault(one_line(row.reason), []).append(f"{row.fault} on {case.stack}")
    return {reason: tuple(names) for reason, names in by_reason.items()}
