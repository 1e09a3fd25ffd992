"""Measure stacks under layers into a folder; --resume goes on with a stopped run."""

from __future__ import annotations

import argparse
import ssl

from bench.cli import measure_options, options, request_args, stops
from bench.errors import BenchError
from bench.interrupt import Interrupts
from bench.measure.hosts import prepare_hosts
from bench.measure.hosts.deployed_hosts import DeployedHosts
from bench.measure.records.folder import read_run, require_new
from bench.measure.report import write
from bench.measure.report.ref_comparison import compare_refs, next_step, no_verdict, not_compared, render
from bench.measure.run import guards, prepare, schedules
from bench.measure.run.local import LocalTestBed
from bench.measure.run.plan import Request
from bench.measure.run.prepare import Prepared
from bench.measure.run.progress import RunProgress, case_words, count_of
from bench.printer import Printer, say, working
from bench.serve.production import inventory
from bench.serve.project.opened import UnderTest
from bench.serve.project.pythons import choose
from bench.verify.hosts import host_record

OPTIONS = (
    *(options.STACKS, options.LAYERS, options.ALL, measure_options.WORKLOADS, options.SIZES, *options.PROJECT_SERVED),
    *(measure_options.REFS, measure_options.SAME_RESPONSES, options.INVENTORY),
    *measure_options.LOADS,
    *measure_options.STOPS,
    *(measure_options.OUTPUT, measure_options.RESUME, measure_options.DRY_RUN),
)

# Advice after a stop, if other programs kept the machine busy.
BUSY = "; on a machine that stays busy a new run with --guard interference=off --guard drift=off counts such trials"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `run`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace, local: type[LocalTestBed] = LocalTestBed) -> int:
    """Measure; returns 0, 1 when a case failed or nothing was measured, 130 or 143 when stopped by a signal.

    Raises BenchError also for a commit that --fail-if cannot judge.
    """
    prepared = _prepare(args, local)
    plan = prepared.info.plan

    outlook = prepared.outlook()
    replay = prepared.replay(schedules.of_plan(plan, prepared.cases, outlook))
    progress = RunProgress(Printer(), prepared.info, outlook)
    if args.dry_run:
        require_new(args.output)
        for case in prepared.info.cases:
            say(f"case: {case_words(case)}")
        progress.announce(prepared.tool)
        return 0
    if unnamed := options.unnamed(args, "--layer"):
        raise BenchError(f"without {unnamed} it measures {progress.scope}; name {unnamed}, or add --all")

    session = prepared.session(args.output, replay, progress)
    directory = session.journal.folder.directory

    def go(interrupts: Interrupts) -> int:
        progress.announce(prepared.tool, directory)
        session.go(interrupts, args.keep_going)
        run = read_run(directory)
        progress.summarize(run)
        if run.trials:
            document, _ = write.document([directory], directory / write.NAME)
            if document.warning:
                say(document.warning)
            for line in document.answer:
                say(line)
        compared = compare_refs(run)
        for line in render(compared, run.info.plan.margin):
            say(line)
        if count_of(run, "failed") or any(item.verdict in args.fail_if for item in compared):
            return 1
        if args.fail_if and (lacking := not_compared(run)):
            raise BenchError(f"--fail-if: {no_verdict(lacking)}; {next_step(run, lacking)}")
        return 0 if run.is_measured else 1

    return stops.run_until_stopped(session.journal, go, busy=BUSY)


def _prepare(args: argparse.Namespace, local: type[LocalTestBed]) -> Prepared:
    """The run of the command line: a new or a stopped one, on this machine or on hosts."""
    options.refuse(args, OPTIONS)
    if args.fail_if and len(args.ref) == 1:
        raise BenchError("--fail-if compares commits of the project: name two or more with --ref")
    with working("looking at the project"):
        project = request_args.project(args)
    if args.inventory:
        site = _deployed(args, project)
        if args.resume:
            return prepare_hosts.stopped_run(args.resume, site)
        return prepare_hosts.new_run(_request(args, project), site)
    if args.resume:
        return prepare.stopped_run(args.resume, args.database, project, bed=local)
    return prepare.new_run(_request(args, project), local)


def _request(args: argparse.Namespace, project: UnderTest) -> Request:
    return request_args.request(
        args,
        project,
        stacks=args.stack,
        layers=args.layer,
        pythons=choose(args.python),
        refs=args.ref,
        same_responses=args.same_responses,
        sizes=args.size,
        workloads=args.workload,
        levels=args.connections,
        rates=args.rate,
        capacity=args.capacity,
        tool=args.tool,
        duration_s=args.duration,
        rounds=args.rounds,
        until_decided=args.until_decided,
        budget_s=args.max_time,
        margin=args.margin,
        guards=guards.bounds(args.guard),
    )


def _deployed(args: argparse.Namespace, project: UnderTest) -> DeployedHosts:
    """The hosts to measure; raises BenchError for other deployments."""
    hosts = inventory.read(args.inventory)
    deployed = host_record.read(hosts)
    site = DeployedHosts(project, hosts, deployed, _trusted(inventory.front_of(hosts)))
    host_record.must_be(deployed, args.stack, args.layer)
    return site


def _trusted(front: inventory.Host) -> str:
    """The certificates in the front's file, named by the inventory; raises BenchError if empty."""
    if front.trust is None:
        return ""
    try:
        text = front.trust.read_text("utf-8")
        ssl.create_default_context().load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        why = "no certificates in PEM"
        if isinstance(error, OSError) and error.filename:
            why = error.strerror or why
        where = f"{inventory.TRUST} of {front.name} is {front.trust}"
        raise BenchError(f"{where}: {why}; name a file such as fullchain.pem") from None
    return text
