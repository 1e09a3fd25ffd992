"""The staircases of a capacity run: which rate each case is tried at next, round by round. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import replace

from bench.measure.records.capacity import Capacity, Staircase, Visits, capacity, climbs, latency_ms, overloaded
from bench.measure.records.trials import Trial
from bench.measure.run.plan import Measurement
from bench.measure.stats.capacity import FIRST_RATE, Limit, rate_near
from bench.words import interval_text, plural

# About how many trials the first staircase of a case takes, and a later one, which begins close to its end.
FIRST_TRIALS = 12
LATER_TRIALS = 6


class Staircases:
    """Says which trial comes next, from the trials that were made."""

    def __init__(self, limit: Limit, trials: Iterable[Trial]):
        self._limit = limit
        self._climbs = climbs(trials, limit)

    def add(self, trial: Trial) -> None:
        """The next trial."""
        self.rounds_of(trial.case_id).setdefault(trial.round, Staircase(self._limit)).add(trial)

    def next(self, item: Measurement) -> Measurement | None:
        """The next trial of the case in the round of `item`; None at the end of its staircase."""
        rounds = self.rounds_of(item.case.case_id)
        # Later rounds begin where those before ended: the higher of the two middle ones, which is a whole step.
        before = [climb.low for number, climb in rounds.items() if number < item.round and climb.low is not None]
        near = statistics.median_high(before) if before else item.near
        climb = rounds.get(item.round) or Staircase(self._limit)
        rate = climb.next_rate(rate_near(near) if near else FIRST_RATE, near=bool(near))
        return None if rate is None else replace(item, level=rate)

    @property
    def in_doubt(self) -> list[Trial]:
        """The trials that say nothing about their sites."""
        return [trial for rounds in self._climbs.values() for climb in rounds.values() for trial in climb.in_doubt]

    def expected(self, item: Measurement) -> int:
        """About how many trials the case still takes in the round of `item`."""
        if self.next(item) is None:
            return 0
        climb = self.rounds_of(item.case.case_id).get(item.round)
        usual = FIRST_TRIALS if item.round == 1 else LATER_TRIALS
        return max(1, usual - len(climb.trials)) if climb else usual

    def rounds_of(self, case_id: str) -> dict[int, Staircase]:
        """The staircases of a case by round."""
        return self._climbs.setdefault(case_id, {})


def step_words(trial: Trial, limit: Limit) -> str:
    """Whether a rate held, in words: `p95 35.2 ms, holds`."""
    latency = latency_ms(trial, limit) if trial.status == "ok" else None
    if latency is None:
        return "does not hold" if overloaded(trial) else ""
    return f"{limit.percentile} {latency:,.1f} ms, {'holds' if latency <= limit.milliseconds else 'does not hold'}"


def capacity_words(trials: Iterable[Trial], limit: Limit, visit: Visits | None) -> str:
    """The capacity of a case, whose trials these are, in words."""
    rounds = [climb for by_round in climbs(trials, limit).values() for climb in by_round.values()]
    found = capacity(rounds)
    if found is None:
        return f"no rate holds {limit.words}"
    return f"{rate_words(found)} with {limit.words}" + (
        f", {visit.an_hour(found.rate):,.0f} visitors an hour, each for {plural(visit.pages, 'page')}" if visit else ""
    )


def rate_words(found: Capacity) -> str:
    """`500 requests/s (475 to 530)`; of one round, it says so."""
    rounds = "; one round" if found.rounds == 1 else ""
    return f"{found.rate:,.0f} requests/s ({interval_text(found.low, found.high)}{rounds})"
