"""The rounds of a run, one after the other: all of them, or until the run is decided or its time is up.

After the rounds of a closed loop each case is measured in an open loop, at one rate for all: a saturated site has no
latency that a visitor would know.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bench.measure.journal import Journal
from bench.measure.ledger import Ledger
from bench.measure.plan import Batch, Measurement, PlannedCase
from bench.measure.progress import RunProgress, estimate_s
from bench.records.records import Case
from bench.records.trials import Trial
from bench.stats import Table

# Rounds that a run until decided always makes; before them nothing is known of the noise either.
MIN_ROUNDS = 2
# The rate of the open loop is this share of what the slowest case holds that ties or leads.
LATENCY_SHARE = 0.5
# Faster than that the load tool itself would be what is late.
LATENCY_MAX_RATE = 2000
# Requests that show a 99th percentile, and how long a trial lasts for them at most.
LATENCY_REQUESTS, LATENCY_MAX_S = 1100, 30


class Budget:
    """Seconds from now on within which rounds are made; None: no limit.

    Rounds are whole: of a part of one, the cases measured last would have fewer figures. The first two are always made:
    one round proves nothing.
    """

    def __init__(self, limit_s: float | None, clock: Callable[[], float] = time.monotonic):
        self._limit_s = limit_s
        self._clock = clock
        self._began = clock()
        self._spent_s = self._estimated_s = 0.0

    def allows(self, number: int, estimate_s: float) -> bool:
        """Whether the round fits that is estimated to take so long."""
        return number <= MIN_ROUNDS or self.fits(estimate_s)

    def fits(self, estimate_s: float) -> bool:
        """Whether there is time for what is estimated to take so long, if estimates stay as wrong as they were."""
        if self._limit_s is None or not self._estimated_s:
            return True
        pace = self._spent_s / self._estimated_s
        return self._clock() - self._began + pace * estimate_s <= self._limit_s

    @contextmanager
    def round(self, estimate_s: float) -> Iterator[None]:
        """A round that is estimated to take so long."""
        began = self._clock()
        yield
        self._spent_s += self._clock() - began
        self._estimated_s += estimate_s


class Rounds:
    """The batches that a ledger has left, in the order in which they are to be made."""

    def __init__(self, cases: Sequence[PlannedCase], ledger: Ledger, journal: Journal, progress: RunProgress):
        self._cases, self._ledger, self._journal, self._progress = cases, ledger, journal, progress
        self._plan = journal.info.plan
        self._budget = Budget(self._plan.budget_s)

    def __iter__(self) -> Iterator[Batch]:
        if self._ledger.racing is None:
            yield from self._ledger.left
        else:
            yield from self._raced()
        for batch in self._at_rate():
            # The fastest come first: those are what the time is best spent on.
            if self._budget.fits(self._estimate_s([batch])):
                yield batch

    def _at_rate(self) -> list[Batch]:
        """What is left to be measured in an open loop."""
        if not self._plan.latency:
            return []
        return self._ledger.left_of(latency(self._cases, self._ledger, self._plan.margin))

    def _raced(self) -> Iterator[Batch]:
        racing = self._ledger.racing
        assert racing
        while batches := self._ledger.next_round:
            expected_s = self._estimate_s(batches)
            # The open loop takes about as long for those that are left as a round of them.
            if not self._budget.allows(batches[0].round, expected_s * (2 if self._plan.latency else 1)):
                self._journal.ended_by = "budget"
                return
            # Also what a run that was stopped had no time to record.
            self._journal.drop(racing.dropped)
            self._progress.start_round(batches, self._ledger.expected(batches))
            with self._budget.round(expected_s):
                yield from batches
            self._progress.look(batches[0].round, self._journal.drop(racing.dropped), self._ledger.count_left)
        self._journal.ended_by = "decided" if racing.decided else "rounds"

    def _estimate_s(self, batches: Sequence[Batch]) -> float:
        return estimate_s(self._plan, self._ledger, batches)


def latency(cases: Sequence[PlannedCase], ledger: Ledger, margin: float) -> list[Batch]:
    """A batch for each case that holds the rate of its workload, size and database, the fastest first.

    A case that answers fewer requests a second as fast as it can does not hold it, and is left out.
    """
    trials = [record for record in ledger.done.values() if isinstance(record, Trial)]
    rates: dict[tuple[str, str, str], int] = {}
    for case in cases:
        place = _place(case.record)
        # A run that is resumed goes on at the rate at which it began.
        begun = [trial.level for trial in trials if trial.mode == "open" and _place(trial) == place]
        closed = [trial for trial in trials if trial.mode == "closed" and _place(trial) == place]
        rates[place] = begun[0] if begun else rate_for_all(closed, margin)
    held: dict[tuple[str, str, str], float] = {}
    items: dict[tuple[str, str, str], list[Measurement]] = {}
    for case in cases:
        rate, most = rates[_place(case.record)], _median(trials, case.record.case_id)
        if rate and most > rate:
            key = (case.record.stack, case.record.layer, case.record.size)
            seconds = max(1, min(LATENCY_MAX_S, math.ceil(LATENCY_REQUESTS / rate)))
            items.setdefault(key, []).append(Measurement(case.record, rate, 1, rate=rate, seconds=seconds))
            held[key] = max(most, held.get(key, 0.0))
    served = {(case.record.stack, case.record.layer, case.record.size): case.served for case in cases}
    return [Batch(served[key], 1, tuple(items[key])) for key in sorted(items, key=lambda key: -held[key])]


def _place(case: Case | Trial) -> tuple[str, str, str]:
    """Where cases are compared."""
    return case.workload, case.size, case.database


def rate_for_all(trials: Sequence[Trial], margin: float) -> int:
    """Half of the requests/s of the slowest case that ties or leads, over all levels; 0 before that is known."""
    rates = []
    for level in {trial.level for trial in trials}:
        table: dict[str, dict[int, float]] = {}
        for trial in trials:
            if trial.level == level and trial.status == "ok" and trial.requests_per_second:
                table.setdefault(trial.case_id, {})[trial.round] = trial.requests_per_second
        if max(map(len, table.values()), default=0) < MIN_ROUNDS:
            return 0
        decision = Table(table).decide(margin)
        best = {decision.best, *decision.ties, *decision.open} - {None} if len(table) > 1 else table
        rates.append(min(statistics.median(table[name].values()) for name in best if name))
    return max(1, min(LATENCY_MAX_RATE, round(LATENCY_SHARE * min(rates)))) if rates else 0


def _median(trials: Sequence[Trial], case_id: str) -> float:
    """The requests/s of a case in its closed loop, 0 without any."""
    its = [trial for trial in trials if trial.case_id == case_id and trial.mode == "closed" and trial.status == "ok"]
    return statistics.median(trial.requests_per_second or 0.0 for trial in its) if its else 0.0
