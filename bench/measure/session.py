"""The rounds of a run: each deployment is brought up, verified the first time, measured and taken down."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import paths
from bench.catalog import catalog, compose, manifest, values, workload
from bench.catalog.compose import Composition
from bench.catalog.survey import survey
from bench.catalog.values import environment
from bench.errors import BenchError, DeploymentError, GlobalFault
from bench.host import machine, pin
from bench.host.http import get
from bench.host.identity import worker
from bench.interrupt import Interrupts
from bench.measure import calibrate, guards, plan
from bench.measure.plan import Deployment, Measurement
from bench.measure.progress import Printer, RunProgress, case_words
from bench.measure.queries import QueryCounter
from bench.measure.trial import Load, failed, measure, newest_log, now
from bench.project import commands
from bench.results import stability
from bench.results.folder import CHECKS_FILE, Folder, read_run
from bench.results.records import Case, Environment, Outcome, RunInfo
from bench.results.trials import Trial
from bench.serve import database, deployment
from bench.serve.deployment import Running
from bench.verify import Selection, Verifier

# How many failed checks a reason names.
SHOWN = 3
CALIBRATION = "calibration"
# Share of the rows that may have come or gone since a run began: a check that was killed leaves a few behind.
MOST_OTHER_ROWS = 0.01
# How often a trial is made again that other processes disturbed.
AGAIN = 2


class Host:
    """What a run needs of the rest of the instrument.

    thorough  whether deployments are verified with the checks that take seconds too
    """

    def __init__(self, thorough: bool = False) -> None:
        self._verifier = Verifier(Selection(thorough=thorough))
        self._queries = QueryCounter()

    def compose(self, stack: str, layer: str) -> Composition | compose.Skip:
        """The stack with the layer, or why it cannot run here; raises BenchError for a name that does not exist."""
        return compose.compose(stack, layer)

    def deployed(self, stack: str, layer: str, *, env, changes, **how) -> AbstractContextManager[Running]:
        """The deployment, up as long as the context lasts."""
        return deployment.deployed(compose.must_compose(stack, layer, changes, env), **how)

    def verify(self, running: Running) -> list[Outcome]:
        """Every check of the suite; those left out are named as such."""
        return self._verifier.verify(running)

    def queries_per_request(self, running: Running, case: Case, addresses: tuple[str, ...]) -> float | None:
        """Database queries of a request to these addresses, on average; None when it cannot be told."""
        return self._queries.per_request(running, case.stack, case.layer, addresses)

    def static_names(self) -> dict[str, str]:
        """Collected names of the static files by their plain ones."""
        return commands.static_names()

    def rows(self, running: Running) -> tuple[int, int | None]:
        """How many rows the site holds, and from which seed they were made, None when that is not known."""
        told = json.loads(commands.manage(["siterows", "--json", "--seed"], running.env["DATABASE_URL"], worker()))
        seed = told.pop("seed")
        return sum(told.values()), seed

    def settle(self, pinned: pin.Cores | None, running: Running) -> None:
        """Move what is up to its cores: services to theirs, all else to the stack's."""
        services = catalog.read().services
        for name, pid in running.pids.items():
            pin.move(pinned, pin.SERVICES if name in services else pin.STACK, [pid])

    def calibration_stack(self) -> str | None:
        """The stack that shows what a load tool can do, None when none of them can run here."""
        known = catalog.read().stacks
        able = (name for name in calibrate.stacks() if name in known)
        return next((name for name in able if isinstance(self.compose(name, manifest.NO_LAYER), Composition)), None)

    def check_database(self, asked: str | None) -> None:
        """Raise GlobalFault when a database that the user named cannot be used; ours are seen to as they come up."""
        chosen = database.parse(asked)
        if not chosen.own:
            try:
                commands.manage(["siterows", "--json"], chosen.url, worker())
            except BenchError as error:
                raise GlobalFault(f"the database cannot be used: {error}") from None

    def programs(self, cases: Iterable[Case], database_label: str) -> dict[str, str]:
        """Versions of the servers and services of these cases, by name."""
        known = survey()
        found: dict[str, str | None] = {}
        services = {database_label}
        for stack, layer in dict.fromkeys((case.stack, case.layer) for case in cases):
            plain = stack.partition("@")[0]
            chain = known["stacks"][plain]["servers"]
            chain = chain + [server for name in layer.split("+") for server in known["layers"][name]["servers"]]
            found |= {server["name"]: server["version"] for server in chain}
            services |= {service.name for service in self.compose(stack, layer).services}
        if database_label == database.SQLITE:
            # A part of the very Python that runs the site.
            found[database.SQLITE] = sqlite3.sqlite_version
        found |= {name: about["version"] for name, about in known["services"].items() if name in services}
        return {name: version for name, version in found.items() if version}


@dataclass
class Run:
    """A run under way.

    made         trials already recorded
    asked        the database as `deployed` takes it, which may hold a password and is not recorded
    environment  of the run, which grows by the configurations as they are rendered
    """

    folder: Folder
    info: RunInfo
    load: Load
    host: Host
    asked: str | None
    environment: Environment
    made: tuple[Trial, ...] = ()
    checks: tuple[Outcome, ...] = ()

    def __post_init__(self) -> None:
        asked = self.info.plan
        self.tries = Counter(trial.trial_id for trial in self.made)
        last = {trial.trial_id: trial for trial in self.made}
        done = {name: trial for name, trial in last.items() if not self._is_due_again(trial)}
        self.schedule = []
        for item in plan.schedule(self.info.cases, asked.levels, asked.rounds, asked.order_seed or 0):
            if left := tuple(m for m in item.measurements if m.trial_id not in done):
                self.schedule.append(replace(item, measurements=left))
        remaining = sum(len(item.measurements) for item in self.schedule)
        self.printer = Printer()
        self.progress = RunProgress(self.printer, len(self.info.cases), asked.rounds, remaining, self.made)
        self.load = replace(self.load, live=self.progress.live)
        self.refused: dict[str, str] = {}
        self.pinned = self.environment.affinity
        self.failures = sum(trial.status == "failed" for trial in done.values())
        self.voided = sum(trial.status == "voided" for trial in done.values())
        self.addresses = self.folder.read_addresses()
        self.counted = False
        self.verified = {(check.stack, check.layer) for check in self.checks}
        self.wrong: dict[tuple[str, str], list[Outcome]] = {}
        for check in self.checks:
            if not check.ok:
                self.wrong.setdefault((check.stack, check.layer), []).append(check)

    def go(self, interrupts: Interrupts) -> int:
        """Measure all that is left; returns the exit status."""
        self._announce()
        self.host.check_database(self.asked)
        if self.schedule and "ceiling" in self.load.bounds:
            self._calibrate(interrupts)
        for item in self.schedule:
            self._deployment(item, interrupts)
        self.info = replace(self.info, finished_at=now())
        self.folder.write_info(self.info)
        self._say_how_stable()
        trials = len(self.info.cases) * len(self.info.plan.levels) * self.info.plan.rounds
        if self.failures:
            self.printer.say(f"{self.failures} of {trials} trials failed")
        if self.voided:
            self.printer.say(f"{self.voided} of {trials} trials voided: guards do not trust them")
        self.printer.say(f"results in {self.folder.directory}; next: python -m bench report {self.folder.directory}")
        return 1 if self.failures else 0

    def _say_how_stable(self) -> None:
        trials = read_run(self.folder.directory).trials
        for case in self.info.cases:
            rated = stability.rate(trial for trial in trials if trial.case_id == case.case_id)
            if rated.rating:
                why = f": {', '.join(rated.reasons)}" if rated.reasons else ""
                self.printer.say(f"stability of {case_words(case)}: {rated.rating}{why}")

    def _announce(self) -> None:
        trials = sum(len(item.measurements) for item in self.schedule)
        self.printer.say(f"{len(self.info.cases)} cases, {trials} trials to make by {self.load.tool.name}")
        self.printer.say(f"results go to {self.folder.directory}")
        for skip in self.info.skips:
            self.printer.say(f"skipped: {skip.stack} with layer {skip.layer}: {skip.reason}")
        for note in self.info.notes:
            self.printer.say(f"note: {note}")

    def _calibrate(self, interrupts: Interrupts) -> None:
        """Learn what the load tool can do at most, once in a run."""
        path = self.folder.raw / f"{CALIBRATION}.json"
        found = calibrate.read(path)
        stack = self.host.calibration_stack()
        if found is None and stack is not None:
            directory = self.folder.raw / CALIBRATION
            shutil.rmtree(directory, ignore_errors=True)
            kinds = {catalog.read().workload(name).keep_alive for name in self.info.plan.workloads}
            try:
                with (
                    interrupts.released_at_end(),
                    self._up(stack, manifest.NO_LAYER, "unlimited", directory) as running,
                ):
                    try:
                        self.host.settle(self.pinned, running)
                        with pin.on(self.pinned, pin.LOAD):
                            name = self.host.static_names()[calibrate.FILE]
                            found = calibrate.ceilings(running, name, self.load, kinds, directory)
                    finally:
                        interrupts.hold()
                calibrate.write(path, found)
            except GlobalFault:
                raise
            except BenchError as error:
                self._note([f"the load tool was not calibrated: {error}"])
            finally:
                _tidy(directory, directory / "logs" / "conf", keep=("reused", "new"))
        if found:
            self.load = replace(self.load, ceilings=found)
            most = ", ".join(
                f"{ceiling:,.0f} requests/s {'on kept' if kept else 'on new'} connections"
                for kept, ceiling in found.items()
            )
            self.printer.say(f"{self.load.tool.name} could make {most} at most with each core it keeps busy")

    def _up(self, stack: str, layer: str, size: str, directory: Path) -> AbstractContextManager[Running]:
        """The deployment as this run wants it."""
        asked = self.info.plan
        return self.host.deployed(
            stack,
            layer,
            database=self.asked,
            size=size,
            run_dir=directory,
            env=environment(list(asked.env)),
            changes=values.parse_changes(list(asked.changes)),
        )

    def _deployment(self, item: Deployment, interrupts: Interrupts) -> None:
        """Make the measurements of a deployment; when it dies on the way, it is brought up again for the rest."""
        left = list(item.measurements)
        while left:
            if wrong := self.wrong.get((item.stack, item.layer)):
                self._fail(left, _wrong_answers(wrong), self.folder.directory / CHECKS_FILE)
                return
            directory = self._new_directory(item)
            try:
                self._bring_up(item, left, directory, interrupts)
            except GlobalFault:
                raise
            except DeploymentError as error:
                self.host.check_database(self.asked)
                self._fail(left, error.message, error.log or newest_log(directory / "logs"))
                return
            except BenchError as error:
                self._same_everywhere(item, str(error))
                self._fail(left, str(error), newest_log(directory / "logs"))
                return
            finally:
                _tidy(directory, self.folder.configs / item.name)

    def _same_everywhere(self, item: Deployment, reason: str) -> None:
        """Raise GlobalFault when another stack could not be brought up for the very same reason."""
        first = self.refused.setdefault(reason, item.stack)
        if first != item.stack:
            raise GlobalFault(f"neither {first} nor {item.stack} can be brought up: {reason}")

    def _new_directory(self, item: Deployment) -> Path:
        """Where the deployment keeps its files; each time it is brought up it gets a directory of its own."""
        # The comma in a variant of two values is a sign that not every server takes.
        first = f"{item.name}~r{item.round}".replace(",", "+")
        names = itertools.chain([first], (f"{first}~{number}" for number in itertools.count(2)))
        return next(path for name in names if not (path := self.folder.raw / name).exists())

    def _bring_up(self, item: Deployment, left: list[Measurement], directory: Path, interrupts: Interrupts) -> None:
        deployed = self._up(item.stack, item.layer, item.size, directory)
        with interrupts.released_at_end(), deployed as running:
            try:
                self.host.settle(self.pinned, running)
                self._note(running.notes)
                self._hash_configs(item, directory)
                self._count_rows(running)
                if self._verify(item, running):
                    self._measure(left, running)
            finally:
                # Now all is taken down, which no signal may cut short.
                interrupts.hold()

    def _note(self, notes: list[str]) -> None:
        """Keep what a deployment says of this machine; what it says of its stack is with its cases."""
        known = {*self.info.notes, *(note for case in self.info.cases for note in case.notes)}
        if new := [note for note in notes if note not in known]:
            self.info = replace(self.info, notes=(*self.info.notes, *new))
            self.folder.write_info(self.info)

    def _hash_configs(self, item: Deployment, directory: Path) -> None:
        """Keep the hashes of what was rendered for a deployment, once in a run."""
        known = self.environment.configs or {}
        if any(name.startswith(f"{item.name}/") for name in known):
            return
        own = {str(directory.absolute()): "RUN", str(paths.VENV): "VENV", str(paths.PROJECT): "PROJECT"}
        hashes = machine.config_hashes(directory / "conf", own)
        found = {**known, **{f"{item.name}/{name}": digest for name, digest in hashes.items()}}
        self.environment = replace(self.environment, configs=found)
        self.folder.write_environment(self.environment)

    def _count_rows(self, running: Running) -> None:
        """Ask the site how many rows it has, once in a run; when it goes on they must be those it had."""
        if self.counted:
            return
        total, seed = self.host.rows(running)
        self.counted = True
        before = self.info.plan.rows_total
        if before is not None and (
            seed != self.environment.rows_seed or abs(total - before) > MOST_OTHER_ROWS * before
        ):
            raise GlobalFault(
                f"this is another database: {total:,} rows from seed {seed}, and the run began with {before:,} from "
                f"seed {self.environment.rows_seed}"
            )
        if before is None:
            self.environment = replace(self.environment, rows_seed=seed, rows_total=total)
            self.folder.write_environment(self.environment)
            self.info = replace(self.info, plan=replace(self.info.plan, rows_total=total))
            self.folder.write_info(self.info)

    def _addresses(self, name: str, running: Running) -> tuple[str, ...]:
        """The addresses of a workload, looked up once in a run and the same for every deployment."""
        if name not in self.addresses:
            found = workload.resolve(
                catalog.read().workload(name), lambda path: get(running.url, path).decode(), self.host.static_names()
            )
            self.addresses[name] = found
            self.folder.write_addresses(self.addresses)
        return self.addresses[name]

    def _verify(self, item: Deployment, running: Running) -> bool:
        """Whether the deployment gives right answers; it is asked the first time that it appears in the run."""
        key = (item.stack, item.layer)
        if key not in self.verified:
            started = time.monotonic()
            checks = self.host.verify(running)
            self.folder.append_checks(checks)
            self.verified.add(key)
            wrong = [check for check in checks if not check.ok]
            if wrong:
                self.wrong[key] = wrong
            left = sum(check.not_tried is not None for check in checks)
            declared = sum(check.declared is not None for check in checks)
            passed = f"{len(checks) - left - declared} checks passed"
            verdict = f"{len(wrong)} of {len(checks)} checks FAILED" if wrong else passed
            verdict += f", {declared} declared" if declared else ""
            verdict += f", {left} not tried" if left else ""
            self.printer.say(
                f"verified {item.stack}, layer {item.layer}: {verdict} in {time.monotonic() - started:.1f} s"
            )
            if not wrong:
                # What the checks asked for has grown the workers and filled the layer: the trials begin from new ones.
                running.empty_layer()
                self.host.settle(self.pinned, running)
        return key not in self.wrong

    def _measure(self, left: list[Measurement], running: Running) -> None:
        """Make the measurements one by one, taking each off the list; returns early when the deployment dies."""
        while left:
            item = left[0]
            self.progress.start_trial(item.case, item.level, self.load.mode)
            with pin.on(self.pinned, pin.LOAD):
                trial = self._undisturbed(item, running)
            if trial.status == "failed":
                self.host.check_database(self.asked)
            died = running.died() if trial.status == "failed" else None
            if died:
                log = self.folder.relative(died.log) or trial.log
                trial = replace(trial, reason=f"{trial.reason}; {died.message}", log=log)
            self._record(trial)
            left.pop(0)
            if died:
                return

    def _undisturbed(self, item: Measurement, running: Running) -> Trial:
        """The trial, made again when other processes disturbed it; what was voided so is recorded before."""
        while True:
            trial = self._trial(item, running)
            self.tries[trial.trial_id] += 1
            if not self._is_due_again(trial):
                return trial
            self.folder.append_trial(trial)
            self.printer.say(f"{trial.reason}: the trial is made again")
            kept = self.folder.raw / trial.trial_id
            kept.rename(kept.with_name(f"{kept.name}~void{self.tries[trial.trial_id]}"))

    def _is_due_again(self, trial: Trial) -> bool:
        return guards.disturbed(trial.guards or {}) and self.tries[trial.trial_id] <= AGAIN

    def _trial(self, item: Measurement, running: Running) -> Trial:
        try:
            addresses = self._addresses(item.case.workload, running)
        except BenchError as error:
            log = self.folder.relative(newest_log(running.logs))
            return failed(item, self.load, str(error), log)
        queries = self.host.queries_per_request(running, item.case, addresses)
        made = measure(item, addresses, running, self.load, self.folder)
        return replace(made, queries_per_request=queries)

    def _fail(self, left: list[Measurement], reason: str, log: Path | None = None) -> None:
        for measurement in left:
            self._record(failed(measurement, self.load, reason, self.folder.relative(log)))
        left.clear()

    def _record(self, trial: Trial) -> None:
        self.folder.append_trial(trial)
        self.failures += trial.status == "failed"
        self.voided += trial.status == "voided"
        self.progress.trial(trial)


def _wrong_answers(checks: list[Outcome]) -> str:
    """Which checks failed; what was expected and what came is in verify.jsonl."""
    names = ", ".join(check.check for check in checks[:SHOWN]) + (", ..." if len(checks) > SHOWN else "")
    return f"not measured, it gives wrong answers: {len(checks)} check{'s'[: len(checks) > 1]} failed: {names}"


def _tidy(directory: Path, configs: Path, keep: tuple[str, ...] = ()) -> None:
    """Keep the logs and, once, the rendered files of a deployment; remove its stored pages and the rest."""
    if not directory.is_dir():
        return
    if (directory / "conf").is_dir() and not configs.exists():
        shutil.copytree(directory / "conf", configs)
    for path in directory.iterdir():
        if path.name not in ("logs", *keep):
            shutil.rmtree(path, ignore_errors=True)
