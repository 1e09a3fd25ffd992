"""Find the figures that the runs of a reproduction measured for a published row or claim. Pure.

A place is a mapping as in published.toml: `stack` (or `stacks`, for their median), `layer`, `workload`, `size`, and
`level` (default: the highest one planned) or `pick` ("min" or "max": the lowest or highest level of each round).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.figures.ratios import AT_EACH_LOOK, CHANCE, paired, unpaired
from bench.figures.stats import Estimate, estimate
from bench.report.model import MEASURED, CaseRow, Report, per_thousand, total
from bench.results import stability
from bench.results.faults import FaultOutcome
from bench.results.records import NO_LAYER, UNLIMITED, Outcome
from bench.results.trials import Trial

DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
DEFAULTS = {"layer": NO_LAYER, "size": UNLIMITED}

Place = Mapping[str, Any]
Rounds = dict[int, float]
Cell = tuple[str, int]  # a case id, and a level of it


@dataclass(frozen=True)
class FigureByRound:
    """A figure by round and the run it comes from. When nothing was measured it is empty and `why` has the reason."""

    rounds: Rounds = field(default_factory=dict)
    run: int | None = None
    why: str = ""
    of: str = ""  # for a median of several stacks: how many of them were measured

    @property
    def estimate(self) -> Estimate | None:
        """Median and confidence interval."""
        return estimate(self.rounds.values())


@dataclass(frozen=True)
class Answered:
    """How many right answers a trial got, and whether it failed then."""

    answers: int
    failed: bool


class MeasuredFigures:
    """The figures of a reproduction's runs, found by place."""

    def __init__(
        self,
        reports: Sequence[Report],
        left_out: Sequence[tuple[Mapping[str, Any], str]] = (),
        outcomes: Sequence[FaultOutcome] = (),
        looks: int = 1,
    ):
        self.reports = reports
        self.left_out = left_out  # parts of published.toml that could not run, with the reason
        self.outcomes = outcomes  # of their faults, the last ones
        self._chance = AT_EACH_LOOK[looks]  # of one end of a ratio's interval: claims are judged so many times

    def rows(self, place: Place) -> tuple[int | None, list[CaseRow]]:
        """The run that has this case, and its rows by level, highest first."""
        wanted = {**DEFAULTS, **place}
        for index, report in enumerate(self.reports):
            rows = [
                row
                for panel in report.panels
                if (panel.setting.workload, panel.setting.size) == (wanted["workload"], wanted["size"])
                and wanted.get("database") in (None, panel.setting.database)
                and (row := panel.row(wanted["stack"], wanted["layer"])) is not None
            ]
            if rows:
                return index, sorted(rows, key=lambda row: -row.setting.level)
        return None, []

    def cells(self, place: Place) -> list[tuple[int, Cell]]:
        """What to measure for another figure of a place, each with its run; empty when that would bring none."""
        if "stacks" in place:
            return [cell for stack in place["stacks"] for cell in self.cells(_of_one(place, stack))]
        run, rows = self.rows(place)
        rows = [row for row in rows if row.ok or row.voided]
        if "level" in place or "pick" not in place:
            level = place.get("level", max((row.setting.level for row in rows), default=0))
            rows = [row for row in rows if row.setting.level == level]
        if run is None or any(row.wrong for row in rows):
            return []
        return [(run, (row.trials[0].case_id, row.setting.level)) for row in rows]

    def figure(self, place: Place, metric: str) -> FigureByRound:
        """The figure of a place, round by round."""
        if "stacks" in place:
            return self._median_of(place, metric)
        run, rows = self.rows(place)
        if not rows:
            return FigureByRound(why=self._why_absent(place))
        pick = None if "level" in place else place.get("pick")
        if not pick:
            level = place.get("level", rows[0].setting.level)
            rows = [row for row in rows if row.setting.level == level]
            if not rows:
                return FigureByRound(run=run, why=f"level {level} is not part of these runs")
        if any(row.wrong for row in rows):
            return FigureByRound(run=run, why="it gave wrong answers")
        found = _extreme([by_round(row, metric) for row in rows], pick or "max")
        return FigureByRound(found, run, "" if found else _why_not(rows))

    def _median_of(self, place: Place, metric: str) -> FigureByRound:
        each = [self.figure(_of_one(place, stack), metric) for stack in place["stacks"]]
        known = [figure for figure in each if figure.rounds]
        if not known:
            return FigureByRound(why=each[0].why)
        numbers = [number for number in known[0].rounds if all(number in figure.rounds for figure in known)]
        found = {number: statistics.median(figure.rounds[number] for figure in known) for number in numbers}
        of = f"{len(known)} of {len(each)}" if len(known) < len(each) else f"all {len(each)}"
        return FigureByRound(found, known[0].run, of=of)

    def _why_absent(self, place: Place) -> str:
        """Why no run has this case: its part, or its stack, cannot run here."""
        stack, layer = place["stack"], place.get("layer", DEFAULTS["layer"])
        for report in self.reports:
            for skip in report.run.info.skips:
                if (skip.stack, skip.layer) == (stack, layer):
                    return skip.reason
        for part, reason in self.left_out:
            if _is_in(part, place):
                return reason
        return "not part of these runs"

    def faults(self, place: Place, name: str) -> tuple[list[FaultOutcome], str]:
        """The outcomes of a fault on a place that can be trusted, and why there are none."""
        found = [item for item in self.outcomes if (item.stack, item.fault) == (place["stack"], name)]
        usable = [item for item in found if item.failed is not None and item.status in ("ok", "failed")]
        reasons = [item.reason for item in found if item.reason]
        if not found:
            parts = [why for part, why in self.left_out if name in part.get("faults", [])]
            return [], next(iter(parts), "not part of these runs")
        return usable, "" if usable else next(iter(reasons), "no outcome")

    def check(self, place: Place, name: str) -> tuple[Outcome | None, str]:
        """The outcome of a check of verify on a place, and why there is none."""
        wanted = {**DEFAULTS, **place}
        found = [
            check
            for report in self.reports
            for check in report.run.checks
            if (check.stack, check.layer, check.check) == (wanted["stack"], wanted["layer"], name)
        ]
        if not found:
            return None, self._why_absent(place)
        made = [check for check in found if check.word in ("pass", "FAIL")]
        return (made[-1], "") if made else (None, found[-1].not_tried or found[-1].declared or "not made")

    def answers(self, place: Place) -> tuple[list[Answered], str]:
        """How many right answers each trial of a place got at its highest level, and why there are none."""
        _, rows = self.rows(place)
        if not rows:
            return [], self._why_absent(place)
        counts = [(trial.requests_total, False) for trial in rows[0].ok.values()]
        counts += [(trial.answers_before_failure, True) for trial in rows[0].failed]
        found = [Answered(answers, failed) for answers, failed in counts if answers is not None]
        return found, "" if found else _why_not(rows[:1])

    def stability(self, place: Place) -> tuple[stability.Rating | None, str]:
        """The rating of a place over all its levels, and why there is none."""
        _, rows = self.rows(place)
        if not rows:
            return None, self._why_absent(place)
        found = stability.rate(trial for row in rows for trial in row.trials)
        return (found, "") if found.rating else (None, _why_not(rows))

    def most_requests(self, place: Place) -> int:
        """Requests of the longest trial of a place."""
        _, rows = self.rows(place)
        return max((trial.requests_total or 0 for row in rows for trial in row.trials), default=0)

    def ratio(self, left: Place, right: Place, metric: str) -> tuple[Estimate | None, str]:
        """Left divided by right, and why there is none.

        The ratio is paired by round within one run, unpaired between two runs.
        """
        first, second = self.figure(left, metric), self.figure(right, metric)
        for place, figure in ((left, first), (right, second)):
            if not figure.rounds:
                return None, f"{name_of(place)}: {figure.why}"
        return quotient(first, second, self._chance), ""


def _added(trial: Trial) -> float | None:
    """Memory that the load added to idle memory, in bytes; None when it added none."""
    peak, idle = total(trial.memory_peak_bytes), total(trial.memory_idle_bytes)
    return None if peak is None or idle is None or peak <= idle else peak - idle


# Metric that is not a field of a trial -> how to compute it.
COMPUTED: dict[str, Callable[[Trial], float | None]] = {
    "memory_total": lambda trial: total(trial.memory_peak_bytes),
    "memory_idle": lambda trial: total(trial.memory_idle_bytes),
    "memory_added": _added,
    "cpu_per_1000": lambda trial: per_thousand(total(trial.cpu_seconds), trial),
}


def quotient(first: FigureByRound, second: FigureByRound, chance: float = CHANCE) -> Estimate | None:
    """The ratio of two figures with its confidence interval; None without a shared round above zero.

    `chance` is that of each end of the interval to err, by default that of 95 %.
    """
    if first.run == second.run:
        found = paired(second.rounds, first.rounds, chance=chance)
    else:
        found = unpaired(list(second.rounds.values()), list(first.rounds.values()), chance=chance)
    if found is None:
        return None
    if found.rounds < 2:
        return Estimate(found.ratio, found.ratio, found.ratio, 1)
    return Estimate(found.ratio, found.low, found.high, found.rounds)


def _extreme(levels: Sequence[Rounds], pick: str) -> Rounds:
    """The lowest or highest level of each round.

    A failed level has no figure. The highest figure is among the other levels, but the lowest would be the failed one:
    a round with a failed level has no lowest figure.
    """
    has, choose = (any, max) if pick == "max" else (all, min)
    numbers = dict.fromkeys(number for figures in levels for number in figures)
    return {
        number: choose(figures[number] for figures in levels if number in figures)
        for number in numbers
        if has(number in figures for figures in levels)
    }


def by_round(row: CaseRow, metric: str) -> Rounds:
    """A figure of a row, for the rounds that measured it."""
    if metric not in COMPUTED:
        return row.by_round(metric)
    computed = {number: COMPUTED[metric](trial) for number, trial in row.ok.items()}
    return {number: value for number, value in computed.items() if value is not None}


def _of_one(place: Place, stack: str) -> Place:
    """The place of one of its stacks."""
    return {**{key: value for key, value in place.items() if key not in ("stacks", "name")}, "stack": stack}


def _is_in(part: Mapping[str, Any], place: Place) -> bool:
    """Whether a part would have measured this place."""
    wanted = {**DEFAULTS, **place}
    lists = {"stack": "stacks", "layer": "layers", "workload": "workloads", "size": "sizes"}
    return all(wanted[key] in part.get(name, [DEFAULTS.get(key)]) for key, name in lists.items())


def name_of(place: Place) -> str:
    """A place in words: its given name, or its stack and whatever else it says."""
    if name := place.get("name"):
        return str(name)
    stack, layer = place.get("stack"), place.get("layer")
    if stack is None:
        words = [f"`{layer}`"] if layer else []
    else:
        words = [f"`{stack}`"] + ([f"with `{layer}`"] if layer not in (None, DEFAULTS["layer"]) else [])
    if workload := place.get("workload"):
        words.append(f"on `{workload}`" if words else f"`{workload}`")
    if size := place.get("size"):
        words.append(f"of size `{size}`" if words else f"size `{size}`")
    if database := place.get("database"):
        name = DATABASES.get(str(database), str(database))
        words.append(f"on {name}" if words else name)
    if level := place.get("level"):
        words.append(f"at level {level}" if words else f"level {level}")
    return " ".join(words)


def _why_not(rows: Iterable[CaseRow]) -> str:
    outcomes = list(dict.fromkeys(row.outcome for row in rows if row.outcome != MEASURED))
    reasons = list(dict.fromkeys(trial.reason for row in rows for trial in (*row.failed, *row.voided)))
    if not outcomes:
        return "not measured"
    return f"{' and '.join(outcomes)}" + (f": {reasons[0]}" if reasons else "")
