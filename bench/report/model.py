"""The data that every form of the report shows: panels of rows. Pure; `bench.report.arrange` builds it from a run.

A panel holds what may be compared directly: one workload, size, database and level. Its rows are the stacks with their
layers. A row holds its trials by round, or the reason why it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from bench.figures import histogram
from bench.figures.noise import Noise, noise_of
from bench.figures.ratios import MARGIN, Standings, logarithms, standings, tail
from bench.figures.stats import Estimate, PooledPercentile, estimate
from bench.results.capacity import Capacity
from bench.results.faults import FaultsRun
from bench.results.folder import Run
from bench.results.records import UNLIMITED, Case, Dropped, Outcome
from bench.results.trials import Trial

MEASURED, FAILED, VOIDED, SKIPPED, NOT_RUN = "measured", "failed", "voided", "skipped", "not run"

CLOSED, OPEN = "closed", "open"

# Field of a trial -> the percentile to read from merged histograms.
PERCENTILES = {"latency_p50_ms": 50.0, "latency_p90_ms": 90.0, "latency_p99_ms": 99.0, "latency_p999_ms": 99.9}

ERROR_FIELDS = ("errors_connect", "errors_read", "errors_timeout", "responses_not_2xx")

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Setting:
    """What all rows of a panel have in common."""

    workload: str
    size: str
    database: str
    level: int
    mode: str = CLOSED
    limit: str = ""  # in a run that sought capacities: the limit of the latency, in words; the level is 0

    @property
    def load(self) -> str:
        """The level with its unit: `16 connections` (closed loop) or `200 requests/s` (open loop); or the limit."""
        if self.limit:
            return self.limit
        return f"{self.level:,} {'requests/s' if self.mode == OPEN else 'connections'}"

    @property
    def is_limited(self) -> bool:
        return self.size != UNLIMITED

    @property
    def without_level(self) -> tuple[str, str, str, str]:
        """What settings share that differ in the level alone."""
        return (self.workload, self.size, self.database, self.mode)


@dataclass(frozen=True, eq=False)  # compared by identity: rows are keys of dictionaries
class CaseRow:
    """A case at a level: its trials by round, or the reason why it has none."""

    stack: str
    layer: str
    setting: Setting
    trials: tuple[Trial, ...]
    skip: str | None  # why it cannot run here
    wrong: int  # number of failed checks of verify
    case: Case | None = None  # as it was planned
    dropped: Dropped | None = None  # why and when a run until decided measured it no further
    times_none: Estimate | None = None  # requests/s divided by those of layer `none` on the same stack, paired by round
    capacity: Capacity | None = None  # where it was sought: the trials are those at the highest rate of each round

    @cached_property
    def ok(self) -> dict[int, Trial]:
        """Round -> its successful trial; a repeated trial replaces the earlier one."""
        return {trial.round: trial for trial in self.trials if trial.status == "ok"}

    @cached_property
    def failed(self) -> tuple[Trial, ...]:
        """Failed trials of rounds without a later successful one."""
        return tuple(trial for trial in self.trials if trial.status == "failed" and trial.round not in self.ok)

    @cached_property
    def voided(self) -> tuple[Trial, ...]:
        """Voided trials of rounds without a later successful one. No median uses their figures."""
        latest = {trial.round: trial for trial in self.trials if trial.status == "voided"}
        return tuple(trial for number, trial in latest.items() if number not in self.ok)

    @property
    def outcome(self) -> str:
        """`measured`, `failed`, `voided`, `skipped` or `not run`."""
        if self.ok:
            return MEASURED
        if self.failed:
            return FAILED
        if self.voided:
            return VOIDED
        return SKIPPED if self.skip is not None else NOT_RUN

    @property
    def ranked(self) -> bool:
        """Whether it takes part in the ranking: it was measured and gave right answers."""
        return bool(self.ok) and not self.wrong

    def by_round(self, field: str) -> dict[int, float]:
        """Round -> the value of a field of Trial, for the rounds that measured it."""
        figures = {number: getattr(trial, field) for number, trial in self.ok.items()}
        return {number: value for number, value in figures.items() if value is not None}

    def figure(self, field: str) -> Estimate | PooledPercentile | None:
        """A field of Trial over the rounds: median and interval; percentiles are those of all rounds' requests.

        Without histograms percentiles cannot be pooled: then it is the median of the rounds' percentiles.
        """
        rounds = estimate(self.by_round(field).values())
        if field not in self.pooled:
            return rounds
        pooled = self.pooled[field]
        if pooled is None:
            return None
        if rounds is None:
            return PooledPercentile(pooled, pooled, pooled, 0)
        return PooledPercentile(pooled, min(rounds.low, pooled), max(rounds.high, pooled), rounds.count)

    @cached_property
    def pooled(self) -> dict[str, float | None]:
        """Field -> percentile over the requests of all rounds; empty when a round has no histogram."""
        merged = histogram.merged(trial.histogram for trial in self.ok.values())
        if merged is None:
            return {}
        return {field: histogram.percentile_ms(merged, percent) for field, percent in PERCENTILES.items()}

    @cached_property
    def rate(self) -> Estimate | None:
        """Requests a second; at its capacity, with the interval of that."""
        if self.capacity:
            return self.capacity.estimate
        return estimate(self.by_round("requests_per_second").values())

    @cached_property
    def servers(self) -> tuple[str, ...]:
        """Servers and services that were sampled, in the order of the results."""
        return tuple(dict.fromkeys(name for trial in self.ok.values() for name in _sampled(trial)))

    def memory_peak(self, server: str) -> Estimate | None:
        """Peak memory (PSS) of one server or service, in bytes."""
        return estimate((trial.memory_peak_bytes or {}).get(server) for trial in self.ok.values())

    @cached_property
    def memory_total(self) -> Estimate | None:
        """Sum of the servers' peak memory, in bytes; None when one of them was not measured."""
        return estimate(total(trial.memory_peak_bytes) for trial in self.ok.values())

    @cached_property
    def memory_parts(self) -> dict[str, float]:
        """Server or service -> its share of the median of `memory_total`, in bytes, so that the shares add up to it.

        They come from the median round, or are the mean of the two middle rounds.
        """
        peaks = [
            (whole, trial.memory_peak_bytes or {})
            for trial in self.ok.values()
            if (whole := total(trial.memory_peak_bytes)) is not None
        ]
        peaks.sort(key=lambda peak: peak[0])
        middle = [peak for _, peak in peaks[(len(peaks) - 1) // 2 : len(peaks) // 2 + 1]]
        return {name: sum(peak.get(name) or 0 for peak in middle) / len(middle) for name in self.servers if middle}

    def cpu(self, server: str) -> Estimate | None:
        """CPU seconds of one server or service per 1,000 requests."""
        return estimate(per_thousand((trial.cpu_seconds or {}).get(server), trial) for trial in self.ok.values())

    @cached_property
    def cpu_total(self) -> Estimate | None:
        """CPU seconds of the whole deployment per 1,000 requests; None when a server was not measured."""
        return estimate(per_thousand(total(trial.cpu_seconds), trial) for trial in self.ok.values())

    def processes(self, server: str) -> int | None:
        """Largest number of processes of one server or service, in any round."""
        counts = [(trial.processes or {}).get(server) for trial in self.ok.values()]
        return max((count for count in counts if count is not None), default=None)

    def errors(self, fields: Iterable[str] = ERROR_FIELDS) -> int | None:
        """Errors of all rounds together; None when the load tool counts none of these kinds."""
        counts = [getattr(trial, field) for trial in self.ok.values() for field in fields]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    @cached_property
    def memory_per_rate(self) -> Estimate | None:
        """Bytes of peak memory for each 1,000 requests/s served."""
        return estimate(memory_per_rate(trial) for trial in self.ok.values())

    @property
    def requests(self) -> int:
        """Answers of all rounds together."""
        return sum(trial.requests_total or 0 for trial in self.ok.values())


@dataclass(frozen=True)
class Panel:
    """Rows that may be compared directly, grouped by stack in the order of the plan."""

    setting: Setting
    groups: tuple[tuple[str, tuple[CaseRow, ...]], ...]
    main: bool  # True for the highest level measured; lower levels follow it
    margin: float = MARGIN  # share by which requests/s must differ to count as different
    looks: int = 1  # how often a run until decided may have looked at the figures

    @property
    def rows(self) -> tuple[CaseRow, ...]:
        """All rows, stack by stack."""
        return tuple(row for _, rows in self.groups for row in rows)

    @property
    def is_measured(self) -> bool:
        """Whether any row has figures."""
        return any(row.ok for row in self.rows)

    @property
    def ranked(self) -> list[CaseRow]:
        """Measured rows with right answers, fastest first."""
        return sorted((row for row in self.rows if row.ranked), key=lambda row: -rate_of(row))

    @cached_property
    def noise(self) -> Noise[CaseRow]:
        """The noise of the requests/s of its ranked rows, all of them together."""
        rates = {row: logarithms(row.by_round("requests_per_second")) for row in self.ranked}
        return noise_of({row: rounds for row, rounds in rates.items() if rounds})

    @cached_property
    def standings(self) -> Standings[CaseRow] | None:
        """Its ranked rows against the fastest; None without a figure above zero."""
        return self.standings_of(self.ranked, [row for row in self.ranked if row.dropped])

    def standings_of(self, rows: Sequence[CaseRow], dropped: Sequence[CaseRow] = ()) -> Standings[CaseRow] | None:
        """Some of its ranked rows, fastest first, against the fastest of these, which is none of the `dropped`."""
        measured = [row for row in rows if row in self.noise.cases]
        chance = tail(len(measured), self.looks)
        return standings(self.noise, measured, self.margin, chance, dropped) if measured else None

    def row(self, stack: str, layer: str) -> CaseRow | None:
        """The row of a stack with a layer, measured or not."""
        return next((row for row in self.rows if (row.stack, row.layer) == (stack, layer)), None)


@dataclass(frozen=True)
class Report:
    """A run, arranged for reading."""

    run: Run
    stacks: tuple[str, ...]
    layers: tuple[str, ...]
    panels: tuple[Panel, ...]
    faults: FaultsRun | None = None  # made beside the run, in its folder `faults`

    @cached_property
    def anchors(self) -> dict[CaseRow, str]:
        """Row -> the id of its trials in the page."""
        return {row: f"t{number}" for number, row in enumerate(self.rows, 1)}

    @property
    def main_panels(self) -> list[Panel]:
        """The panels at the highest level measured: one for each workload, size and database."""
        return [panel for panel in self.panels if panel.main]

    def levels_of(self, panel: Panel) -> list[Panel]:
        """The panels that differ from this one in the level alone, itself included."""
        return [other for other in self.panels if other.setting.without_level == panel.setting.without_level]

    @property
    def rows(self) -> list[CaseRow]:
        """Every row of every panel."""
        return [row for panel in self.panels for row in panel.rows]

    @property
    def servers(self) -> tuple[str, ...]:
        """Every server and service that was sampled, largest memory first."""
        largest: dict[str, float] = {}
        for row in self.rows:
            for name in row.servers:
                peak = row.memory_peak(name)
                largest[name] = max(largest.get(name, 0.0), peak.median if peak else 0.0)
        return tuple(sorted(largest, key=lambda name: -largest[name]))

    @property
    def checks(self) -> dict[tuple[str, str], list[Outcome]]:
        """(stack, layer) -> the checks of verify."""
        found: dict[tuple[str, str], list[Outcome]] = {}
        for check in self.run.checks:
            found.setdefault((check.stack, check.layer), []).append(check)
        return found

    def counts(self) -> dict[str, int]:
        """Outcome -> number of cases; a case counts as measured when any of its levels was."""
        order = (MEASURED, FAILED, VOIDED, SKIPPED, NOT_RUN)
        best: dict[tuple[str, ...], str] = {}
        for row in self.rows:
            case = (row.stack, row.layer, row.setting.workload, row.setting.size, row.setting.database)
            best[case] = min(best.get(case, row.outcome), row.outcome, key=order.index)
        return {outcome: sum(found == outcome for found in best.values()) for outcome in order}


def rate_of(row: CaseRow) -> float:
    """Median requests/s of a row, 0 when it was not measured."""
    return row.rate.median if row.rate else 0.0


def total(values: Mapping[str, Number | None] | None) -> Number | None:
    """The sum over servers; None without any, or when one of them was not measured."""
    if not values:
        return None
    known = [value for value in values.values() if value is not None]
    return sum(known) if len(known) == len(values) else None


def per_thousand(seconds: float | None, trial: Trial) -> float | None:
    """Seconds of a trial as seconds per 1,000 of its requests."""
    if seconds is None or not trial.requests_total:
        return None
    return seconds / trial.requests_total * 1000


def memory_per_rate(trial: Trial) -> float | None:
    """Bytes of peak memory of a trial for each 1,000 requests/s it served."""
    peak, rate = total(trial.memory_peak_bytes), trial.requests_per_second
    return peak / rate * 1000 if peak is not None and rate else None


def _sampled(trial: Trial) -> Iterable[str]:
    for field in (trial.memory, trial.memory_peak_bytes, trial.cpu_seconds):
        yield from field or ()
