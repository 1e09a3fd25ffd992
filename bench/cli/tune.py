"""Find the settings of a stack: how many processes, with how many threads, of which worker class.

They hold the most requests a second within a limit of latency, the size's memory and the database's connections. The
search stops where more gains nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench.cli import options
from bench.cli.run import without_password
from bench.cli.stops import until_stopped
from bench.figures.columns import columns, paragraph
from bench.interrupt import Interrupts
from bench.measure.begin import CAPACITY_DURATION_S, Request
from bench.measure.instrument import Instrument
from bench.measure.printer import Printer
from bench.measure.tune import Tuner, answer, values_text
from bench.measure.tuning import Answer, Tried
from bench.project import pythons
from bench.project.under_test import UnderTest
from bench.results.records import options_of

# Of those settings that are near the best.
ROUNDS = 3
VALUES_FILE = "values.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `tune`."""
    options.add_stacks(parser, "stack", metavar="STACK", help="a stack of `list`")
    parser.add_argument(
        "--limit",
        required=True,
        metavar="LIMIT",
        help="of the latency, such as p95=200ms or p99=1s",
    )
    options.add_workload(parser)
    options.add_served(parser)
    parser.add_argument(
        "--duration",
        type=options.count,
        metavar="SEC",
        help=f"seconds of a trial (default: {CAPACITY_DURATION_S})",
    )
    options.add_json(parser)
    options.add_to(parser)
    options.add_guard(parser)


def main(args: argparse.Namespace, instrument: Instrument | None = None) -> int:
    """Print what was tried and the answer; returns 0, 1 when no settings hold the limit, 130 or 143 by a signal."""
    printer = Printer(sys.stderr if args.json else sys.stdout)
    project = instrument.project if instrument else options.project_of(args)
    tuner = Tuner(_request(args, project), instrument or Instrument(project), printer)
    folder = tuner.session.journal.folder

    def go(interrupts: Interrupts) -> int:
        return _show(tuner, tuner.go(interrupts), args.json)

    with folder.locked():
        measured = f"what was measured is in {folder.directory}"
        return until_stopped("tune", folder.directory, go, "begin again", stopped=measured)


def _show(tuner: Tuner, done: list[Tried], as_json: bool) -> int:
    """Print what was tried and the answer, and write its values; returns 1 without an answer."""
    found = answer(tuner, done)
    path = tuner.session.journal.folder.directory / VALUES_FILE
    if found:
        path.write_text(values_text(tuner, found), "utf-8")
    if as_json:
        print(msgspec.json.encode(_as_json(tuner, done, found, path)).decode())
    else:
        _print(tuner, done, found, path)
    return 0 if found else 1


def _request(args: argparse.Namespace, project: UnderTest) -> Request:
    return Request(
        project=project,
        stacks=pythons.variants([args.stack], options.one_python(args)),
        layers=(args.layer,),
        workloads=(args.workload,) if args.workload else (),
        rounds=ROUNDS,
        duration_s=args.duration,
        sizes=(args.size,),
        database=args.database,
        env=tuple(args.env),
        changes=tuple(args.set),
        guards=tuple(args.guard or ()),
        capacity=args.limit,
        to=args.to,
        command=tuple(without_password(word) for word in ("python", "-m", "bench", *sys.argv[1:])),
    )


HEADS = ("settings", "requests/s", "lowest to highest", "rounds", "memory", "connections", "")


def _print(tuner: Tuner, done: list[Tried], found: Answer | None, path: Path) -> None:
    """One table and one sentence."""
    print()
    rows = [HEADS, *(item.cells(tuner.search.verdict(item, done)) for item in done)]
    rows += [(settings.words, *[""] * 5, f"not tried: {why}") for settings, why in tuner.search.too_large(done).items()]
    rows += [(stack, *[""] * 5, f"not tried: {why}") for stack, why in tuner.skipped.items()]
    print("\n".join(columns(rows)))
    print()
    width = Printer().width
    print("\n".join(paragraph(found.sentence if found else f"No settings hold {tuner.limit.words}.", width)))
    if found:
        print(f"next: python -m bench render {found.stack}{options_of(found.layer)} --values {path} --to DIR")


def _as_json(tuner: Tuner, done: list[Tried], found: Answer | None, path: Path) -> dict[str, Any]:
    return {
        "stack": tuner.stack,
        "limit": tuner.session.journal.info.plan.capacity,
        "answer": found.record() | {"values": str(path)} if found else None,
        "tried": [item.record() | {"verdict": tuner.search.verdict(item, done)} for item in done],
        "not_tried": [
            *({"settings": it.record(), "reason": why} for it, why in tuner.search.too_large(done).items()),
            *({"stack": stack, "reason": why} for stack, why in tuner.skipped.items()),
        ],
        "results": str(tuner.session.journal.folder.directory),
    }
