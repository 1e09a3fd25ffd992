"""The guard `tool` of a load from several hosts: their clocks, their start, their own speed, their links.

A load host that cannot be trusted, or a link that is full, is named. The other guards are those of one load tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.measure.hosts.loaders import LoadShare
from bench.measure.load import Figures
from bench.measure.load.engine import Engine
from bench.measure.load.openloop.counts import together
from bench.measure.run import guards
from bench.measure.run.guards import NOT_MEASURED, OK, Observed
from bench.measure.stats import Table
from bench.verify.hosts.costs import HostCosts
from bench.verify.hosts.reach import MAX_OFFSET_MS

# Milliseconds by which a load host may begin late.
MAX_START_MS = 50.0
# Share by which the responses to one load host may take longer than to the others, beyond chance.
MAX_SLOWER = 0.25
# Share of a link's rate that may be used.
MAX_LINK = 0.90
# Of a run of this guard to name a host that is like the others, were its margin 0.
CHANCE = 0.005


def evaluate(
    tool: Engine,
    seen: Observed,
    shares: Sequence[LoadShare],
    costs: Mapping[str, HostCosts],
    bounds: Mapping[str, float],
) -> dict[str, str]:
    """Guard -> `ok`, `not measured: why`, or what it found that discards the trial.

    seen   of all shares together
    costs  what each host used, by its name
    """
    found = guards.evaluate(seen, bounds)
    if "tool" in bounds:
        found["tool"] = _wrong(tool, seen, shares, costs, bounds["tool"]) or _unknown(costs) or OK
    return found


def _wrong(
    tool: Engine, seen: Observed, shares: Sequence[LoadShare], costs: Mapping[str, HostCosts], bound: float
) -> str:
    """The first load host or link that cannot be trusted, or empty."""
    for share in shares:
        name, clock, late_ms = share.host.name, share.clock, share.counts["late_s"] * 1000
        found = guards.evaluate(observed(tool, share, seen), {"tool": bound})
        if guards.discards(found):
            return f"{name}: {found['tool']}"
        if clock.wrong:
            return f"the clock of {name} is {clock.wrong}"
        if clock.error_ms > MAX_OFFSET_MS:
            return f"the clock of {name} is known to within {clock.error_ms:.0f} ms alone: its link is slow"
        if late_ms > MAX_START_MS:
            return f"{name} began {late_ms:.0f} ms late"
    seconds = seen.figures.duration_s
    full = (f"the link of {name} is full: {said}" for name, used in costs.items() if (said := _full(used, seconds)))
    return disagreement(shares, MAX_SLOWER) or next(full, "")


def observed(tool: Engine, share: LoadShare, whole: Observed) -> Observed:
    """What was observed of one load host."""
    figures: Figures = share.figures(tool).supported()
    busy = round(share.cpu_s / (figures.duration_s * share.cores), 4)
    return replace(whole, figures=figures, tool_cpu_share=busy)


def disagreement(shares: Sequence[LoadShare], margin: float) -> str:
    """The host whose responses take longer than those of the others by more than the margin, beyond chance.

    All hosts ask the same server at the same times for the same pages. The load is cut into equal parts, and in each
    the mean latency of a host is compared with that of the others: what happens to the server happens to all in the
    same part, so that it is in no ratio. The ratios of the parts say what chance is. Empty if there is no such host, if
    there is one load host, and where too few answers came.
    """
    if len(shares) < 2:
        return ""
    for share in shares:
        others = together([other.counts for other in shares if other is not share])
        parts = Table({"this": _means(share.counts), "others": _means(others)})
        if len(parts.names) < 2:
            continue
        longer, low, _ = parts.ratio("this", "others", confidence=1 - 2 * CHANCE / len(shares))
        if low > 1 + margin:
            name, times = share.host.name, f"{longer:.1f} times as long as those of the other load hosts"
            return f"answers to {name} take {times}: look at that host or its link"
    return ""


def _means(counts: Mapping[str, list[int]]) -> dict[int, float]:
    """Part of the load -> mean latency in it, in microseconds; without the parts that have no response."""
    pairs = zip(counts["slice_us"], counts["slice_answers"], strict=True)
    return {number: total / count for number, (total, count) in enumerate(pairs) if count}


def _full(used: HostCosts, seconds: float) -> str:
    """How full a link was in its busier direction, if that is beyond the bound; empty if it is not, or not known."""
    if not (rate := used.link_bits_per_second):
        return ""
    whole = 8 * max(used.received_bytes or 0, used.sent_bytes or 0) / seconds / rate
    for share, when in ((whole, ""), (used.link_peak_share or 0.0, " for about a second")):
        if share > MAX_LINK:
            return f"{share * rate / 1e6:,.1f} of {rate / 1e6:,.0f} Mbit/s{when}"
    return ""


def _unknown(costs: Mapping[str, HostCosts]) -> str:
    """`not measured` and the links of which is not known how full they were; empty if all are known."""
    unseen = [name for name, used in costs.items() if used.received_bytes is None or used.sent_bytes is None]
    unrated = [name for name, used in costs.items() if name not in unseen and not used.link_bits_per_second]
    reasons = [f"what a link carried is not known: {', '.join(unseen) or 'no host'}"] if unseen or not costs else []
    reasons += [f"the rate of a link is not known: {', '.join(unrated)}"] if unrated else []
    return f"{NOT_MEASURED}: {'; '.join(reasons)}" if reasons else ""
