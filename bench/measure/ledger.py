"""The trials of a run that are done and those that are left. Pure: no file, no process, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bench.figures.capacity import Limit
from bench.figures.words import plural
from bench.measure import guards
from bench.measure.plan import Batch, Measurement
from bench.measure.racing import Racing
from bench.measure.staircase import Staircases
from bench.results.capacity import MAX_REPEATS, Climb, overloaded
from bench.results.records import Outcome, Plan
from bench.results.trials import Trial
from bench.serve import connections

# So many disturbed trials in a row say that the machine is busy, and that the next ones will be disturbed, too.
MAX_DISTURBED = MAX_REPEATS + 1
# About how many seconds it takes on two cores to start and stop a deployment once, to verify it, and to make a trial
# besides its warm-up and load.
UP_S = 4.0
VERIFY_S = 15.0
AROUND_TRIAL_S = 1.5
# Failed checks that a reason names.
MAX_NAMED = 3


class Ledger:
    """Keeps count of the trials and checks of a run.

    trials    made before; those of them that are voided are made again
    limit     of the latency in a capacity run: each measurement of the schedule is a staircase
    racing    drops cases that cannot be the best any more; None: every trial of the schedule is made
    failures  failed trials that are not repeated
    voided    voided trials that are not repeated
    is_disturbed  whether other processes disturbed the last MAX_DISTURBED trials
    """

    def __init__(
        self,
        schedule: Sequence[Batch],
        trials: Iterable[Trial] = (),
        outcomes: Iterable[Outcome] = (),
        limit: Limit | None = None,
        racing: Racing | None = None,
    ):
        trials = tuple(trials)
        self._attempts = Counter(trial.trial_id for trial in trials)
        self._disturbed = 0
        self._wrong: dict[tuple[str, str], list[Outcome]] = {}
        latest = {trial.trial_id: trial for trial in trials}
        # Attempts at voided trials before do not count for how often one is repeated.
        self._before = {name: self._attempts[name] for name, trial in latest.items() if trial.status == "voided"}
        done = [trial for name, trial in latest.items() if name not in self._before]
        # An overloaded site voids the trial of a rate, too: that says what the rate is.
        made = (trial for trial in trials if trial.status != "voided" or overloaded(trial))
        self._staircases = Staircases(limit, made) if limit else None
        self.racing = racing
        self.failures = self.voided = 0
        for trial in done:
            self._count(trial)
        self._schedule = schedule
        self._done = {trial.trial_id for trial in done}
        self._look()
        for outcome in outcomes:
            self.add_outcomes(outcome.stack, outcome.layer, [outcome])

    @property
    def left(self) -> list[Batch]:
        """The batches with trials still to be made, or with a staircase that is not at its end.

        In a race as far as is known after the rounds so far.
        """
        batches = (replace(batch, measurements=tuple(self.due(batch.measurements))) for batch in self._schedule)
        return [batch for batch in batches if batch.measurements]

    @property
    def next_round(self) -> list[Batch]:
        """Those of the first round that is not complete."""
        left = self.left
        return [batch for batch in left if batch.round == left[0].round]

    @property
    def certain(self) -> list[Batch]:
        """Those that are certain to be made: in a race the next round, else all that are left."""
        return self.next_round if self.racing else self.left

    @property
    def trials_left(self) -> int:
        """How many trials are certain to be made; of staircases an estimate."""
        return self.expected(self.certain)

    def estimate_s(self, plan: Plan, batches: Sequence[Batch]) -> float:
        """About how many seconds it takes to make the trials of these batches."""
        deployments = {(batch.stack, batch.layer) for batch in batches if not self.is_verified(batch)}
        of_trial = plan.warmup_s + plan.duration_s + AROUND_TRIAL_S
        of_trial += connections.LEFT_S if plan.database.startswith("postgres") else 0
        return UP_S * len(batches) + VERIFY_S * len(deployments) + of_trial * self.expected(batches)

    def add(self, trial: Trial) -> bool:
        """Count a trial. True when other processes disturbed it and it is to be repeated."""
        self._attempts[trial.trial_id] += 1
        self._disturbed = self._disturbed + 1 if guards.disturbed(trial.guards or {}) else 0
        if self._staircases:
            self._staircases.add(trial)
        if self._is_due_again(trial):
            return True
        self._done.add(trial.trial_id)
        self._count(trial)
        self._look()
        return False

    def due(self, items: Iterable[Measurement]) -> list[Measurement]:
        """Those of the measurements that are still to be made; of a staircase its next step."""
        if self._staircases:
            return list(filter(None, map(self._staircases.next, items)))
        left = [item for item in items if item.trial_id not in self._done]
        return list(filter(self.racing.goes_on, left)) if self.racing else left

    def expected(self, batches: Iterable[Batch]) -> int:
        """How many trials these batches take; of staircases an estimate."""
        items = [item for batch in batches for item in batch.measurements]
        return sum(map(self._staircases.expected, items)) if self._staircases else len(items)

    def _look(self) -> None:
        """Let the race look at each round that has become complete."""
        while self.racing and self.racing.look(self.left):
            pass

    def begin_near(self, case_id: str, rate: int) -> None:
        """Have the first staircase of a case begin near a rate in requests a second."""
        assert self._staircases
        self._staircases.near[case_id] = rate

    def rounds_of(self, case_id: str) -> dict[int, Climb]:
        """The staircases of a case by round."""
        return dict(self._staircases.rounds_of(case_id)) if self._staircases else {}

    def _count(self, trial: Trial) -> None:
        if self.racing:
            self.racing.add(trial)
        if self._staircases:
            # A rate that was tried again counts once, and overload is no failure of the run.
            doubtful = [trial.status for trial in self._staircases.in_doubt]
            self.failures, self.voided = doubtful.count("failed"), doubtful.count("voided")
            return
        self.failures += trial.status == "failed"
        self.voided += trial.status == "voided"

    def attempts(self, trial_id: str) -> int:
        """How often the trial was made."""
        return self._attempts[trial_id]

    @property
    def is_disturbed(self) -> bool:
        return self._disturbed >= MAX_DISTURBED

    def _is_due_again(self, trial: Trial) -> bool:
        attempts = self._attempts[trial.trial_id] - self._before.get(trial.trial_id, 0)
        return guards.disturbed(trial.guards or {}) and attempts <= MAX_REPEATS

    def add_outcomes(self, stack: str, layer: str, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of verifying a stack with a layer."""
        wrong = self._wrong.setdefault((stack, layer), [])
        wrong += [outcome for outcome in outcomes if not outcome.ok]

    def is_verified(self, batch: Batch) -> bool:
        """Whether the stack with the layer was verified in this run, passed or not."""
        return (batch.stack, batch.layer) in self._wrong

    def wrong_answers(self, batch: Batch) -> str | None:
        """Why the batch must not be measured: the checks that failed; None when none did."""
        wrong = self._wrong.get((batch.stack, batch.layer))
        if not wrong:
            return None
        names = ", ".join(outcome.check for outcome in wrong[:MAX_NAMED]) + (", ..." if len(wrong) > MAX_NAMED else "")
        return f"not measured, it gives wrong answers: {plural(len(wrong), 'check')} failed: {names}"
