"""A run under way, wherever it is made: each case is brought up, measured, recorded and taken down.

A plan says what is made, batch by batch; a `Place` brings a case up and makes the items on it: this machine, the hosts
of an inventory, or this machine with faults. The ledger says what is left, the journal writes it down. Whatever stops a
session, its folder can be resumed: a record is on the disk before the next item begins.
"""

from __future__ import annotations

import itertools
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from bench import PROGRAM, paths
from bench.errors import BenchError, DeploymentError, GlobalFault, MachineBusy
from bench.interrupt import Interrupts
from bench.measure.records.folder import ADDRESSES_FILE, CHECKS_FILE, Folder, read_addresses, write_json
from bench.measure.records.records import CaseRecord, Dropped, Ended, Environment, RunInfo
from bench.measure.run import facts
from bench.measure.run.ledger import MAX_DISTURBED, Ledger, Record
from bench.measure.run.load_process import newest_log
from bench.measure.run.plan import Batch, Item
from bench.printer import Printer

# Share of the rows that may have come or gone since a run began: a killed check leaves a few behind.
MAX_CHANGED_ROWS = 0.01
# What is left of a deployment's directory.
STORED = ("logs", "visits")


class Journal:
    """The run.json, environment.json and workloads.json of a run under way.

    ended_by  why a run until decided makes no more rounds
    """

    def __init__(self, folder: Folder, info: RunInfo, environment: Environment):
        self.folder = folder
        self.info = info
        self.environment = environment
        self.addresses = read_addresses(folder.directory)
        self.ended_by: Ended | None = None
        self._rows_checked = False

    def finish(self, when: str) -> None:
        """The run is complete."""
        self._write_info(finished_at=when, ended_by=self.ended_by)

    def drop(self, dropped: tuple[Dropped, ...]) -> int:
        """Store which cases a run until decided has dropped so far; returns how many of them are new."""
        new = len(set(dropped) - set(self.info.dropped))
        if dropped != self.info.dropped:
            self._write_info(dropped=dropped)
        return new

    def case(self, case: CaseRecord) -> None:
        """Store one more case: the settings that are tried next follow from those before."""
        if case.case_id not in [known.case_id for known in self.info.cases]:
            self._write_info(cases=(*self.info.cases, case))

    def note(self, notes: Iterable[str]) -> list[str]:
        """Store the notes of a deployment about this machine, those about the stack are its case's; the new ones."""
        known = {*self.info.notes, *(note for case in self.info.cases for note in case.notes)}
        if new := [note for note in notes if note not in known]:
            self._write_info(notes=(*self.info.notes, *new))
        return new

    def configs(self, deployment: str, directory: Path) -> None:
        """Store the hashes of the files rendered for a deployment into `directory`, once in a run."""
        known = self.environment.configs or {}
        if any(name.startswith(f"{deployment}/") for name in known):
            return
        own = {str(directory.absolute()): "RUN", str(paths.VENV): "VENV", str(paths.KIT): "PROJECT"}
        hashes = facts.config_hashes(directory / "conf", own)
        found = {**known, **{f"{deployment}/{name}": digest for name, digest in hashes.items()}}
        self._write_environment(configs=found)

    def rows(self, count: Callable[[], tuple[int | None, int | None]]) -> None:
        """Count the rows of the site and learn their seed, once since the run began or was resumed, and store them.

        Raises GlobalFault when a run began with others.
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


class Site(Protocol):
    """A case that is up."""

    def make(self, item: Item, attempt: int) -> Record:
        """Make a trial or a fault, for the `attempt`th time; never raises for what the site did."""

    @property
    def is_whole(self) -> bool:
        """Whether another item can be made, or the case must be brought up anew."""


class TestBed(ABC):
    """Where cases are brought up, and what is made on them."""

    def alone(self) -> AbstractContextManager[None]:
        """The place for this run alone, as long as the context lasts. Raises GlobalFault when it cannot be used."""
        return nullcontext()

    @abstractmethod
    def up(self, batch: Batch, directory: Path, interrupts: Interrupts) -> AbstractContextManager[Site]:
        """The case of a batch, up and verified as long as the context lasts, its files in `directory`.

        Signals wait while it is taken down. Raises BenchError when it does not come up.
        """

    @abstractmethod
    def failed(self, item: Item, reason: str, log: Path | None = None) -> Record:
        """The record of an item that could not be made."""

    def check(self) -> None:  # noqa: B027 - not every place has something that can go
        """Raise GlobalFault when nothing can be made there any more, such as without its database."""

    def busy(self) -> str:
        """What keeps the machine busy now."""
        return "other programs keep it busy"


class Progress(Protocol):
    """What is printed of a session."""

    printer: Printer

    def begin(self, item: Item, batch: Batch) -> None:
        """An item begins."""

    def made(self, record: Record, again: bool) -> None:
        """An item was made, `again` when it is to be repeated."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a session is to make, before anything is started or written: all of it, or what a stopped one has left.

    environment  looks at the machine, or says what it was at the beginning; raises BenchError where nothing can be made
    directory    the folder that is resumed
    kind         begins the name of a new folder
    """

    info: RunInfo
    ledger: Ledger
    environment: Callable[[], Environment]
    directory: Path | None = None
    kind: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether it has ended, and nothing is left."""
        return self.info.finished_at is not None and not self.ledger.left

    def journal(self, to: Path | None) -> Journal:
        """The journal, its folder made or repaired. Raises BenchError when it cannot be, or when nothing is left."""
        directory = self.directory
        if directory and self.is_complete:
            raise BenchError(f"--resume {directory}: the run is complete; next: {PROGRAM} report {directory}")
        environment = self.environment()
        folder = Folder(directory or to or new_folder(self.kind))
        paths.must_be_plain(folder.directory)
        if directory:
            with folder.locked():
                folder.repair()
        else:
            folder.create(self.info, environment)
        return Journal(folder, self.info, environment)


class Session:
    """Makes what a ledger has left of a plan, at a place."""

    def __init__(self, journal: Journal, ledger: Ledger, place: TestBed, progress: Progress):
        self.journal, self.ledger, self.place, self.progress = journal, ledger, place, progress

    def go(self, batches: Iterable[Batch], interrupts: Interrupts, keep_going: bool = False) -> None:
        """Make all of the batches that is left, and write that the run is complete.

        `keep_going`: also when other programs keep the machine busy. Raises MachineBusy without it, and GlobalFault.
        """
        with self.progress.printer, self.place.alone():
            for batch in batches:
                self._measure(batch, interrupts, keep_going)
            self.journal.finish(now())

    def _measure(self, batch: Batch, interrupts: Interrupts, keep_going: bool) -> None:
        """Make the items of a batch; a deployment that dies is brought up again for the rest."""
        folder = self.journal.folder
        while self.ledger.due(batch.items):
            if wrong := self.ledger.wrong_answers(batch):
                return self._fail(batch, wrong, folder.directory / CHECKS_FILE)
            # Not every server can work in a directory with the comma of a variant of two values.
            directory = _new(folder.raw, f"{batch.name}~r{batch.round}".replace(",", "+"), "~")
            try:
                with interrupts.released_at_end(), self.place.up(batch, directory, interrupts) as site:
                    if not self.ledger.wrong_answers(batch):
                        self._make(site, batch, interrupts, keep_going)
            except GlobalFault:
                raise
            except BenchError as error:
                self.place.check()
                failed = error if isinstance(error, DeploymentError) else DeploymentError(str(error))
                return self._fail(batch, failed.message, failed.log or newest_log(directory / "logs"))
            finally:
                _tidy(directory, folder.configs / batch.name)
        return None

    def _make(self, site: Site, batch: Batch, interrupts: Interrupts, keep_going: bool) -> None:
        """Make items one by one until none is due; returns early when the deployment must be brought up anew."""
        while left := self.ledger.due(batch.items):
            self.progress.begin(left[0], batch)
            attempts = self.ledger.attempts[left[0].key]
            self.journal.folder.set_aside(left[0].key, attempts)
            record = site.make(left[0], attempts + 1)
            interrupts.again()
            self.add(record)
            if self.ledger.is_disturbed and not keep_going:
                why = f"{MAX_DISTURBED} trials in a row were voided ({record.reason})"
                raise MachineBusy(f"{why}; now {self.place.busy()}; stop those programs")
            if not site.is_whole:
                return

    def add(self, record: Record) -> None:
        """Store a record. A full disk fails no trial: it stops the run."""
        if record.status == "failed":
            self.journal.folder.require_space()
        self.journal.folder.append(record)
        self.progress.made(record, again=self.ledger.add(record))

    def _fail(self, batch: Batch, reason: str, log: Path | None) -> None:
        """Record all that is due of the batch as failed for this reason."""
        for item in self.ledger.due(batch.items):
            self.add(self.place.failed(item, reason, log))


def now() -> str:
    """The time in ISO 8601 with offset."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def new_folder(kind: str = "") -> Path:
    """A folder under results/ that is named after the time and does not exist yet."""
    return _new(paths.RESULTS, datetime.now().strftime(f"{kind}%Y%m%d-%H%M%S"), "-")


def _new(folder: Path, name: str, then: str) -> Path:
    """A path in a folder with this name, or with the first number after it that makes it new."""
    names = itertools.chain([name], (f"{name}{then}{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := folder / name).exists())


def _tidy(directory: Path, configs: Path) -> None:
    """Store the rendered files once, and leave the logs of servers and visitors, without the visitors' cookies."""
    if not directory.is_dir():
        return
    if (directory / "conf").is_dir() and not configs.exists():
        try:
            shutil.copytree(directory / "conf", configs)
        except OSError:
            # A part of the files would be taken for all of them.
            shutil.rmtree(configs, ignore_errors=True)
            raise
    for path in directory.iterdir():
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        elif path.name not in STORED:
            shutil.rmtree(path, ignore_errors=True)
    for job in directory.glob("visits/**/openloop.json"):
        job.unlink()
