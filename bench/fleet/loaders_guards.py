"""The guard `tool` of a load from several hosts: their clocks, their start, their own speed, their links.

A load host that cannot be trusted, or a link that is full, is named. The other guards are those of one load tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.figures import ratios
from bench.fleet.loaders import LoadShare
from bench.fleet.reach import MAX_OFFSET_MS
from bench.load import Figures
from bench.load.engine import Engine
from bench.load.openloop.counts import together
from bench.measure import guards
from bench.measure.guards import NOT_MEASURED, OK, Observed

# Milliseconds by which a load host may begin late.
MAX_START_MS = 50.0
# Share by which the answers to one load host may take longer than to the others, beyond chance.
MAX_SLOWER = 0.25
# Share of a link's rate that may be used.
MAX_LINK = 0.90
# Of a run of this guard to name a host that is like the others, were its margin 0.
CHANCE = 0.005


@dataclass(frozen=True)
class Link:
    """What a host's link carried, in bits a second; None where that is not known.

    used  in its busier direction, over the whole load
    rate  what it can carry in one direction
    peak  the largest share of that within about a second
    """

    host: str
    used: float | None
    rate: float | None
    peak: float | None = None


def look(
    tool: Engine, seen: Observed, shares: Sequence[LoadShare], links: Sequence[Link], bounds: Mapping[str, float]
) -> dict[str, str]:
    """Guard -> `ok`, `not measured: why`, or what it found that voids the trial; `seen` is of all shares together."""
    found = guards.look(seen, bounds)
    if "tool" in bounds:
        found["tool"] = _tool(tool, seen, shares, links, bounds["tool"])
    return found


def _tool(tool: Engine, seen: Observed, shares: Sequence[LoadShare], links: Sequence[Link], bound: float) -> str:
    """The first load host or link that cannot be trusted, else what is not known of them, or `ok`."""
    own = ((share.host.name, guards.look(observed(tool, share, seen), {"tool": bound})) for share in shares)
    wrong = [f"{name}: {found['tool']}" for name, found in own if guards.voids(found)]
    wrong += filter(None, [_clock(shares), _start(shares), disagreement(shares, MAX_SLOWER), _network(links)])
    return next(iter(wrong), "") or _unknown(links) or OK


def observed(tool: Engine, share: LoadShare, whole: Observed) -> Observed:
    """What was observed of one load host."""
    figures: Figures = share.figures(tool).supported()
    busy = round(share.cpu_s / (figures.duration_s * share.cores), 4)
    return replace(whole, figures=figures, tool_cpu=busy)


def _clock(shares: Sequence[LoadShare]) -> str:
    for share in shares:
        clock, name = share.clock, share.host.name
        if wrong := clock.wrong(MAX_OFFSET_MS):
            return f"the clock of {name} is {wrong}"
        if clock.error_ms > MAX_OFFSET_MS:
            return f"the clock of {name} is known to within {clock.error_ms:.0f} ms alone: its link is slow"
    return ""


def _start(shares: Sequence[LoadShare]) -> str:
    for share in shares:
        if (late_ms := share.counts["late_s"] * 1000) > MAX_START_MS:
            return f"{share.host.name} began {late_ms:.0f} ms late"
    return ""


def disagreement(shares: Sequence[LoadShare], margin: float) -> str:
    """The host whose answers take longer than those of the others by more than the margin, beyond chance.

    All hosts ask the same server at the same times for the same pages. The load is cut into equal parts, and in each
    the mean latency of a host is compared with that of the others: what happens to the server happens to all in the
    same part, so that it is in no ratio. The ratios of the parts say what chance is. Empty where there is no such host,
    where there is one load host, and where too few answers came.
    """
    if len(shares) < 2:
        return ""
    for share in shares:
        others = together([other.counts for other in shares if other is not share])
        ratio = ratios.paired(_means(others), _means(share.counts), margin, CHANCE / len(shares))
        if ratio and ratio.verdict == ratios.FASTER:
            name, times = share.host.name, f"{ratio.ratio:.1f} times as long as those of the other load hosts"
            return f"answers to {name} take {times}: look at that host or its link"
    return ""


def _means(counts: Mapping[str, list[int]]) -> dict[int, float]:
    """Part of the load -> mean latency in it, in microseconds; without the parts that have no answer."""
    pairs = zip(counts["slice_us"], counts["slice_answers"], strict=True)
    return {number: total / count for number, (total, count) in enumerate(pairs) if count}


def _network(links: Sequence[Link]) -> str:
    return next((f"the link of {link.host} is full: {full}" for link in links if (full := _full(link))), "")


def _unknown(links: Sequence[Link]) -> str:
    """`not measured` and the links of which is not known how full they were; empty where all are known."""
    unseen = ", ".join(link.host for link in links if link.used is None)
    unrated = ", ".join(link.host for link in links if link.used is not None and not link.rate)
    reasons = [f"what a link carried is not known: {unseen or 'no host'}"] if unseen or not links else []
    reasons += [f"the rate of a link is not known: {unrated}"] if unrated else []
    return f"{NOT_MEASURED}: {'; '.join(reasons)}" if reasons else ""


def _full(link: Link) -> str:
    """How full the link was, if that is beyond the bound; empty where it is not, or is not known."""
    if not link.rate:
        return ""
    rate = f"{link.rate / 1e6:,.0f} Mbit/s"
    if link.used is not None and link.used / link.rate > MAX_LINK:
        return f"{link.used / 1e6:,.1f} of {rate}"
    if link.peak is not None and link.peak > MAX_LINK:
        return f"{link.peak * link.rate / 1e6:,.1f} of {rate} for about a second"
    return ""
