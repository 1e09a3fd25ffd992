"""Repeat one of the four published benchmarks: make its runs as published (or shortened), then print which of its
conclusions hold here and write them, with the published figures beside ours, to DIR/conclusions.md.
It goes on when other programs interfere; voided trials do not count. --resume continues one that was stopped."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import paths
from bench.cli import asked, faults, options, run
from bench.errors import BenchError
from bench.measure.faults import begin as begin_faults
from bench.measure.faults import judge
from bench.measure.records.folder import RUN_FILE, read_run
from bench.measure.report import write
from bench.measure.run import begin, guards
from bench.measure.run.instrument import Instrument
from bench.measure.run.plan import Request
from bench.measure.run.session import new_folder, now
from bench.measure.stats.columns import columns
from bench.printer import Printer, say
from bench.serve.catalog import catalog, fit
from bench.serve.deployment.layout import fresh_directory
from bench.serve.project.under_test import UnderTest, open_project
from reproductions import folder, page
from reproductions.conclusions import conclusions
from reproductions.folder import FILE, FORMAT, PartRecord, Reproduction
from reproductions.published import Part, publications

PAGE = "conclusions.md"
FALLBACK = "sqlite"
# The beginning of the message when no case of a run, or no fault, can be made.
NOTHING = re.compile("^nothing (to measure|can be made) here: ")
STOPPED = 128  # exit statuses above this one: a signal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `reproduce`."""
    names = list(publications())
    parser.add_argument("benchmark", nargs="?", choices=names, metavar="BENCHMARK", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="fewer, shorter rounds: a ranking, no absolute figures")
    options.add_guard(parser)
    options.add_folder(parser, "reproduction")


def main(args: argparse.Namespace, instrument: Instrument | None = None) -> int:
    """Make the runs and the page; returns 0, 1 when a case failed, 130 or 143 when stopped."""
    if args.resume:
        asked.refuse_with_resume(args)
        directory, record = args.resume, folder.read(args.resume)
        begun = [directory / part.name for part in record.parts if (directory / part.name / RUN_FILE).exists()]
        if record.finished_at and all(map(_is_complete, begun)):
            raise BenchError(f"--resume {directory}: it is complete; next: python -m bench report {directory}")
    else:
        directory, record = _begun(args)
    statuses = []
    for number, part in enumerate(record.parts, 1):
        say(f"{record.benchmark}, part {number} of {len(record.parts)}: {part.name}")
        planned = publications()[record.benchmark].part(part.name, record.quick)
        done, status = _make(directory, record, planned, instrument)
        record = record.with_part(done)
        folder.write(directory, record)
        if status > STOPPED:
            print(f"resume with: python -m bench reproduce --resume {directory}", file=sys.stderr)
            return status
        statuses.append(status)
    if not any((directory / part.name / RUN_FILE).exists() for part in record.parts):
        raise BenchError(f"nothing of {record.benchmark} can run here: {record.parts[0].reason}")
    record = replace(record, finished_at=now())
    folder.write(directory, record)
    write_page(directory)
    return max(statuses)


def write_page(directory: Path, to: Path | None = None) -> None:
    """Write the page of a reproduction, print its conclusions and, as the last line, the page's path."""
    path = to or directory / PAGE
    record = folder.read(directory)
    publication, figures = publications()[record.benchmark], folder.figures(directory, record)
    found = conclusions(publication, figures)
    write.write_text(path, page.page(publication, record, figures, found))
    printer = Printer()
    printer.say("\n".join([*columns(page.lines(found), width=printer.width), page.summary(found)]))
    print(path)


def _begun(args: argparse.Namespace) -> tuple[Path, Reproduction]:
    if args.benchmark is None:
        raise BenchError(f"name a benchmark: {', '.join(publications())}; or --resume DIR")
    directory = args.to or new_folder()
    if (directory / FILE).exists():
        raise BenchError(f"{directory}: already holds a reproduction; resume it with --resume {directory}")
    paths.must_be_plain(directory)
    guards.bounds(args.guard or [])
    fresh_directory(directory)
    record = Reproduction(
        format=FORMAT,
        benchmark=args.benchmark,
        quick=args.quick,
        command=asked.command_line(),
        started_at=now(),
        finished_at=None,
        parts=tuple(PartRecord(part.name) for part in publications()[args.benchmark].parts),
        guards=tuple(args.guard or ()),
    )
    folder.write(directory, record)
    return directory, record


def _make(directory: Path, record: Reproduction, part: Part, instrument: Instrument | None) -> tuple[PartRecord, int]:
    """Make or resume the run or the faults of a part; returns what became of it, and the exit status.

    A part that cannot run here at all is left out with its reason, which is no failure.
    """
    at, done = directory / part.name, replace(record.part(part.name), reason=None)
    begun = (at / RUN_FILE).exists()
    if begun and _is_complete(at):
        return done, int(any(trial.status == "failed" for trial in read_run(at).trials))
    # A conclusion may be about a check that `run` leaves out.
    instrument = instrument or Instrument(open_project(), thorough=part.thorough)
    try:
        if not begun:
            rows, notes = (FALLBACK, ()) if part.faults else _database(part)
            done = replace(done, notes=notes)
            known = judge.BOUNDS if part.faults else guards.BOUNDS
            given = tuple(guard for guard in record.guards if guard.partition("=")[0] in known)
            request = request_of(part, instrument.project, database=rows, guards=given)
        if part.faults:
            names, project = tuple(part.faults), instrument.project
            made = begin_faults.resumed(at, project, None) if begun else begin_faults.planned(request, names)
            status = faults.carry_out(made, at)
            # Those that are not as expected are findings, and no failure.
            return done, status if status > STOPPED else 0
        new = begin.resumed(at, None, instrument) if begun else begin.planned(request, instrument)
        # Nobody watches: interference passes, and what it voids is made again or left out.
        return done, run.carry_out(new, at, keep_going=True)
    except BenchError as error:
        if (at / RUN_FILE).exists():
            raise BenchError(f"{error}; or all of it: python -m bench reproduce --resume {directory}") from None
        say(f"left out: {error}")
        return replace(done, reason=NOTHING.sub("", str(error))), 0


def _is_complete(at: Path) -> bool:
    """Whether a run or faults have ended, and no trial or fault is void: it would be made again."""
    run = read_run(at)
    trials, faults_made = run.latest.values(), run.latest_outcomes.values()
    statuses = {trial.status for trial in trials} | {outcome.status for outcome in faults_made}
    return run.info.finished_at is not None and "voided" not in statuses


def request_of(part: Part, project: UnderTest, **more: Any) -> Request:
    """What a part asks for, database and guards apart."""
    return Request(
        project,
        stacks=tuple(part.stacks),
        layers=part.layers,
        workloads=tuple(part.workloads),
        levels=tuple(part.levels),
        sizes=part.sizes,
        changes=tuple(part.set),
        rounds=part.rounds,
        duration_s=part.duration_s or None,
        # No publication has latency at a fixed rate.
        latency=False,
        command=asked.command_line(),
        **more,
    )


def _database(part: Part) -> tuple[str, tuple[str, ...]]:
    """The published database where its service is installed, else SQLite, and a note of that.

    A part that is about its database keeps it. Raises BenchError where that is not installed.
    """
    service = catalog.read().services.get(part.database)
    if not service or not (missing := fit.missing_programs(service)):
        return part.database, ()
    if part.own_database:
        raise BenchError(f"{part.database} is not installed: {', '.join(missing)}")
    return FALLBACK, (f"{part.database} is not installed ({', '.join(missing)}): {FALLBACK} replaces it",)
