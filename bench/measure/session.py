"""A run under way: each batch is brought up, verified the first time, measured and taken down."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import BenchError, DeploymentError, GlobalFault
from bench.interrupt import Interrupts
from bench.measure.instrument import Instrument
from bench.measure.journal import Journal
from bench.measure.ledger import Ledger
from bench.measure.plan import Batch
from bench.measure.printer import Printer
from bench.measure.progress import RunProgress, show_check
from bench.measure.rounds import Rounds
from bench.measure.trial import Load, newest_log, now
from bench.measure.trial_runner import TrialRunner
from bench.results.folder import CHECKS_FILE, read_run
from bench.results.trials import Trial
from bench.serve.case import Case
from bench.serve.database import Database
from bench.serve.deployment import Running
from bench.verify import table


class Session:
    """Measures what a ledger has left.

    rows      the database; it may hold a password and is not recorded
    done      trials of a run that is resumed
    progress  what is printed of it; a run's lines on stdout when None
    """

    def __init__(
        self,
        journal: Journal,
        ledger: Ledger,
        load: Load,
        instrument: Instrument,
        rows: Database,
        done: tuple[Trial, ...] = (),
        progress: RunProgress | None = None,
    ):
        self.journal = journal
        self._ledger = ledger
        self._instrument = instrument
        self._rows = rows
        self._progress = progress or RunProgress(Printer(), journal.info, ledger.trials_left, done)
        self._printer = self._progress.printer
        self._runner = TrialRunner(journal, ledger, self._progress, load, instrument, rows, done)
        self._pinned = journal.environment.affinity
        self._refused: dict[str, str] = {}

    def go(self, interrupts: Interrupts, keep_going: bool = False) -> int:
        """Measure all that is left; returns the exit status: 1 when a trial failed or nothing was measured, else 0."""
        rounds = Rounds(self._ledger, self.journal, self._progress)
        with self.open(interrupts, keep_going):
            ended_by = rounds.go(lambda batch: self.measure(batch, interrupts))
            self.journal.finish(now(), ended_by)
            run = read_run(self.journal.folder.directory)
            self._progress.summarize(run, self._ledger.failures, self._ledger.voided)
            return 1 if self._ledger.failures or not run.is_measured else 0

    @contextmanager
    def open(self, interrupts: Interrupts, keep_going: bool = False) -> Iterator[None]:
        """The database for this run alone until the block ends: batches can be measured.

        `keep_going`: also when other programs keep the machine busy.
        """
        self._runner.keep_going = keep_going
        with self._printer:
            self._progress.announce(self._runner.load.tool.name, self._ledger, self.journal.folder.directory)
            self._instrument.check_database(self._rows)
            with self._instrument.database_alone(self._rows):
                left, bounds = self._ledger.left, self._runner.load.bounds
                if left and "interference" in bounds:
                    self._progress.warn_of_load(self._instrument.machine_load(), bounds["interference"])
                yield

    @contextmanager
    def _up(self, case: Case, directory: Path, configs: Path, interrupts: Interrupts) -> Iterator[Running]:
        """Bring the case up on its cores. While it is taken down and its directory is tidied, signals wait."""
        deployed = self._instrument.deployed(case, run_dir=directory, progress=self._printer.show)
        try:
            with interrupts.released_at_end(), deployed as running:
                try:
                    self._instrument.settle(self._pinned, running)
                    yield running
                finally:
                    interrupts.hold()
                    self._printer.show(f"stopping {case.stack.name}")
        finally:
            _tidy(directory, configs)

    def measure(self, batch: Batch, interrupts: Interrupts) -> None:
        """Make the trials of a batch; a deployment that dies is brought up again for the rest."""
        folder, left = self.journal.folder, list(batch.measurements)
        while left:
            if wrong := self._ledger.wrong_answers(batch):
                return self._runner.fail(left, wrong, folder.directory / CHECKS_FILE)
            directory, configs = _new_directory(folder.raw, batch), folder.configs / batch.name
            try:
                with self._up(batch.case, directory, configs, interrupts) as running:
                    self._learn(batch, running, directory)
                    if self._gives_right_answers(batch, running):
                        self._runner.measure(left, running)
            except GlobalFault:
                raise
            except DeploymentError as error:
                self._instrument.check_database(self._rows)
                return self._runner.fail(left, error.message, error.log or newest_log(directory / "logs"))
            except BenchError as error:
                self._check_refusal(batch.stack, str(error))
                return self._runner.fail(left, str(error), newest_log(directory / "logs"))
        return None

    def _check_refusal(self, stack: str, reason: str) -> None:
        """Raise GlobalFault when another stack could not be brought up for the very same reason."""
        first = self._refused.setdefault(reason, stack)
        if first != stack:
            raise GlobalFault(f"neither {first} nor {stack} can be brought up: {reason}")

    def _learn(self, batch: Batch, running: Running, directory: Path) -> None:
        """Record the deployment's notes, the hashes of its rendered files, and the site's rows."""
        self.journal.note(running.notes)
        self.journal.configs(batch.name, directory)
        if self.journal.needs_rows:
            self.journal.rows(*self._instrument.rows(running))

    def _gives_right_answers(self, batch: Batch, running: Running) -> bool:
        """Whether the deployment gives right answers; it is verified the first time that it appears in the run."""
        if not self._ledger.is_verified(batch):
            started = time.monotonic()
            outcomes = self._instrument.verify(running, show_check(self._printer, f"{batch.name}: "))
            self.journal.folder.append_checks(outcomes)
            self._ledger.add_outcomes(batch.stack, batch.layer, outcomes)
            took = f"{time.monotonic() - started:.1f} s"
            self._printer.say(f"verified {batch.stack}, layer {batch.layer}: {table.count(outcomes)} in {took}")
            if not self._ledger.wrong_answers(batch):
                # The checks have grown the workers and filled the layer: restart both before the first trial.
                self._printer.show(f"restarting {batch.name}")
                running.empty_layer()
                self._instrument.settle(self._pinned, running)
        return not self._ledger.wrong_answers(batch)


def _new_directory(raw: Path, batch: Batch) -> Path:
    """A new directory for the files of the deployment, each time it is brought up."""
    # Not every server can work in a directory with the comma of a variant of two values.
    first = f"{batch.name}~r{batch.round}".replace(",", "+")
    names = itertools.chain([first], (f"{first}~{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := raw / name).exists())


def _tidy(directory: Path, configs: Path) -> None:
    """Store the rendered files once and leave the logs; remove the rest."""
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
        if path.name != "logs":
            shutil.rmtree(path, ignore_errors=True)
