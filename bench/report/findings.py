"""What the figures of each panel say, in sentences computed from them. Pure.

Names stand between backticks; each form of the report turns them into its own markup. A sentence claims a difference
only where the standings of the panel prove one. Everything else is a tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from bench.figures.ratios import Ratio, Standings
from bench.figures.stats import Estimate
from bench.figures.words import joined, plural
from bench.report.extra_costs import evenness
from bench.report.model import OPEN, CaseRow, Panel, Report, rate_of
from bench.report.numbers import DASH, TIMES, mebibytes, number, one_line, range_of, times
from bench.results.records import NO_LAYER

MAX_NAMES = 4  # of deployments in one sentence
UNBOUNDED = 100_000  # times as fast: no two deployments are further apart
SPREAD = 0.25  # (highest - lowest) / median of the rounds' requests/s: from here on rounds differ
UNEVEN = 1.5  # requests of the busiest worker, divided by the mean of all: from here on they stick to few workers


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
    if len({other.size for other in others}) > 1 or here.is_limited:
        parts.append(f"size {quoted(here.size)}")
    if len({other.database for other in others}) > 1:
        parts.append(quoted(here.database))
    return ", ".join(parts)


def answers(report: Report) -> list[PanelAnswer]:
    """One answer for each workload, size and database, at the highest level measured."""
    return [_answer(panel) for panel in report.main_panels]


def _answer(panel: Panel) -> PanelAnswer:
    standings = panel.standings
    if standings is None:
        return PanelAnswer(panel, None, ("Nothing was measured here. The reasons are below, under Left out.",))
    best = standings.leader
    sentences = [
        _fastest(panel, standings),
        _tie(standings),
        _next(panel, standings),
        _cost(panel, best),
        _latency(best) if panel.setting.mode == OPEN else "",
        _stacks(panel),
        _uneven(panel),
        _errors(best),
    ]
    return PanelAnswer(panel, best, tuple(sentence for sentence in sentences if sentence))


def winners(standings: Standings[CaseRow] | None) -> list[CaseRow]:
    """The leader and the rows that tie with it; after one round the leader alone."""
    if standings is None:
        return []
    return [standings.leader, *(standings.tied if standings.proven else ())]


def ties(report: Report) -> list[str]:
    """For each panel whose first place is tied, which deployments tie."""
    found = []
    for panel in report.main_panels:
        names = [f"{deployment(row)} ({number(rate_of(row))})" for row in winners(panel.standings)]
        if len(names) > 1:
            found.append(f"{setting_title(report, panel)}, requests/s: {names[0]} ties with {joined(names[1:])}.")
    return found


def standing(panel: Panel, row: CaseRow) -> str:
    """A row against the fastest, for a table: `fastest`, `tie, at most 1.2`, `3.1 to 3.9` times slower."""
    standings = panel.standings
    if standings is None or row not in standings.ratios or not standings.proven:
        return DASH
    ratio = standings.ratios[row]
    if row in standings.slower:
        return f"{interval(ratio)}{TIMES}"
    if not standings.tied:
        return "fastest"
    return f"tie, at most {times(ratio.high)}" if is_bounded(ratio) else "tie"


def with_interval(figure: Estimate) -> str:
    """The confidence interval of a figure with its rounds, as a remark in brackets."""
    return f"95 % confidence interval {range_of(figure)}, {figure.count} rounds"


def _fastest(panel: Panel, standings: Standings[CaseRow]) -> str:
    best = standings.leader
    rate = best.rate
    if rate is None:
        return ""
    figure = f"{number(rate.median)} requests/s"
    if len(panel.ranked) == 1:
        rounds = f"({with_interval(rate)})" if rate.count > 1 else "in the only round"
        return f"{deployment(best)} is the only case with figures here: {figure} {rounds}."
    measured = f"median {figure} ({with_interval(rate)})" if rate.count > 1 else f"{figure} in one round"
    if not standings.proven:
        return f"{deployment(best)} has the highest figure, {measured}, which proves no difference."
    names = some([f"{deployment(row)} ({number(rate_of(row))})" for row in standings.tied])
    claim = f"ties with {names}; it has the highest figure, {measured}" if names else f"was fastest: {measured}"
    return f"{deployment(best)} {claim}{_against_baseline(panel, standings)}."


def _against_baseline(panel: Panel, standings: Standings[CaseRow]) -> str:
    best = standings.leader
    none = panel.row(best.stack, NO_LAYER)
    if best.layer == NO_LAYER:
        return "; no layer made it faster" if any(row.stack == best.stack for row in panel.ranked[1:]) else ""
    if none is None or none.rate is None or best.times_none is None:
        return f"; {quoted(NO_LAYER)} was not measured on this stack, so there is no ratio"
    ratio = f"{number(best.times_none.median)} times {quoted(NO_LAYER)} on the same stack ({number(none.rate.median)})"
    if none in standings.tied:
        return f", {ratio}, which {plural(len(best.ok), 'round')} do not prove"
    return f", {ratio}"


def _tie(standings: Standings[CaseRow]) -> str:
    if len(winners(standings)) == 1:
        return ""
    high = max(standings.ratios[row].high for row in winners(standings))
    if high >= UNBOUNDED:
        return ""
    return f"One of those that tie is the fastest, with at most {number(high)} times the requests/s of the others."


def _next(panel: Panel, standings: Standings[CaseRow]) -> str:
    """The first of the slower rows, and how far all of them are behind at least."""
    if not standings.proven:
        rest = panel.ranked[1:]
        return f"Next: {deployment(rest[0])}, {number(rate_of(rest[0]))} requests/s." if rest else ""
    if not standings.slower:
        return ""
    first, *others = standings.slower
    lead = standings.ratios[first]
    text = f"Slower: {deployment(first)}, {number(rate_of(first))} requests/s; the fastest serves"
    text = f"{text} {number(lead.ratio)} times that ({interval(lead)})"
    if not others:
        return f"{text}."
    low = min(standings.ratios[row].low for row in others)
    more = f"{plural(len(others), 'more case')} {'are' if len(others) > 1 else 'is'}"
    return f"{text}; {more} slower by at least {times(low)}."


def interval(ratio: Ratio) -> str:
    """The confidence interval of a ratio; a high end that bounds nothing is left out."""
    return f"{number(ratio.low)} to {number(ratio.high)}" if is_bounded(ratio) else f"at least {number(ratio.low)}"


def is_bounded(ratio: Ratio) -> bool:
    """Whether the high end of its interval says anything: few rounds can leave it beyond all that is served."""
    return ratio.high < UNBOUNDED


def _cost(panel: Panel, best: CaseRow) -> str:
    costs = _costs(best)
    if not costs:
        return "Its memory and CPU time were not measured."
    none = panel.row(best.stack, NO_LAYER)
    baseline = _costs(none) if none is not None and best.layer != NO_LAYER else []
    against = f"; {quoted(NO_LAYER)} uses {joined(baseline)}" if baseline else ""
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


def _stacks(panel: Panel) -> str:
    """Which stack is fastest without a layer, and how far behind the slowest is."""
    bare = [row for row in panel.ranked if row.layer == NO_LAYER]
    standings = panel.standings_of(bare)
    if standings is None or len(standings.ratios) < 2:
        return ""
    first, last = standings.leader, list(standings.ratios)[-1]
    ratio = standings.ratios[last]
    behind = f"{number(ratio.ratio)} times" + (f" ({interval(ratio)})" if standings.proven else "")
    all_tie = standings.proven and last in standings.tied
    rate, slowest = (
        f"{number(rate_of(first))} requests/s",
        f"{quoted(last.stack)} with {number(rate_of(last))} requests/s",
    )
    if len(bare) == len(panel.ranked):  # the first sentence already names the fastest
        if all_tie:
            return f"Even the slowest, {quoted(last.stack)}, ties with it."
        return f"The slowest is {slowest}; the fastest serves {behind} that."
    without = f"Without a layer ({quoted(NO_LAYER)})"
    if all_tie:
        return f"{without} all stacks tie; the highest median is {rate}, {quoted(first.stack)}."
    ties = winners(standings)[1:]
    if ties:
        names = some([f"{quoted(row.stack)} ({number(rate_of(row))})" for row in ties])
        most = f"{quoted(first.stack)} ties with {names} and has the highest median, {rate}"
        return f"{without}, {most}; the slowest is {slowest}."
    return f"{without}, {quoted(first.stack)} is the fastest with {rate}, {behind} {quoted(last.stack)}."


def _uneven(panel: Panel) -> str:
    """Which cases have rounds that differ while their requests stick to few workers, which explains it."""
    found = {row: worst for row in panel.ranked if (worst := _unevenness(row)) >= UNEVEN}
    uneven = [row for row in found if _spread(row) > SPREAD]
    if not uneven:
        return ""
    names, times_mean = some([deployment(row) for row in uneven]), number(max(found[row] for row in uneven))
    return (
        f"The rounds of {names} differ by more than {100 * SPREAD:g} %, and requests stick to few workers there: "
        f"the busiest answered up to {times_mean} times the mean, and which round has luck is chance."
    )


def _spread(row: CaseRow) -> float:
    """(Highest - lowest) / median of its rounds' requests/s."""
    rates = row.by_round("requests_per_second").values()
    return (max(rates) - min(rates)) / median(rates)


def _unevenness(row: CaseRow) -> float:
    """Requests of the busiest worker divided by the mean of all, in the worst round; 0 where it was not measured."""
    # A worker without an answer is not in a trial's list; another round may have had one from it.
    workers = max((len(trial.requests_per_worker or {}) for trial in row.ok.values()), default=0)
    return max((evenness(trial, workers) or 0 for trial in row.ok.values()), default=0)


def _errors(best: CaseRow) -> str:
    errors = best.errors()
    return f"It had {plural(errors, 'error')} besides {plural(best.requests, 'answer')}." if errors else ""
