"""Compare the effects on visitors with the expectations, and judge their validity. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.measure.faults.fault import Expected
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.run import guards

# The guard of an outcome, with its default bound: beyond it, visitors may notice a busy machine instead of the fault.
# The same holds for requests sent late, or lost before the fault.
GUARD = "interference"
BOUNDS = {GUARD: guards.BOUNDS[GUARD]}
MAX_LATE_MS = 100.0


def unexpected(outcome: FaultOutcome, expected: Expected) -> Iterator[str]:
    """A sentence for each unexpected effect."""
    lost, requests = outcome.failed or 0, (outcome.requests_new or 0) + (outcome.requests_kept or 0)
    if expected.lost is not None and lost > expected.lost:
        kinds = ", ".join(f"{count}x {kind}" for kind, count in sorted((outcome.failures or {}).items()))
        yield f"{lost} of {requests} requests failed ({kinds}), {expected.lost} expected"
    if expected.recovery_s is not None:
        if outcome.recovery_s is None:
            yield "no right responses returned during the load"
        elif outcome.recovery_s > expected.recovery_s:
            yield f"recovery took {outcome.recovery_s:.1f} s, {expected.recovery_s:g} s expected"
    if outcome.wrong:
        yield f"{outcome.wrong} wrong responses, the first: {outcome.example}"
    if expected.stale is not None and (outcome.stale or 0) > expected.stale:
        yield f"{outcome.stale} stale pages, such as {outcome.example}"
    if expected.slowest_s is not None and (outcome.slowest_s or 0.0) > expected.slowest_s:
        yield f"a request took {outcome.slowest_s:.1f} s, {expected.slowest_s:g} s expected"
    if outcome.missing_static:
        yield f"{outcome.missing_static} static files that pages name are not there"


def discarded(outcome: FaultOutcome, failed_before: int, bounds: Mapping[str, float]) -> str:
    """The reason to discard the outcome, by the guard if in `bounds`; or empty.

    failed_before  requests without a right response before the fault
    """
    if GUARD not in bounds:
        return ""
    if failed_before:
        return f"{GUARD}: {failed_before} requests failed before the fault"
    if (outcome.other_cpu_share or 0.0) > bounds[GUARD]:
        return f"{GUARD}: other processes took {outcome.other_cpu_share:.0%} of the machine"
    if (outcome.late_p99_ms or 0.0) > MAX_LATE_MS:
        return f"{GUARD}: 1 in 100 requests left {outcome.late_p99_ms:.0f} ms late or more"
    return ""
