"""The guard `tool` of a load from several hosts: their clocks, their start, their own speed, their links.

The finding names an untrusted load host or a full link. The other guards are the same as for one load tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.measure.hosts import loaders
from bench.measure.hosts.loaders import LoadShare
from bench.measure.load import Tool
from bench.measure.load.openloop.counts import together
from bench.measure.run import guards
from bench.measure.run.guards import OK, Observed
from bench.measure.stats import Table
from bench.verify.hosts.host_costs import HostCosts
from bench.verify.hosts.reach import MAX_OFFSET_MS
from bench.words import NOT_MEASURED

# Milliseconds by which a load host may begin late.
MAX_START_MS = 50.0
# Share by which the responses to one load host may take longer than to the others, beyond chance.
MAX_SLOWER = 0.25
# Share of a link's rate that may be used.
MAX_LINK = 0.90
# Probability of a run of this guard to name a host like the others, with a margin of 0.
CHANCE = 0.005


def evaluate(
    tool: Tool,
    total: Observed,
    shares: Sequence[LoadShare],
    costs: Mapping[str, HostCosts],
    bounds: Mapping[str, float],
) -> dict[str, str]:
    """Guard -> `ok`, `not measured: why`, or the reason to discard the trial.

    total  of all shares together
    costs  costs of each host, by name
    """
    findings = guards.evaluate(total, bounds)
    if "tool" in bounds:
        findings["tool"] = _wrong(tool, total, shares, costs, bounds["tool"]) or _unknown(costs) or OK
    return findings


def _wrong(
    tool: Tool, total: Observed, shares: Sequence[LoadShare], costs: Mapping[str, HostCosts], bound: float
) -> str:
    """The first untrusted load host or link, or empty."""
    for share in shares:
        name, clock, late_ms = share.host.name, share.clock, share.counts["late_s"] * 1000
        findings = guards.evaluate(observed(tool, share, total), {"tool": bound})
        if guards.discards(findings):
            return f"{name}: {findings['tool']}"
        if clock.wrong:
            return f"the clock of {name} is {clock.wrong}"
        if clock.error_ms > MAX_OFFSET_MS:
            return f"the clock of {name} is known to within {clock.error_ms:.0f} ms only: its link is slow"
        if late_ms > MAX_START_MS:
            return f"{name} began {late_ms:.0f} ms late"
    return disagreement(shares, MAX_SLOWER) or _full_link(costs, total.figures.duration_s)


def _full_link(costs: Mapping[str, HostCosts], seconds: float) -> str:
    """The first full link, or empty."""
    for name, used in costs.items():
        rate = used.link_bits_per_second
        if not rate:
            continue
        # In its busier direction.
        link_share = 8 * max(used.received_bytes or 0, used.sent_bytes or 0) / seconds / rate
        for share, when in ((link_share, ""), (used.link_peak_share or 0.0, " for about a second")):
            if share > MAX_LINK:
                return f"the link of {name} is full: {share * rate / 1e6:,.1f} of {rate / 1e6:,.0f} Mbit/s{when}"
    return ""


def observed(tool: Tool, share: LoadShare, total: Observed) -> Observed:
    """Observations of one load host."""
    figures = loaders.figures(tool, [share]).supported()
    busy = round(share.cpu_s / (figures.duration_s * share.cores), 4)
    return replace(total, figures=figures, tool_cpu_share=busy)


def disagreement(shares: Sequence[LoadShare], margin: float) -> str:
    """The host with longer response times than the others by more than the margin, beyond chance.

    All hosts send the same requests to the same server at the same times. The load is cut into equal parts, and in each
    part the mean latency of a host is compared with the others: an event on the server affects all hosts in the same
    part, and cancels out in the ratio. The ratios of the parts show the effect of chance. Empty without such a host,
    with a single load host, or with too few responses.
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
            name, times = share.host.name, f"{longer:.1f} times as long as responses to the other load hosts"
            return f"responses to {name} take {times}: look at that host or its link"
    return ""


def _means(counts: Mapping[str, list[int]]) -> dict[int, float]:
    """Part of the load -> mean latency, in microseconds; without parts that have no response."""
    pairs = zip(counts["slice_us"], counts["slice_answers"], strict=True)
    return {number: total / count for number, (total, count) in enumerate(pairs) if count}


def _unknown(costs: Mapping[str, HostCosts]) -> str:
    """`not measured` and the links with unknown use; empty if all are known."""
    unseen, unrated, reasons = [], [], []
    for name, used in costs.items():
        if used.received_bytes is None or used.sent_bytes is None:
            unseen.append(name)
        elif not used.link_bits_per_second:
            unrated.append(name)
    if unseen or not costs:
        reasons.append(f"what a link carried is not known: {', '.join(unseen) or 'no host'}")
    if unrated:
        reasons.append(f"the rate of a link is not known: {', '.join(unrated)}")
    if not reasons:
        return ""
    return f"{NOT_MEASURED}: {'; '.join(reasons)}"
