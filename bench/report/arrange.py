"""Arrange a run for reading: from its trials, cases and skips to the panels of a Report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from bench.figures.capacity import Limit, parse_limit
from bench.figures.stats import paired_ratio
from bench.report.model import CaseRow, Panel, Report, Setting
from bench.results.capacity import capacity, climbs, made_load
from bench.results.faults import FaultsRun
from bench.results.folder import Run
from bench.results.records import NO_LAYER, Case, Outcome, Skip
from bench.results.trials import Trial


def arrange(run: Run, faults: FaultsRun | None = None) -> Report:
    """The report of a run, with the faults that were made beside it."""
    plan, info = run.info.plan, run.info
    items: list[Case | Skip | Trial] = [*info.cases, *info.skips, *run.trials]
    stacks = _in_order(plan.stacks, (item.stack for item in items))
    layers = _in_order(plan.layers, (item.layer for item in items))
    # The baseline comes first: the other layers are compared with it.
    layers = tuple(sorted(layers, key=lambda layer: layer != NO_LAYER))
    main = _main_settings(run)
    panels = tuple(_panel(run, setting, stacks, layers, main=setting in main) for setting in _settings(run))
    return Report(run, stacks, layers, panels, faults)


def _in_order(planned: Iterable[str], found: Iterable[str]) -> tuple[str, ...]:
    """The names found: planned ones first, in the order of the plan, then all others."""
    found = dict.fromkeys(found)
    return tuple(dict.fromkeys((*(name for name in planned if name in found), *found)))


def _settings(run: Run) -> list[Setting]:
    """Every setting that was planned or measured: workloads in the order of the plan, highest level first."""
    plan = run.info.plan
    planned = {
        Setting(case.workload, case.size, case.database, level, plan.mode, _limit_words(run))
        for case in run.info.cases
        for level in ((0,) if plan.capacity else plan.levels)
    }
    settings = planned | _measured(run)
    workloads = _in_order(plan.workloads, (setting.workload for setting in settings))
    return sorted(
        settings,
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


def _setting(run: Run, trial: Trial) -> Setting:
    level = 0 if run.info.plan.capacity else trial.level
    return Setting(trial.workload, trial.size, trial.database, level, trial.mode, _limit_words(run))


def _limit(run: Run) -> Limit | None:
    return parse_limit(text, "capacity") if (text := run.info.plan.capacity) else None


def _limit_words(run: Run) -> str:
    return limit.words if (limit := _limit(run)) else ""


def _measured(run: Run, wanted: Callable[[Trial], bool] = lambda trial: True) -> set[Setting]:
    return {_setting(run, trial) for trial in run.trials if wanted(trial)}


def _main_settings(run: Run) -> set[Setting]:
    """Of the settings that differ in the level alone: the highest level with a figure, else the highest."""
    with_figures = _measured(run, lambda trial: trial.status == "ok")
    best: dict[tuple[str, ...], Setting] = {}
    for setting in sorted(_settings(run), key=lambda item: (item in with_figures, item.level)):
        best[setting.without_level] = setting
    return set(best.values())


def _panel(run: Run, setting: Setting, stacks: Iterable[str], layers: Iterable[str], *, main: bool) -> Panel:
    groups = []
    for stack in stacks:
        rows = [row for layer in layers if (row := _row(run, setting, stack, layer)) is not None]
        baseline = next((row for row in rows if row.layer == NO_LAYER), None)
        if rows:
            groups.append((stack, tuple(_with_ratio(row, baseline) for row in rows)))
    plan = run.info.plan
    return Panel(setting, tuple(groups), main, plan.margin, plan.rounds if plan.until else 1)


def _row(run: Run, setting: Setting, stack: str, layer: str) -> CaseRow | None:
    """The row of a stack with a layer; None when it was not planned, skipped or measured."""

    def here(item: Trial | Skip | Case | Outcome) -> bool:
        return (item.stack, item.layer) == (stack, layer)

    trials = tuple(trial for trial in run.trials if here(trial) and _setting(run, trial) == setting)
    skips = [
        skip.reason
        for skip in run.info.skips
        if here(skip) and skip.workload in (None, setting.workload) and skip.size in (None, setting.size)
    ]
    where = (setting.workload, setting.size, setting.database)
    planned = {
        case.case_id: case
        for case in run.info.cases
        if here(case) and (case.workload, case.size, case.database) == where
    }
    if not (trials or skips or planned):
        return None
    wrong = sum(here(check) and not check.ok for check in run.checks)
    dropped = [item for item in run.info.dropped if item.case_id in planned and item.level == setting.level]
    row = CaseRow(
        stack,
        layer,
        setting,
        trials,
        skips[0] if skips else None,
        wrong,
        next(iter(planned.values()), None),
        dropped[0] if dropped else None,
    )
    return _at_capacity(row, limit) if trials and (limit := _limit(run)) else row


def _at_capacity(row: CaseRow, limit: Limit) -> CaseRow:
    """The row with the trials at the highest rate that held in each round, or with those that failed before a load."""
    rounds = next(iter(climbs(row.trials, limit).values()))
    held = tuple(climb.held for climb in rounds.values() if climb.held)
    if held:
        return replace(row, trials=held, capacity=capacity(list(rounds.values())))
    if failed := tuple(trial for trial in row.trials if not made_load(trial)):
        return replace(row, trials=failed)
    return replace(row, trials=(), skip=f"no rate holds {limit.words}")


def _with_ratio(row: CaseRow, baseline: CaseRow | None) -> CaseRow:
    field = "requests_per_second"
    if baseline is None or not row.ok:
        return row
    return replace(row, times_none=paired_ratio(row.by_round(field), baseline.by_round(field)))
