"""Effects on visitors, counted from their visits. Pure: the log and the times of the fault in, figures out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.measure.faults.visitors import RequestedPage
from bench.measure.load.visits import Visit

# Allowance for a page that joined an earlier rendering for another visitor.
AGE_SLACK_S = 2.0


@dataclass
class FaultTimeline:
    """Times of events, in seconds of the monotonic clock, noted by a fault.

    struck    the fault began
    over      end of the cause: the killed process was dead, the hanging one was woken
    deployed  a deploy was complete; None without one
    wall_s    offset to the time of day
    ttl_s     the time to live of pages without an account; 0 if not cached
    old, new  the versions before and after a deploy; the same without one
    """

    struck: float = 0.0
    over: float = 0.0
    deployed: float | None = None
    wall_s: float = 0.0
    ttl_s: float = 0.0
    old: str = ""
    new: str = ""


@dataclass(frozen=True)
class Observations:
    """Effects on visitors.

    figures        fields of bench.measure.records.fault_outcomes.FaultOutcome
    failed_before  requests without a right response before the fault
    named          static files referenced by pages
    page           the page of the first request without a right response, or None
    """

    figures: dict[str, Any]
    failed_before: int
    named: frozenset[str]
    page: RequestedPage | None


def observe(visits: Sequence[Visit], pages: Sequence[RequestedPage], moments: FaultTimeline) -> Observations:
    """Count effects on visitors from the fault on."""
    since = [visit for visit in visits if visit.end >= moments.struck]
    bad = [visit for visit in since if not visit.is_good]
    good = [visit for visit in since if visit.is_good]
    wrong = _wrong(visits, pages, moments)
    right = [visit for visit in good if visit.mark and visit not in wrong]
    stale: dict[Visit, str] = {}
    for visit in right:
        if why := _stale(visit, pages[visit.page], moments):
            stale[visit] = why
    first = min([*bad, *wrong, *stale], key=lambda visit: visit.due, default=None)
    # By whether the connection was kept alive.
    requests, failed = Counter(visit.keep_alive for visit in since), Counter(visit.keep_alive for visit in bad)
    figures = {
        "watched_s": round(max((visit.due for visit in since), default=moments.struck) - moments.struck, 3),
        "requests_new": requests[False],
        "requests_kept": requests[True],
        "failed_new": failed[False],
        "failed_kept": failed[True],
        "retried": sum(visit.again > 0 for visit in since),
        "failures": dict(Counter(visit.failure or str(visit.status) for visit in bad)),
        "longest_gap_s": _longest_gap([visit for visit in good if pages[visit.page].account], since, moments.struck),
        "recovery_s": _recovery(good, bad, moments.over),
        "slowest_s": round(max((visit.end - visit.due for visit in good), default=0.0), 3),
        "wrong": len(wrong),
        "stale": len(stale),
        "example": next(iter([*wrong.values(), *stale.values()]), None),
        "late_p99_ms": _late(visits),
        **_versions(right, moments),
    }
    failed_before = sum(not visit.is_good for visit in visits if visit.end < moments.struck)
    named = frozenset(visit.mark[-1] for visit in visits if visit.mark)
    page = None
    if first:
        page = pages[first.page]
    return Observations(figures, failed_before, named, page)


def _longest_gap(good: Sequence[Visit], since: Sequence[Visit], struck: float) -> float:
    last = max((visit.due for visit in since), default=struck)
    ends = sorted([struck, *(visit.end for visit in good), last])
    return round(max((after - before for before, after in itertools.pairwise(ends)), default=0.0), 3)


def _recovery(good: Sequence[Visit], bad: Sequence[Visit], over: float) -> float | None:
    """Seconds from the end of the cause to the first right response after the last failure; a request fails at its due
    time."""
    if not bad:
        return 0.0
    last = max(visit.due for visit in bad)
    back = min((visit.end for visit in good if visit.due > last), default=None)
    if back is None:
        return None
    return round(max(0.0, back - over), 3)


def _late(visits: Sequence[Visit]) -> float:
    """99th percentile of the delay in sending, without retried requests."""
    delays = sorted(visit.left - visit.due for visit in visits if not visit.again and visit.failure != "dropped")
    if not delays:
        return 0.0
    return round(delays[int(len(delays) * 0.99)] * 1000, 1)


def _wrong(visits: Sequence[Visit], pages: Sequence[RequestedPage], moments: FaultTimeline) -> dict[Visit, str]:
    """The wrong responses since the fault, each with its first defect, in order of arrival."""
    defects: dict[Visit, str] = {}
    sizes: dict[str, int] = {}
    for visit in sorted((visit for visit in visits if visit.is_good), key=lambda visit: visit.end):
        page, why = pages[visit.page], ""
        # A file has the length it had the first time, before the fault.
        size = sizes.setdefault(page.path, visit.size)
        if page.account is not None:
            why = next(_wrong_in(visit, page.account, moments), "")
        elif size != visit.size:
            why = f"{visit.size:,} bytes, not {size:,}"
        if why and visit.end >= moments.struck:
            defects[visit] = f"GET {page.path}: {why}"
    return defects


def _wrong_in(visit: Visit, expected: str, moments: FaultTimeline) -> Iterator[str]:
    """Defects of a page for an account."""
    if len(visit.mark) != 5:
        yield f"{visit.size:,} bytes, cut or of another page"
        return
    code, template, account, _, _ = visit.mark
    if account != expected:
        yield f"the page of {account}, not of {expected}"
    if code != template:
        yield f"code of {code} with the template of {template}"
    if code not in (moments.old, moments.new):
        yield f"version {code}, neither {moments.old} nor {moments.new}"


def _stale(visit: Visit, page: RequestedPage, moments: FaultTimeline) -> str | None:
    """The reason why a page is stale, or None."""
    ttl_s = 0.0
    if page.account and not page.cookie:
        ttl_s = max(page.ttl_s, moments.ttl_s)
    age_s = visit.due + moments.wall_s - float(visit.mark[3])
    if age_s > ttl_s + AGE_SLACK_S:
        return f"GET {page.path}: rendered {age_s:.1f} s before the request, {ttl_s:g} s are allowed"
    if moments.deployed and visit.due > moments.deployed and visit.mark[0] == moments.old != moments.new:
        return f"GET {page.path}: {moments.old} came {visit.due - moments.deployed:.1f} s after the deploy"
    return None


def _versions(right: Sequence[Visit], moments: FaultTimeline) -> dict[str, float | None]:
    """For how long the old version came after the deploy, and both came side by side; None without a deploy."""
    stale_s = mixed_s = None
    if moments.old != moments.new:
        old = [visit for visit in right if visit.mark[0] == moments.old]
        new = [visit.end for visit in right if visit.mark[0] == moments.new]
        if moments.deployed is not None:
            stale_s = round(max([0.0, *(visit.due - moments.deployed for visit in old)]), 3)
        if new:
            last_old = max((visit.end for visit in old), default=moments.struck)
            mixed_s = round(max(0.0, last_old - min(new)), 3)
    return {"stale_s": stale_s, "mixed_s": mixed_s}
