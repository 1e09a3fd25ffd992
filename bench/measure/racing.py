"""A run until decided: a race on each workload, and one over all workloads. Pure: trials in, names out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.figures.race import Race, look
from bench.figures.ratios import logarithms
from bench.measure.plan import Batch, Measurement
from bench.results.records import Case, Dropped
from bench.results.trials import Trial

CANNOT_BE_BEST = "it cannot be the best any more"
# After so many failed rounds a case without a figure is given up.
MAX_FAILED = 2
GIVEN_UP = f"it failed in {MAX_FAILED} rounds"

Deployment = tuple[str, str]  # stack, layer


@dataclass
class _Panel:
    """The race on one workload, by deployment.

    ids      deployment -> its case
    figures  deployment -> round -> requests/s
    voided   deployments with a voided trial
    failed   deployment -> its failed trials
    given_up deployment -> the round after which it had failed too often
    race     where it stands
    """

    level: int
    ids: dict[Deployment, str] = field(default_factory=dict)
    figures: dict[Deployment, dict[int, float]] = field(default_factory=dict)
    voided: set[Deployment] = field(default_factory=set)
    failed: Counter[Deployment] = field(default_factory=Counter)
    given_up: dict[Deployment, int] = field(default_factory=dict)
    race: Race[Deployment] = field(default_factory=lambda: Race({}))

    @property
    def known(self) -> bool:
        """Whether each deployment has a figure or never will. One whose trials were all voided may be the best."""
        return self.voided <= self.figures.keys() | self.given_up.keys()

    @property
    def decided(self) -> bool:
        """Whether no more rounds are needed."""
        return self.race.decided and self.known

    @property
    def out(self) -> dict[Deployment, int]:
        """Deployment -> the round after which it could not be the best here any more."""
        return {**self.race.dropped, **self.given_up}

    def table(self, number: int) -> dict[Deployment, dict[int, float]]:
        """The logarithms of the figures of the rounds up to this one."""
        return {
            name: logarithms({n: rate for n, rate in rounds.items() if n <= number})
            for name, rounds in self.figures.items()
        }

    def look(self, number: int, looks: int, margin: float) -> None:
        """Look at the figures of the rounds up to this one."""
        self.race = look([self.table(number)], self.race, number, looks, margin)
        for name, times in self.failed.items():
            if times >= MAX_FAILED and name not in self.figures:
                self.given_up.setdefault(name, number)


@dataclass
class _Question:
    """The race over all workloads of a size, database and level. With one workload that is its own race."""

    panels: list[_Panel] = field(default_factory=list)
    race: Race[Deployment] = field(default_factory=lambda: Race({}))

    @property
    def decided(self) -> bool:
        """Whether no more rounds are needed."""
        if len(self.panels) == 1 or all(self.out(name) is not None for name in self.panels[0].ids):
            return True
        return self.race.decided and all(panel.known for panel in self.panels)

    def out(self, name: Deployment) -> int | None:
        """The round after which a deployment could not be the best over all workloads any more; None while it may."""
        if len(self.panels) == 1 or not all(name in panel.ids for panel in self.panels):
            return 0
        given_up = [panel.given_up[name] for panel in self.panels if name in panel.given_up]
        return min(given_up, default=self.race.dropped.get(name))

    def look(self, number: int, looks: int, margin: float) -> None:
        """Look at the figures of the rounds up to this one."""
        self.race = look([panel.table(number) for panel in self.panels], self.race, number, looks, margin)


class Racing:
    """Which cases go on, from the trials of the rounds so far.

    rounds  at most
    margin  share by which requests/s must differ to count as different
    """

    def __init__(self, measurements: Iterable[Measurement], rounds: int, margin: float):
        self._rounds = rounds
        self._margin = margin
        self._looked = 0
        self._panels: dict[tuple[str, ...], _Panel] = {}
        self._questions: dict[tuple[str, ...], _Question] = {}
        for item in measurements:
            if (key := _key(item.case, item.level)) not in self._panels:
                self._panels[key] = _Panel(item.level)
                self._questions.setdefault(key[1:], _Question()).panels.append(self._panels[key])
            self._panels[key].ids[_deployment(item.case)] = item.case.case_id

    def add(self, trial: Trial) -> None:
        """Count a trial that is not repeated."""
        panel, name = self._panels[_key(trial, trial.level)], _deployment(trial)
        if trial.status == "ok" and trial.requests_per_second is not None:
            panel.figures.setdefault(name, {})[trial.round] = trial.requests_per_second
        elif trial.status == "voided":
            panel.voided.add(name)
        elif trial.status == "failed":
            panel.failed[name] += 1

    def look(self, left: Sequence[Batch]) -> bool:
        """Look at the figures after the next round, when none of what is `left` is of it; returns whether it was so."""
        number = self._looked + 1
        if number > self._rounds or (left and left[0].round <= number):
            return False
        self._looked = number
        for race in self._races:
            if not race.decided:
                race.look(number, self._rounds, self._margin)
        return True

    def goes_on(self, item: Measurement) -> bool:
        """Whether the measurement is still needed: for the best on its workload, or for the best over all of them."""
        key, name = _key(item.case, item.level), _deployment(item.case)
        panel, question = self._panels[key], self._questions[key[1:]]
        if name in panel.given_up:
            return False
        return (not panel.decided and name not in panel.out) or (not question.decided and question.out(name) is None)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The cases that can be the best neither on their workload nor over all, in the order in which they went."""
        found = []
        for key, panel in self._panels.items():
            for name, number in panel.out.items():
                overall = self._questions[key[1:]].out(name)
                if name in panel.given_up:
                    found.append(Dropped(panel.ids[name], panel.level, number, GIVEN_UP))
                elif overall is not None:
                    found.append(Dropped(panel.ids[name], panel.level, max(number, overall), CANNOT_BE_BEST))
        return tuple(sorted(found, key=lambda item: item.round))

    @property
    def decided(self) -> bool:
        """Whether every race is decided."""
        return all(race.decided for race in self._races)

    @property
    def _races(self) -> list[_Panel | _Question]:
        return [*self._panels.values(), *self._questions.values()]


def _key(case: Case | Trial, level: int) -> tuple[str, ...]:
    """The workload, and what the question is about."""
    return (case.workload, case.size, case.database, str(level))


def _deployment(case: Case | Trial) -> Deployment:
    return (case.stack, case.layer)
