"""Faults under way: each deployment is brought up, its faults are made one by one, and it is taken down."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from bench.errors import BenchError, GlobalFault
from bench.faults import table
from bench.faults.fault import Fault
from bench.faults.plan import Batch, Item, Ledger
from bench.interrupt import Interrupts
from bench.measure.printer import Printer
from bench.measure.trial import now
from bench.results.faults import FaultOutcome, FaultsFolder, FaultsInfo
from bench.serve.case import Case

# What is stored of a deployment's directory.
STORED = ("logs", "visits")


class Made(Protocol):
    """A deployment that faults can be made on; see bench.faults.stage.

    notes  what a reader of its outcomes must know
    """

    notes: list[str]

    def make(self, fault: Fault, outcome: FaultOutcome, name: str) -> FaultOutcome:
        """Make a fault; the completed outcome."""

    def is_whole(self) -> bool:
        """Whether another fault can be made."""


# Brings a case up with its files in a directory, its progress shown.
Up = Callable[[Case, Path, Interrupts, Callable[[str], None]], AbstractContextManager[Made]]


class Session:
    """Makes what is left of a plan."""

    def __init__(self, folder: FaultsFolder, info: FaultsInfo, ledger: Ledger, up: Up, printer: Printer):
        self.folder, self.info, self.ledger = folder, info, ledger
        self._up, self._printer = up, printer
        self._noted: set[str] = set()

    def go(self, batches: list[Batch], interrupts: Interrupts) -> None:
        """Make all faults of these batches that are left, and write that it is done."""
        for batch in batches:
            for item in batch.items:
                if item.skip and self.ledger.is_left(item.fault_id):
                    self._add(replace(self._failed(batch, item, item.skip), status="skipped"))
            self._make_all(batch, interrupts)
        self.info = replace(self.info, finished_at=now())
        self.folder.write_info(self.info)

    def _make_all(self, batch: Batch, interrupts: Interrupts) -> None:
        """Make the faults of a batch; a deployment that a fault has ruined is brought up anew for the rest."""
        while left := [item for item in batch.items if self.ledger.is_left(item.fault_id)]:
            assert batch.case is not None
            directory = self._new_directory(batch)
            try:
                with self._up(batch.case, directory, interrupts, self._printer.show) as made:
                    self._note(made.notes)
                    self._make(made, batch, left, interrupts)
            except GlobalFault:
                raise
            except BenchError as error:
                # One that cannot be brought up cannot be brought up for the next fault either.
                for item in filter(lambda item: self.ledger.is_left(item.fault_id), left):
                    self._add(self._failed(batch, item, str(error)))
            finally:
                _tidy(directory)

    def _make(self, made: Made, batch: Batch, left: list[Item], interrupts: Interrupts) -> None:
        """Make these faults until one ruins the deployment."""
        for item in left:
            while self.ledger.is_left(item.fault_id):
                attempt = self.ledger.attempts(item.fault_id) + 1
                self._printer.show(f"{batch.stack} with layer {batch.layer}: {item.fault.name}")
                outcome = made.make(item.fault, self._outcome(batch, item), f"{item.fault.name}~{attempt}")
                interrupts.again()
                self._add(outcome)
                if not made.is_whole():
                    return

    def _note(self, notes: list[str]) -> None:
        """Say what has not been said yet."""
        for note in notes:
            if note not in self._noted:
                self._printer.say(f"note: {note}")
        self._noted |= set(notes)

    def _outcome(self, batch: Batch, item: Item) -> FaultOutcome:
        """The outcome of a fault before it is made."""
        plan, fault = self.info.plan, item.fault
        return FaultOutcome(
            item.fault_id,
            batch.stack,
            batch.layer,
            plan.size,
            plan.database,
            fault.name,
            fault.group,
            batch.round,
            now(),
            "ok",
            declared=item.declared,
        )

    def _failed(self, batch: Batch, item: Item, reason: str) -> FaultOutcome:
        return replace(self._outcome(batch, item), status="failed", reason=reason, declared=None)

    def _add(self, outcome: FaultOutcome) -> None:
        self.folder.append(outcome)
        self.ledger.add(outcome)
        self._printer.say(table.line(outcome))

    def _new_directory(self, batch: Batch) -> Path:
        """A new directory for the files of the deployment, each time it is brought up."""
        names = itertools.chain([batch.name], (f"{batch.name}~{number}" for number in itertools.count(2)))
        return next(path for name in names if not (path := self.folder.raw / name).exists())


def _tidy(directory: Path) -> None:
    """Leave the logs of servers and visitors, without the visitors' cookies."""
    if not directory.is_dir():
        return
    for path in directory.iterdir():
        if path.name not in STORED:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
    for job in directory.glob("visits/**/openloop.json"):
        job.unlink()
