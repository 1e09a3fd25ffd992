"""The races of a run until decided: one on each workload, and one over all workloads. Pure: trials in, names out.

A race is a successive elimination (Even-Dar, Mannor and Mansour 2006, JMLR 7:1079): each round drops the cases that
cannot be the best any more; the others go on until one leads or all of them tie. The error probability of 5 % is spread
over all looks at the figures, however many (`Table.decide`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.measure.records.records import CaseRecord, Dropped
from bench.measure.records.trials import Trial, known, rates_of
from bench.measure.run.plan import Measurement
from bench.measure.stats import GeometricMean, Table
from bench.words import INCONCLUSIVE

CANNOT_BE_BEST = "it cannot be the best any more"
# After so many failed rounds a case without a figure is given up.
MAX_FAILED = 2
GIVEN_UP = f"it failed in {MAX_FAILED} rounds"

Name = tuple[str, str]  # stack, layer


@dataclass(eq=False)
class Contest:
    """The cases compared on a workload at a level, and their trials so far.

    case_ids  deployment -> its case
    given_up  deployment -> the round with one failure too many
    """

    level: int
    case_ids: dict[Name, str] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    given_up: dict[Name, int] = field(default_factory=dict)

    @property
    def rates(self) -> dict[Name, dict[int, float]]:
        """Requests/s by round."""
        return rates_of(self.trials, _name)

    @property
    def is_known(self) -> bool:
        """True if each deployment has a figure or never will. One with only discarded trials may be the best."""
        discarded = {_name(trial) for trial in self.trials if trial.status == "discarded"}
        return discarded <= self.rates.keys() | self.given_up.keys()

    def give_up(self, number: int) -> None:
        """Note deployments with too many failures after this round."""
        failed = Counter(_name(trial) for trial in self.trials if trial.status == "failed")
        for name in failed.keys() - self.rates.keys():
            if failed[name] >= MAX_FAILED:
                self.given_up.setdefault(name, number)


@dataclass(eq=False)
class Race:
    """The question of the best deployment, in one contest or over several.

    dropped  deployment -> the round after which it could not be the best any more
    """

    contests: list[Contest]
    dropped: dict[Name, int] = field(default_factory=dict)
    is_proven: bool = False

    @property
    def is_decided(self) -> bool:
        """True if no more rounds are needed."""
        if self.is_proven and all(contest.is_known for contest in self.contests):
            return True
        return all(self.out(name) is not None for name in self.contests[0].case_ids)

    def out(self, name: Name) -> int | None:
        """The round after which a deployment could not be the best any more; None while it may."""
        given_up = [contest.given_up[name] for contest in self.contests if name in contest.given_up]
        return min(given_up, default=self.dropped.get(name))

    def update(self, number: int, margin: float) -> None:
        """Look at the figures after this round."""
        tables = [Table(contest.rates) for contest in self.contests]
        decision = GeometricMean(tables).decide(margin, number, self.dropped)
        self.dropped = {**dict.fromkeys(decision.slower, number), **self.dropped}
        self.is_proven = decision.verdict != INCONCLUSIVE


class Races:
    """The cases that go on, by the trials of the rounds so far.

    measurements  of a round
    margin        minimum relative difference of requests/s
    """

    def __init__(self, measurements: Sequence[Measurement], margin: float):
        self._margin = margin
        self._contests: dict[tuple[str, ...], Contest] = {}
        questions: dict[tuple[str, ...], list[Contest]] = {}
        for item in measurements:
            key = _key(item.case, item.level)
            if key not in self._contests:
                self._contests[key] = Contest(item.level)
                questions.setdefault(key[1:], []).append(self._contests[key])
            self._contests[key].case_ids[_name(item.case)] = item.case.case_id
        # With one workload its race is the one over all workloads.
        overall = [Race(contests) for contests in questions.values() if len(contests) > 1]
        self._races = [*(Race([contest]) for contest in self._contests.values()), *overall]

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self._contests[_key(trial, trial.level)].trials.append(trial)

    def update(self, number: int) -> None:
        """Look at the figures after this round."""
        for contest in self._contests.values():
            contest.give_up(number)
        for race in self._races:
            if not race.is_decided:
                race.update(number, self._margin)

    def needs(self, item: Measurement) -> bool:
        """True if the measurement is still needed: to find the best on its workload, or over all workloads."""
        contest, name = self._contests[_key(item.case, item.level)], _name(item.case)
        if name in contest.given_up:
            return False
        return any(not race.is_decided and race.out(name) is None for race in self._races_of(contest))

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The cases that can be the best neither on their workload nor over all, in order of elimination."""
        eliminated = []
        for contest in self._contests.values():
            for name, case_id in contest.case_ids.items():
                rounds = [race.out(name) for race in self._races_of(contest)]
                over = known(rounds)
                if name in contest.given_up:
                    eliminated.append(Dropped(case_id, contest.level, contest.given_up[name], GIVEN_UP))
                elif len(over) == len(rounds):
                    eliminated.append(Dropped(case_id, contest.level, max(over), CANNOT_BE_BEST))
        return tuple(sorted(eliminated, key=lambda item: item.round))

    @property
    def are_decided(self) -> bool:
        """True if every race is decided."""
        return all(race.is_decided for race in self._races)

    def _races_of(self, contest: Contest) -> list[Race]:
        """The race on its workload, and the race over all workloads if there are several."""
        return [race for race in self._races if contest in race.contests]


def _key(case: CaseRecord | Trial, level: int) -> tuple[str, ...]:
    """The workload, and the conditions compared."""
    return (case.workload, case.size, case.database, str(level))


def _name(case: CaseRecord | Trial) -> Name:
    return (case.stack, case.layer)
