"""What more web hosts would serve, as text: the measured figures, and apart from them what is projected. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.figures.columns import columns, paragraph
from bench.figures.projection import Interval, Projection
from bench.figures.stats import estimate
from bench.figures.words import plural
from bench.report.numbers import median, number, one_line, range_of
from bench.results.scaling import Scaling

SCHEDULED = (
    "the requests/s of an open loop are those that were asked for; measure with --mode closed, or find the highest "
    "rate with --capacity"
)

PROJECTED = (
    "Projected, not measured, in requests/s: the Universal Scalability Law, the lower of it and of what processors "
    "allow as a 95 % band, and what they allow by their seconds per request:"
)


def refusal(scaling: Scaling, found: Projection) -> str:
    """Why nothing is projected, or an empty string."""
    return SCHEDULED if scaling.scheduled else found.refused


def render(scaling: Scaling, found: Projection, width: int) -> list[str]:
    """A case as lines within a width."""
    lines = [one_line(scaling.case.case_id), "", "Measured, requests/s:", *_measured(scaling), ""]
    if reason := refusal(scaling, found):
        return lines + paragraph(f"Not projected: {reason}.", width)
    notes = [_parameters(found), f"Off the law, %: {_residuals(found)}.", *_notes(scaling, found)]
    wrapped = (line for text in notes for line in paragraph(text, width, hanging="  "))
    return [*lines, *paragraph(PROJECTED, width), "", *_projected(found), "", *wrapped]


def _measured(scaling: Scaling) -> list[str]:
    rows = [("web hosts", "trials", "median", "95 % interval", "at")]
    for hosts, load in sorted(scaling.load.items()):
        rates = estimate(point.rate for point in scaling.points if point.hosts == hosts)
        rows.append((str(hosts), str(rates.count if rates else 0), median(rates), range_of(rates), load))
    return columns(rows, "  ")


def _projected(found: Projection) -> list[str]:
    rows = [("web hosts", "law", "lower of both", "processors")]
    for row in found.rows:
        bound = "not known" if row.bound is None else f"{number(row.bound)} ({row.tier})"
        rows.append((str(row.hosts), number(row.law), f"{number(row.low)} to {number(row.high)}", bound))
    return columns(rows, "  ")


def _parameters(found: Projection) -> str:
    assert found.rate and found.contention and found.coherency
    parts = [f"one host {_interval(found.rate)} requests/s", f"contention {_interval(found.contention)}"]
    return f"The law: {', '.join([*parts, f'coherency {_interval(found.coherency)}'])}."


def _interval(found: Interval) -> str:
    ends = ("no end" if end is None else _signed(end) for end in (found.low, found.high))
    return f"{_signed(found.value)} ({' to '.join(ends)})"


def _signed(value: float) -> str:
    return f"-{number(-value)}" if value < 0 else number(value)


def _residuals(found: Projection) -> str:
    by_hosts: dict[int, list[str]] = {}
    for point, share in zip(found.points, found.residuals, strict=True):
        by_hosts.setdefault(point.hosts, []).append(f"{share * 100:+.1f}")
    return "; ".join(f"{plural(hosts, 'web host')} {' '.join(shares)}" for hosts, shares in by_hosts.items())


def _notes(scaling: Scaling, found: Projection) -> Iterable[str]:
    if not scaling.tiers:
        yield "Processors: not known, for these runs have no costs per host."
    for tier in scaling.tiers:
        per = "of each host" if tier.grows else "together"
        seconds = estimate(second * 1000 for second in tier.seconds)
        cost = f"{median(seconds)} ms a request ({range_of(seconds)})"
        yield f"Processors of {tier.name}: {plural(round(tier.processors), 'core')} {per}, {cost}."
    if found.ends:
        yield f"No further, for {found.ends}."


def content(scaling: Scaling, found: Projection) -> dict[str, Any]:
    """A case as JSON: what was measured, and apart from it what is projected."""
    reason = refusal(scaling, found)
    return {
        "case": scaling.case,
        "measured": {"points": scaling.points, "levels": scaling.load, "tiers": scaling.tiers},
        "projected": None if reason else found,
        "not_projected": reason or None,
    }
