"""What of a plan is done and what is left, trials and faults alike. Pure: no file, no process, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bench.measure.records.capacity import MAX_REPEATS, overloaded
from bench.measure.records.faults import FaultOutcome
from bench.measure.records.trials import Trial
from bench.measure.run.plan import Batch, Item, Measurement
from bench.measure.run.racing import Racing
from bench.measure.run.staircase import Staircases
from bench.measure.stats.capacity import Limit
from bench.verify.outcome import Outcome
from bench.words import first_names, plural

# So many disturbed trials in a row say that the machine is busy, and that the next ones will be disturbed, too.
MAX_DISTURBED = MAX_REPEATS + 1

# What is stored of an item that was made.
Record = Trial | FaultOutcome


class Ledger:
    """Keeps count of the records and checks of a run.

    done      item -> its record that counts
    attempts  item -> how often it was made

    schedule  what is to be made; a plan that finds its items as it goes has an empty one
    made      records of a run that is resumed; what they void is made again
    limit     of the latency in a capacity run: each measurement of the schedule is a staircase
    racing    drops cases that cannot be the best any more; None: every trial of the schedule is made
    max_repeats  how often an item is made again that other processes disturbed
    """

    def __init__(
        self,
        schedule: Sequence[Batch] = (),
        made: Iterable[Record] = (),
        outcomes: Iterable[Outcome] = (),
        limit: Limit | None = None,
        racing: Racing | None = None,
        max_repeats: int = MAX_REPEATS,
    ):
        made = tuple(made)
        self._max_repeats = max_repeats
        self.attempts = Counter(record.key for record in made)
        self._disturbed = 0
        self._wrong: dict[tuple[str, str], list[Outcome]] = {}
        latest = {record.key: record for record in made}
        # Attempts at voided items before do not count for how often one is repeated.
        self._before = {key: self.attempts[key] for key, record in latest.items() if record.status == "voided"}
        self.done: dict[str, Record] = {}
        # An overloaded site voids the trial of a rate, too: that says what the rate is.
        steps = (it for it in made if isinstance(it, Trial) and (it.status != "voided" or overloaded(it)))
        self.staircases = Staircases(limit, steps) if limit else None
        self.racing = racing
        self._schedule = schedule
        self._note(record for key, record in latest.items() if key not in self._before)
        for outcome in outcomes:
            self.add_outcomes(outcome.stack, outcome.layer, [outcome])

    @property
    def left(self) -> list[Batch]:
        """The batches with items still to be made, or with a staircase that is not at its end.

        In a race as far as is known after the rounds so far.
        """
        return self.left_of(self._schedule)

    def left_of(self, batches: Iterable[Batch]) -> list[Batch]:
        """Those of the batches with items still to be made."""
        left = (replace(batch, items=tuple(self.due(batch.items))) for batch in batches)
        return [batch for batch in left if batch.items]

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
    def count_left(self) -> int:
        """How many items are certain to be made; of staircases an estimate."""
        return self.expected(self.certain)

    def add(self, record: Record) -> bool:
        """Count a record. True when other processes disturbed it and it is to be repeated."""
        self.attempts[record.key] += 1
        self._disturbed = self._disturbed + 1 if record.is_disturbed else 0
        if self.staircases and isinstance(record, Trial):
            self.staircases.add(record)
        if record.is_disturbed and self.attempts[record.key] - self._before.get(record.key, 0) <= self._max_repeats:
            return True
        self._note([record])
        return False

    def due(self, items: Iterable[Item]) -> list[Item]:
        """Those of the items that are still to be made; of a staircase its next step."""
        if self.staircases:
            return list(filter(None, (self.staircases.next(item) for item in items if isinstance(item, Measurement))))
        left = [item for item in items if item.key not in self.done]
        racing = self.racing
        if racing is None:
            return left
        return [it for it in left if isinstance(it, Measurement) and (it.rate is not None or racing.goes_on(it))]

    def expected(self, batches: Iterable[Batch]) -> int:
        """How many items these batches take; of staircases an estimate."""
        items = [item for batch in batches for item in batch.items]
        if self.staircases is None:
            return len(items)
        return sum(self.staircases.expected(item) for item in items if isinstance(item, Measurement))

    def _note(self, records: Iterable[Record]) -> None:
        """Note items that are done; the race looks at each round that has become complete."""
        for record in records:
            self.done[record.key] = record
            if self.racing and isinstance(record, Trial):
                self.racing.add(record)
        while self.racing and self.racing.look(self.left):
            pass

    def count(self, status: str) -> int:
        """How many items that are not repeated have this status, `failed` or `voided`."""
        # Of staircases a rate that was tried again counts once, and overload is no failure of the run.
        records = self.staircases.in_doubt if self.staircases else self.done.values()
        return sum(record.status == status for record in records)

    @property
    def is_disturbed(self) -> bool:
        """Whether other processes disturbed the last MAX_DISTURBED items."""
        return self._disturbed >= MAX_DISTURBED

    def add_outcomes(self, stack: str, layer: str, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of verifying a stack with a layer."""
        self._wrong.setdefault((stack, layer), []).extend(outcome for outcome in outcomes if not outcome.ok)

    def is_verified(self, batch: Batch) -> bool:
        """Whether the stack with the layer was verified in this run, passed or not."""
        return (batch.stack, batch.layer) in self._wrong

    def wrong_answers(self, batch: Batch) -> str | None:
        """Why the batch must not be measured: the checks that failed; None when none did."""
        wrong = self._wrong.get((batch.stack, batch.layer))
        if not wrong:
            return None
        names = first_names([outcome.check for outcome in wrong])
        return f"not measured, it gives wrong answers: {plural(len(wrong), 'check')} failed: {names}"
