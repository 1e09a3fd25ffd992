"""The rounds of a run: each deployment is brought up, verified the first time, measured and taken down."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import compose, deployment, listing, plan, results, site, sizes, stability, values, workload
from bench.compose import Composition
from bench.deployment import Running
from bench.errors import BenchError, DeploymentError
from bench.identity import worker
from bench.interrupt import Interrupts
from bench.plan import Deployment, Measurement
from bench.progress import Progress, say
from bench.queries import QueryCounter
from bench.results import Case, Check, Folder, RunInfo, Trial
from bench.trial import Load, failed, measure, newest_log, now
from bench.up import environment
from bench.verify import Verifier
from bench.visit import get

# How many failed checks a reason names.
SHOWN = 3


class Host:
    """What a run needs of the rest of the instrument.

    thorough  whether deployments are verified with the checks that take seconds too
    """

    def __init__(self, thorough: bool = False) -> None:
        self._verifier = Verifier(thorough=thorough)
        self._queries = QueryCounter()

    def compose(self, stack: str, layer: str) -> Composition | compose.Skip:
        """The stack with the layer, or why it cannot run here; raises BenchError for a name that does not exist."""
        return compose.compose(compose.stack(stack), compose.layers(layer))

    def deployed(self, stack: str, layer: str, **how) -> AbstractContextManager[Running]:
        """The deployment, up as long as the context lasts."""
        return deployment.deployed(stack, layer, **how)

    def verify(self, running: Running) -> list[Check]:
        """Every check of the suite; those left out are named as such."""
        return [Check(**vars(item)) for item in self._verifier.verify(running)]

    def queries_per_request(self, running: Running, case: Case, addresses: tuple[str, ...]) -> float | None:
        """Database queries of a request to these addresses, on average; None when it cannot be told."""
        return self._queries.per_request(running, case.stack, case.layer, addresses)

    def static_names(self) -> dict[str, str]:
        """Collected names of the static files by their plain ones."""
        return site.static_names()

    def rows_total(self, running: Running) -> int | None:
        """How many rows the site holds."""
        printed = site.manage(["siterows", "--json"], running.env["DATABASE_URL"], worker())
        return sum(json.loads(printed).values())

    def programs(self, cases: Iterable[Case], database_label: str) -> dict[str, str]:
        """Versions of the servers and services of these cases, by name."""
        survey = listing.survey()
        found: dict[str, str | None] = {}
        services = {database_label}
        for stack, layer in dict.fromkeys((case.stack, case.layer) for case in cases):
            plain = stack.partition("@")[0]
            chain = survey["stacks"][plain]["servers"]
            chain = chain + [server for name in layer.split("+") for server in survey["layers"][name]["servers"]]
            found |= {server["name"]: server["version"] for server in chain}
            services |= {service.name for service in self.compose(stack, layer).services}
        found |= {name: about["version"] for name, about in survey["services"].items() if name in services}
        return {name: version for name, version in found.items() if version}


@dataclass
class Run:
    """A run under way.

    made    trials already recorded
    asked   the database as `deployed` takes it, which may hold a password and is not recorded
    """

    folder: Folder
    info: RunInfo
    load: Load
    host: Host
    asked: str | None
    made: tuple[Trial, ...] = ()
    checks: tuple[Check, ...] = ()

    def __post_init__(self) -> None:
        asked = self.info.plan
        done = {trial.trial_id for trial in self.made}
        self.schedule = []
        for item in plan.schedule(self.info.cases, asked.levels, asked.rounds, asked.order_seed or 0):
            if left := tuple(m for m in item.measurements if m.trial_id not in done):
                self.schedule.append(replace(item, measurements=left))
        remaining = sum(len(item.measurements) for item in self.schedule)
        self.progress = Progress(len(self.info.cases), asked.rounds, remaining, self.made)
        self.failures = sum(trial.status == "failed" for trial in self.made)
        self.addresses = self.folder.read_addresses()
        self.verified = {(check.stack, check.layer) for check in self.checks}
        self.wrong: dict[tuple[str, str], list[Check]] = {}
        for check in self.checks:
            if not check.ok:
                self.wrong.setdefault((check.stack, check.layer), []).append(check)

    def go(self, interrupts: Interrupts) -> int:
        """Measure all that is left; returns the exit status."""
        self._announce()
        for item in self.schedule:
            self._deployment(item, interrupts)
        self.info = replace(self.info, finished_at=now())
        self.folder.write_info(self.info)
        self._say_how_stable()
        if self.failures:
            say(f"{self.failures} of {len(self.info.cases) * self._trials_a_case()} trials failed")
        say(f"results in {self.folder.directory}; next: python -m bench report {self.folder.directory}")
        return 1 if self.failures else 0

    def _say_how_stable(self) -> None:
        trials = results.read_run(self.folder.directory).trials
        for case in self.info.cases:
            rated = stability.rate(trial for trial in trials if trial.case_id == case.case_id)
            if rated.rating:
                why = f": {', '.join(rated.reasons)}" if rated.reasons else ""
                size = "" if case.size == sizes.UNLIMITED else f", {case.size}"
                say(f"stability of {case.stack}, layer {case.layer}, {case.workload}{size}: {rated.rating}{why}")

    def _trials_a_case(self) -> int:
        return len(self.info.plan.levels) * self.info.plan.rounds

    def _announce(self) -> None:
        trials = sum(len(item.measurements) for item in self.schedule)
        say(f"{len(self.info.cases)} cases, {trials} trials to make by {self.load.tool.name}")
        say(f"results go to {self.folder.directory}")
        for skip in self.info.skips:
            say(f"skipped: {skip.stack} with layer {skip.layer}: {skip.reason}")
        for note in self.info.notes:
            say(f"note: {note}")

    def _deployment(self, item: Deployment, interrupts: Interrupts) -> None:
        """Make the measurements of a deployment; when it dies on the way, it is brought up again for the rest."""
        left = list(item.measurements)
        while left:
            if wrong := self.wrong.get((item.stack, item.layer)):
                self._fail(left, _wrong_answers(wrong), self.folder.directory / results.CHECKS_FILE)
                return
            directory = self._new_directory(item)
            try:
                self._bring_up(item, left, directory, interrupts)
            except DeploymentError as error:
                self._fail(left, error.message, error.log or newest_log(directory / "logs"))
                return
            except BenchError as error:
                self._fail(left, str(error), newest_log(directory / "logs"))
                return
            finally:
                _tidy(directory, self.folder.configs / item.name)

    def _new_directory(self, item: Deployment) -> Path:
        """Where the deployment keeps its files; each time it is brought up it gets a directory of its own."""
        first = f"{item.name}~r{item.round}"
        names = itertools.chain([first], (f"{first}~{number}" for number in itertools.count(2)))
        return next(path for name in names if not (path := self.folder.raw / name).exists())

    def _bring_up(self, item: Deployment, left: list[Measurement], directory: Path, interrupts: Interrupts) -> None:
        asked = self.info.plan
        deployed = self.host.deployed(
            item.stack,
            item.layer,
            database=self.asked,
            size=item.size,
            run_dir=directory,
            env=environment(list(asked.env)),
            changes=values.parse_changes(list(asked.changes)),
        )
        with interrupts.released_at_end(), deployed as running:
            try:
                self._note(running.notes)
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

    def _count_rows(self, running: Running) -> None:
        """Ask the site how many rows it has, once in a run."""
        if self.info.plan.rows_total is None:
            total = self.host.rows_total(running)
            self.info = replace(self.info, plan=replace(self.info.plan, rows_total=total))
            self.folder.write_info(self.info)

    def _addresses(self, name: str, running: Running) -> tuple[str, ...]:
        """The addresses of a workload, looked up once in a run and the same for every deployment."""
        if name not in self.addresses:
            found = workload.resolve(
                workload.named(name), lambda path: get(running.url, path).decode(), self.host.static_names()
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
            verdict = f"{len(wrong)} of {len(checks)} checks FAILED" if wrong else f"{len(checks) - left} checks passed"
            verdict += f", {left} not tried" if left else ""
            say(f"verified {item.stack}, layer {item.layer}: {verdict} in {time.monotonic() - started:.1f} s")
            if not wrong:
                # What the checks asked for has grown the workers and filled the layer: the trials begin from new ones.
                running.empty_layer()
        return key not in self.wrong

    def _measure(self, left: list[Measurement], running: Running) -> None:
        """Make the measurements one by one, taking each off the list; returns early when the deployment dies."""
        while left:
            trial = self._trial(left[0], running)
            died = running.died() if trial.status == "failed" else None
            if died:
                log = self.folder.relative(died.log) or trial.log
                trial = replace(trial, reason=f"{trial.reason}; {died.message}", log=log)
            self._record(trial)
            left.pop(0)
            if died:
                return

    def _trial(self, item: Measurement, running: Running) -> Trial:
        try:
            addresses = self._addresses(item.case.workload, running)
        except BenchError as error:
            log = self.folder.relative(newest_log(running.logs))
            return failed(item.case, item.level, item.round, self.load, str(error), log)
        queries = self.host.queries_per_request(running, item.case, addresses)
        made = measure(item.case, item.level, item.round, addresses, running, self.load, self.folder)
        return replace(made, queries_per_request=queries)

    def _fail(self, left: list[Measurement], reason: str, log: Path | None = None) -> None:
        for measurement in left:
            where = self.folder.relative(log)
            trial = failed(measurement.case, measurement.level, measurement.round, self.load, reason, where)
            self._record(trial)
        left.clear()

    def _record(self, trial: Trial) -> None:
        self.folder.append_trial(trial)
        self.failures += trial.status == "failed"
        self.progress.trial(trial)


def _wrong_answers(checks: list[Check]) -> str:
    """Which checks failed; what was expected and what came is in verify.jsonl."""
    names = ", ".join(check.check for check in checks[:SHOWN]) + (", ..." if len(checks) > SHOWN else "")
    return f"not measured, it gives wrong answers: {len(checks)} check{'s'[: len(checks) > 1]} failed: {names}"


def _tidy(directory: Path, configs: Path) -> None:
    """Keep the logs and, once, the rendered files of a deployment; remove its stored pages and the rest."""
    if not directory.is_dir():
        return
    if (directory / "conf").is_dir() and not configs.exists():
        shutil.copytree(directory / "conf", configs)
    for path in directory.iterdir():
        if path.name != "logs":
            shutil.rmtree(path, ignore_errors=True)
