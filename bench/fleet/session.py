"""A run on several hosts: begin or resume it, and make its trials. What is deployed there stays as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from bench import paths
from bench.catalog import catalog
from bench.errors import BenchError
from bench.fleet import loaders
from bench.fleet.host_record import PRODUCTION, file_of
from bench.fleet.trials import DeployedHosts, measure
from bench.load.engine import ClosedLoopTool, OpenLoopTool
from bench.load.openloop import VERSION
from bench.machine import facts
from bench.measure import guards
from bench.measure.begin import Request, ledger_of, make_plan, new_folder
from bench.measure.journal import Journal
from bench.measure.ledger import Ledger
from bench.measure.plan import Batch, Measurement, PlannedCase, record
from bench.measure.printer import Printer
from bench.measure.progress import RunProgress
from bench.measure.rounds import Rounds
from bench.measure.trial import Load, failed, now
from bench.production.inventory import DB, LOAD, Inventory, front_of
from bench.project.under_test import UnderTest
from bench.project.workload import resolve, workload
from bench.results.folder import Folder, Run, read_run
from bench.results.records import FORMAT, Environment, LoadTool, Plan, RunInfo
from bench.results.trials import Trial
from bench.serve.case import for_files
from bench.serve.database import Database

NOTES = (
    "the hosts were measured as they were deployed; the processor, cores and memory of the machine are those of the "
    "one that ran the command, which served nothing",
    "not verified: the checks of `verify` were not made; pages were compared before, during and after each load",
)
AS_DEPLOYED = "deployed"


class Session:
    """Makes what a ledger has left."""

    def __init__(self, journal: Journal, ledger: Ledger, site: DeployedHosts, done: tuple[Trial, ...] = ()):
        self.journal = journal
        self.progress = RunProgress(Printer(), journal.info, ledger.trials_left, done)
        self.ledger = ledger
        self._site = site
        self._load = replace(load_of(journal.info.plan), live=self.progress.live)
        self._thirds = [trial.thirds for trial in done if trial.thirds]

    def go(self) -> int:
        """Make all that is left; returns the exit status: 1 when a trial failed or nothing was measured, else 0."""
        with self.progress.printer:
            self.progress.announce(self._load.tool.name, self.ledger, self.journal.folder.directory)
            ended_by = Rounds(self.ledger, self.journal, self.progress).go(self._measure)
            self.journal.finish(now(), ended_by)
            run = read_run(self.journal.folder.directory)
            self.progress.summarize(run, self.ledger.failures, self.ledger.voided)
            return 1 if self.ledger.failures or not run.is_measured else 0

    def _measure(self, batch: Batch) -> None:
        left = self.ledger.due(batch.measurements)
        while left:
            self.progress.start_trial(left[0].case, left[0].level, self._load.mode)
            trial = self._trial(left[0])
            if trial.status == "failed":
                self.journal.folder.require_space()
            self.journal.folder.append_trial(trial)
            self._thirds += [trial.thirds] if trial.thirds else []
            self.ledger.add(trial)
            self.progress.trial(trial, self.ledger.trials_left)
            left = self.ledger.due(left)

    def _trial(self, item: Measurement) -> Trial:
        load = replace(self._load, unsteadiness=guards.unsteadiness(self._thirds))
        try:
            addresses = self._addresses(item.case.workload)
        except BenchError as error:
            return failed(item, load, str(error))
        return measure(item, addresses, self._site, load, self.journal.folder)

    def _addresses(self, name: str) -> tuple[str, ...]:
        """The addresses of a workload, looked up once in a run."""
        if name not in self.journal.addresses:
            known, front = workload(self._site.project, name), self._site.front
            static = static_names(self._site) if any(step.startswith("static:") for step in known.steps) else {}
            static_url = self._site.project.names["static_url"]
            found = resolve(known, lambda path: front.get(path).decode(), static, static_url)
            self.journal.workload(name, found)
        return self.journal.addresses[name]


def planned(request: Request, site: DeployedHosts) -> tuple[RunInfo, Ledger]:
    """The run that `begin` would make; raises BenchError for what the hosts cannot be asked."""
    deployed, inventory = site.front.deployed, site.inventory
    plan = make_plan(replace(request, stacks=(deployed.stack,), layers=(deployed.layer,)))
    plan = replace(
        plan,
        sizes=(deployed.size,),
        database="postgresql" if inventory.of(DB) else AS_DEPLOYED,
        inventory=True,
    )
    hosts = inventory.of(LOAD)
    if not hosts:
        raise BenchError(f"{inventory.path}: no host is in group {LOAD}, which makes the load; name one there")
    if plan.mode == "closed":
        loaders.require_connections(min(plan.levels), len(hosts))
    cases = cases_of(plan, site.project)
    records = tuple(case.record for case in cases)
    info = RunInfo(FORMAT, request.command, now(), None, plan, records, (), (*NOTES, *_notes(inventory)))
    return info, ledger_of(cases, info)


def begin(request: Request, site: DeployedHosts) -> Session:
    """A new run, its folder made; raises BenchError when the front does not answer."""
    info, ledger = planned(request, site)
    site.front.get(site.project.ready)
    folder = Folder(request.to or new_folder())
    paths.must_be_plain(folder.directory)
    environment = _environment(info.plan, site.inventory)
    folder.create()
    folder.begin(info, environment)
    return Session(Journal(folder, info, environment), ledger, site)


def resume(directory: Path, site: DeployedHosts) -> Session:
    """The run in a folder, with what is left of it; raises BenchError when the hosts are not as they were.

    The front is asked first: if it does not answer, no trial could be made.
    """
    run = read_run(directory)
    require_same(directory, run, site)
    plan = run.info.plan
    ledger = ledger_of(cases_of(plan, site.project), run.info, run.trials)
    if run.info.finished_at and not ledger.left:
        raise BenchError(f"--resume {directory}: the run is complete; next: python -m bench report {directory}")
    site.front.get(site.project.ready)
    folder = Folder(directory)
    with folder.locked():
        folder.repair()
    return Session(Journal(folder, run.info, run.environment), ledger, site, run.trials)


def require_same(directory: Path, run: Run, site: DeployedHosts) -> None:
    """Raise BenchError unless the run was made on these hosts with what is deployed there now."""
    plan, deployed = run.info.plan, site.front.deployed
    if not plan.inventory:
        raise BenchError(f"--resume {directory}: it measured no hosts of an inventory; leave out --inventory")
    if (plan.stacks, plan.layers, plan.sizes) != ((deployed.stack,), (deployed.layer,), (deployed.size,)):
        began = f"{plan.stacks[0]} with layer {plan.layers[0]}"
        raise BenchError(f"--resume {directory}: it began with {began}, and the hosts have {deployed.words}")
    if run.environment.hosts != _groups(site.inventory):
        raise BenchError(f"--resume {directory}: it began with other hosts; begin a new run")


def cases_of(plan: Plan, project: UnderTest) -> tuple[PlannedCase, ...]:
    """A case for each workload."""
    (stack,), (layer,), (size,) = plan.stacks, plan.layers, plan.sizes
    case = for_files(project, stack, layer, catalog.read().values[PRODUCTION], size)
    case = replace(case, database=Database(plan.database))
    return tuple(PlannedCase(record(case, name), case) for name in plan.workloads)


def load_of(plan: Plan) -> Load:
    """How load is made in every trial: by the load tool of this project, which needs only Python on its hosts."""
    tool = ClosedLoopTool() if plan.mode == "closed" else OpenLoopTool()
    return Load(tool, "", int(plan.duration_s), 1, plan.mode, plan.replay, plan.guards or {})


def static_names(site: DeployedHosts) -> dict[str, str]:
    """The hashed name of every static file by its plain one, as the front has them."""
    host, path = front_of(site.inventory), f"{site.front.deployed.static_root}/staticfiles.json"
    (text,) = file_of(host, path)
    try:
        names: dict[str, str] = json.loads(text)["paths"]
    except (ValueError, KeyError):
        raise BenchError(f"{host.name}: {path} names no static files; run the playbook again") from None
    return names


def _groups(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    return {host.name: host.groups for host in inventory.hosts}


def _environment(plan: Plan, inventory: Inventory) -> Environment:
    tool = LoadTool(load_of(plan).tool.name, VERSION, fallback=False)
    return replace(facts.environment({}, tool), hosts=_groups(inventory))


def _notes(inventory: Inventory) -> list[str]:
    """What the hosts are, and those that do not make load alone."""
    named = ", ".join(f"{host.name} is {' and '.join(host.groups)}" for host in inventory.hosts)
    shared = [host.name for host in inventory.of(LOAD) if host.groups != (LOAD,)]
    also = f"; {' and '.join(shared)} makes load and serves, so that each takes time from the other" if shared else ""
    return [f"hosts: {named}{also}"]
