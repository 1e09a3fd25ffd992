"""Compare the effects on visitors with the expectations, and judge their validity. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.measure.faults.fault import Expected
from bench.measure.records.faults import FaultOutcome
from bench.measure.run import guards

# The guard of an outcome, with its default bound: beyond it, visitors may notice a busy machine instead of the fault.
# The same holds for requests sent late, or lost before the fault.
GUARD = "interference"
BOUNDS = {GUARD: guards.BOUNDS[GUARD]}
MAX_LATE_MS = 100.0


def unexpected(seen: FaultOutcome, expected: Expected) -> Iterator[str]:
    """A sentence for each unexpected effect."""
    lost, asked = seen.failed or 0, (seen.requests_new or 0) + (seen.requests_kept or 0)
    if expected.lost is not None and lost > expected.lost:
        kinds = ", ".join(f"{count}x {kind}" for kind, count in sorted((seen.failures or {}).items()))
        yield f"{lost} of {asked} requests failed ({kinds}), {expected.lost} expected"
    if expected.recovery_s is not None:
        if seen.recovery_s is None:
            yield "no right responses returned during the load"
        elif seen.recovery_s > expected.recovery_s:
            yield f"recovery took {seen.recovery_s:.1f} s, {expected.recovery_s:g} s expected"
    if seen.wrong:
        yield f"{seen.wrong} wrong responses, the first: {seen.example}"
    if expected.stale is not None and (seen.stale or 0) > expected.stale:
        yield f"{seen.stale} stale pages, such as {seen.example}"
    if expected.slowest_s is not None and (seen.slowest_s or 0.0) > expected.slowest_s:
        yield f"a request took {seen.slowest_s:.1f} s, {expected.slowest_s:g} s expected"
    if seen.missing_static:
        yield f"{seen.missing_static} static files that pages name are not there"


def discarded(seen: FaultOutcome, failed_before: int, bounds: Mapping[str, float]) -> str:
    """The reason to discard the outcome, by the guard if in `bounds`; or empty.

    failed_before  requests without a right response before the fault
    """
    if GUARD not in bounds:
        return ""
    if failed_before:
        return f"{GUARD}: {failed_before} requests failed before the fault"
    if (seen.other_cpu_share or 0.0) > bounds[GUARD]:
        return f"{GUARD}: other processes took {seen.other_cpu_share:.0%} of the machine"
    if (seen.late_p99_ms or 0.0) > MAX_LATE_MS:
        return f"{GUARD}: 1 in 100 requests left {seen.late_p99_ms:.0f} ms late or more"
    return ""
