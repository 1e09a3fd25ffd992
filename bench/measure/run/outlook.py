"""The outlook of a run: certain trials, dropped cases, and the estimated rest of its time."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from bench.measure.records.records import CaseRecord, Dropped, Plan, warmup_s
from bench.measure.records.trials import Trial
from bench.measure.run.plan import Deployment, Measurement
from bench.measure.run.verified import Verified
from bench.serve.deployment import connections

# Time to start and stop a deployment once, to verify it, and to make a trial besides its warm-up and load.
UP_S = 4.0
VERIFY_S = 15.0
AROUND_TRIAL_S = 1.5
# Approximate number of trials of a case's first staircase, and of a later one, which begins close to its end.
FIRST_TRIALS = 12
LATER_TRIALS = 6


class Outlook:
    """Findings of a schedule so far, and durations of deployments.

    done         item -> its last valid record
    certain      items sure to be made: all rounds, in a race one round; of staircases one item each
    rounds_over  number of finished rounds of a race
    dropped      cases dropped from the race
    tried_cases  cases of a search so far
    """

    def __init__(
        self, plan: Plan, records: Iterable[Trial], verified: Verified, clock: Callable[[], float] = time.monotonic
    ):
        self.done: dict[str, Trial] = {}
        self._finished: Counter[tuple[str, int]] = Counter()
        for trial in records:
            self.note(trial)
        self.certain: Sequence[Measurement] = ()
        self.rounds_over = 0
        self.dropped: tuple[Dropped, ...] = ()
        self.tried_cases: list[CaseRecord] = []
        self.verified = verified
        self._plan, self._clock = plan, clock
        self._began = clock()
        self._beside_s: dict[str, float] = {}

    def note(self, trial: Trial) -> None:
        """Note a finished trial."""
        if trial.trial_id not in self.done:
            self._finished[trial.case_id, trial.round] += 1
        self.done[trial.trial_id] = trial

    def fits(self, items: Sequence[Measurement]) -> bool:
        """True if the items fit within the plan's time, or if durations are still unknown."""
        limit_s, due = self._plan.budget_s, self.due(items)
        if limit_s is None or not due or not self._beside_s:
            return True
        return self._clock() - self._began + self.estimate_s(due) <= limit_s

    def was_up(self, deployment: Deployment, seconds: float, items: Sequence[Measurement]) -> None:
        """Learn from a deployment that was up for so many seconds with these items.

        A deployment with a verification does not show the next duration, without one.
        """
        load_s = sum(self._load_s(item) for item in items)
        self._beside_s[deployment.name] = max(0.0, seconds - load_s)

    def due(self, items: Iterable[Measurement]) -> list[Measurement]:
        """The items still to be made, and staircases."""
        return [item for item in items if item.key not in self.done]

    @property
    def left(self) -> list[Measurement]:
        """The certain items still to be made."""
        return self.due(self.certain)

    def count(self, items: Iterable[Measurement]) -> int:
        """Number of trials for these items; an estimate for staircases."""
        return sum(self._trials(item) for item in items)

    def estimate_s(self, items: Sequence[Measurement]) -> float:
        """Estimated seconds for these items."""
        together: dict[Deployment, list[Measurement]] = {}
        for item in items:
            together.setdefault(item.deployment, []).append(item)
        seconds = 0.0
        to_verify = set()
        for deployment, alike in together.items():
            if not self.verified.knows(deployment.stack, deployment.layer):
                to_verify.add((deployment.stack, deployment.layer))
            seconds += self._beside(deployment, self.count(alike))
            seconds += sum(self._trials(item) * self._load_s(item) for item in alike)
        return seconds + VERIFY_S * len(to_verify)

    def _trials(self, item: Measurement) -> int:
        if not self._plan.capacity:
            return 1
        usual = LATER_TRIALS
        if item.round == 1:
            usual = FIRST_TRIALS
        return max(1, usual - self._finished[item.case.case_id, item.round])

    def _load_s(self, item: Measurement) -> float:
        """Seconds of load: with PostgreSQL also the wait afterwards until remaining connections are counted."""
        load_s = item.seconds or self._plan.duration_s
        left_s = 0.0
        if self._plan.database.startswith("postgres"):
            left_s = connections.LEFT_S
        return warmup_s(load_s) + load_s + left_s

    def _beside(self, deployment: Deployment, trials: int) -> float:
        """Seconds besides the load: the last value, otherwise the mean of other deployments, at first a usual value."""
        usual_s = UP_S + AROUND_TRIAL_S * trials
        others_s = usual_s
        if self._beside_s:
            others_s = statistics.fmean(self._beside_s.values())
        return self._beside_s.get(deployment.name, others_s)
