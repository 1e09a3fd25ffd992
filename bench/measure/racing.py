"""A run until decided: one race for each workload, size, database and level. Pure: trials in, names out."""

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


@dataclass
class _Panel:
    """One race, by case ids.

    figures  case -> round -> requests/s
    voided   cases with a voided trial
    failed   case -> its failed trials
    given_up case -> the round after which it had failed too often
    race     where it stands
    """

    level: int
    figures: dict[str, dict[int, float]] = field(default_factory=dict)
    voided: set[str] = field(default_factory=set)
    failed: Counter[str] = field(default_factory=Counter)
    given_up: dict[str, int] = field(default_factory=dict)
    race: Race[str] = field(default_factory=lambda: Race({}))

    @property
    def decided(self) -> bool:
        """Whether no more rounds are needed. A case whose trials were all voided may still be the best."""
        return self.race.decided and self.voided <= self.figures.keys() | self.given_up.keys()

    @property
    def out(self) -> dict[str, tuple[int, str]]:
        """Case -> the round after which it went on no further, and why."""
        beaten = {case: (number, CANNOT_BE_BEST) for case, number in self.race.dropped.items()}
        return beaten | {case: (number, GIVEN_UP) for case, number in self.given_up.items()}

    def look(self, number: int, looks: int, margin: float) -> None:
        """Look at the figures of the rounds up to this one."""
        table = {
            case: logarithms({n: rate for n, rate in rounds.items() if n <= number})
            for case, rounds in self.figures.items()
        }
        self.race = look(table, self.race, number, looks, margin)
        for case, times in self.failed.items():
            if times >= MAX_FAILED and case not in self.figures:
                self.given_up.setdefault(case, number)


class Racing:
    """Which cases go on, from the trials of the rounds so far.

    rounds  at most
    margin  share by which requests/s must differ to count as different
    """

    def __init__(self, schedule: Iterable[Batch], rounds: int, margin: float):
        self._rounds = rounds
        self._margin = margin
        self._looked = 0
        self._panels: dict[tuple[str, str, str, int], _Panel] = {}
        for batch in schedule:
            for item in batch.measurements:
                self._panels.setdefault(_key(item.case, item.level), _Panel(item.level))

    def add(self, trial: Trial) -> None:
        """Count a trial that is not repeated."""
        panel = self._panels[_key(trial, trial.level)]
        if trial.status == "ok" and trial.requests_per_second is not None:
            panel.figures.setdefault(trial.case_id, {})[trial.round] = trial.requests_per_second
        elif trial.status == "voided":
            panel.voided.add(trial.case_id)
        elif trial.status == "failed":
            panel.failed[trial.case_id] += 1

    def look(self, left: Sequence[Batch]) -> bool:
        """Look at the figures after the next round, when none of what is `left` is of it; returns whether it was so."""
        number = self._looked + 1
        if number > self._rounds or (left and left[0].round <= number):
            return False
        self._looked = number
        for panel in self._panels.values():
            if not panel.decided:
                panel.look(number, self._rounds, self._margin)
        return True

    def goes_on(self, item: Measurement) -> bool:
        """Whether the measurement is still needed."""
        panel = self._panels[_key(item.case, item.level)]
        return not panel.decided and item.case.case_id not in panel.out

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The cases that were dropped, in the order in which that happened."""
        found = [
            Dropped(case, panel.level, number, reason)
            for panel in self._panels.values()
            for case, (number, reason) in panel.out.items()
        ]
        return tuple(sorted(found, key=lambda item: item.round))

    @property
    def decided(self) -> bool:
        """Whether every race is decided."""
        return all(panel.decided for panel in self._panels.values())


def _key(case: Case | Trial, level: int) -> tuple[str, str, str, int]:
    return (case.workload, case.size, case.database, level)
