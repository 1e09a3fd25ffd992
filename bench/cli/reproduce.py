"""Repeat one of the four published benchmarks: make its runs as published (or shortened), then report published beside
measured and which of its conclusions hold here. Cases on which a conclusion is open get up to three times the rounds.
It goes on when other programs disturb it: what they void never counts. --resume continues one that was stopped."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import paths
from bench.catalog import catalog, fit
from bench.cli import faults, options, run
from bench.errors import BenchError
from bench.faults import judge
from bench.figures.words import plural
from bench.measure import begin, guards
from bench.measure.instrument import Instrument
from bench.measure.printer import say
from bench.measure.trial import now
from bench.project.under_test import open_project
from bench.report.reproduction import side_by_side
from bench.report.reproduction.measured import Cell
from bench.report.write import write_report
from bench.results import reproduction
from bench.results.faults import INFO_FILE, is_faults, read_faults
from bench.results.folder import RUN_FILE, read_info, read_run
from bench.results.reproduction import Part, Reproduction

# An option of `run` for each value of a part.
OPTIONS = {
    "stacks": "--stack",
    "layers": "--layer",
    "workloads": "--workload",
    "levels": "--level",
    "sizes": "--size",
    "rounds": "--rounds",
    "duration_s": "--duration",
    "set": "--set",
}
FALLBACK = "sqlite"
# Beginnings of the messages when no case of a run, and no fault, can be made.
NOTHING, NOTHING_FAULTED = "nothing to measure here: ", "nothing can be made here: "
STOPPED = 128  # exit statuses above this one: a signal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `reproduce`."""
    names = list(reproduction.benchmarks())
    parser.add_argument("benchmark", nargs="?", choices=names, metavar="BENCHMARK", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="fewer, shorter rounds: a ranking, no absolute figures")
    options.add_guard(parser)
    options.add_folder(parser, "reproduction")


def main(args: argparse.Namespace, instrument: Instrument | None = None) -> int:
    """Make the runs and the report; returns 0, 1 when a case failed, 130 or 143 when stopped."""
    directory, record = _resumed(args) if args.resume else _begun(args)
    statuses = []
    for number, part in enumerate(record.parts, 1):
        say(f"{record.benchmark}, part {number} of {len(record.parts)}: {part.name}")
        done, status = _make(directory, record, part, instrument)
        record = _with(record, done)
        reproduction.write(directory, record)
        if status > STOPPED:
            return _stopped(directory, status)
        statuses.append(status)
    _check_something_ran(directory, record)
    while cells := _still_open(directory):
        for name, wanted in cells.items():
            if (status := _add_rounds(directory / name, record, wanted, instrument)) > STOPPED:
                return _stopped(directory, status)
            statuses.append(status)
    record = replace(record, finished_at=now())
    reproduction.write(directory, record)
    print(write_report(directory))
    return max(statuses)


def _stopped(directory: Path, status: int) -> int:
    """Print how to go on after a signal; returns its exit status."""
    print(f"resume with: python -m bench reproduce --resume {directory}", file=sys.stderr)
    return status


# ------------------------------------------------------------------------------------- beginning, resuming


def _begun(args: argparse.Namespace) -> tuple[Path, Reproduction]:
    if args.benchmark is None:
        raise BenchError(f"name a benchmark: {', '.join(reproduction.benchmarks())}; or --resume DIR")
    directory = args.to or begin.new_folder()
    if (directory / reproduction.FILE).exists():
        raise BenchError(f"{directory}: already holds a reproduction; resume it with --resume {directory}")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BenchError(f"{directory}: not an empty directory; give --to a new one")
    paths.must_be_plain(directory)
    guards.bounds(args.guard or [])
    parts = reproduction.parts_of(args.benchmark)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{directory}: cannot be made: {error.strerror}") from None
    words = ("python", "-m", "bench", *sys.argv[1:])
    record = Reproduction(
        format=reproduction.FORMAT,
        benchmark=args.benchmark,
        quick=args.quick,
        command=tuple(run.without_password(word) for word in words),
        started_at=now(),
        finished_at=None,
        parts=tuple(Part(part["name"]) for part in parts),
        guards=tuple(args.guard or ()),
        looks=reproduction.LOOKS,
    )
    reproduction.write(directory, record)
    return directory, record


def _resumed(args: argparse.Namespace) -> tuple[Path, Reproduction]:
    for name in ("benchmark", "to"):
        if getattr(args, name) is not None:
            raise BenchError(f"--resume takes everything from {args.resume}; leave out {name}")
    for name in ("quick", "guard"):
        if getattr(args, name):
            raise BenchError(f"--resume takes everything from {args.resume}; leave out --{name}")
    record = reproduction.read(args.resume)
    if record.finished_at:
        raise BenchError(f"--resume {args.resume}: it is complete; next: python -m bench report {args.resume}")
    return args.resume, record


def _check_something_ran(directory: Path, record: Reproduction) -> None:
    """Raise BenchError when no part could run, and leave no folder without a figure behind."""
    if any((directory / part.name / name).exists() for part in record.parts for name in (RUN_FILE, INFO_FILE)):
        return
    (directory / reproduction.FILE).unlink()
    with contextlib.suppress(OSError):
        directory.rmdir()
    raise BenchError(f"nothing of {record.benchmark} can run here: {record.parts[0].reason}")


def _with(record: Reproduction, done: Part) -> Reproduction:
    return replace(record, parts=tuple(done if part.name == done.name else part for part in record.parts))


# ------------------------------------------------------------------------------------------------- parts


def _make(
    directory: Path,
    record: Reproduction,
    part: Part,
    instrument: Instrument | None,
) -> tuple[Part, int]:
    """Make or resume the part's run; returns the part with its outcome and the exit status of the run.

    A part that cannot run here at all is left out with its reason, which is not a failure.
    """
    folder = directory / part.name
    if part.name in [item["name"] for item in reproduction.benchmarks()[record.benchmark].get("faults", [])]:
        return _make_faults(folder, record, part)
    info, notes = read_info(folder) if (folder / RUN_FILE).exists() else None, part.notes
    if info and info.finished_at:
        return part, int(any(trial.status == "failed" for trial in read_run(folder).trials))
    try:
        if info:
            words = ["--resume", str(folder)]
        else:
            asked, notes = _database(record, part.name)
            words = [*words_of(record.benchmark, part.name, record.quick), "--database", asked, "--to", str(folder)]
            words += [word for guard in record.guards for word in ("--guard", guard)]
        status = run.main(_parsed(words), instrument or _instrument(record, part.name))
    except BenchError as error:
        if (folder / RUN_FILE).exists():
            raise _or_all_of_it(error, directory) from None
        say(f"left out: {error}")
        return replace(part, reason=str(error).removeprefix(NOTHING), notes=notes), 0
    return replace(part, reason=None, notes=notes), status


def _instrument(record: Reproduction, name: str) -> Instrument:
    """The instrument of a part; a conclusion may be about a check that `run` leaves out."""
    return Instrument(open_project(), thorough=_run_of(record, name).get("thorough", False))


def _run_of(record: Reproduction, name: str) -> Mapping[str, Any]:
    """The part of that name in published.toml, which is a run."""
    parts: list[dict[str, Any]] = reproduction.benchmarks()[record.benchmark]["parts"]
    return next(part for part in parts if part["name"] == name)


def _or_all_of_it(error: BenchError, directory: Path) -> BenchError:
    return BenchError(f"{error}; or all of it: python -m bench reproduce --resume {directory}")


def _still_open(directory: Path) -> dict[str, list[Cell]]:
    """Part -> what to measure in further rounds, because a claim is open; none of a part that had as many as it gets.

    A run that was stopped in added rounds has been resumed before.
    """
    try:
        found = side_by_side.read(directory)
    except BenchError:
        return {}  # no part has a trial
    infos = {name: read_info(directory / name) for name in found.undecided}
    has_room = [name for name, info in infos.items() if info.rounds < found.record.looks * info.plan.rounds]
    return {name: found.undecided[name] for name in has_room}


def _add_rounds(
    folder: Path,
    record: Reproduction,
    wanted: list[Cell],
    instrument: Instrument | None,
) -> int:
    """Make as many further rounds of these cases as the part's plan has; returns the exit status of the run."""
    name, directory = folder.name, folder.parent
    rounds = read_info(folder).plan.rounds
    cases = len({case for case, _ in wanted})
    say(f"part {name}: a conclusion is open; {plural(rounds, 'more round')} of {plural(cases, 'case')}")
    begin.add(folder, wanted, rounds)
    try:
        return run.main(_parsed(["--resume", str(folder)]), instrument or _instrument(record, name))
    except BenchError as error:
        raise _or_all_of_it(error, directory) from None


def _make_faults(folder: Path, record: Reproduction, part: Part) -> tuple[Part, int]:
    """Make or resume the part's faults, like `_make`; one that is not as expected is no failure of the reproduction."""
    begun = is_faults(folder)
    if begun and read_faults(folder).info.finished_at:
        return part, 0
    if begun:
        words = ["--resume", str(folder)]
    else:
        words = [*fault_words_of(record.benchmark, part.name, record.quick), "--to", str(folder)]
        words += ["--database", FALLBACK]
        own = [guard for guard in record.guards if guard.partition("=")[0] in judge.BOUNDS]
        words += [word for guard in own for word in ("--guard", guard)]
    parser = argparse.ArgumentParser(prog="python -m bench faults")
    faults.add_arguments(parser)
    try:
        status = faults.main(parser.parse_args(words))
    except BenchError as error:
        if is_faults(folder):
            raise _or_all_of_it(error, folder.parent) from None
        say(f"left out: {error}")
        return replace(part, reason=str(error).removeprefix(NOTHING_FAULTED)), 0
    return replace(part, reason=None), status if status > STOPPED else 0


def fault_words_of(benchmark: str, name: str, quick: bool) -> list[str]:
    """The arguments of `faults` that make a part of a published benchmark, database and folder apart."""
    part = next(part for part in reproduction.benchmarks()[benchmark]["faults"] if part["name"] == name)
    part = {**part, **(part["quick"] if quick else {})}
    options = [word for fault in part["faults"] for word in ("--fault", fault)]
    return [*part["stacks"], *options, "--rounds", str(part["rounds"])]


def words_of(benchmark: str, name: str, quick: bool) -> list[str]:
    """The arguments of `run` that make a part of a published benchmark, database and folder apart."""
    data = reproduction.benchmarks()[benchmark]
    part = next(part for part in data["parts"] if part["name"] == name)
    part = {**part, **({**data["quick"], **part.get("quick", {})} if quick else {})}
    words = []
    for key, option in OPTIONS.items():
        values = part.get(key, [])
        for value in values if isinstance(values, list) else [values]:
            words += [option, str(value)]
    return words


def _database(record: Reproduction, name: str) -> tuple[str, tuple[str, ...]]:
    """The database of a part: the published one where its service is installed, else SQLite.

    A part that is about its database keeps it. Raises BenchError where that is not installed.
    """
    part = _run_of(record, name)
    wanted: str = part.get("database", FALLBACK)
    service = catalog.read().services.get(wanted)
    if service and (missing := fit.missing_programs(service)):
        if part.get("own_database", False):
            raise BenchError(f"{wanted} is not installed: {', '.join(missing)}")
        return FALLBACK, (f"{wanted} is not installed ({', '.join(missing)}): {FALLBACK} replaces it",)
    return wanted, ()


def _parsed(words: Iterable[str]) -> argparse.Namespace:
    """The arguments of a run that nobody watches: interference passes, and what it voids is made again or left out."""
    parser = argparse.ArgumentParser(prog="python -m bench run")
    run.add_arguments(parser)
    return parser.parse_args([*words, "--keep-going"])
