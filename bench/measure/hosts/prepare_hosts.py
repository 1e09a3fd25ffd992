"""Prepare a run on several hosts, or the rest of one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.errors import BenchError
from bench.measure.hosts import loaders
from bench.measure.hosts.deployed_hosts import DeployedHosts
from bench.measure.hosts.hosts_test_bed import HostsTestBed
from bench.measure.load import Tool
from bench.measure.load.engine import CLOSED_LOOP, OPEN_LOOP
from bench.measure.load.openloop import VERSION
from bench.measure.records.folder import Run, read_run
from bench.measure.records.records import FORMAT, Environment, LoadTool, Plan, RunInfo
from bench.measure.run import guards, machine_facts
from bench.measure.run.plan import MeasuredCase, Request, make_plan, record
from bench.measure.run.prepare import Prepared
from bench.measure.run.session import now
from bench.measure.run.trial import LoadSettings
from bench.serve.catalog import catalog, values
from bench.serve.deployment.case import for_files
from bench.serve.deployment.database import Database
from bench.serve.production.inventory import DB, LOAD, Inventory
from bench.serve.project.opened import UnderTest

NOTES = (
    "the hosts were measured as deployed; processor, cores and memory are those of the machine that ran the "
    "command; it served nothing",
    "not verified: the checks of `verify` were not made; pages were compared before, during and after each load",
)
AS_DEPLOYED = "deployed"


def new_run(request: Request, site: DeployedHosts) -> Prepared:
    """A new run; raises BenchError for unsupported requests."""
    deployed, inventory = site.deployed, site.inventory
    plan = make_plan(replace(request, stacks=(deployed.stack,), layers=(deployed.layer,)))
    database = AS_DEPLOYED
    if inventory.of(DB):
        database = "postgresql"
    plan = replace(plan, sizes=(deployed.size,), database=database, inventory=True)
    hosts = inventory.of(LOAD)
    if not hosts:
        raise BenchError(f"{inventory.path}: no host is in group {LOAD}, which makes the load; name one there")
    if plan.mode == "closed":
        loaders.require_connections(min(plan.levels), len(hosts))
    records = tuple(case.record for case in cases_of(plan, site.project))
    notes = (*NOTES, *_notes(inventory), *guards.notes(request.guards))
    info = RunInfo(FORMAT, request.command, now(), None, plan, records, (), notes)
    return _prepared(site, info)


def stopped_run(directory: Path, site: DeployedHosts) -> Prepared:
    """The rest of the run in a folder; raises BenchError if the hosts have changed."""
    run = read_run(directory)
    _require_same(directory, run, site)
    return _prepared(site, run.info, run)


def _prepared(site: DeployedHosts, info: RunInfo, run: Run | None = None) -> Prepared:
    plan, cases = info.plan, cases_of(info.plan, site.project)
    # The built-in load tool, which needs only Python on its hosts.
    tool: Tool = OPEN_LOOP
    if plan.mode == "closed":
        tool = CLOSED_LOOP
    at_rate = None
    if plan.latency:
        at_rate = (OPEN_LOOP, "")
    load = LoadSettings(tool, "", int(plan.duration_s), 1, plan.mode, plan.replay, plan.guards or {}, at_rate=at_rate)

    def environment() -> Environment:
        # Without a response from the front, no trial can be made.
        site.get(site.project.ready)
        if run:
            return run.environment
        here = machine_facts.environment({}, LoadTool(tool.name, VERSION, fallback=False))
        return replace(here, hosts=_groups(site.inventory))

    return Prepared(
        info=info,
        cases=cases,
        tool=tool.name,
        environment=environment,
        bed=partial(HostsTestBed, load=load, site=site),
        before=run,
    )


def _require_same(directory: Path, run: Run, site: DeployedHosts) -> None:
    """Raise BenchError unless the run was made on these hosts with their current deployment."""
    plan, deployed = run.info.plan, site.deployed
    if not plan.inventory:
        raise BenchError(f"--resume {directory}: it measured no hosts of an inventory; leave out --inventory")
    if (plan.stacks, plan.layers, plan.sizes) != ((deployed.stack,), (deployed.layer,), (deployed.size,)):
        began = f"{plan.stacks[0]} with layer {plan.layers[0]}"
        raise BenchError(f"--resume {directory}: it began with {began}, and the hosts have {deployed.words}")
    if run.environment.hosts != _groups(site.inventory):
        raise BenchError(f"--resume {directory}: it began with other hosts; begin a new run")


def cases_of(plan: Plan, project: UnderTest) -> tuple[MeasuredCase, ...]:
    """A case for each workload."""
    (stack,), (layer,), (size,) = plan.stacks, plan.layers, plan.sizes
    case = for_files(project, stack, layer, catalog.read().values[values.PRODUCTION], size)
    case = replace(case, database=Database(plan.database))
    return tuple(MeasuredCase(record(case, name), case) for name in plan.workloads)


def _groups(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    return {host.name: host.groups for host in inventory.hosts}


def _notes(inventory: Inventory) -> list[str]:
    """Notes on the hosts, and on hosts that make load and do something else."""
    named = ", ".join(f"{host.name} is {' and '.join(host.groups)}" for host in inventory.hosts)
    shared = [host.name for host in inventory.of(LOAD) if host.groups != (LOAD,)]
    also = ""
    if shared:
        also = f"; {' and '.join(shared)} makes load and serves, so that each takes time from the other"
    return [f"hosts: {named}{also}"]
