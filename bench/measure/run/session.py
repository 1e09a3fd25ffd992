"""A run in progress, on any test bed: each deployment is brought up, measured, recorded and taken down.

A schedule yields the items (bench.measure.run.schedules); a `TestBed` brings deployments up and makes the items: this
machine, the hosts of an inventory, or this machine with faults. The journal stores the records. A stopped session can
always be resumed from its folder: a record is on the disk before the next item begins.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from bench import paths
from bench.errors import BenchError, DeploymentError, GlobalFault, MachineBusy
from bench.interrupt import Interrupts
from bench.measure.records.capacity import MAX_REPEATS
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.folder import ADDRESSES_FILE, Folder, read_addresses, write_json
from bench.measure.records.records import CaseRecord, Dropped, Ended, Environment, RunInfo
from bench.measure.records.trials import Trial
from bench.measure.run import machine_facts
from bench.measure.run.load_process import newest_log
from bench.measure.run.plan import Deployment
from bench.measure.run.schedules import Item, ItemT, RecordT, Replay
from bench.printer import Printer
from bench.words import command_line

# Share of the rows that may have come or gone since a run began: a killed check leaves a few behind.
MAX_CHANGED_ROWS = 0.01
# Kept contents of a deployment's directory.
STORED = ("logs", "visits")
# After so many disturbed trials in a row the machine is too busy for the next ones too.
MAX_DISTURBED = MAX_REPEATS + 1

# Types that a protocol only takes.
TakenItem = TypeVar("TakenItem", bound=Item, contravariant=True)
TakenRecord = TypeVar("TakenRecord", bound=Trial | FaultOutcome, contravariant=True)


class Journal:
    """The run.json, environment.json and workloads.json of a run under way."""

    def __init__(self, folder: Folder, info: RunInfo, environment: Environment):
        self.folder = folder
        self.info = info
        self.environment = environment
        self.addresses = read_addresses(folder.directory)
        self._rows_checked = False

    def finish(self, when: str, ended_by: Ended | None) -> None:
        """The run is complete; `ended_by` is why a run until decided makes no more rounds."""
        self._write_info(finished_at=when, ended_by=ended_by)

    def drop(self, dropped: tuple[Dropped, ...]) -> None:
        """Store the cases dropped so far by a run until decided."""
        if dropped != self.info.dropped:
            self._write_info(dropped=dropped)

    def case(self, case: CaseRecord) -> None:
        """Store one more case: the next settings of a search follow from earlier ones."""
        if case.case_id not in [known.case_id for known in self.info.cases]:
            self._write_info(cases=(*self.info.cases, case))

    def note(self, notes: Iterable[str]) -> list[str]:
        """Store a deployment's notes about this machine and return the new ones; notes about the stack belong to its
        case."""
        known = set(self.info.notes).union(*(case.notes for case in self.info.cases))
        if new := [note for note in notes if note not in known]:
            self._write_info(notes=(*self.info.notes, *new))
        return new

    def configs(self, deployment: str, directory: Path) -> None:
        """Store the hashes of the files rendered for a deployment into `directory`, once in a run."""
        known = self.environment.configs or {}
        if any(name.startswith(f"{deployment}/") for name in known):
            return
        own = {str(directory.absolute()): "RUN", str(paths.VENV): "VENV", str(paths.KIT): "PROJECT"}
        hashes = machine_facts.config_hashes(directory / "conf", own)
        by_file = dict(known)
        for name, digest in hashes.items():
            by_file[f"{deployment}/{name}"] = digest
        self._write_environment(configs=by_file)

    def rows(self, count: Callable[[], tuple[int | None, int | None]]) -> None:
        """Count the rows of the site and learn their seed, once since the run began or was resumed, and store both.

        Raises GlobalFault if the run began with other rows.
        """
        if self._rows_checked:
            return
        self._rows_checked = True
        total, seed = count()
        if total is None:
            return
        before, seed_before = self.info.plan.rows_total, self.environment.rows_seed
        if before is None:
            self._write_environment(rows_seed=seed, rows_total=total)
            self._write_info(plan=replace(self.info.plan, rows_total=total))
        elif seed != seed_before or abs(total - before) > MAX_CHANGED_ROWS * before:
            raise GlobalFault(
                f"this is another database: {total:,} rows from seed {seed}, and the run began with {before:,} from "
                f"seed {seed_before}"
            )

    def workload(self, name: str, addresses: tuple[str, ...]) -> None:
        """Store the addresses of a workload, the same for every deployment."""
        self.addresses[name] = addresses
        write_json(self.folder.directory / ADDRESSES_FILE, self.addresses)

    def _write_info(self, **changes: Any) -> None:
        self.info = replace(self.info, **changes)
        self.folder.write(self.info)

    def _write_environment(self, **changes: Any) -> None:
        self.environment = replace(self.environment, **changes)
        self.folder.write(self.environment)


class TestBed(ABC, Generic[ItemT, RecordT]):
    """The place of deployments and their items: this machine, or hosts."""

    # False if the deployment must be brought up again before the next item.
    is_usable = True

    def reserved(self) -> AbstractContextManager[None]:
        """Reserve the bed for this run as long as the context lasts. Raises GlobalFault on failure."""
        return nullcontext()

    @abstractmethod
    def up(self, deployment: Deployment, directory: Path, interrupts: Interrupts) -> AbstractContextManager[object]:
        """Have the deployment up and verified as long as the context lasts, its files in `directory`.

        Signals wait during the shutdown. Raises BenchError if the deployment does not come up, or must not be measured.
        """

    @abstractmethod
    def make(self, item: ItemT, attempt: int) -> RecordT:
        """Make a trial or a fault on the deployment, for the `attempt`th time; never raises for failures of the
        site."""

    @abstractmethod
    def failed(self, item: ItemT, reason: str, log: Path | None = None) -> RecordT:
        """The record of an item that could not be made."""

    def keep(self) -> None:
        """Store the schedule's findings besides the records."""

    def check(self) -> None:
        """Raise GlobalFault if nothing can be made any more, such as without the database."""

    def busy(self) -> str:
        """Words for the load of the machine now."""
        return "other programs keep it busy"


class Progress(Protocol[TakenItem, TakenRecord]):
    """Printed lines of a session."""

    printer: Printer

    def begin(self, item: TakenItem) -> None:
        """An item begins."""

    def finish(self, record: TakenRecord, again: bool) -> None:
        """Print a finished item; `again` means a repetition follows."""


class Session(Generic[ItemT, RecordT]):
    """The driver of every schedule: makes each yielded item on a test bed, and stores its record.

    attempts  item -> number of attempts
    """

    def __init__(
        self,
        journal: Journal,
        replay: Replay[ItemT, RecordT],
        bed: TestBed[ItemT, RecordT],
        progress: Progress[ItemT, RecordT],
        attempts: Iterable[str] = (),
    ):
        self.journal, self.replay, self.bed, self.progress = journal, replay, bed, progress
        self._attempts = Counter(attempts)
        self._disturbed = 0

    def go(self, interrupts: Interrupts, keep_going: bool = False) -> None:
        """Make every item of the schedule, and mark the run as complete.

        `keep_going`: also on a machine kept busy by other programs; otherwise raises MachineBusy. Raises GlobalFault.
        """
        with self.progress.printer, self.bed.reserved():
            self.bed.keep()
            while item := self.replay.item:
                self._visit(item.deployment, interrupts, keep_going)
            self.journal.finish(now(), self.replay.ended_by)

    def _visit(self, deployment: Deployment, interrupts: Interrupts, keep_going: bool) -> None:
        """Bring a deployment up and make its items while it lives."""
        folder = self.journal.folder
        # Not every server can work in a directory with the comma of a variant of two values.
        directory = _new(folder.raw, f"{deployment.name}~r{deployment.round}".replace(",", "+"), "~")
        try:
            with interrupts.released_at_end(), self.bed.up(deployment, directory, interrupts):
                while item := self._next_on(deployment):
                    self._make(item, interrupts, keep_going)
                    if not self.bed.is_usable:
                        break
        except GlobalFault:
            raise
        except BenchError as error:
            self.bed.check()
            reason, log = str(error), newest_log(directory / "logs")
            if isinstance(error, DeploymentError):
                reason, log = error.message, error.log or log
            while item := self._next_on(deployment):
                self.add(self.bed.failed(item, reason, log))
        finally:
            _tidy(directory, folder.configs / deployment.name)

    def _next_on(self, deployment: Deployment) -> ItemT | None:
        """The next item if planned for this deployment."""
        item = self.replay.item
        if item and item.deployment is deployment:
            return item
        return None

    def _make(self, item: ItemT, interrupts: Interrupts, keep_going: bool) -> None:
        self.progress.begin(item)
        attempts = self._attempts[item.key]
        self.journal.folder.set_aside(item.key, attempts)
        record = self.bed.make(item, attempts + 1)
        interrupts.again()
        self.add(record)
        if self._disturbed >= MAX_DISTURBED and not keep_going:
            why = f"{MAX_DISTURBED} trials in a row were discarded ({record.reason})"
            raise MachineBusy(f"{why}; now {self.bed.busy()}; stop those programs")

    def add(self, record: RecordT) -> None:
        """Store a record and send it to the schedule. A full disk fails no trial but stops the run."""
        if record.status == "failed":
            self.journal.folder.require_space()
        self.journal.folder.append(record)
        self._attempts[record.key] += 1
        self._disturbed += 1
        if not record.is_disturbed:
            self._disturbed = 0
        self.replay.send(record)
        self.bed.keep()
        again = record.is_disturbed and self.replay.item is not None and self.replay.item.key == record.key
        self.progress.finish(record, again)


def begin(folder: Path | None, kind: str, info: RunInfo, read_environment: Callable[[], Environment]) -> Journal:
    """The journal of a new run, in a new folder: the given one, or one whose name begins with `kind`.

    `read_environment` reads the machine first. Raises BenchError on failure.
    """
    environment = read_environment()
    new = Folder(folder or new_folder(kind))
    paths.must_be_plain(new.directory)
    new.create(info, environment)
    return Journal(new, info, environment)


def resume(
    directory: Path, info: RunInfo, read_environment: Callable[[], Environment], replay: Replay[Any, Any]
) -> Journal:
    """The journal of a stopped run, in its repaired folder. Raises BenchError if nothing is left."""
    if info.finished_at and replay.item is None:
        raise BenchError(f"--resume {directory}: the run is complete; next: {command_line('report', directory)}")
    environment = read_environment()
    paths.must_be_plain(directory)
    folder = Folder(directory)
    with folder.locked():
        folder.repair()
    return Journal(folder, info, environment)


def now() -> str:
    """The time in ISO 8601 with offset."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def new_folder(kind: str = "") -> Path:
    """A new folder under results/, named after the time."""
    return _new(paths.RESULTS, datetime.now().strftime(f"{kind}%Y%m%d-%H%M%S"), "-")


def _new(folder: Path, name: str, then: str) -> Path:
    """A new path in a folder with this name, if necessary with a number."""
    path, number = folder / name, 2
    while path.exists():
        path = folder / f"{name}{then}{number}"
        number += 1
    return path


def _tidy(directory: Path, configs: Path) -> None:
    """Store the rendered files once, and leave the logs of servers and visitors, without the visitors' cookies."""
    if not directory.is_dir():
        return
    if (directory / "conf").is_dir() and not configs.exists():
        try:
            shutil.copytree(directory / "conf", configs)
        except OSError:
            # An incomplete copy would be taken for the complete one.
            shutil.rmtree(configs, ignore_errors=True)
            raise
    for path in directory.iterdir():
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        elif path.name not in STORED:
            shutil.rmtree(path, ignore_errors=True)
    for job in directory.glob("visits/**/openloop.json"):
        job.unlink()
