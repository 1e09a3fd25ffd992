"""Find the settings of a stack: how many processes, with how many threads, of which worker class.

The best settings serve the most requests a second within a latency limit, the size's memory and the database's
connections. The search stops when more processes or threads gain nothing.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench.cli import measure_options, options, request_args
from bench.cli.stops import run_until_stopped
from bench.columns import columns, paragraph
from bench.errors import BenchError
from bench.interrupt import Interrupts
from bench.measure.records.records import Plan, options_of, project_words
from bench.measure.run import guards, prepare, tuner
from bench.measure.run.local import LocalTestBed
from bench.measure.run.plan import CAPACITY_DURATION_S
from bench.measure.run.prepare import Prepared
from bench.measure.run.tuner import TuneProgress, Tuner
from bench.measure.run.tuning import Candidate
from bench.printer import Printer, working
from bench.words import command_line

# For settings near the best.
ROUNDS = 3
VALUES_FILE = "values.toml"

DURATION = replace(measure_options.DURATION, help=f"seconds of a trial (default: {CAPACITY_DURATION_S})")

OPTIONS = (
    *(options.STACK, options.LAYER, measure_options.WORKLOAD, options.SIZE, *options.PROJECT_SERVED),
    *(measure_options.CAPACITY, DURATION, measure_options.GUARD),
    *(measure_options.OUTPUT, measure_options.RESUME, options.JSON),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `tune`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace, local: type[LocalTestBed] = LocalTestBed) -> int:
    """Print the steps and the result; returns 0, 1 if no settings hold the limit, 130 or 143 after a signal."""
    stream = sys.stdout
    if args.json:
        stream = sys.stderr
    printer = Printer(stream)
    options.refuse(args, OPTIONS)
    if not args.resume and not (args.stack and args.capacity):
        raise BenchError("name a STACK and a limit of its latency, such as --capacity p95=200ms; or --resume DIR")
    prepared, tuner = _prepare(args, local)
    outlook = prepared.outlook()
    replay = prepared.replay(tuner.schedule(outlook))
    progress = TuneProgress(printer, prepared.info, outlook, tuner)

    session = prepared.session(args.output, replay, progress)
    directory = session.journal.folder.directory

    def go(interrupts: Interrupts) -> int:
        sought = f"the highest rate with {tuner.limit.words}"
        printer.say(f"tune {tuner.stack}, layer {tuner.layer}, {tuner.workload}: {sought}")
        printer.say(f"results go to {directory}")
        printer.show("looking at the database and the machine")
        session.go(interrupts)
        return _show(tuner, prepared.info.plan, directory, args.json)

    return run_until_stopped(session.journal, go)


def _prepare(args: argparse.Namespace, local: type[LocalTestBed]) -> tuple[Prepared, Tuner]:
    """The search of the command line: a new or a stopped one."""
    with working("looking at the project"):
        project = request_args.project(args)
    if args.resume:
        prepared = prepare.stopped_run(args.resume, args.database, project, "tune", local)
    else:
        workloads: tuple[str, ...] = ()
        if args.workload:
            workloads = (args.workload,)
        request = request_args.request(
            args,
            project,
            stacks=(options.one_stack(args),),
            layers=(args.layer,),
            sizes=(args.size,),
            workloads=workloads,
            capacity=args.capacity,
            duration_s=args.duration,
            rounds=ROUNDS,
            guards=guards.bounds(args.guard),
        )
        prepared = tuner.new_search(request, local)
    return prepared, Tuner(prepared, project, local)


def _show(tuner: Tuner, plan: Plan, directory: Path, as_json: bool) -> int:
    """Print the steps and the result, and write its values; returns 1 without a result."""
    chosen, path = tuner.search.chosen, directory / VALUES_FILE
    if chosen:
        path.write_text(tuner.values, "utf-8")
    if as_json:
        print(msgspec.json.encode(_as_json(tuner, str(plan.capacity), chosen, path)).decode())
    else:
        _print(tuner, chosen, path, plan)
    return 0 if chosen else 1


HEADS = ("settings", "requests/s", "lowest to highest", "rounds", "memory", "connections", "")


def _print(tuner: Tuner, chosen: Candidate | None, path: Path, plan: Plan) -> None:
    """One table, the recommendation, and its changes."""
    search = tuner.search
    print()
    rows: list[tuple[str, ...]] = [HEADS]
    for item in search.done:
        rows.append(item.cells(search.verdict(item)))
    skipped = {settings.words: why for settings, why in search.too_large.items()}
    for name, why in (skipped | tuner.skipped).items():
        rows.append((name, *[""] * 5, f"skipped: {why}"))
    print("\n".join(columns(rows)))
    print()
    print("\n".join(paragraph(tuner.sentence, Printer().width)))
    if chosen:
        stack = search.of(chosen.settings).stack
        print(f"next: {render_command(plan, stack, path)}")


def render_command(plan: Plan, stack: str, path: Path) -> str:
    """The command that renders a stack of a search with the values that it has found."""
    words = [stack, *options_of(plan.layers[0]), *project_words(plan), "--values", str(path)]
    return command_line("render", *words, "--output", "DIR")


def _as_json(tuner: Tuner, limit: str, chosen: Candidate | None, path: Path) -> dict[str, Any]:
    search, answer = tuner.search, None
    skipped = [{"settings": settings.record(), "reason": why} for settings, why in search.too_large.items()]
    skipped += [{"stack": stack, "reason": why} for stack, why in tuner.skipped.items()]
    if chosen:
        answer = chosen.record() | {
            "sentence": tuner.sentence,
            "instead_of": search.candidates[search.own.usual].record(),
            "no_difference": [item.settings.record() for item in search.tied],
            "values": str(path),
        }
    return {
        "stack": tuner.stack,
        "limit": limit,
        "answer": answer,
        "tried": [item.record() | {"verdict": search.verdict(item)} for item in search.done],
        "skipped": skipped,
        "results": str(path.parent),
    }
