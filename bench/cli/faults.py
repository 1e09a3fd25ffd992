"""Inject faults under load, one at a time, and report what visitors notice: failed requests, the longest gap, seconds
to recovery, wrong and stale responses. Results are a folder; --resume goes on with a stopped one."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.cli import argument_types, measure_options, options, request_args
from bench.cli.options import Option
from bench.cli.stops import run_until_stopped
from bench.columns import columns, paragraph
from bench.errors import BenchError
from bench.interrupt import Interrupts
from bench.measure.faults import judge, prepare_faults
from bench.measure.faults.kinds import FAULTS
from bench.measure.faults.prepare_faults import PreparedFaults
from bench.measure.faults.test_bed import FaultsProgress, FaultsTestBed
from bench.measure.records.fault_outcomes import GROUPS
from bench.measure.records.folder import read_faults, require_new
from bench.measure.report import page, write
from bench.measure.run import guards
from bench.measure.run.session import Session
from bench.printer import Printer, say, working
from bench.serve.catalog.names import NO_LAYER
from bench.words import case_name, plural

# Of what is printed at the end.
WIDTH = 80

FAULT = Option(
    ("--fault",),
    f"a fault, or a group: {', '.join(GROUPS)} (repeatable; default: all)",
    "faults",
    "FAULT",
    argument_types.name,
    many=True,
    usual=(),
    complete=lambda _: (*FAULTS, *GROUPS),
)
LIST_FAULTS = Option(("--list-faults",), "print the faults, and what happens", "faults", resumes=True)
ROUNDS = replace(measure_options.ROUNDS, help="number of times for each fault (default: 1)")
GUARD = measure_options.guard(judge.BOUNDS)

OPTIONS = (
    *(options.STACKS, replace(options.LAYERS, help=f"{options.LAYERS.help[:-1]}; default: {NO_LAYER})"), options.ALL),
    *(options.SIZE, *options.PROJECT_SERVED, options.ALLOW_WRITES, FAULT, LIST_FAULTS),
    *(ROUNDS, GUARD, measure_options.OUTPUT, measure_options.RESUME, measure_options.DRY_RUN, options.JSON),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `faults`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Make the faults; returns 1 if one had an unexpected outcome or a named one was made nowhere, 130 or 143 after a
    signal."""
    if args.list_faults:
        faults = [{"fault": it.name, "group": it.group, "happens": it.title} for it in FAULTS.values()]
        return options.print_names(faults, args.json)
    options.refuse(args, OPTIONS)
    options.check_writes(args)
    prepared = _prepare(args)
    if args.dry_run:
        require_new(args.output)
        for words in prepared.words:
            say(words)
        return 0
    if unnamed := options.unnamed(args):
        raise BenchError(f"without {unnamed} it makes {prepared.words[0]}; name {unnamed}, or add --all")

    stream, also = sys.stdout, ""
    if args.json:
        stream = sys.stderr
    if args.allow_writes:
        also = " --allow-writes"
    printer = Printer(stream)
    replay = prepared.replay()
    journal = prepared.journal(args.output, replay)
    bed, progress = FaultsTestBed(journal, printer, args.allow_writes), FaultsProgress(printer)
    session = Session(journal, replay, bed, progress, [outcome.key for outcome in prepared.recorded])

    def go(interrupts: Interrupts) -> int:
        printer.say(prepared.words[0])
        printer.say(f"results go to {journal.folder.directory}")
        for outcome in prepared.newly_skipped:
            journal.folder.append(outcome)
            progress.finish(outcome, again=False)
        session.go(interrupts, keep_going=True)
        return 0

    with printer:
        stopped = run_until_stopped(journal, go, also)
    return stopped or _show(journal.folder.directory, args.json, printer, also)


def _prepare(args: argparse.Namespace) -> PreparedFaults:
    """The faults of the command line: new ones, or the rest of a stopped run."""
    with working("looking at the project"):
        project = options.project_of(args)
    if args.resume:
        return prepare_faults.stopped_faults(args.resume, project, args.database)
    request = request_args.request(
        args,
        project,
        stacks=args.stack,
        layers=args.layer,
        pythons=options.one_python(args),
        sizes=(args.size,),
        rounds=args.rounds,
        guards=guards.bounds(args.guard, judge.BOUNDS),
    )
    return prepare_faults.new_faults(request, args.fault)


def _show(directory: Path, as_json: bool, printer: Printer, also: str) -> int:
    """Print the outcomes; returns 1 if one was unexpected, or a named fault was made nowhere.

    also  more words of the command that repeats discarded faults
    """
    run = read_faults(directory)
    outcomes = list(run.latest_outcomes.values())
    if as_json:
        print(json.dumps([msgspec.to_builtins(outcome) | {"word": outcome.word} for outcome in outcomes], indent=2))
    else:
        document, _ = write.document([directory], directory / write.NAME)
        for case in document.faults:
            rows = [(row.fault, page.fault_words(row)) for row in case.faults]
            say("\n".join(["", case_name(case.stack, case.layer), *columns(rows, "  ", WIDTH)]))
        for text in (*page.every_note(document), *document.answer):
            say("\n".join(["", *paragraph(text, WIDTH)]))
    if discarded := sum(outcome.status == "discarded" for outcome in outcomes):
        again = f"{run.resume_command()}{also}"
        printer.say(f"{discarded} of {plural(len(outcomes), 'fault')} discarded as unreliable; repeat with: {again}")
    if not as_json:
        say(f"results in {directory}")
    status = 0
    if any(outcome.status in ("failed", "discarded") for outcome in outcomes):
        status = 1
    for name in run.info.plan.named:
        its = [outcome for outcome in outcomes if outcome.fault == name]
        if its and all(outcome.status == "skipped" for outcome in its):
            reasons = "; ".join(dict.fromkeys(outcome.reason or "" for outcome in its))
            print(f"benchapp faults: {name} was made nowhere: {reasons}", file=sys.stderr)
            status = 1
    return status
