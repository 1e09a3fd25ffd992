"""What a run that sought capacities shows: the highest rate of each case, and latency over load. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.figures import histogram
from bench.figures.capacity import Limit, bracket, parse_limit
from bench.figures.words import plural
from bench.report.axis import scale_for
from bench.report.charts import layer_colour
from bench.report.line_charts import LineScales, Point, Series, lines
from bench.report.model import CaseRow, Panel, Report
from bench.report.numbers import DASH, number, one_line, whole
from bench.report.small_charts import SmallChart
from bench.results.capacity import THINK_S, Capacity, Climb, Visits, climbs, latency_ms, visits
from bench.results.trials import Trial

LIMIT = "limit"


@dataclass(frozen=True)
class RatePoint:
    """A case at a rate: its trials in all rounds.

    latency_ms  the limit's percentile over the requests of all trials that count; None without one
    in_flight   requests that wait or are served at once: answers a second x mean latency (Little), the rounds' median
    held, tried in how many rounds the rate held, and was tried
    """

    rate: int
    latency_ms: float | None
    answered: float | None
    in_flight: float | None
    held: int
    tried: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class CapacityOfCase:
    """A row of the report with the staircases behind it."""

    row: CaseRow
    limit: Limit
    rounds: tuple[Climb, ...]
    visit: Visits | None

    @property
    def interval(self) -> str:
        """`475 to 530`, or `475 or more`."""
        return interval(self.row.capacity) if self.row.capacity else DASH

    @property
    def an_hour(self) -> str:
        """Visitors an hour."""
        found = self.row.capacity
        return number(self.visit.an_hour(found.rate)) if self.visit and found else DASH

    @property
    def at_once(self) -> str:
        """Visitors on the site at once."""
        found = self.row.capacity
        return number(self.visit.at_once(found.rate)) if self.visit and found else DASH

    @property
    def above(self) -> str:
        """What happened at the next higher rate, in the round that went highest."""
        highs = [(climb, high) for climb in self.rounds if (high := bracket(climb.steps)[1]) is not None]
        if not highs:
            return DASH
        climb, high = max(highs, key=lambda found: found[1])
        return f"{high:,} requests/s: {_outcome(climb.trials[high], self.limit)}"

    @cached_property
    def points(self) -> tuple[RatePoint, ...]:
        """Every rate that was tried, lowest first."""
        rates = sorted({rate for climb in self.rounds for rate in climb.trials})
        return tuple(_point(rate, self.rounds, self.limit) for rate in rates)


def interval(found: Capacity) -> str:
    """`475 to 530`, or `475 or more`; of one round, it says so."""
    reach = f"{number(found.low)} " + ("or more" if found.high is None else f"to {number(found.high)}")
    return f"{reach}; one round" if found.rounds == 1 else reach


def limit_of(report: Report) -> Limit | None:
    """The limit of a run that sought capacities."""
    text = report.run.info.plan.capacity
    return parse_limit(text, "capacity") if text else None


def cases(report: Report, panel: Panel) -> list[CapacityOfCase]:
    """The rows of a panel that have trials, in their order."""
    limit = limit_of(report)
    if limit is None:
        return []
    visit = visits(report.run.addresses).get(panel.setting.workload)
    found = climbs((trial for trial in report.run.trials if _is_here(trial, panel)), limit)
    by_case = {_key(next(iter(rounds[min(rounds)].trials.values()))): rounds for rounds in found.values()}
    return [
        CapacityOfCase(row, limit, tuple(by_case[row.stack, row.layer].values()), visit)
        for row in panel.rows
        if (row.stack, row.layer) in by_case
    ]


def _is_here(trial: Trial, panel: Panel) -> bool:
    here = panel.setting
    return (trial.workload, trial.size, trial.database) == (here.workload, here.size, here.database)


def _key(trial: Trial) -> tuple[str, str]:
    return trial.stack, trial.layer


def _point(rate: int, rounds: Sequence[Climb], limit: Limit) -> RatePoint:
    trials = [climb.trials[rate] for climb in rounds if rate in climb.trials]
    ok = [trial for trial in trials if trial.status == "ok"]
    merged = histogram.merged(trial.histogram for trial in ok)
    queues = [
        trial.requests_per_second * trial.latency_mean_ms / 1000
        for trial in ok
        if trial.requests_per_second is not None and trial.latency_mean_ms is not None
    ]
    answered = [trial.requests_per_second for trial in ok if trial.requests_per_second is not None]
    return RatePoint(
        rate=rate,
        latency_ms=merged.get_value_at_percentile(limit.percent) / 1000 if merged and merged.total_count else None,
        answered=statistics.median(answered) if answered else None,
        in_flight=statistics.median(queues) if queues else None,
        held=sum(climb.steps[rate].held for climb in rounds if rate in climb.steps),
        tried=len(trials),
        reasons=tuple(dict.fromkeys(trial.reason for trial in trials if trial.reason)),
    )


def _outcome(trial: Trial, limit: Limit) -> str:
    latency = latency_ms(trial, limit) if trial.status == "ok" else None
    return f"{limit.percentile} {number(latency)} ms" if latency is not None else one_line(trial.reason or "no answer")


def visit_words(report: Report, panel: Panel) -> str:
    """What a visitor is, in one sentence; empty for a workload without pages."""
    visit = visits(report.run.addresses).get(panel.setting.workload)
    if visit is None:
        return ""
    return (
        f"A visitor asks for {plural(visit.pages, 'page')} in {plural(visit.requests, 'request')} and stays "
        f"{THINK_S} s on each page."
    )


@dataclass(frozen=True)
class SizesTable:
    """The capacities of one workload and database: a row a deployment, a column a size."""

    workload: str
    database: str
    sizes: tuple[str, ...]
    rows: tuple[tuple[CaseRow, tuple[str, ...]], ...]


def by_size(report: Report) -> list[SizesTable]:
    """The capacities of the same deployments at several sizes; none where there is one size only."""
    groups: dict[tuple[str, str], list[Panel]] = {}
    for panel in report.main_panels:
        groups.setdefault((panel.setting.workload, panel.setting.database), []).append(panel)
    return [_by_size(*key, panels) for key, panels in groups.items() if len(panels) > 1]


def _by_size(workload: str, database: str, panels: Sequence[Panel]) -> SizesTable:
    first = {(row.stack, row.layer): row for panel in panels for row in panel.rows}
    rows = [(row, tuple(_cell(panel.row(*key)) for panel in panels)) for key, row in first.items()]
    return SizesTable(workload, database, tuple(panel.setting.size for panel in panels), tuple(rows))


def _cell(row: CaseRow | None) -> str:
    found = row.capacity if row else None
    return f"{number(found.rate)} ({interval(found)})" if found else row.outcome if row else DASH


def latency_over_load(report: Report, panel: Panel) -> list[SmallChart]:
    """The limit's percentile over the rate, a point a rate: one chart a stack, a line a layer, and the limit."""
    found = cases(report, panel)
    places = _places(found, lambda point: point.latency_ms)
    if not places:
        return []
    limit = found[0].limit
    rates = [rate for line in places.values() for rate, _ in line]
    edge = Series(LIMIT, len(report.layers), (((min(rates), limit.milliseconds), (max(rates), limit.milliseconds)),))
    return _charts(report, places, f"{limit.percentile} in ms over requests/s", "ms", edge)


def queue_over_load(report: Report, panel: Panel) -> list[SmallChart]:
    """Requests in flight over the rate, a point a rate: one chart a stack, a line a layer."""
    places = _places(cases(report, panel), lambda point: point.in_flight)
    return _charts(report, places, "requests in flight over requests/s", "in flight") if places else []


Places = dict[tuple[str, str], tuple[Point, ...]]  # stack, layer -> its points


def _places(found: Sequence[CapacityOfCase], figure: Callable[[RatePoint], float | None]) -> Places:
    places = {
        (item.row.stack, item.row.layer): tuple(
            (float(point.rate), value) for point in item.points if (value := figure(point))
        )
        for item in found
    }
    return {key: line for key, line in places.items() if line}


def _charts(report: Report, places: Places, title: str, unit: str, edge: Series | None = None) -> list[SmallChart]:
    edges = [edge] if edge else []
    rates = [rate for line in places.values() for rate, _ in line]
    values = [value for line in places.values() for _, value in line] + [y for it in edges for _, y in it.lines[0]]
    names = {layer: layer if len(report.layers) > 1 else "" for layer in report.layers}
    scales = LineScales(
        values,
        [*names.values(), *(item.label for item in edges)],
        unit,
        scale_for(values),
        "requests/s",
        x_high=max(rates),
        x_values=rates,
        x_scale=scale_for(rates),
    )
    return [
        SmallChart(
            stack,
            "",
            lines(
                [*_series(report, names, places, stack), *edges],
                scales,
                title=f"{title}, {one_line(stack)}",
                points=True,
            ),
            "",
        )
        for stack in report.stacks
        if any(of_stack == stack for of_stack, _ in places)
    ]


def _series(
    report: Report, names: dict[str, str], places: dict[tuple[str, str], tuple[Point, ...]], stack: str
) -> list[Series]:
    return [
        Series(name, layer_colour(report, layer), (places[stack, layer],))
        for layer, name in names.items()
        if (stack, layer) in places
    ]


def rounds_words(point: RatePoint) -> str:
    """In how many rounds a rate held: `2 of 3`."""
    return f"{whole(point.held)} of {whole(point.tried)}"
