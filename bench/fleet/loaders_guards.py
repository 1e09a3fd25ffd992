"""Guards of a load from several hosts: their clocks, their start, their own speed, whether they agree, their links.

They stand beside those of one load tool (bench.measure.guards), and name the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.figures import ratios
from bench.fleet.loaders import LoadShare
from bench.fleet.reach import MAX_OFFSET_MS
from bench.load import Figures
from bench.load.engine import Engine
from bench.load.openloop.counts import together
from bench.measure import guards
from bench.measure.guards import NOT_MEASURED, OK, Observed

# Guard -> its default bound, after those of one load tool.
BOUNDS: dict[str, float] = {
    "clock": MAX_OFFSET_MS,  # milliseconds by which a load host's clock may differ
    "start": 50.0,  # milliseconds by which a load host may begin late
    "loaders": 0.25,  # share by which the answers to one load host may take longer than to the others, beyond chance
    "network": 0.90,  # share of a link's rate that may be used
}
# Of a run of this guard to name a host that is like the others, were its margin 0.
CHANCE = 0.005
# Guards that look at each load tool by itself.
OF_EACH = ("ceiling", "tool-cpu", "late")


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
    found = guards.look(seen, {name: bound for name, bound in bounds.items() if name in guards.BOUNDS})
    each = {name: bound for name, bound in bounds.items() if name in OF_EACH}
    for share in shares:
        own = guards.look(observed(tool, share, seen), each)
        named = {name: f"{share.host.name}: {text}" for name, text in own.items() if guards.voids({name: text})}
        found |= {name: own[name] for name in own if share is shares[0]} | named
    judges: dict[str, Callable[[float], str]] = {
        "clock": partial(_clock, shares),
        "start": partial(_start, shares),
        "loaders": partial(disagreement, shares),
        "network": partial(_network, links),
    }
    return found | {name: judge(bounds[name]) or OK for name, judge in judges.items() if name in bounds}


def observed(tool: Engine, share: LoadShare, whole: Observed) -> Observed:
    """What was observed of one load host. Its ceiling is by what its requests cost it in this very load."""
    figures: Figures = share.figures(tool).supported()
    could = figures.requests_total * share.cores / share.cpu_s if share.cpu_s and figures.requests_total else None
    busy = round(share.cpu_s / (figures.duration_s * share.cores), 4)
    return replace(whole, figures=figures, ceiling=could, tool_cpu=busy)


def _clock(shares: Sequence[LoadShare], bound: float) -> str:
    for share in shares:
        clock, name = share.clock, share.host.name
        if wrong := clock.wrong(bound):
            return f"the clock of {name} is {wrong}"
        if clock.error_ms > bound:
            return f"the clock of {name} is known to within {clock.error_ms:.0f} ms alone: its link is slow"
    return ""


def _start(shares: Sequence[LoadShare], bound: float) -> str:
    for share in shares:
        if (late_ms := share.counts["late_s"] * 1000) > bound:
            return f"{share.host.name} began {late_ms:.0f} ms late"
    return ""


def disagreement(shares: Sequence[LoadShare], margin: float) -> str:
    """The host whose answers take longer than those of the others by more than the margin, beyond chance.

    All hosts ask the same server at the same times for the same pages. The load is cut into equal parts, and in each
    the mean latency of a host is compared with that of the others: what happens to the server happens to all in the
    same part, so that it is in no ratio. The ratios of the parts say what chance is.
    """
    if len(shares) < 2:
        return f"{NOT_MEASURED}: there is one load host"
    for share in shares:
        others = together([other.counts for other in shares if other is not share])
        ratio = ratios.paired(_means(others), _means(share.counts), margin, CHANCE / len(shares))
        if ratio is None:
            return f"{NOT_MEASURED}: too few answers"
        if ratio.verdict == ratios.FASTER:
            name, times = share.host.name, f"{ratio.ratio:.1f} times as long as those of the other load hosts"
            return f"answers to {name} take {times}: look at that host or its link"
    return ""


def _means(counts: Mapping[str, list[int]]) -> dict[int, float]:
    """Part of the load -> mean latency in it, in microseconds; without the parts that have no answer."""
    pairs = zip(counts["slice_us"], counts["slice_answers"], strict=True)
    return {number: total / count for number, (total, count) in enumerate(pairs) if count}


def _network(links: Sequence[Link], bound: float) -> str:
    for link in links:
        if full := _full(link, bound):
            return f"the link of {link.host} is full: {full}"
    unseen = ", ".join(link.host for link in links if link.used is None)
    unrated = ", ".join(link.host for link in links if link.used is not None and not link.rate)
    reasons = [f"what a link carried is not known: {unseen or 'no host'}"] if unseen or not links else []
    reasons += [f"the rate of a link is not known: {unrated}"] if unrated else []
    return f"{NOT_MEASURED}: {'; '.join(reasons)}" if reasons else ""


def _full(link: Link, bound: float) -> str:
    """How full the link was, if that is beyond the bound; empty where it is not, or is not known."""
    if not link.rate:
        return ""
    rate = f"{link.rate / 1e6:,.0f} Mbit/s"
    if link.used is not None and link.used / link.rate > bound:
        return f"{link.used / 1e6:,.1f} of {rate}"
    if link.peak is not None and link.peak > bound:
        return f"{link.peak * link.rate / 1e6:,.1f} of {rate} for about a second"
    return ""
