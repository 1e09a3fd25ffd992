"""What visitors noticed, counted from their visits. Pure: the log and the times of the fault in, figures out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.faults.visitors import Page
from bench.load.visits import Visit

# A page may be rendered for another visitor whose request it joins; it is stale only beyond that.
AGE_SLACK_S = 2.0


@dataclass(frozen=True)
class Moments:
    """When things happened, in seconds of the monotonic clock.

    began     the visitors' first request was due
    struck    the fault began
    over      its cause was over: what was killed had died, what hung was woken
    deployed  a deploy was complete; None without one
    wall_s    what to add to get the time of the day
    ttl_s     the time to live of pages without an account; 0 where nothing caches them
    old, new  the versions before and after a deploy; the same without one
    """

    began: float
    struck: float
    over: float
    deployed: float | None = None
    wall_s: float = 0.0
    ttl_s: float = 0.0
    old: str = ""
    new: str = ""


@dataclass
class Noticed:
    """What visitors noticed; the fields are those of bench.results.faults.FaultOutcome.

    failed_before  requests without a right answer before the fault
    named          static files that pages named
    asked          the page of the first request without a right answer; None when there was none
    """

    watched_s: float = 0.0
    requests_new: int = 0
    requests_kept: int = 0
    failed_new: int = 0
    failed_kept: int = 0
    retried: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    longest_gap_s: float = 0.0
    recovery_s: float | None = 0.0
    slowest_s: float = 0.0
    wrong: int = 0
    stale: int = 0
    stale_s: float | None = None
    mixed_s: float | None = None
    example: str | None = None
    late_p99_ms: float = 0.0
    failed_before: int = 0
    named: frozenset[str] = frozenset()
    asked: Page | None = None

    @property
    def failed(self) -> int:
        """All requests since the fault without a right answer."""
        return self.failed_new + self.failed_kept


def noticed(visits: Sequence[Visit], pages: Sequence[Page], moments: Moments) -> Noticed:
    """Count what visitors saw from the fault on."""
    since = [visit for visit in visits if visit.end >= moments.struck]
    bad = [visit for visit in since if not visit.is_good]
    good = [visit for visit in since if visit.is_good]
    judged = _Judged(visits, pages, moments)
    first = min([*bad, *judged.visits], key=lambda visit: visit.due, default=None)
    return Noticed(
        watched_s=round(max((visit.due for visit in since), default=moments.struck) - moments.struck, 3),
        requests_new=sum(not visit.kept for visit in since),
        requests_kept=sum(visit.kept for visit in since),
        failed_new=sum(not visit.kept for visit in bad),
        failed_kept=sum(visit.kept for visit in bad),
        retried=sum(visit.again > 0 for visit in since),
        failures=dict(Counter(visit.failure or str(visit.status) for visit in bad)),
        longest_gap_s=_longest_gap([visit for visit in good if pages[visit.page].account], since, moments.struck),
        recovery_s=_recovery(good, bad, moments.over),
        slowest_s=round(max((visit.end - visit.due for visit in good), default=0.0), 3),
        wrong=len(judged.wrong),
        stale=len(judged.stale),
        stale_s=judged.stale_s,
        mixed_s=judged.mixed_s,
        example=next(iter([*judged.wrong, *judged.stale]), None),
        late_p99_ms=_late(visits),
        failed_before=sum(not visit.is_good for visit in visits if visit.end < moments.struck),
        named=judged.named,
        asked=pages[first.page] if first else None,
    )


def _longest_gap(good: Sequence[Visit], since: Sequence[Visit], struck: float) -> float:
    last = max((visit.due for visit in since), default=struck)
    ends = sorted([struck, *(visit.end for visit in good), last])
    return round(max((after - before for before, after in itertools.pairwise(ends)), default=0.0), 3)


def _recovery(good: Sequence[Visit], bad: Sequence[Visit], over: float) -> float | None:
    """From the end of the cause to the first right answer after the last failure; a request fails when it is due."""
    if not bad:
        return 0.0
    last = max(visit.due for visit in bad)
    back = min((visit.end for visit in good if visit.due > last), default=None)
    return None if back is None else round(max(0.0, back - over), 3)


def _late(visits: Sequence[Visit]) -> float:
    """How late 1 in 100 requests left, of those that left once."""
    delays = sorted(visit.left - visit.due for visit in visits if not visit.again and visit.failure != "dropped")
    return round(delays[int(len(delays) * 0.99)] * 1000, 1) if delays else 0.0


class _Judged:
    """The right answers since the fault, by what they said.

    wrong, stale  a sentence for each answer that was
    visits        those
    stale_s       for how long after the deploy the old version came; None without a deploy
    mixed_s       from the first answer of the new version to the last of the old one; None without a deploy
    named         static files that pages named, before the fault too
    """

    def __init__(self, visits: Sequence[Visit], pages: Sequence[Page], moments: Moments):
        self._pages, self._moments = pages, moments
        self.wrong: list[str] = []
        self.stale: list[str] = []
        self.visits: list[Visit] = []
        self.named = frozenset(visit.said[4] for visit in visits if len(visit.said) == 5)
        self._sizes: dict[str, int] = {}
        by_version: dict[str, list[Visit]] = {}
        for visit in sorted((visit for visit in visits if visit.is_good), key=lambda visit: visit.end):
            found = list(self._wrong_in(visit))
            if visit.end < moments.struck:
                continue
            self.wrong += found[:1]
            stale = self._stale_in(visit) if not found and visit.said else None
            self.stale += [stale] if stale else []
            self.visits += [visit] if found or stale else []
            if not found and visit.said:
                by_version.setdefault(visit.said[0], []).append(visit)
        self._compare(by_version.get(moments.old, []), by_version.get(moments.new, []))

    def _wrong_in(self, visit: Visit) -> Iterator[str]:
        page = self._pages[visit.page]
        if page.account is None:
            # A file has the length it had the first time.
            size = self._sizes.setdefault(page.path, visit.size)
            if size != visit.size:
                yield f"GET {page.path}: {visit.size:,} bytes, not {size:,}"
            return
        if len(visit.said) != 5:
            yield f"GET {page.path}: {visit.size:,} bytes, cut or of another page"
            return
        code, template, account, _, _ = visit.said
        if account != page.account:
            yield f"GET {page.path}: the page of {account}, not of {page.account}"
        if code != template:
            yield f"GET {page.path}: code of {code} with the template of {template}"
        if code not in (self._moments.old, self._moments.new):
            yield f"GET {page.path}: version {code}, neither {self._moments.old} nor {self._moments.new}"

    def _stale_in(self, visit: Visit) -> str | None:
        page, moments = self._pages[visit.page], self._moments
        ttl_s = max(page.ttl_s, moments.ttl_s) if page.account and not page.cookie else 0.0
        age_s = visit.due + moments.wall_s - float(visit.said[3])
        if age_s > ttl_s + AGE_SLACK_S:
            return f"GET {page.path}: rendered {age_s:.1f} s before it was asked for, {ttl_s:g} s are allowed"
        if moments.deployed and visit.due > moments.deployed and visit.said[0] == moments.old != moments.new:
            return f"GET {page.path}: {moments.old} came {visit.due - moments.deployed:.1f} s after the deploy"
        return None

    def _compare(self, old: Sequence[Visit], new: Sequence[Visit]) -> None:
        self.stale_s = self.mixed_s = None
        moments = self._moments
        if moments.old == moments.new:
            return
        last_old = max((visit.end for visit in old), default=moments.struck)
        if moments.deployed is not None:
            late = [visit.due - moments.deployed for visit in old if visit.due > moments.deployed]
            self.stale_s = round(max(late, default=0.0), 3)
        if new:
            self.mixed_s = round(max(0.0, last_old - min(visit.end for visit in new)), 3)
