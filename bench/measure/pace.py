"""About how many seconds the batches of a run take: by figures for two cores, and by what they took so far."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from bench.measure.ledger import Ledger
from bench.measure.plan import Batch
from bench.records.records import Plan, warmup_s
from bench.serve import connections

# It takes so long to start and stop a deployment once, to verify it, and to make a trial besides its warm-up and load.
UP_S = 4.0
VERIFY_S = 15.0
AROUND_TRIAL_S = 1.5


class Pace:
    """Learns from each batch how long its deployment takes beside the load of its trials.

    A batch in which the deployment was verified says nothing of the next one, in which it is not, but how much slower
    than usual this machine is.
    """

    def __init__(self, plan: Plan, ledger: Ledger, clock: Callable[[], float] = time.monotonic):
        self._plan, self._ledger, self._clock = plan, ledger, clock
        self._began = clock()
        self._beside: dict[str, float] = {}
        self._slower: list[float] = []

    @contextmanager
    def learning(self, batch: Batch) -> Iterator[None]:
        """A batch that is made in the block."""
        began, was_verified = self._clock(), self._ledger.is_verified(batch)
        load_s, usual_s = self._load_s(batch), self._usual_s(batch)
        yield
        beside_s = max(0.0, self._clock() - began - load_s)
        if was_verified:
            self._beside[batch.name] = beside_s
        elif self._ledger.is_verified(batch):
            self._slower.append(beside_s / (VERIFY_S + usual_s))

    def fits(self, batches: Iterable[Batch]) -> bool:
        """Whether these batches can be made within the budget of the plan; also when nothing is known of batches."""
        limit_s = self._plan.budget_s
        if limit_s is None or not self._beside:
            return True
        return self._clock() - self._began + self.estimate_s(batches) <= limit_s

    def estimate_s(self, batches: Iterable[Batch]) -> float:
        """About how many seconds these batches take."""
        batches = list(batches)
        new = {(batch.stack, batch.layer) for batch in batches if not self._ledger.is_verified(batch)}
        verify_s = VERIFY_S * len(new) * self._times_slower
        return verify_s + sum(self._load_s(batch) + self._beside_s(batch) for batch in batches)

    def _load_s(self, batch: Batch) -> float:
        """Seconds of load: with PostgreSQL also the wait after it until connections that are left are counted."""
        seconds = [getattr(item, "seconds", None) or self._plan.duration_s for item in batch.items]
        left_s = connections.LEFT_S if self._plan.database.startswith("postgres") else 0
        each = statistics.fmean(warmup_s(load_s) + load_s + left_s for load_s in seconds)
        return each * self._ledger.expected([batch])

    def _beside_s(self, batch: Batch) -> float:
        """Seconds beside the load: as the last time, else as those of the others."""
        if not self._beside:
            return self._usual_s(batch) * self._times_slower
        return self._beside.get(batch.name, statistics.fmean(self._beside.values()))

    def _usual_s(self, batch: Batch) -> float:
        return UP_S + AROUND_TRIAL_S * self._ledger.expected([batch])

    @property
    def _times_slower(self) -> float:
        """How many times as long as usual it took to verify deployments, and to start and stop them then."""
        return statistics.fmean(self._slower or [1.0])
