"""What every form of the report shows, computed once from a run: panels of rows, each row a case at a level.

A panel holds what may be compared directly: one workload, size, database and level; its rows are the
stacks and layers. A row knows its trials round by round, and why it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from bench.figures import histogram
from bench.figures.stats import Comparison, Spread, paired, paired_ratio, spread
from bench.results.folder import Run
from bench.results.records import Outcome
from bench.results.trials import Trial

BASELINE = "none"  # the layer that every other layer is compared with

MEASURED, FAILED, VOIDED, SKIPPED, NOT_RUN = "measured", "failed", "voided", "skipped", "not run"

CLOSED, OPEN = "closed", "open"

# Field of a trial -> the percentile that merged histograms give for it.
PERCENTILES = {"latency_p50_ms": 50.0, "latency_p90_ms": 90.0, "latency_p99_ms": 99.0, "latency_p999_ms": 99.9}

ERROR_FIELDS = ("errors_connect", "errors_read", "errors_timeout", "responses_not_2xx")


@dataclass(frozen=True)
class Setting:
    """What the rows of a panel share."""

    workload: str
    size: str
    database: str
    level: int
    mode: str = CLOSED

    @property
    def load(self) -> str:
        """The level with its unit: `16 connections`, or `200 requests/s` of an open loop."""
        return f"{self.level:,} {'requests/s' if self.mode == OPEN else 'connections'}"


@dataclass(frozen=True)
class Pooled:
    """A figure of all rounds' requests together, with the lowest and highest round's own beside it.

    `count` is the number of rounds that have one of their own; 0 where only all together are enough.
    """

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, eq=False)  # two rows are never the same one
class Row:
    """A case at a level: its trials, round by round, or the reason why it has none."""

    stack: str
    layer: str
    setting: Setting
    trials: tuple[Trial, ...]
    skip: str | None  # why it cannot run here
    wrong: int  # checks of verify that failed
    times_none: Spread | None = None  # requests/s against the layer `none` of the same stack, paired by round

    @cached_property
    def ok(self) -> dict[int, Trial]:
        """Round -> its trial; a trial measured again replaces the earlier one."""
        return {trial.round: trial for trial in self.trials if trial.status == "ok"}

    @cached_property
    def failed(self) -> tuple[Trial, ...]:
        """Failed trials of rounds that were not measured again."""
        return tuple(trial for trial in self.trials if trial.status == "failed" and trial.round not in self.ok)

    @cached_property
    def voided(self) -> tuple[Trial, ...]:
        """Voided trials of rounds that were not measured again: their figures count nowhere."""
        standing = {trial.round: trial for trial in self.trials if trial.status == "voided"}
        return tuple(trial for number, trial in standing.items() if number not in self.ok)

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
        """True when its figures may be called fastest: it was measured and gave right answers."""
        return bool(self.ok) and not self.wrong

    def by_round(self, field: str) -> dict[int, float]:
        """Round -> a figure, of the rounds in which it was measured."""
        figures = {number: getattr(trial, field) for number, trial in self.ok.items()}
        return {number: value for number, value in figures.items() if value is not None}

    def figure(self, field: str) -> Spread | Pooled | None:
        """One field of Trial over the rounds: median and range; a percentile is that of all rounds' requests together.

        Percentiles of rounds without histograms cannot be pooled: then it is the median of the rounds' own.
        """
        own = spread(self.by_round(field).values())
        if field not in self.pooled:
            return own
        pooled = self.pooled[field]
        if pooled is None:
            return None
        if own is None:
            return Pooled(pooled, pooled, pooled, 0)
        return Pooled(pooled, min(own.low, pooled), max(own.high, pooled), own.count)

    @cached_property
    def pooled(self) -> dict[str, float | None]:
        """Field -> percentile of all rounds' requests together; empty when a round kept no histogram."""
        whole = histogram.merged(trial.histogram for trial in self.ok.values())
        if whole is None:
            return {}
        return {field: histogram.percentile_ms(whole, percent) for field, percent in PERCENTILES.items()}

    @cached_property
    def rate(self) -> Spread | None:
        """Requests a second."""
        return self.figure("requests_per_second")

    @cached_property
    def servers(self) -> tuple[str, ...]:
        """Servers and services that were sampled, in the order of the results."""
        return tuple(dict.fromkeys(name for trial in self.ok.values() for name in _sampled(trial)))

    def memory_peak(self, server: str) -> Spread | None:
        """Largest PSS of one server or service, in bytes."""
        return spread((trial.memory_peak_bytes or {}).get(server) for trial in self.ok.values())

    @cached_property
    def memory_total(self) -> Spread | None:
        """The servers' largest PSS added up, in bytes; None where one of them was not measured."""
        return spread(total(trial.memory_peak_bytes) for trial in self.ok.values())

    @cached_property
    def memory_parts(self) -> dict[str, float]:
        """Server or service -> its part of the median of `memory_total`, so that the parts add up to it.

        They are those of the round in the middle, or the mean of the two in the middle.
        """
        peaks = [trial.memory_peak_bytes for trial in self.ok.values() if total(trial.memory_peak_bytes) is not None]
        peaks.sort(key=total)
        middle = peaks[(len(peaks) - 1) // 2 : len(peaks) // 2 + 1]
        return {name: sum(peak.get(name, 0) for peak in middle) / len(middle) for name in self.servers if middle}

    def cpu(self, server: str) -> Spread | None:
        """CPU seconds of one server or service per 1,000 requests."""
        return spread(per_thousand((trial.cpu_seconds or {}).get(server), trial) for trial in self.ok.values())

    @cached_property
    def cpu_total(self) -> Spread | None:
        """CPU seconds of the whole deployment per 1,000 requests; None where a server was not measured."""
        return spread(per_thousand(total(trial.cpu_seconds), trial) for trial in self.ok.values())

    def processes(self, server: str) -> int | None:
        """Most processes seen in the tree of one server or service, in any round."""
        counts = [(trial.processes or {}).get(server) for trial in self.ok.values()]
        return max((count for count in counts if count is not None), default=None)

    def errors(self, fields: Iterable[str] = ERROR_FIELDS) -> int | None:
        """Errors of all rounds together; None when the load tool counted none of these kinds."""
        counted = [getattr(trial, field) for trial in self.ok.values() for field in fields]
        known = [count for count in counted if count is not None]
        return sum(known) if known else None

    @cached_property
    def memory_per_rate(self) -> Spread | None:
        """Bytes of memory at the peak for each 1,000 requests a second that they served."""
        return spread(
            peak / trial.requests_per_second * 1000 if peak is not None and trial.requests_per_second else None
            for trial in self.ok.values()
            for peak in [total(trial.memory_peak_bytes)]
        )

    @property
    def requests(self) -> int:
        """Answers of all rounds together."""
        return sum(trial.requests_total or 0 for trial in self.ok.values())


@dataclass(frozen=True)
class Panel:
    """Rows that may be compared directly, grouped by stack in the order of the plan."""

    setting: Setting
    groups: tuple[tuple[str, tuple[Row, ...]], ...]
    main: bool  # False for the lower levels, which are shown after the highest one

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, stack by stack."""
        return tuple(row for _, rows in self.groups for row in rows)

    @property
    def ranked(self) -> list[Row]:
        """Measured rows with right answers, fastest first."""
        return sorted((row for row in self.rows if row.ranked), key=lambda row: -row.rate.median)

    def row(self, stack: str, layer: str) -> Row | None:
        """The row of a stack with a layer, measured or not."""
        return next((row for row in self.rows if (row.stack, row.layer) == (stack, layer)), None)


@dataclass(frozen=True)
class Failure:
    """Rounds of a case at a level that failed, or are voided, for one reason."""

    stack: str
    layer: str
    setting: Setting
    reason: str
    rounds: tuple[int, ...]
    logs: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A run, arranged for reading."""

    run: Run
    stacks: tuple[str, ...]
    layers: tuple[str, ...]
    panels: tuple[Panel, ...]

    @property
    def main_panels(self) -> list[Panel]:
        """The panels at the highest level that was measured, one for each workload, size and database."""
        return [panel for panel in self.panels if panel.main]

    @property
    def rows(self) -> list[Row]:
        """Every row of every panel."""
        return [row for panel in self.panels for row in panel.rows]

    @property
    def failures(self) -> list[Failure]:
        """What failed and was not measured again; rounds that failed for the same reason are one failure."""
        return _by_reason((row, trial) for row in self.rows for trial in row.failed)

    @property
    def voided(self) -> list[Failure]:
        """What a guard voided and was not measured again; rounds of the same reason are one."""
        return _by_reason((row, trial) for row in self.rows for trial in row.voided)

    @property
    def servers(self) -> tuple[str, ...]:
        """Every server and service that was sampled, the one that takes most memory first."""
        most: dict[str, float] = {}
        for row in self.rows:
            for name in row.servers:
                peak = row.memory_peak(name)
                most[name] = max(most.get(name, 0.0), peak.median if peak else 0.0)
        return tuple(sorted(most, key=lambda name: -most[name]))

    @property
    def checks(self) -> dict[tuple[str, str], list[Outcome]]:
        """(stack, layer) -> the checks of verify."""
        found: dict[tuple[str, str], list[Outcome]] = {}
        for check in self.run.checks:
            found.setdefault((check.stack, check.layer), []).append(check)
        return found

    def counts(self) -> dict[str, int]:
        """Outcome -> number of cases; a case counts as measured when it was at any level."""
        order = (MEASURED, FAILED, VOIDED, SKIPPED, NOT_RUN)
        best: dict[tuple, str] = {}
        for row in self.rows:
            case = (row.stack, row.layer, row.setting.workload, row.setting.size, row.setting.database)
            best[case] = min(best.get(case, row.outcome), row.outcome, key=order.index)
        return {outcome: sum(found == outcome for found in best.values()) for outcome in order}


def _by_reason(found: Iterable[tuple[Row, Trial]]) -> list[Failure]:
    trials: dict[tuple, list[Trial]] = {}
    for row, trial in found:
        trials.setdefault((row.stack, row.layer, row.setting, trial.reason), []).append(trial)
    return [
        Failure(
            *key,
            rounds=tuple(trial.round for trial in its),
            logs=tuple(dict.fromkeys(trial.log for trial in its if trial.log)),
        )
        for key, its in trials.items()
    ]


def compared(row: Row, other: Row, margin: float) -> Comparison | None:
    """Requests/s of `row` against those of `other`, paired by round; None when they share no round."""
    return paired(other.by_round("requests_per_second"), row.by_round("requests_per_second"), margin)


def total(values: dict[str, float | None] | None) -> float | None:
    """The sum over servers; None when there are none or one of them was not measured."""
    if not values or None in values.values():
        return None
    return sum(values.values())


def per_thousand(seconds: float | None, trial: Trial) -> float | None:
    """Seconds of a trial as seconds per 1,000 of its requests."""
    if seconds is None or not trial.requests_total:
        return None
    return seconds / trial.requests_total * 1000


def _sampled(trial: Trial) -> Iterable[str]:
    for field in (trial.memory, trial.memory_peak_bytes, trial.cpu_seconds):
        yield from field or ()


# ------------------------------------------------------------------------------------------- arranging


def arrange(run: Run) -> Report:
    """The report of a run. Pure: reads nothing but the run it is given."""
    plan, info = run.info.plan, run.info
    stacks = _in_order(plan.stacks, (item.stack for item in (*info.cases, *info.skips, *run.trials)))
    layers = _in_order(plan.layers, (item.layer for item in (*info.cases, *info.skips, *run.trials)))
    # Layers are compared with the baseline, so that one is read first.
    layers = tuple(sorted(layers, key=lambda layer: layer != BASELINE))
    main = _main_settings(run)
    panels = tuple(_panel(run, setting, stacks, layers, main=setting in main) for setting in _settings(run))
    return Report(run, stacks, layers, panels)


def _in_order(planned: Iterable[str], found: Iterable[str]) -> tuple[str, ...]:
    """What was planned, in that order, then whatever else was found. Only what was found is kept."""
    found = dict.fromkeys(found)
    return tuple(dict.fromkeys((*(name for name in planned if name in found), *found)))


def _settings(run: Run) -> list[Setting]:
    """Every combination that was measured or planned, workloads in the order of the plan, highest level first."""
    plan = run.info.plan
    planned = {
        Setting(case.workload, case.size, case.database, level, plan.mode)
        for case in run.info.cases
        for level in plan.levels
    }
    workloads = _in_order(plan.workloads, (setting.workload for setting in planned | _measured(run)))
    return sorted(
        planned | _measured(run),
        key=lambda setting: (
            workloads.index(setting.workload),
            _position(plan.sizes, setting.size),
            setting.database,
            setting.mode,
            -setting.level,
        ),
    )


def _position(order: tuple[str, ...], name: str) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)


def _setting(trial: Trial) -> Setting:
    return Setting(trial.workload, trial.size, trial.database, trial.level, trial.mode)


def _measured(run: Run, wanted: Callable[[Trial], bool] = lambda trial: True) -> set[Setting]:
    return {_setting(trial) for trial in run.trials if wanted(trial)}


def _main_settings(run: Run) -> set[Setting]:
    """Of settings that differ in the level alone, the highest level with a figure, else the highest."""
    figures = _measured(run, lambda trial: trial.status == "ok")
    best: dict[tuple, Setting] = {}
    for setting in sorted(_settings(run), key=lambda item: (item in figures, item.level)):
        best[(setting.workload, setting.size, setting.database, setting.mode)] = setting
    return set(best.values())


def _panel(run: Run, setting: Setting, stacks: Iterable[str], layers: Iterable[str], *, main: bool) -> Panel:
    groups = []
    for stack in stacks:
        rows = [row for layer in layers if (row := _row(run, setting, stack, layer)) is not None]
        baseline = next((row for row in rows if row.layer == BASELINE), None)
        if rows:
            groups.append((stack, tuple(_with_ratio(row, baseline) for row in rows)))
    return Panel(setting, tuple(groups), main)


def _row(run: Run, setting: Setting, stack: str, layer: str) -> Row | None:
    """The row of a stack with a layer; None when it was neither planned, skipped nor measured."""

    def here(item) -> bool:
        return (item.stack, item.layer) == (stack, layer)

    trials = tuple(trial for trial in run.trials if here(trial) and _setting(trial) == setting)
    skips = [
        skip.reason
        for skip in run.info.skips
        if here(skip) and skip.workload in (None, setting.workload) and skip.size in (None, setting.size)
    ]
    planned = any(
        here(case) and (case.workload, case.size, case.database) == (setting.workload, setting.size, setting.database)
        for case in run.info.cases
    )
    if not (trials or skips or planned):
        return None
    wrong = sum(here(check) and not check.ok for check in run.checks)
    return Row(stack, layer, setting, trials, skips[0] if skips else None, wrong)


def _with_ratio(row: Row, baseline: Row | None) -> Row:
    field = "requests_per_second"
    if baseline is None or not row.ok:
        return row
    ratio = paired_ratio(row.by_round(field), baseline.by_round(field))
    return Row(row.stack, row.layer, row.setting, row.trials, row.skip, row.wrong, ratio)
