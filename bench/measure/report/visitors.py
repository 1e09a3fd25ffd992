"""Effects of faults on visitors, case by case. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.measure.records.faults import FaultOutcome
from bench.measure.records.folder import Run
from bench.measure.report.document import FaultCase, FaultRow
from bench.measure.report.loads import median_or_none

DEPLOY = "application"
STOPS_AT = "stops_at"
WORST_FIRST = ("FAIL", "known limitation", "pass", "DISCARDED", "skipped")
# The most slow clients that a fault tries.
MAX_SLOW = 200

Key = tuple[str, str, str, str]  # stack, layer, size, database


def seen(every: Iterable[FaultCase], *key: str) -> dict[str, Any]:
    """Columns of a case's row, of this stack, layer, size and database, from its faults."""
    rows = [row for case in every if _key(case) == key for row in case.faults if row.requests_lost is not None]
    slow = [row for row in rows if row.fault.startswith("slow-")]
    stops = [found for row in slow if (found := row.figures.get(STOPS_AT))]
    return {
        "slow_clients": (round(min(stops)) if stops else 0) if slow else None,
        "slow_clients_tried": MAX_SLOW if slow else None,
        "deploy_lost": next((row.requests_lost for row in rows if row.fault == DEPLOY), None),
    }


def cases(run: Run, number: int) -> tuple[FaultCase, ...]:
    """Each case with its faults."""
    found: dict[Key, dict[str, list[FaultOutcome]]] = {}
    for outcome in run.latest_outcomes.values():
        found.setdefault(_key(outcome), {}).setdefault(outcome.fault, []).append(outcome)
    return tuple(FaultCase(number, *key, tuple(map(_row, each.values()))) for key, each in found.items())


def _key(item: FaultOutcome | FaultCase) -> Key:
    return item.stack, item.layer, item.size, item.database


def _row(outcomes: list[FaultOutcome]) -> FaultRow:
    worst = min(outcomes, key=lambda outcome: WORST_FIRST.index(outcome.word))
    made = [item for item in outcomes if item.status in ("ok", "failed") and item.failed is not None]
    names = dict.fromkeys(name for item in made for name in item.figures or {})
    figures = {name: median_or_none((item.figures or {}).get(name) for item in made) for name in names}
    # The worst of the rounds, if any stopped the site.
    stops = [found for item in made if (found := (item.figures or {}).get(STOPS_AT))]
    figures |= {STOPS_AT: min(stops)} if stops else {}
    never = any(item.recovery_s is None for item in made)
    return FaultRow(
        fault=worst.fault,
        group=worst.group,
        outcome=worst.word,
        reason=worst.declared or worst.reason,
        requests_lost=median_or_none(item.failed for item in made),
        recovery_s=None if never else median_or_none(item.recovery_s for item in made),
        longest_gap_s=median_or_none(item.longest_gap_s for item in made),
        stale_s=median_or_none(item.stale_s for item in made),
        mixed_s=median_or_none(item.mixed_s for item in made),
        wrong=median_or_none(item.wrong for item in made),
        figures=figures,
        operator=worst.operator,
    )


def reasons(every: Iterable[FaultCase], outcome: str) -> dict[str, list[str]]:
    """Reason of the faults with this outcome -> their names, each with its stack."""
    found: dict[str, list[str]] = {}
    for case in every:
        for row in case.faults:
            if row.outcome == outcome and row.reason:
                found.setdefault(row.reason, []).append(f"{row.fault} on {case.stack}")
    return found
