"""Make and record the trials of one deployment after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bench.errors import BenchError, MachineBusy
from bench.machine import pin
from bench.machine.http import get
from bench.measure import guards
from bench.measure.instrument import Instrument
from bench.measure.journal import Journal
from bench.measure.ledger import MAX_DISTURBED, Ledger
from bench.measure.plan import Measurement
from bench.measure.progress import RunProgress
from bench.measure.trial import Load, failed, measure, newest_log
from bench.project import workload
from bench.results.trials import Trial
from bench.serve.database import Database
from bench.serve.deployment import Running


class TrialRunner:
    """Every trial that it makes is in the folder and in the ledger before the next one begins.

    load        how load is made
    keep_going  whether to go on when other programs keep the machine busy
    done        trials of a run that is resumed: they show its noise
    """

    def __init__(
        self,
        journal: Journal,
        ledger: Ledger,
        progress: RunProgress,
        load: Load,
        instrument: Instrument,
        rows: Database,
        done: Iterable[Trial] = (),
    ):
        self.load = replace(load, live=progress.live)
        self.keep_going = False
        self._journal = journal
        self._folder = journal.folder
        self._ledger = ledger
        self._progress = progress
        self._instrument = instrument
        self._rows = rows
        self._thirds = [trial.thirds for trial in done if trial.thirds]

    def measure(self, left: list[Measurement], running: Running) -> None:
        """Make the measurements one by one, until the list holds none that is due; returns early when the site dies.

        A trial that other processes disturbed is recorded and repeated. Raises MachineBusy when they disturb one trial
        after another.
        """
        left[:] = self._ledger.due(left)
        while left:
            item = left[0]
            self._progress.start_trial(item.case, item.level, self.load.mode)
            self.load = replace(self.load, unsteadiness=guards.unsteadiness(self._thirds))
            with pin.on(self._journal.environment.affinity, pin.LOAD):
                trial = self._trial(item, running)
            died = None
            if trial.status == "failed":
                self._instrument.check_database(self._rows)
                if died := running.died():
                    log = self._folder.relative(died.log) or trial.log
                    trial = replace(trial, reason=f"{trial.reason}; {died.message}", log=log)
            self._record(trial)
            left[:] = self._ledger.due(left)
            if self._ledger.is_disturbed and not self.keep_going:
                words = self._instrument.machine_load().words
                raise MachineBusy(
                    f"{MAX_DISTURBED} trials in a row were voided ({trial.reason}); now {words}; stop those programs"
                )
            if died:
                return

    def fail(self, left: list[Measurement], reason: str, log: Path | None) -> None:
        """Record all of the measurements as failed for this reason."""
        for item in self._ledger.due(left):
            self._record(failed(item, self.load, reason, self._folder.relative(log)))
        left.clear()

    def _record(self, trial: Trial) -> None:
        """Store the trial. A full disk fails no trial: it stops the run."""
        if trial.status == "failed":
            self._folder.require_space()
        self._folder.append_trial(trial)
        self._thirds += [trial.thirds] if trial.thirds else []
        if self._ledger.add(trial):
            self._progress.repeated(trial)
        else:
            self._progress.trial(trial, self._ledger.trials_left)

    def _set_aside(self, trial_id: str) -> None:
        """Rename the raw output of the trial's last attempt, so that the next one does not replace it."""
        raw = self._folder.raw / trial_id
        aside = raw.with_name(f"{raw.name}~void{self._ledger.attempts(trial_id)}")
        if self._ledger.attempts(trial_id) and raw.is_dir() and not aside.exists():
            raw.rename(aside)

    def _trial(self, item: Measurement, running: Running) -> Trial:
        try:
            addresses = self._addresses(item.case.workload, running)
        except BenchError as error:
            return failed(item, self.load, str(error), self._folder.relative(newest_log(running.logs)))
        self._set_aside(item.trial_id)
        queries = self._instrument.queries_per_request(running, item.case, addresses)
        made = measure(item, addresses, running, self.load, self._folder)
        return replace(made, queries_per_request=queries)

    def _addresses(self, name: str, running: Running) -> tuple[str, ...]:
        """The addresses of a workload, looked up once in a run."""
        if name not in self._journal.addresses:
            project = running.case.project
            names, static_url = self._instrument.static_names(), project.names["static_url"]
            known = workload.workload(project, name)
            found = workload.resolve(known, lambda path: get(running.url, path).decode(), names, static_url)
            self._journal.workload(name, found)
        return self._journal.addresses[name]
