"""This machine as the test bed of a run: serve a case, verify it the first time, and load it with a load tool.

Costs of the load are sampled, including the cost of sampling, and the state after the load is recorded.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from bench.errors import BenchError, DeploymentError, GlobalFault
from bench.interrupt import Interrupts
from bench.measure.load import LoadError, LoadJob
from bench.measure.records.folder import CHECKS_FILE
from bench.measure.records.records import Plan, served_words
from bench.measure.records.trials import Condition, Costs, Evidence, Trial
from bench.measure.run import guards, load_process, machine_facts, queries, ref_pages, workload
from bench.measure.run.guards import Observed
from bench.measure.run.load_process import TrialError, newest_log
from bench.measure.run.plan import Deployment, Measurement, Resolve, recorded
from bench.measure.run.progress import RunProgress
from bench.measure.run.session import Journal, TestBed
from bench.measure.run.trial import BodyChecker, LoadSettings, TrialLoad, identity_of, measure
from bench.serve.catalog import catalog
from bench.serve.deployment import connections, database, deployment, survey
from bench.serve.deployment.case import Case, resolve
from bench.serve.deployment.database import Database
from bench.serve.deployment.deployment import Running
from bench.serve.machine import cpu_affinity, http
from bench.serve.machine.processes import Interference, Sampler, Usage, machine_load
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest
from bench.verify import summary
from bench.verify.outcome import Outcome
from bench.verify.suite import Selection
from bench.verify.verifier import Verifier

# Time for a load tool, after the load, to wait for the last responses and to add up.
GRACE_S = 10
# Time for a site to respond again after a load.
COME_BACK_S = 5.0
POLL_S = 0.05
WORKERS = "worker_cpu_seconds"


class TrialBed(TestBed[Measurement, Trial]):
    """A test bed of trials: how their load is made."""

    def __init__(self, journal: Journal, progress: RunProgress, load: LoadSettings):
        self.journal, self.progress, self.outlook, self.load = journal, progress, progress.outlook, load

    def keep(self) -> None:
        """Store the cases of a search, and the cases dropped from a race."""
        for case in self.outlook.tried_cases:
            self.journal.case(case)
        self.journal.drop(self.outlook.dropped)

    def failed(self, item: Measurement, reason: str, log: Path | None = None) -> Trial:
        """The record of a trial that failed before its load."""
        identity = identity_of(item, self.load.of(item))
        evidence = Evidence(log=self.journal.folder.relative(log))
        return Trial(**vars(identity), status="failed", reason=reason, evidence=evidence)

    def measured(
        self,
        item: Measurement,
        addresses: tuple[str, ...],
        project: UnderTest,
        loading: Callable[[LoadSettings, Path], TrialLoad],
    ) -> Trial:
        """Make a trial; `loading` makes the load, with files in a directory."""
        folder = self.journal.folder
        directory = folder.raw / item.key
        directory.mkdir(parents=True, exist_ok=True)
        return measure(item, addresses, project, loading(self.load.of(item), directory), folder)

    def addresses(
        self,
        project: UnderTest,
        name: str,
        get: Callable[[str], bytes],
        static_names: Callable[[], dict[str, str]],
        ref: str = "",
    ) -> tuple[str, ...]:
        """The addresses of a workload, looked up once in a run.

        get           fetches the page at a path, for its links
        static_names  served names of the static files by their plain ones
        ref           the label of the served commit, whose static files may differ
        """
        key = name
        if ref:
            key = f"{name}@ref={ref}"
        if key not in self.journal.addresses:
            known = workload.workload(project, name)
            static = {}
            if any(step.startswith("static:") for step in known.steps):
                static = static_names()
            resolved = workload.resolve(known, lambda path: get(path).decode(), static, project.names["static_url"])
            self.journal.workload(key, resolved)
        return self.journal.addresses[key]


class LocalTestBed(TrialBed):
    """This machine, and the site running on it; tests replace some methods.

    rows  the database; not recorded, because the URL may have a password
    """

    _running: Running
    _measured: list[Measurement]

    # Functions of other packages for any project.
    deployed = staticmethod(deployment.deployed)
    machine_load = staticmethod(machine_load)
    programs = staticmethod(survey.versions)
    page_differences = staticmethod(ref_pages.differences)

    def __init__(
        self,
        journal: Journal,
        progress: RunProgress,
        load: LoadSettings,
        project: UnderTest,
        rows: Database,
    ):
        super().__init__(journal, progress, load)
        self.project, self._rows = project, rows
        self._differing: dict[str, list[str]] = {}
        self.pinned = self.journal.environment.affinity
        again = served_words(journal.info.plan)
        self._verifier = Verifier(project, Selection(thorough=False, unsafe=False), options=again)

    @staticmethod
    def resolver(project: UnderTest, plan: Plan, rows: Database) -> Resolve:
        """Finds cases without limits, with the plan's values and environment; raises BenchError for unknown names."""
        return partial(resolve, project, database=rows, chosen=catalog.read().of_user(plan.changes, plan.env))

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Have the database for this run only, and warn when the machine is busy beyond the guard's bound."""
        self.check()
        with self.exclusive_database():
            bound = self.load.bounds.get("interference")
            if bound is not None and self.outlook.left:
                self.progress.warn_of_load(self.machine_load(), bound)
            self._compare_refs()
            yield

    def _compare_refs(self) -> None:
        """Print the pages that differ between commits of the project."""
        info, printer = self.journal.info, self.progress.printer
        if len(info.plan.refs or {}) < 2:
            return
        cases: dict[str, Case] = {}
        for planned in recorded(info.cases, self.resolver(self.project, info.plan, self._rows)):
            cases.setdefault(planned.served.stack.ref, planned.served)
        self._differing = self.page_differences(list(cases.values()), info.plan.workloads, printer.show)
        for note in self.journal.note(chain.from_iterable(self._differing.values())):
            printer.say(f"note: {note}")

    def exclusive_database(self) -> AbstractContextManager[None]:
        """The database for this process only, as long as the context lasts."""
        return database.in_use(self.project, self._rows, is_exclusive=True)

    def check(self) -> None:
        """Raise GlobalFault if a database named by the user cannot be used; others are checked later."""
        check_database(self.project, self._rows)

    def busy(self) -> str:
        """The share of the machine used by other processes, and the busiest of them."""
        return self.machine_load().words

    def verify(self, running: Running) -> list[Outcome]:
        """The outcomes of all quick checks of the suite."""
        printer, words = self.progress.printer, f"{running.case.stack.name}, layer {running.case.layer_name}: "
        printer.show(f"{words}rendering its pages")
        return self._verifier.verify(running, summary.show_check(printer, words))

    def queries_per_request(self, item: Measurement, addresses: tuple[str, ...]) -> float | None:
        """Database queries of a request, on average; None if they cannot be counted."""
        return queries.per_request(self._running, item.case, addresses)

    def static_names(self) -> dict[str, str]:
        """Collected names of the static files by their plain ones."""
        return commands.static_names(self._running.case.project)

    def rows(self, running: Running) -> tuple[int | None, int | None]:
        """Number of rows of the project, and their seed; None if unknown."""
        return commands.rows(self.project, running.env["DATABASE_URL"], self.project.worker())

    def settle(self, running: Running) -> None:
        """Move the processes to their cores: services to theirs, the others to the stack's."""
        services = catalog.read().services
        for name, pid in running.pids.items():
            group = cpu_affinity.STACK
            if name in services:
                group = cpu_affinity.SERVICES
            cpu_affinity.move(self.pinned, group, [pid])

    @contextmanager
    def up(self, deployment: Deployment, directory: Path, interrupts: Interrupts) -> Iterator[None]:
        """Bring the case up on its cores, record its facts, and verify it.

        Raises BenchError also for wrong responses, without bringing the case up if they are known.
        """
        began, name = time.monotonic(), (deployment.stack, deployment.layer)
        was_verified = self.outlook.verified.knows(*name)
        self._must_be_right(deployment)
        if self.journal.info.plan.same_responses and (differs := self._differing.get(deployment.case.stack.ref)):
            raise BenchError(differs[0])
        show = self.progress.printer.show
        with self.deployed(deployment.case, run_dir=directory, progress=show) as running:
            self._running, self.is_usable, self._measured = running, True, []
            with interrupts.deferred_at_end():
                self.settle(running)
                self.journal.note(running.notes)
                self.journal.configs(deployment.name, directory)
                self.journal.rows(lambda: self.rows(running))
                if not was_verified:
                    self._verify(deployment, running)
                yield
            show(f"stopping {deployment.stack}")
        if was_verified:
            self.outlook.was_up(deployment, time.monotonic() - began, self._measured)

    def _verify(self, deployment: Deployment, running: Running) -> None:
        """Verify a deployment that appears for the first time in the run."""
        began, stack, layer = time.monotonic(), deployment.stack, deployment.layer
        outcomes = self.verify(running)
        self.journal.folder.append(*outcomes)
        self.outlook.verified.add(stack, layer, outcomes)
        took = f"{time.monotonic() - began:.1f} s"
        self.progress.printer.say(f"verified {stack}, layer {layer}: {summary.count(outcomes)} in {took}")
        self._must_be_right(deployment)
        # The checks have grown the workers and filled the layer: restart both before the first trial.
        self.progress.printer.show(f"restarting {deployment.name}")
        running.empty_layer()
        self.settle(running)

    def _must_be_right(self, deployment: Deployment) -> None:
        wrong = self.outlook.verified.wrong(deployment.stack, deployment.layer)
        if wrong:
            raise DeploymentError(wrong, self.journal.folder.directory / CHECKS_FILE)

    def make(self, item: Measurement, attempt: int) -> Trial:
        """Make a trial; a failed one names a server that died."""
        running, project = self._running, self._running.case.project
        self._measured.append(item)
        try:
            get, static = partial(http.get, running.url), self.static_names
            addresses = self.addresses(project, item.case.workload, get, static, running.case.stack.ref)
        except BenchError as error:
            return self.failed(item, str(error), newest_log(running.logs))
        counted = self.queries_per_request(item, addresses)
        with cpu_affinity.pinned(self.pinned, cpu_affinity.LOAD):
            trial = self.measured(item, addresses, project, partial(HereLoad, running))
        if trial.status == "failed":
            self.check()
            if died := running.died():
                self.is_usable = False
                log = self.journal.folder.relative(died.log) or trial.evidence.log
                evidence = replace(trial.evidence, log=log)
                trial = replace(trial, reason=f"{trial.reason}; {died.message}", evidence=evidence)
        return replace(trial, condition=replace(trial.condition, queries_per_request=counted))


def check_database(project: UnderTest, rows: Database) -> None:
    """Raise GlobalFault if a database named by the user cannot be used; others are checked later."""
    if rows.is_created:
        return
    try:
        path = database.sqlite_path(project, rows.url)
        if path is not None:
            database.check_sqlite(project, path, project.worker())
        commands.check(project, rows.url, {}, project.worker(), again=True)
    except BenchError as error:
        raise GlobalFault(f"the database cannot be used: {error}") from None


class Observer:
    """Samples a deployment from `start` to `stop`, then records its state with `record_effects`.

    Killed processes are counted from creation on, so including the warm-up.

    costs      costs of the servers between `start` and `stop`; None before
    condition  of the deployment, as far as observed
    """

    def __init__(self, running: Running):
        self.costs: Costs | None = None
        self._own_s: float | None = None
        self.condition = Condition(time_to_ready_s=round(running.ready_s, 3))
        self._running = running
        self._killed = running.oom_kills()
        self._sampler = Sampler(running.pids)
        self._connections = connections.of_site(running.case.project, running.env, running.pids.values())

    def note(self, **changes: Any) -> None:
        """Add to the condition."""
        self.condition = replace(self.condition, **changes)

    def start(self) -> None:
        """Begin, right before the load."""
        self._began, self._used = time.monotonic(), time.process_time()
        self._sampler.start()
        if self._connections:
            self._connections.watch()

    def stop(self) -> None:
        """End, right after the load."""
        if self.costs is not None:
            return
        self._ended = time.monotonic()
        usage = self._sampler.stop()
        if self._connections:
            self.note(database_connections_peak=self._connections.peak())
        lasted, self._own_s = time.monotonic() - self._began, time.process_time() - self._used
        costs: dict[str, Any] = {}
        for item in fields(Costs):
            if item.name != WORKERS:
                costs[item.name] = {name: getattr(used, item.name) for name, used in usage.items()}
        self.costs = Costs(**costs, worker_cpu_seconds=_workers(self._running.case, usage))
        restarts = None
        for name, used in usage.items():
            # A database starts and ends processes as requests come; a server's workers are there to stay.
            if name in self._running.servers and used.replaced is not None:
                restarts = (restarts or 0) + used.replaced
        self.note(
            memory_idle_bytes=dict(self._running.memory_idle_bytes),
            restarts=restarts,
            observer_share=round(self._own_s / (lasted * (psutil.cpu_count() or 1)), 5),
        )

    def cpu_seconds(self) -> list[float | None]:
        """CPU seconds of the instrument itself and of each server and service, as far as known."""
        return [self._own_s, *((self.costs and self.costs.cpu_seconds) or {}).values()]

    def record_effects(self) -> None:
        """Record the state left behind by the load; waits a moment for the deployment to respond."""
        deadline = time.monotonic() + COME_BACK_S
        while not (came_back := self._running.is_healthy()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if self._connections:
            with self._connections as counted:
                left = counted.left(self._ended)
                self.note(database_connections_left=left, database_connections_limit=counted.limit())
        oom_kills, killed = None, self._running.oom_kills()
        if killed is not None and self._killed is not None:
            oom_kills = killed - self._killed
        self.note(oom_kills=oom_kills, came_back=came_back)


def _workers(case: Case, usage: Mapping[str, Usage]) -> tuple[float, ...] | None:
    """CPU seconds of as many processes of the application server as it has workers, without its helpers.

    None without workers under a master: keep-alive connections stay with the worker that accepted them, and a
    single core does not show the cost.
    """
    name = re.escape(case.servers[0].name)
    instances = [of for instance, of in usage.items() if re.fullmatch(rf"{name}(-\d+)?", instance)]
    used = [of.cpu_seconds or 0.0 for of in instances]
    if len(instances) == 1:
        used = list(instances[0].below)
    workers = sorted(used, reverse=True)[: int(case.settings["processes"])]
    if len(workers) > 1:
        return tuple(workers)
    return None


class HereLoad(Observer):
    """The load of one trial by a load tool on this machine, and its costs; see `trial.TrialLoad`."""

    def __init__(self, running: Running, load: LoadSettings, directory: Path):
        super().__init__(running)
        self.load = load
        self.url = running.url
        self.get = partial(http.get, running.url)
        self.judge = guards.evaluate
        self._directory = directory

    def log(self) -> Path | None:
        return newest_log(self._running.logs)

    def warm_up(self, job: LoadJob) -> None:
        """Make load with stored output. Load tools count in whole seconds, so a shorter load is interrupted."""
        load, seconds = self.load, math.ceil(self.load.warmup_s)
        command = load.tool.command(load.program, replace(job, seconds=seconds, times=()))
        limit_s, after_s = seconds + GRACE_S, load.warmup_s
        load_process.run(command, job.connections, self._directory / "warmup", limit_s, interrupt_after_s=after_s)

    def timed(self, job: LoadJob, bodies: BodyChecker) -> Observed:
        """Run the load tool, sample the deployment, and record the state after the load."""
        tool = self.load.tool
        command = tool.command(self.load.program, job)
        limit_s = job.seconds + job.timeout_s + GRACE_S
        self.start()
        interference, tool_before = Interference(), load_process.processor_seconds()
        bodies.start()
        try:
            try:
                texts = load_process.run(command, job.connections, self._directory / "load", limit_s)
            finally:
                tool_s = load_process.processor_seconds() - tool_before
                bodies.stop()
                self.stop()
            others = interference.share([tool_s, *self.cpu_seconds()])
            figures = tool.parse(*texts).supported()
        except LoadError as error:
            raise TrialError(str(error), self._directory / "load.err") from None
        finally:
            self.record_effects()
        tool_cpu = round(tool_s / (figures.duration_s * (tool.threads(job) or machine_facts.cores())), 4)
        return Observed(figures, tool_cpu_share=tool_cpu, other_cpu_share=others)
