"""A run until decided: a race on each workload, and one over all workloads. Pure: trials in, names out.

A race is a successive elimination (Even-Dar, Mannor and Mansour 2006, JMLR 7:1079): after each round the cases that
cannot be the best any more are dropped, and the others go on until one leads or all that are left tie. Each look at the
figures spends a part of the 5 % that all of them together may err in, however many there are (`Table.decide`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.measure.records.records import CaseRecord, Dropped
from bench.measure.records.trials import Trial, rates_of
from bench.measure.run.plan import Batch, Measurement
from bench.measure.stats import OPEN, GeometricMean, Table

CANNOT_BE_BEST = "it cannot be the best any more"
# After so many failed rounds a case without a figure is given up.
MAX_FAILED = 2
GIVEN_UP = f"it failed in {MAX_FAILED} rounds"

Deployment = tuple[str, str]  # stack, layer


@dataclass(eq=False)
class _Panel:
    """The trials of one workload.

    ids      deployment -> its case
    given_up deployment -> the round after which it had failed too often
    """

    level: int
    ids: dict[Deployment, str] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    given_up: dict[Deployment, int] = field(default_factory=dict)

    def rates(self, number: int) -> dict[Deployment, dict[int, float]]:
        """Requests/s in the rounds up to this one."""
        return rates_of((trial for trial in self.trials if trial.round <= number), _deployment)

    @property
    def is_known(self) -> bool:
        """Whether each deployment has a figure or never will. One whose trials were all voided may be the best."""
        voided = {_deployment(trial) for trial in self.trials if trial.status == "voided"}
        return voided <= rates_of(self.trials, _deployment).keys() | self.given_up.keys()

    def give_up(self, number: int) -> None:
        """Note the deployments that have failed too often after this round."""
        failed = Counter(_deployment(trial) for trial in self.trials if trial.status == "failed")
        for name in failed.keys() - rates_of(self.trials, _deployment).keys():
            if failed[name] >= MAX_FAILED:
                self.given_up.setdefault(name, number)


@dataclass
class _Race:
    """A race over the workloads of some panels.

    dropped  deployment -> the round after which it could not be the best any more
    """

    panels: list[_Panel]
    dropped: dict[Deployment, int] = field(default_factory=dict)
    is_proven: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether no more rounds are needed."""
        return (self.is_proven and all(panel.is_known for panel in self.panels)) or all(
            self.out(name) is not None for name in self.panels[0].ids
        )

    def out(self, name: Deployment) -> int | None:
        """The round after which a deployment could not be the best any more; None while it may."""
        given_up = [panel.given_up[name] for panel in self.panels if name in panel.given_up]
        return min(given_up, default=self.dropped.get(name))

    def look(self, number: int, margin: float) -> None:
        """Look at the figures of the rounds up to this one."""
        tables = [Table(panel.rates(number)) for panel in self.panels]
        found = GeometricMean(tables).decide(margin, number, self.dropped)
        self.dropped = {**dict.fromkeys(found.slower, number), **self.dropped}
        self.is_proven = found.verdict != OPEN


class Racing:
    """Which cases go on, from the trials of the rounds so far.

    rounds  at most
    margin  share by which requests/s must differ to count as different
    """

    def __init__(self, measurements: Sequence[Measurement], rounds: int, margin: float):
        self._trial_ids = {item.key for item in measurements}
        self._rounds = rounds
        self._margin = margin
        self._looked = 0
        self._panels: dict[tuple[str, ...], _Panel] = {}
        questions: dict[tuple[str, ...], list[_Panel]] = {}
        for item in measurements:
            if (key := _key(item.case, item.level)) not in self._panels:
                self._panels[key] = _Panel(item.level)
                questions.setdefault(key[1:], []).append(self._panels[key])
            self._panels[key].ids[_deployment(item.case)] = item.case.case_id
        # With one workload its race is that over all workloads.
        overall = [_Race(panels) for panels in questions.values() if len(panels) > 1]
        self._races = [*(_Race([panel]) for panel in self._panels.values()), *overall]

    def add(self, trial: Trial) -> None:
        """Count a trial that is not repeated. Those that show latency after the rounds are none of a race."""
        if trial.trial_id in self._trial_ids:
            self._panels[_key(trial, trial.level)].trials.append(trial)

    def look(self, left: Sequence[Batch]) -> bool:
        """Look at the figures after the next round, when none of what is `left` is of it; returns whether it was so."""
        number = self._looked + 1
        if number > self._rounds or (left and left[0].round <= number):
            return False
        self._looked = number
        for panel in self._panels.values():
            panel.give_up(number)
        for race in self._races:
            if not race.is_decided:
                race.look(number, self._margin)
        return True

    def goes_on(self, item: Measurement) -> bool:
        """Whether the measurement is still needed: for the best on its workload, or for the best over all of them."""
        panel, name = self._panels[_key(item.case, item.level)], _deployment(item.case)
        races = () if name in panel.given_up else self._races_on(panel)
        return any(not race.is_decided and race.out(name) is None for race in races)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The cases that can be the best neither on their workload nor over all, in the order in which they went."""
        found = []
        for panel in self._panels.values():
            for name, case_id in panel.ids.items():
                numbers = [race.out(name) for race in self._races_on(panel)]
                if name in panel.given_up:
                    found.append(Dropped(case_id, panel.level, panel.given_up[name], GIVEN_UP))
                elif None not in numbers:
                    found.append(Dropped(case_id, panel.level, max(filter(None, numbers)), CANNOT_BE_BEST))
        return tuple(sorted(found, key=lambda item: item.round))

    @property
    def decided(self) -> bool:
        """Whether every race is decided."""
        return all(race.is_decided for race in self._races)

    def _races_on(self, panel: _Panel) -> list[_Race]:
        """The race on its workload, and the one over all workloads where there are several."""
        return [race for race in self._races if panel in race.panels]


def _key(case: CaseRecord | Trial, level: int) -> tuple[str, ...]:
    """The workload, and what the question is about."""
    return (case.workload, case.size, case.database, str(level))


def _deployment(case: CaseRecord | Trial) -> Deployment:
    return (case.stack, case.layer)
