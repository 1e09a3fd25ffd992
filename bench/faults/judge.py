"""Whether what visitors noticed is as expected, and whether it can be trusted. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.faults.fault import Expected
from bench.faults.observe import Noticed
from bench.measure import guards

# The guard of an outcome, with its default bound: beyond it a busy machine, and not the fault, may be what visitors
# noticed. So may it be when visitors left late, or lost requests before the fault.
GUARD = "interference"
BOUNDS = {GUARD: guards.BOUNDS[GUARD]}
MAX_LATE_MS = 100.0


def unexpected(noticed: Noticed, expected: Expected, missing: int = 0) -> list[str]:
    """A sentence for everything that is not as expected."""
    return list(_unexpected(noticed, expected, missing))


def _unexpected(noticed: Noticed, expected: Expected, missing: int) -> Iterator[str]:
    if expected.lost is not None and noticed.failed > expected.lost:
        kinds = ", ".join(f"{count}x {kind}" for kind, count in sorted(noticed.failures.items()))
        asked = noticed.requests_new + noticed.requests_kept
        yield f"{noticed.failed} of {asked} requests failed ({kinds}), {expected.lost} expected"
    if expected.recovery_s is not None:
        if noticed.recovery_s is None:
            yield "right answers did not come back while the visitors asked"
        elif noticed.recovery_s > expected.recovery_s:
            yield f"recovery took {noticed.recovery_s:.1f} s, {expected.recovery_s:g} s expected"
    if expected.wrong is not None and noticed.wrong > expected.wrong:
        yield f"{noticed.wrong} wrong answers, the first: {noticed.example}"
    if expected.stale is not None and noticed.stale > expected.stale:
        yield f"{noticed.stale} stale pages, such as {noticed.example}"
    if expected.missing is not None and missing > expected.missing:
        yield f"{missing} static files that pages name are not there"


def void(noticed: Noticed, other_cpu_share: float, bounds: Mapping[str, float]) -> str:
    """Why the outcome cannot be trusted, by the guard where `bounds` has it; or empty."""
    if GUARD not in bounds:
        return ""
    if noticed.failed_before:
        return f"{GUARD}: {noticed.failed_before} requests failed before the fault"
    if other_cpu_share > bounds[GUARD]:
        return f"{GUARD}: other processes took {other_cpu_share:.0%} of the machine"
    if noticed.late_p99_ms > MAX_LATE_MS:
        return f"{GUARD}: 1 in 100 requests left {noticed.late_p99_ms:.0f} ms late or more"
    return ""
