"""Figures of the runs of a reproduction for each place of the publication. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import Run
from bench.measure.records.trials import Trial, total
from bench.measure.stats import Table
from bench.measure.stats.table import Ratio
from bench.serve.catalog.names import NO_LAYER, NO_LIMIT
from bench.verify.outcome import Outcome
from reproductions.published import Part, Place

Key = tuple[str, ...]  # stack, layer, workload, size, level

DEFAULTS = {"layer": NO_LAYER, "size": NO_LIMIT}
HIGHEST = "highest"


@dataclass(frozen=True)
class PublishedFigure:
    """The trials of a place: all levels in one run; without a run, `why`."""

    trials: tuple[Trial, ...] = ()
    run: Run | None = None
    why: str = ""

    @property
    def highest(self) -> list[Trial]:
        """The figures at the highest level."""
        level = max((trial.level for trial in self.trials), default=0)
        return [trial for trial in self.trials if trial.level == level]


@dataclass(frozen=True)
class Figures:
    """The runs, faults and further checks of a reproduction, and the reason for each part without results."""

    runs: Sequence[Run]
    outcomes: Sequence[FaultOutcome] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[Part] = ()
    checks: Sequence[Outcome] = ()

    def find(self, place: Place) -> PublishedFigure:
        """The trials of a place."""
        wanted = {**DEFAULTS, **place}
        named = ("stack", "layer", "workload", "size", *(["database"] if place.get("database") else []))
        for run in self.runs:
            all_trials = run.latest.values()
            trials = tuple(it for it in all_trials if all(getattr(it, name) == wanted[name] for name in named))
            if not trials:
                continue
            if any((it.stack, it.layer) == (trials[0].stack, trials[0].layer) for it in run.checks if not it.ok):
                return PublishedFigure(trials, run, "it gave wrong responses")
            if any(trial.status == "ok" for trial in trials):
                return PublishedFigure(trials, run)
            reasons = [trial.reason for trial in trials if trial.reason]
            return PublishedFigure(trials, run, f"{trials[-1].status}: {reasons[-1] if reasons else ''}")
        return PublishedFigure(why=self._why_absent(wanted))

    def _why_absent(self, place: Place) -> str:
        """The reason for a case without a run: the stack, or the part, cannot run here."""
        for run in self.runs:
            for skip in run.info.skips:
                if (skip.stack, skip.layer) == (place["stack"], place["layer"]) and skip.size in (None, place["size"]):
                    return skip.reason
        for part in self.parts:
            if place["stack"] in part.stacks and place["size"] in part.sizes and part.name in self.left_out:
                return self.left_out[part.name]
        return "not made yet"

    def by_round(self, place: Place, metric: str) -> tuple[dict[int, float], PublishedFigure]:
        """Round -> the figure of a place; empty, with the reason, if nothing was measured."""
        if place.get("stacks"):
            each = [self.by_round({**place, "stacks": (), "stack": stack}, metric) for stack in place["stacks"]]
            known = [rounds for rounds, _ in each if rounds]
            numbers = set.intersection(*map(set, known)) if known else set()
            figure = next((figure for rounds, figure in each if rounds), each[0][1])
            return {n: statistics.median(rounds[n] for rounds in known) for n in numbers}, figure
        figure = self.find(place)
        if figure.why or not figure.run:
            return {}, figure
        return self._rates(figure.run, metric, _level(place)).get(_key(figure.trials[0], _level(place)), {}), figure

    def _rates(self, run: Run, metric: str, level: str) -> dict[Key, dict[int, float]]:
        """All cases of a run at a level."""
        cases: dict[Key, dict[int, dict[int, float]]] = {}
        planned = run.info.plan.levels
        highest = str(max(planned, default=0))
        for trial in run.latest.values():
            figure = _figure(trial, metric) if trial.status == "ok" else None
            if figure and (level in ("min", "max") or str(trial.level) == (highest if level == HIGHEST else level)):
                cases.setdefault(_key(trial, level), {}).setdefault(trial.round, {})[trial.level] = figure
        choose = min if level == "min" else max
        # The lowest may be at a level that has no figure.
        required_levels = len(planned) if level == "min" else 1
        figures = {}
        for key, rounds in cases.items():
            if chosen := {n: choose(levels.values()) for n, levels in rounds.items() if len(levels) >= required_levels}:
                figures[key] = chosen
        return figures

    def ratio(self, left: Place, right: Place, metric: str) -> tuple[Ratio | None, str]:
        """Left divided by right with the 95 % interval, by the noise of all cases of a run; or the reason for none."""
        (one, figure), (two, other) = self.by_round(left, metric), self.by_round(right, metric)
        for name, rounds, side in ((name_of(left), one, figure), (name_of(right), two, other)):
            if not rounds or side.run is None:
                return None, f"{name}: {side.why or 'no figure'}"
        if figure.run is other.run and figure.run:
            beside = {**self._rates(figure.run, metric, _level(left)), **self._rates(figure.run, metric, _level(right))}
            drop = {_key(trials[0], _level(at)) for at, trials in ((left, figure.trials), (right, other.trials))}
            rest = {key: rounds for key, rounds in beside.items() if key not in drop}
            return Table({**rest, ("left",): one, ("right",): two}).ratio(("left",), ("right",)), ""
        return (Table({"left": one}).alone("left") - Table({"right": two}).alone("right")).ratio(), ""

    def median(self, place: Place, metric: str) -> float | None:
        """The median of the rounds; None without a measurement."""
        rounds, _ = self.by_round(place, metric)
        return statistics.median(rounds.values()) if rounds else None

    def check(self, place: Place, name: str) -> tuple[Outcome | None, str]:
        """The outcome of a check of verify, or the reason for none."""
        wanted = {**DEFAULTS, **place}
        case = (wanted["stack"], wanted["layer"], name)
        checks = list(self.checks)
        for run in self.runs:
            checks += run.checks
        outcomes = [check for check in checks if (check.stack, check.layer, check.check) == case]
        results = [check for check in outcomes if check.word in ("passed", "failed")]
        if results:
            return results[-1], ""
        return None, (
            outcomes[-1].skipped or outcomes[-1].known_limitation or "not made"
        ) if outcomes else self._why_absent(wanted)

    def faults(self, place: Place, name: str) -> tuple[list[FaultOutcome], str]:
        """The trusted outcomes of a fault, or the reason for none."""
        outcomes = [item for item in self.outcomes if (item.stack, item.fault) == (place["stack"], name)]
        usable = [item for item in outcomes if item.failed is not None and item.status in ("ok", "failed")]
        reasons = [item.reason for item in outcomes if item.reason]
        if usable:
            return usable, ""
        return [], reasons[-1] if reasons else self._why_absent({**DEFAULTS, **place})


def _level(place: Place) -> str:
    return str(place.get("level") or place.get("pick") or HIGHEST)


def _key(trial: Trial, level: str) -> Key:
    return (trial.stack, trial.layer, trial.workload, trial.size, level)


def _added(trial: Trial) -> float | None:
    """Memory added by the load to idle memory, in bytes; None for none."""
    peak, idle = total(trial.memory_peak_bytes), total(trial.condition.memory_idle_bytes)
    return None if peak is None or idle is None or peak <= idle else peak - idle


# Metric that is no field of a trial's figures -> how to compute it.
METRICS: dict[str, Callable[[Trial], float | None]] = {
    # Little's law: in a closed loop every connection always waits for a response.
    "latency_mean_ms": lambda trial: 1000 * trial.level / trial.throughput if trial.throughput else None,
    "memory_total": lambda trial: total(trial.memory_peak_bytes),
    "memory_idle": lambda trial: total(trial.condition.memory_idle_bytes),
    "memory_added": _added,
}


def _figure(trial: Trial, metric: str) -> float | None:
    figure: float | None = METRICS[metric](trial) if metric in METRICS else getattr(trial.figures, metric)
    return figure


def name_of(place: Place) -> str:
    """A place in words: the given name, or the stack and all other keys."""
    if name := place.get("name"):
        return str(name)
    stack, layer = place.get("stack"), place.get("layer")
    words = [str(stack or layer or "")] + ([f"with {layer}"] if stack and layer not in (None, NO_LAYER) else [])
    for key, before in (("workload", "on"), ("size", "of size"), ("database", "on"), ("level", "at level")):
        words += [f"{before} {place[key]}"] if place.get(key) else []
    return " ".join(words)
