"""Repeat one of the four published benchmarks: `python -m reproductions NAME`.

Each part of a benchmark is one `run` or `faults` of the instrument, in a separate folder. The page conclusions.md has
the published figures beside ours, and says which conclusions hold here.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from bench import paths
from bench.cli import measure_options, options
from bench.cli.main import NAME
from bench.columns import columns
from bench.errors import BenchError
from bench.measure.faults import judge
from bench.measure.records.folder import RUN_FILE, read_run
from bench.measure.report.write import write_text
from bench.measure.run.session import new_folder, now
from bench.printer import Printer, say
from bench.serve.catalog import catalog, compatibility
from bench.serve.deployment.layout import fresh_directory
from bench.words import option_words, setting_words
from reproductions import folder, page
from reproductions.conclusions import conclusions
from reproductions.folder import CHECKS, FILE, FORMAT, PartRecord, Reproduction
from reproductions.published import Claim, Part, Publication, publications

PAGE = "conclusions.md"
# The database of a part whose own is not installed.
FALLBACK = "sqlite"
# Exit statuses of the instrument: it could not be done; above the other one, a signal ended it.
COULD_NOT, STOPPED = 2, 128


def main(argv: list[str] | None = None) -> int:
    """Make the parts and the page.

    Returns 0, 1 if a case failed, 2 if nothing can be made, 130 or 143 if a signal stopped it.
    """
    args = _parser().parse_args(argv)
    try:
        return _reproduce(args)
    except BenchError as error:
        print(f"reproductions: {error}", file=sys.stderr)
        return COULD_NOT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reproductions", description=(__doc__ or "").partition("\n")[0])
    names = list(publications())
    parser.add_argument("benchmark", nargs="?", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: a ranking, no absolute figures")
    options.add(parser, (measure_options.GUARD,))
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder of the results (default: results/DATE)")
    where.add_argument("--resume", type=Path, metavar="DIR", help="go on with the reproduction in that folder")
    return parser


def _reproduce(args: argparse.Namespace) -> int:
    if args.resume:
        if args.benchmark or args.quick or args.guard:
            raise BenchError(f"--resume takes its benchmark from {args.resume}; leave out all else")
        directory, record = args.resume, folder.read(args.resume)
    else:
        directory, record = _begun(args)

    publication = publications()[record.benchmark]
    statuses = []
    for number, part_record in enumerate(record.parts, 1):
        say(f"{record.benchmark}, part {number} of {len(record.parts)}: {part_record.name}")
        part = publication.part(part_record.name, record.quick)
        done, status = _make(part, part_record, directory / part_record.name, record.guards)
        record = record.with_part(done)
        folder.write(directory, record)
        if status > STOPPED:
            print(f"resume with: python -m reproductions --resume {directory}", file=sys.stderr)
            return status
        statuses.append(status)

    if not any((directory / part.name / RUN_FILE).exists() for part in record.parts):
        raise BenchError(f"nothing of {record.benchmark} can run here: {record.parts[0].reason}")
    for claim in publication.claims:
        if claim.check:
            _verify(publication, claim, record, directory)
    record = replace(record, finished_at=record.finished_at or now())
    folder.write(directory, record)
    _write_page(publication, record, directory)
    return max(statuses)


def _begun(args: argparse.Namespace) -> tuple[Path, Reproduction]:
    """The folder and the record of a new reproduction."""
    if args.benchmark is None:
        raise BenchError(f"name a benchmark: {', '.join(publications())}; or --resume DIR")
    directory = args.output or new_folder()
    if (directory / FILE).exists():
        raise BenchError(f"{directory}: already holds a reproduction; resume it with --resume {directory}")
    paths.must_be_plain(directory)
    fresh_directory(directory)
    bounds: dict[str, object] = {}
    for name, bound in args.guard.items():
        bounds[name] = bound
        if bound is None:
            bounds[name] = "off"
    record = Reproduction(
        format=FORMAT,
        benchmark=args.benchmark,
        quick=args.quick,
        started_at=now(),
        finished_at=None,
        parts=tuple(PartRecord(part.name) for part in publications()[args.benchmark].parts),
        guards=tuple(setting_words(bounds)),
    )
    folder.write(directory, record)
    return directory, record


def _make(part: Part, record: PartRecord, at: Path, bounds: tuple[str, ...]) -> tuple[PartRecord, int]:
    """Make or resume one part; returns its record and the exit status.

    A part that cannot run here at all is left out with the reason: no failure.
    """
    begun = (at / RUN_FILE).exists()
    if begun and _is_complete(at):
        return record, _status(at)

    try:
        database, notes = _database(part)
    except BenchError as error:
        say(f"left out: {error}")
        return replace(record, reason=str(error)), 0

    command = "faults" if part.faults else "run"
    if begun:
        words = [command, "--resume", str(at), "--database", database]
    else:
        words = [command, *options_of(part, bounds), "--database", database, "--output", str(at)]
    if command == "run":
        # Nobody watches: interference passes, and its trials are made again or left out.
        words.append("--keep-going")

    status, reason = _instrument(*words)
    record = replace(record, notes=notes, reason=None)
    if status == COULD_NOT and (at / RUN_FILE).exists():
        raise BenchError(f"{reason}; then: python -m reproductions --resume {at.parent}")
    if status == COULD_NOT:
        say(f"left out: {reason}")
        return replace(record, reason=reason), 0
    # A fault whose outcome is not the expected one is a finding, and no failure.
    return record, status if status > STOPPED or not part.faults else 0


def options_of(part: Part, bounds: tuple[str, ...] = ()) -> list[str]:
    """The options of the instrument for one part, except its folder and its database.

    bounds  guards with other bounds than usual; faults have some of them
    """
    if part.faults:
        words = [*part.stacks]
        repeated = {"--fault": part.faults}
        bounds = tuple(guard for guard in bounds if guard.partition("=")[0] in judge.BOUNDS)
    else:
        words = ["--duration", str(part.duration_s)] if part.duration_s else []
        repeated = {
            "--stack": part.stacks,
            "--layer": list(part.layers),
            "--workload": part.workloads,
            "--connections": [str(level) for level in part.levels],
            "--size": list(part.sizes),
        }
    repeated["--set"] = part.set
    repeated["--guard"] = list(bounds)
    return [*words, *option_words(repeated), "--rounds", str(part.rounds)]


def _is_complete(at: Path) -> bool:
    """True if a part has ended without a discarded trial or fault, which would be made again."""
    run = read_run(at)
    statuses: set[str] = {trial.status for trial in run.latest.values()}
    statuses.update(outcome.status for outcome in run.latest_outcomes.values())
    return run.info.finished_at is not None and "discarded" not in statuses


def _status(at: Path) -> int:
    return int(any(trial.status == "failed" for trial in read_run(at).trials))


def _database(part: Part) -> tuple[str, tuple[str, ...]]:
    """The published database if the service is installed, else SQLite and a note.

    Raises BenchError for a part about a database without an installed service.
    """
    service = catalog.read().services.get(part.database)
    missing = compatibility.missing_programs(service) if service else []
    if not missing:
        return part.database, ()
    programs = ", ".join(missing)
    if part.own_database:
        raise BenchError(f"{part.database} is not installed: {programs}")
    return FALLBACK, (f"{part.database} is not installed ({programs}): {FALLBACK} replaces it",)


def _verify(publication: Publication, claim: Claim, record: Reproduction, directory: Path) -> None:
    """Make the check of verify for a claim, once."""
    path = directory / CHECKS / f"{claim.check}.json"
    if path.exists():
        return
    place = {**publication.here, **claim.left}
    database = FALLBACK
    for part in publication.parts:
        if place["stack"] in part.stacks and record.part(part.name).reason is None:
            database, _ = _database(part)
    say(f"verify: {claim.check}")
    words = ["verify", place["stack"], "--layer", place["layer"], "--check", claim.check, "--database", database]
    done = subprocess.run(_command(*words, "--json"), stdout=subprocess.PIPE, text=True, check=False)
    # Without an outcome it could not be made, and the page says so.
    if done.stdout:
        path.parent.mkdir(exist_ok=True)
        write_text(path, done.stdout)


def _write_page(publication: Publication, record: Reproduction, directory: Path) -> None:
    """Write the page, print the conclusions and, as the last line, the path."""
    figures = folder.figures(directory, record)
    results = conclusions(publication, figures)
    write_text(directory / PAGE, page.page(publication, record, figures, results))
    printer = Printer()
    lines = [*columns(page.lines(results), width=printer.width), page.summary(results)]
    printer.say("\n".join(lines))
    print(directory / PAGE)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "bench", *words]


def _instrument(*words: str) -> tuple[int, str]:
    """Run a command of the instrument; returns the exit status and the last line of errors, without the name."""
    # A terminal would signal the instrument, too, and it obeys each signal once.
    last = [""]
    with subprocess.Popen(_command(*words), stderr=subprocess.PIPE, text=True, process_group=0) as process:
        reader = threading.Thread(target=_show, args=(process, last))
        reader.start()
        with _passing_signals_on(process):
            status = process.wait()
        reader.join()
    if status < 0:
        status = STOPPED - status
    return status, last[0].removeprefix(f"{NAME} {words[0]}: ")


def _show(process: subprocess.Popen[str], last: list[str]) -> None:
    """Pass on the standard error of a program, and remember the last line."""
    assert process.stderr is not None
    for line in process.stderr:
        sys.stderr.write(line)
        last[0] = line.strip() or last[0]


@contextmanager
def _passing_signals_on(process: subprocess.Popen[str]) -> Iterator[None]:
    """Hand SIGINT and SIGTERM to the program, and exit with the same status."""

    def hand_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
