"""This machine as the test bed of faults, and the printed line for each fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.interrupt import Interrupts
from bench.measure.faults import fault_session
from bench.measure.faults.fault_session import FaultItem, FaultSession
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.run.plan import Deployment
from bench.measure.run.session import Journal, TestBed, now
from bench.printer import Printer


class FaultsTestBed(TestBed[FaultItem, FaultOutcome]):
    """This machine, with a deployment for faults.

    allow_writes  whether accounts may be made in a database of the project; a folder does not store the permission
    """

    _session: FaultSession

    def __init__(self, journal: Journal, printer: Printer, allow_writes: bool):
        self.journal, self.printer, self.allow_writes = journal, printer, allow_writes

    @contextmanager
    def up(self, deployment: Deployment, directory: Path, interrupts: Interrupts) -> Iterator[None]:
        """Have a deployment made ready for faults."""
        plan = self.journal.info.plan
        opened = fault_session.open_session(
            deployment.case, directory, self.printer.show, plan.guards or {}, plan.rounds, self.allow_writes
        )
        with opened as self._session, interrupts.deferred_at_end():
            for note in self.journal.note(self._session.notes):
                self.printer.say(f"note: {note}")
            yield

    def make(self, item: FaultItem, attempt: int) -> FaultOutcome:
        """Make a fault."""
        outcome = self._session.make(item, attempt)
        self.is_usable = self._session.is_usable
        return outcome

    def failed(self, item: FaultItem, reason: str, log: Path | None = None) -> FaultOutcome:
        """The outcome of a fault that could not be made."""
        return replace(item.outcome, started_at=now(), status="failed", reason=reason, known_limitation=None)


class FaultsProgress:
    """Prints a line for each fault."""

    def __init__(self, printer: Printer):
        self.printer = printer

    def begin(self, item: FaultItem) -> None:
        """A fault begins."""
        deployment = item.deployment
        self.printer.show(f"{deployment.stack} with layer {deployment.layer}: {item.outcome.fault}")

    def finish(self, record: FaultOutcome, again: bool) -> None:
        """A fault was made, or is not possible."""
        self.printer.say(line(record))


def line(outcome: FaultOutcome) -> str:
    """One outcome in words."""
    words = [outcome.word]
    if outcome.failed is not None:
        requests = (outcome.requests_new or 0) + (outcome.requests_kept or 0)
        back = "never"
        if outcome.recovery_s is not None:
            back = f"{outcome.recovery_s:.1f} s"
        words.append(f"{outcome.failed} of {requests} requests failed")
        words.append(f"gap {outcome.longest_gap_s or 0.0:.1f} s, recovery {back}; operator: {outcome.operator}")
    if seed := (outcome.figures or {}).get("seed"):
        words.append(f"seed {seed}")
    if outcome.reason:
        words.append(outcome.reason)
    return f"{outcome.stack} with layer {outcome.layer}, {outcome.fault}: {'; '.join(words)}"
