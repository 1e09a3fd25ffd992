"""The rounds of a run, one after the other: all of them, or until the run is decided or its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.measure.journal import Journal
from bench.measure.ledger import Ledger
from bench.measure.plan import Batch
from bench.measure.progress import RunProgress
from bench.measure.racing import Racing
from bench.results.records import Ended

# Rounds that a run until decided always makes.
MIN_ROUNDS = 2


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
        """Whether the round fits that is estimated to take so long, if estimates stay as wrong as they were so far."""
        if self._limit_s is None or number <= MIN_ROUNDS or not self._estimated_s:
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
    """The rounds that a ledger has left."""

    def __init__(self, ledger: Ledger, journal: Journal, progress: RunProgress):
        self._ledger = ledger
        self._journal = journal
        self._progress = progress
        self._budget = Budget(journal.info.plan.budget_s)

    def go(self, measure: Callable[[Batch], None]) -> Ended | None:
        """Measure round by round; returns why a run until decided makes no more of them, None for other runs."""
        racing = self._ledger.racing
        if racing is None:
            for batch in self._ledger.left:
                measure(batch)
            return None
        while batches := self._ledger.next_round:
            estimate_s = self._ledger.estimate_s(self._journal.info.plan, batches)
            if not self._budget.allows(batches[0].round, estimate_s):
                return "budget"
            with self._budget.round(estimate_s):
                self._round(racing, batches, measure)
        return "decided" if racing.decided else "rounds"

    def _round(self, racing: Racing, batches: list[Batch], measure: Callable[[Batch], None]) -> None:
        # Also what a run that was stopped had no time to record.
        self._journal.drop(racing.dropped)
        self._progress.start_round(batches, self._ledger.expected(batches))
        for batch in batches:
            measure(batch)
        self._progress.look(batches[0].round, self._journal.drop(racing.dropped), self._ledger.trials_left)
