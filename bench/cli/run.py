"""Measure stacks under layers into a folder; --resume goes on with a run that was stopped."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import load
from bench.cli import options, run_inventory
from bench.cli.stops import until_stopped
from bench.errors import BenchError
from bench.figures import ratios
from bench.interrupt import Interrupts
from bench.measure import begin, replay
from bench.measure.begin import Request
from bench.measure.instrument import Instrument
from bench.measure.printer import Printer, say
from bench.measure.progress import RunProgress, case_words
from bench.project import pythons
from bench.project.under_test import UnderTest
from bench.report import pick
from bench.report.arrange import arrange
from bench.results.folder import read_run, resume_command

# Arguments that a run stores and --resume may not change.
PLAN_ARGUMENTS = (
    *("stack", "layer", "workload", "level", "rate", "rounds", "duration", "size", "tool", "to"),
    *("env", "set", "python", "margin", "guard", "capacity", "until", "budget"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `run`."""
    _add_cases(parser)
    _add_load(parser)
    options.add_folder(parser, "run")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and how long it takes; start nothing")
    parser.add_argument("--keep-going", action="store_true", help="go on when other programs void trial after trial")
    parser.add_argument(
        "--margin",
        type=options.between(0, 0.99, "a share such as 0.05"),
        metavar="SHARE",
        help=f"ignore smaller differences (default: {ratios.MARGIN})",
    )
    options.add_guard(parser)
    run_inventory.add_arguments(parser)


def _add_cases(parser: argparse.ArgumentParser) -> None:
    several = options.REPEATABLE
    options.add_stacks(
        parser, "--stack", action="append", metavar="S", help="a stack of `list`" + several.format(options.USUAL)
    )
    options.add_workload(parser, action="append")
    options.add_served(parser, layers=True, sizes=True, pythons=True)


def _add_load(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--level",
        action="append",
        type=options.count,
        metavar="N",
        help="connections" + options.REPEATABLE.format(begin.LEVEL),
    )
    parser.add_argument(
        "--rate",
        action="append",
        type=replay.rate,
        metavar="N",
        help="requests a second instead (repeatable); x1: as recorded",
    )
    parser.add_argument(
        "--capacity",
        metavar="LIMIT",
        help="find the highest rate within a latency: p95=200ms",
    )
    _add_rounds(parser)
    parser.add_argument(
        "--duration",
        type=options.count,
        metavar="SEC",
        help=f"of a trial (default: {begin.DURATION_S}; {begin.CAPACITY_DURATION_S} with --capacity)",
    )
    parser.add_argument(
        "--tool",
        choices=load.CHOICES,
        metavar="T",
        help="wrk, ab or siege (default: the best that is installed)",
    )


def _add_rounds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        type=options.count,
        metavar="R",
        help=f"trials of each case (default: {begin.ROUNDS}; until decided {begin.ROUNDS_UNTIL_DECIDED})",
    )
    parser.add_argument(
        "--until",
        choices=["decided"],
        metavar="decided",
        help="drop cases that cannot win, until one leads or all tie",
    )
    parser.add_argument(
        "--budget",
        type=options.seconds,
        metavar="TIME",
        help="begin no round after it, such as 3m; two are made",
    )


def main(args: argparse.Namespace, instrument: Instrument | None = None) -> int:
    """Measure; returns 0, 1 when a case failed or nothing was measured, 130 or 143 when stopped by a signal."""
    if args.resume:
        _check_resumable(args)
    if args.dry_run and args.resume:
        raise BenchError("--dry-run shows the plan of a new run; leave out --resume")
    given = instrument.project if instrument else options.project_of(args)
    project = begin.project_of(args.resume, given) if args.resume else given
    instrument = instrument or Instrument(project)
    if args.inventory:
        return run_inventory.main(args, _request(args, project))
    if args.dry_run:
        return _print_plan(_request(args, project), instrument)
    if args.resume:
        session = begin.resume(args.resume, args.database, instrument)
    else:
        session = begin.begin(_request(args, project), instrument)
    folder, info = session.journal.folder, session.journal.info

    def go(interrupts: Interrupts) -> int:
        status = session.go(interrupts, args.keep_going)
        _answer(folder.directory)
        return status

    with folder.locked():
        then = f"resume with: {resume_command(folder.directory, info)}"
        return until_stopped("run", folder.directory, go, then, busy=f"{then}, or now with --keep-going")


def _answer(directory: Path) -> None:
    """Print what to pick, as the report says it."""
    run = read_run(directory)
    if run.is_measured:
        for line in pick.last_lines(arrange(run)):
            say(line)


def _print_plan(request: Request, instrument: Instrument) -> int:
    """Print what a new run would do, without starting or writing anything."""
    new = begin.planned(request, instrument)
    for case in new.info.cases:
        say(f"case: {case_words(case)}")
    RunProgress(Printer(), new.info, new.ledger.trials_left).announce(new.load.tool.name, new.ledger)
    return 0


def _check_resumable(args: argparse.Namespace) -> None:
    for name in PLAN_ARGUMENTS:
        if getattr(args, name) not in (None, []):
            raise BenchError(f"--resume takes its plan from {args.resume}; leave out --{name}")


def _request(args: argparse.Namespace, project: UnderTest) -> Request:
    return Request(
        project=project,
        stacks=_unique(args.stack),
        layers=_unique(args.layer),
        workloads=_unique(args.workload),
        levels=_unique(args.level),
        rates=_unique(args.rate),
        rounds=args.rounds,
        duration_s=args.duration,
        sizes=_unique(args.size),
        database=args.database,
        tool=args.tool,
        env=tuple(args.env),
        changes=tuple(args.set),
        pythons=pythons.choose(_unique(args.python)),
        margin=args.margin,
        guards=tuple(args.guard or ()),
        capacity=args.capacity or "",
        until=args.until,
        budget_s=args.budget,
        to=args.to,
        command=tuple(without_password(word) for word in ("python", "-m", "bench", *sys.argv[1:])),
    )


def _unique(values: Iterable[Any] | None) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values or ()))


def without_password(word: str) -> str:
    """A word of a command line; of a URL in it without user and password."""
    return re.sub(r"://[^/@\s]*@", "://...@", word)
