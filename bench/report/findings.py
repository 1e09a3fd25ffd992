"""What the figures of each panel say, in sentences computed from them. Pure.

Names stand between backticks; each form of the report turns them into its own markup. A sentence claims a difference
only where the confidence interval of the ratio proves one. Everything else is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.stats import INCONCLUSIVE, Ratio, Spread
from bench.report.model import BASELINE, CaseRow, Panel, Report, compared, rate_of
from bench.report.numbers import joined, mebibytes, number, one_line, plural, range_of

MAX_NAMES = 4  # of deployments in one sentence


@dataclass(frozen=True)
class PanelAnswer:
    """The fastest row of a panel, and sentences about it."""

    panel: Panel
    best: CaseRow | None
    sentences: tuple[str, ...]


def quoted(name: str) -> str:
    """A name between backticks."""
    return "`" + one_line(name).replace("`", "'") + "`"


def deployment(row: CaseRow) -> str:
    """A stack with its layer, in words."""
    return deployment_name(row.stack, row.layer)


def deployment_name(stack: str, layer: str) -> str:
    """A stack with its layer, in words."""
    return f"{quoted(stack)} with {quoted(layer)}"


def some(names: list[str], last: str = "and") -> str:
    """At most MAX_NAMES of the names, and how many more."""
    more = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return joined(names[:MAX_NAMES] + more, last)


def setting_title(report: Report, panel: Panel) -> str:
    """The workload, and the size or database where the report's panels differ in it."""
    here, others = panel.setting, [other.setting for other in report.main_panels]
    parts = [quoted(here.workload)]
    if len({other.size for other in others}) > 1 or here.size != "unlimited":
        parts.append(f"size {quoted(here.size)}")
    if len({other.database for other in others}) > 1:
        parts.append(quoted(here.database))
    return ", ".join(parts)


def answers(report: Report) -> list[PanelAnswer]:
    """One answer for each workload, size and database, at the highest level measured."""
    return [_answer(report, panel) for panel in report.main_panels]


def _answer(report: Report, panel: Panel) -> PanelAnswer:
    ranked = panel.ranked
    if not ranked:
        return PanelAnswer(panel, None, ("Nothing was measured here. The reasons are below, under Left out.",))
    best, rest = ranked[0], ranked[1:]
    ties = [row for row in rest if tied(report, row, best)]
    sentences = [
        _fastest(report, panel, best, ties),
        _runner_up(report, best, ties, rest),
        _cost(panel, best),
        _latency(best),
        _stacks(report, panel),
        _errors(best),
    ]
    return PanelAnswer(panel, best, tuple(sentence for sentence in sentences if sentence))


def ratio_of(report: Report, row: CaseRow, other: CaseRow) -> Ratio | None:
    """Requests/s of one row divided by another's, when more than one round can be compared."""
    found = compared(row, other, report.run.info.plan.margin)
    return found if found is not None and found.rounds > 1 else None


def tied(report: Report, row: CaseRow, other: CaseRow) -> bool:
    """Whether several rounds of both do not show which is faster."""
    found = ratio_of(report, row, other)
    return found is not None and found.verdict == INCONCLUSIVE


def ties(report: Report) -> list[str]:
    """For each panel whose first place is tied, which deployments tie."""
    found = []
    for panel in report.main_panels:
        ranked = panel.ranked
        names = [f"{deployment(row)} ({number(rate_of(row))})" for row in ranked[1:] if tied(report, row, ranked[0])]
        if names:
            found.append(
                f"{setting_title(report, panel)}: {deployment(ranked[0])} ({number(rate_of(ranked[0]))} requests/s) "
                f"has the highest median and ties with {joined(names)}."
            )
    return found


def with_interval(figure: Spread) -> str:
    """The confidence interval of a figure with its rounds, as a remark in brackets."""
    return f"95 % confidence interval {range_of(figure)}, {figure.count} rounds"


def _fastest(report: Report, panel: Panel, best: CaseRow, ties: list[CaseRow]) -> str:
    rate = best.rate
    if rate is None:
        return ""
    figure = f"{number(rate.median)} requests/s"
    if len(panel.ranked) == 1:
        rounds = f"({with_interval(rate)})" if rate.count > 1 else "in the only round"
        return f"{deployment(best)} is the only case with figures here: {figure} {rounds}."
    if rate.count == 1:
        claim = f"was fastest in the only round: {figure}"
    elif ties:
        claim = f"has the highest median: {figure} ({with_interval(rate)})"
    else:
        claim = f"was fastest: median {figure} ({with_interval(rate)})"
    return f"{deployment(best)} {claim}{_against_baseline(report, panel, best)}."


def _against_baseline(report: Report, panel: Panel, best: CaseRow) -> str:
    none = panel.row(best.stack, BASELINE)
    if best.layer == BASELINE:
        return "; no layer made it faster" if any(row.stack == best.stack for row in panel.ranked[1:]) else ""
    if none is None or none.rate is None or best.times_none is None:
        return f"; {quoted(BASELINE)} was not measured on this stack, so there is no ratio"
    ratio = f"{number(best.times_none.median)} times {quoted(BASELINE)} on the same stack ({number(none.rate.median)})"
    if tied(report, best, none):
        return f", {ratio}, which {plural(len(best.ok), 'round')} do not prove"
    return f", {ratio}"


def _runner_up(report: Report, best: CaseRow, ties: list[CaseRow], rest: list[CaseRow]) -> str:
    if ties:
        return f"It ties with {some([f'{deployment(row)} ({number(rate_of(row))})' for row in ties])}."
    if not rest:
        return ""
    found = ratio_of(report, best, rest[0])
    lead = f"; the fastest serves {number(found.ratio)} times that ({interval(found)})" if found else ""
    return f"Next: {deployment(rest[0])}, {number(rate_of(rest[0]))} requests/s{lead}."


def interval(ratio: Ratio) -> str:
    """The confidence interval of a ratio."""
    return f"{number(ratio.low)} to {number(ratio.high)}"


def _cost(panel: Panel, best: CaseRow) -> str:
    costs = _costs(best)
    if not costs:
        return "Its memory and CPU time were not measured."
    none = panel.row(best.stack, BASELINE)
    baseline = _costs(none) if none is not None and best.layer != BASELINE else []
    against = f"; {quoted(BASELINE)} uses {joined(baseline)}" if baseline else ""
    return f"It uses {joined(costs)}{against}."


def _costs(row: CaseRow) -> list[str]:
    costs = []
    if row.memory_total:
        costs.append(f"{mebibytes(row.memory_total.median)} MiB of peak memory")
    if row.cpu_total:
        costs.append(f"{number(row.cpu_total.median)} CPU seconds per 1,000 requests")
    return costs


def _latency(best: CaseRow) -> str:
    half, high = best.figure("latency_p50_ms"), best.figure("latency_p99_ms")
    if half is None or high is None:
        return ""
    return f"Half of its answers took at most {number(half.median)} ms, 99 % at most {number(high.median)} ms."


def _stacks(report: Report, panel: Panel) -> str:
    """Which stack is fastest without a layer."""
    bare = [row for row in panel.ranked if row.layer == BASELINE]
    if len(bare) < 2:
        return ""
    first, last = bare[0], bare[-1]
    found = compared(first, last, report.run.info.plan.margin)
    ratio = number(found.ratio if found else rate_of(first) / rate_of(last))
    all_tie = tied(report, first, last)
    if len(bare) == len(panel.ranked):  # the first sentence already names the fastest
        if all_tie:
            return f"Even the slowest, {quoted(last.stack)}, ties with it."
        rate = f"{number(rate_of(last))} requests/s"
        return f"The slowest is {quoted(last.stack)} with {rate}; the fastest serves {ratio} times that."
    rate, without = f"{number(rate_of(first))} requests/s", f"Without a layer ({quoted(BASELINE)})"
    if all_tie:
        return f"{without} all stacks tie; the highest median is {rate}, {quoted(first.stack)}."
    return f"{without}, {quoted(first.stack)} leads with {rate}, {ratio} times {quoted(last.stack)}."


def _errors(best: CaseRow) -> str:
    errors = best.errors()
    return f"It had {plural(errors, 'error')} besides {plural(best.requests, 'answer')}." if errors else ""
