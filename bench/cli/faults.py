"""Break or replace something while visitors ask, one fault at a time, and say what they noticed: requests failed, the
longest gap, seconds to recovery, wrong and stale answers. Results are a folder; --resume continues one."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import msgspec

from bench.catalog import catalog
from bench.cli import options
from bench.cli.run import without_password
from bench.cli.stops import until_stopped
from bench.errors import BenchError
from bench.faults import begin, judge, table
from bench.faults.begin import Request
from bench.faults.kinds import FAULTS
from bench.faults.plan import Ledger
from bench.faults.plan import words as plan_words
from bench.figures.columns import columns
from bench.interrupt import Interrupts
from bench.measure.printer import Printer, say
from bench.project import pythons
from bench.results.faults import GROUPS, read_faults
from bench.results.records import NO_LAYER, UNLIMITED

# Arguments that the folder stores and --resume may not change.
PLAN_ARGUMENTS = ("stacks", "layer", "fault", "rounds", "size", "env", "set", "python", "to", "guard")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `faults`."""
    options.add_stacks(
        parser, "stacks", nargs="*", metavar="STACK", help=f"stacks of `list` (default: {options.USUAL})"
    )
    fault = parser.add_argument(
        "--fault", action="append", metavar="F", help="a fault, or a group of them (repeatable; default: all)"
    )
    options.completed(fault, lambda _: (*FAULTS, *GROUPS))
    parser.add_argument("--list-faults", action="store_true", help="print the faults, and what happens")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and how long it takes; start nothing")
    parser.add_argument("--rounds", type=options.count, metavar="R", help="how often each fault is made (default: 1)")
    options.add_served(parser, layers=True, layer_default=NO_LAYER)
    options.add_write(parser, "make accounts")
    options.add_folder(parser, "faults")
    options.add_guard(parser, judge.BOUNDS)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Make the faults; returns 1 when one was not as expected or one asked for by its name was made nowhere, 130 or 143
    when stopped by a signal."""
    if args.list_faults:
        return _print_faults(args.json)
    if not args.resume:
        options.check_write(args)
    if args.dry_run:
        return _print_plan(args)
    printer = Printer(sys.stderr if args.json else None)
    if args.resume:
        _check_resumable(args)
        session, batches = begin.resume(args.resume, options.project_of(args), args.database, args.write, printer)
    else:
        session, batches = begin.begin(_request(args), printer)
    directory = session.folder.directory
    printer.say(plan_words(batches, session.ledger)[0])
    printer.say(f"results go to {directory}")

    def go(interrupts: Interrupts) -> int:
        session.go(batches, interrupts)
        return 0

    with printer, session.folder.locked():
        then = f"resume with: python -m bench faults --resume {directory}{' --write' if args.write else ''}"
        stopped = until_stopped("faults", directory, go, then)
    return stopped or _show(directory, args.json)


def _show(directory: Path, as_json: bool) -> int:
    """Print the outcomes; returns 1 when one was not as expected, or one asked for by its name was made nowhere."""
    run = read_faults(directory)
    outcomes = list(run.latest.values())
    if as_json:
        print(json.dumps([msgspec.to_builtins(outcome) | {"word": outcome.word} for outcome in outcomes], indent=2))
    else:
        say(table.as_text(outcomes))
        say(f"results in {directory}")
    missing = table.not_made(run.info.plan.named, outcomes)
    for line in missing:
        print(f"bench faults: {line}", file=sys.stderr)
    return 1 if missing or any(outcome.status in ("failed", "voided") for outcome in outcomes) else 0


def _print_plan(args: argparse.Namespace) -> int:
    """Print what would be made, without starting or writing anything."""
    if args.resume:
        raise BenchError("--dry-run shows the plan of new faults; leave out --resume")
    if args.json:
        raise BenchError("--dry-run prints lines for people; leave out --json")
    _, batches = begin.planned(_request(args))
    for line in plan_words(batches, Ledger()):
        say(line)
    return 0


def _print_faults(as_json: bool) -> int:
    faults = [{"fault": item.name, "group": item.group, "happens": item.title} for item in FAULTS.values()]
    if as_json:
        print(json.dumps(faults, indent=2))
    else:
        printer = Printer()
        printer.say("\n".join(columns([tuple(item.values()) for item in faults], width=printer.width)))
    return 0


def _check_resumable(args: argparse.Namespace) -> None:
    for name in PLAN_ARGUMENTS:
        value = getattr(args, name)
        if value not in (None, [], False) and not (name == "size" and value == UNLIMITED):
            raise BenchError(f"--resume takes its plan from {args.resume}; leave out {name}")


def _request(args: argparse.Namespace) -> Request:
    versions = options.one_python(args)
    return Request(
        project=options.project_of(args),
        stacks=pythons.variants(tuple(dict.fromkeys(args.stacks)) or catalog.read().usual_stacks, versions),
        layers=tuple(dict.fromkeys(args.layer or ())),
        faults=tuple(dict.fromkeys(args.fault or ())),
        rounds=args.rounds or 1,
        size=args.size,
        database=args.database,
        env=tuple(args.env),
        changes=tuple(args.set),
        guards=tuple(args.guard or ()),
        write=args.write,
        to=args.to,
        command=tuple(without_password(word) for word in ("python", "-m", "bench", *sys.argv[1:])),
    )
