"""What is made and in what order: each deployment is brought up once a round, and its faults are made one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.faults.fault import Fault
from bench.figures.words import about, plural
from bench.results.faults import FaultOutcome, FaultsPlan
from bench.results.records import NO_LAYER
from bench.serve.case import CannotRun, Case

# How often a voided fault is made again.
MAX_REPEATS = 2

# About how many seconds it takes to bring a deployment up and measure its capacity, and to make one fault.
UP_S, FAULT_S = 8.0, 11.0

# The case of a stack and a layer, or why it cannot run here.
Resolve = Callable[[str, str], Case | CannotRun]


@dataclass(frozen=True)
class Item:
    """One fault to be made on one deployment in one round.

    skip      why it cannot be made, or empty
    declared  why it is declared to be otherwise than expected, or None
    """

    fault: Fault
    fault_id: str
    skip: str = ""
    declared: str | None = None


@dataclass(frozen=True)
class Batch:
    """A deployment of one round, and its faults; it has a case unless all of them are skipped."""

    stack: str
    layer: str
    case: Case | None
    round: int
    items: tuple[Item, ...]

    @property
    def name(self) -> str:
        """The name of its directory."""
        listener = self.case.settings["listener"] if self.case else ""
        # Not every server can work in a directory with the comma of a variant of two values.
        return f"{self.stack}~{self.layer}~{listener}~r{self.round}".replace(",", "+")


def batches(plan: FaultsPlan, faults: Sequence[Fault], resolve: Resolve) -> list[Batch]:
    """All of the plan. Faults that need other values than the rest have a deployment of their own."""
    cases = {(stack, layer): resolve(stack, layer) for stack in plan.stacks for layer in plan.layers}
    found = []
    for number in range(1, plan.rounds + 1):
        for (stack, layer), case in cases.items():
            for changes in dict.fromkeys(tuple(sorted(item.changes.items())) for item in faults):
                its = [item for item in faults if tuple(sorted(item.changes.items())) == changes]
                found.append(_batch(plan, stack, layer, case, number, its))
    return found


def _batch(
    plan: FaultsPlan, stack: str, layer: str, found: Case | CannotRun, number: int, faults: Sequence[Fault]
) -> Batch:
    declared = {} if isinstance(found, CannotRun) else _declared(found)
    items = []
    for item in faults:
        reason = found.reason if isinstance(found, CannotRun) else item.misfit(found)
        fault_id = "~".join((stack, layer, plan.size, plan.database, item.name, f"r{number}"))
        items.append(Item(item, fault_id, reason, declared.get(item.name)))
    if all(item.skip for item in items):
        return Batch(stack, layer, None, number, tuple(items))
    assert isinstance(found, Case)
    changed = found.changed(faults[0].changes)
    assert isinstance(changed, Case)
    return Batch(stack, layer, changed, number, tuple(items))


def _declared(case: Case) -> dict[str, str]:
    """Fault -> why it is declared to be otherwise than expected. A check of the same name shows the same."""
    return {item.check: item.reason for item in case.declares} | case.breaks


class Ledger:
    """Keeps count of the outcomes, to know what is left.

    failures, voided  outcomes that are not made again
    """

    def __init__(self, outcomes: Iterable[FaultOutcome] = ()):
        self._attempts: Counter[str] = Counter()
        self._latest: dict[str, FaultOutcome] = {}
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: FaultOutcome) -> None:
        """Count an outcome."""
        self._attempts[outcome.fault_id] += 1
        self._latest[outcome.fault_id] = outcome

    def attempts(self, fault_id: str) -> int:
        """How often the fault was made."""
        return self._attempts[fault_id]

    def is_left(self, fault_id: str) -> bool:
        """Whether the fault is still to be made, or to be made again because its outcome is void."""
        latest = self._latest.get(fault_id)
        return latest is None or (latest.status == "voided" and self._attempts[fault_id] <= MAX_REPEATS)

    def count(self, status: str) -> int:
        """How many faults have this status at last."""
        return sum(outcome.status == status for outcome in self._latest.values())


def words(found: Sequence[Batch], ledger: Ledger) -> list[str]:
    """What is left of a plan, as lines for people: what is made, about how long that takes, what is skipped and why."""
    left = [(batch, [item for item in batch.items if ledger.is_left(item.fault_id)]) for batch in found]
    due = {batch.name: [item for item in items if not item.skip] for batch, items in left}
    count, ups = sum(map(len, due.values())), sum(map(bool, due.values()))
    lines = [
        f"{plural(count, 'fault')} to make, {plural(ups, 'deployment')}, in about {about(UP_S * ups + FAULT_S * count)}"
    ]
    skipped: dict[str, list[str]] = {}
    for batch, items in left:
        for item in items:
            if item.skip and batch.round == 1:
                skipped.setdefault(f"{item.fault.name}: {item.skip}", []).append(_deployment(batch))
    return lines + [f"skipped: {reason} ({', '.join(where)})" for reason, where in skipped.items()]


def _deployment(batch: Batch) -> str:
    return batch.stack if batch.layer == NO_LAYER else f"{batch.stack} with layer {batch.layer}"
