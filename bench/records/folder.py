"""A run's folder, and the only way to write or read it.

``run.json`` (what was asked), ``environment.json`` (on what machine), ``trials.jsonl`` (one trial a line),
``faults.jsonl`` (one fault a line), ``verify.jsonl`` (one check a line), ``workloads.json`` (the addresses requested),
``configs/`` (rendered files) and ``raw/`` (what the load tool and the servers printed). Reports and comparisons read it
through `read_run` alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench.errors import DISK_FULL
from bench.records.faults import FaultOutcome
from bench.records.records import FORMAT, Environment, Outcome, ResultsError, RunInfo, describe
from bench.records.trials import Trial

RUN_FILE = "run.json"
ENVIRONMENT_FILE = "environment.json"
TRIALS_FILE = "trials.jsonl"
CHECKS_FILE = "verify.jsonl"
FAULTS_FILE = "faults.jsonl"
ADDRESSES_FILE = "workloads.json"
CONFIGS_DIRECTORY = "configs"
RAW_DIRECTORY = "raw"
MIN_FREE_BYTES = 65_536
# A process killed while it started a program leaves its lock to that child, until the program begins.
LOCK_WAIT_S = 2.0
LOCK_POLL_S = 0.05

Record = TypeVar("Record")


@dataclass(frozen=True)
class Run:
    """A whole run, read from its folder.

    latency   trials of a closed loop's cases in an open loop, made after its rounds at one rate for all
    outcomes  of a run of faults, which has no trials
    """

    directory: Path
    info: RunInfo
    environment: Environment
    trials: tuple[Trial, ...]
    checks: tuple[Outcome, ...]
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # workload -> what a visit requests
    latency: tuple[Trial, ...] = ()
    outcomes: tuple[FaultOutcome, ...] = ()

    @property
    def latest(self) -> dict[str, Trial]:
        """Trial id -> its last record; a repeated trial replaces the earlier one."""
        return {trial.trial_id: trial for trial in self.trials}

    @property
    def latest_outcomes(self) -> dict[str, FaultOutcome]:
        """Fault id -> its last outcome; a repeated one replaces the earlier."""
        return {outcome.fault_id: outcome for outcome in self.outcomes}

    @property
    def is_measured(self) -> bool:
        """Whether any trial has figures to trust."""
        return any(trial.status == "ok" for trial in self.trials)

    @property
    def repeated(self) -> int:
        """How many trials were made again because other processes disturbed them."""
        return sum(trial.is_disturbed and trial is not self.latest[trial.trial_id] for trial in self.trials)

    @property
    def missing(self) -> int:
        """How many trials of the plan have no record; of a run until decided none is missing once it has ended."""
        if self.info.plan.until and self.info.finished_at:
            return 0
        return self.info.trials_planned - len(self.latest)

    def resume_command(self) -> str:
        """The command that makes the trials that are left, and the voided ones again."""
        return resume_command(self.directory, self.info)


def resume_command(directory: Path, info: RunInfo) -> str:
    """The command that resumes a run."""
    words = [f"python -m bench {info.plan.command} --resume {directory}"]
    words += ["--inventory FILE"] if info.plan.inventory else []
    words += ["--database URL"] if info.plan.database_given else []
    return " ".join(words)


@contextlib.contextmanager
def locked(directory: Path, busy: str) -> Iterator[None]:
    """A folder of results for this process alone. Raises ResultsError with the words `busy` when another has it."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + LOCK_WAIT_S
        while not _flock(handle):
            if time.monotonic() > deadline:
                raise ResultsError(f"{directory}: {busy}")
            time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(handle)


def _flock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# ---------------------------------------------------------------------------------------------- reading


def read_run(directory: Path | str) -> Run:
    """The run in `directory`. Raises ResultsError, in one line, when it is not one."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ResultsError(f"{directory}: no such directory; give a folder that `python -m bench run` made")
    if not (directory / RUN_FILE).is_file():
        raise ResultsError(
            f"{directory}: not a run, it has no {RUN_FILE}; give a folder that `python -m bench run` made"
        )
    environment, info = directory / ENVIRONMENT_FILE, read_info(directory)
    made = tuple(read_lines(Trial, directory / TRIALS_FILE))
    return Run(
        directory=directory,
        info=info,
        environment=convert(Environment, read_json(environment), environment),
        trials=tuple(trial for trial in made if not _is_of_latency(trial, info)),
        latency=tuple(trial for trial in made if _is_of_latency(trial, info)),
        checks=tuple(read_lines(Outcome, directory / CHECKS_FILE)),
        addresses=read_addresses(directory / ADDRESSES_FILE),
        outcomes=tuple(read_lines(FaultOutcome, directory / FAULTS_FILE)),
    )


def is_faults(directory: Path) -> bool:
    """Whether the folder is one of `bench faults`."""
    return (directory / RUN_FILE).is_file() and bool(read_info(directory).plan.faults)


def read_faults(directory: Path) -> Run:
    """The run of faults in `directory`. Raises ResultsError, in one line, when it is not one of `bench faults`."""
    if not is_faults(directory):
        raise ResultsError(f"{directory}: it holds no faults; give a folder that `python -m bench faults` made")
    return read_run(directory)


def _is_of_latency(trial: Trial, info: RunInfo) -> bool:
    return info.plan.latency and trial.mode == "open"


def read_info(directory: Path) -> RunInfo:
    """The run.json of `directory`."""
    path = directory / RUN_FILE
    content = read_json(path)
    require_format(path, content, FORMAT)
    return convert(RunInfo, content, path)


def require_format(path: Path, content: Mapping[str, Any], known: int) -> None:
    """Raise ResultsError unless a file has the one format that this version of the instrument reads."""
    found = content.get("format")
    if found == known:
        return
    is_earlier = isinstance(found, int) and found < known
    made, do = ("an earlier", "make the run again") if is_earlier else ("another", "read it with that version")
    raise ResultsError(f"{path}: format {found!r} of {made} version, and this one reads {known}; {do}")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file. Raises ResultsError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; the run's folder is incomplete") from None
    except msgspec.ValidationError:
        raise ResultsError(f"{path}: not a JSON object; restore the file") from None
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path}: cannot be read as JSON: {error}; restore the file") from None
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from None


def read_lines(record: type[Record], path: Path) -> Iterator[Record]:
    """The records of a file of JSON lines; none when there is no file. A torn last line, left by a kill, is ignored."""
    lines = _lines(path)
    for number, line in enumerate(lines, 1):
        where = f"{path} line {number}"
        try:
            content = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines):
                return
            raise ResultsError(f"{where}: not JSON: {error}; remove the line") from None
        yield convert(record, content, where)


def read_addresses(path: Path) -> dict[str, tuple[str, ...]]:
    """The addresses by workload in a workloads.json, empty when there is none."""
    return convert(dict[str, tuple[str, ...]], read_json(path), path) if path.exists() else {}


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().split(b"\n") if line.strip()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from None


def convert(record: type[Record], content: object, where: Path | str) -> Record:
    """A record from decoded JSON. Unknown fields are left out: a newer program wrote them. Raises ResultsError."""
    try:
        return msgspec.convert(content, record)
    except msgspec.ValidationError as error:
        raise ResultsError(f"{where}: {_fault(record, str(error))}; restore it or measure again") from None


def _fault(record: type, message: str) -> str:
    """A message of msgspec with the field in front: `plan.rounds: Expected `int`, got `str``."""
    what, _, path = message.partition(" - at `$")
    field = path.rstrip("`").removeprefix(".")
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", what):
        name = missing[1]
        meaning = "" if field else f" ({describe(record)[name]})"
        return f"{'.'.join(filter(None, (field, name)))} is missing{meaning}"
    return f"{field}: {what}" if field else what


# ---------------------------------------------------------------------------------------------- writing


class Folder:
    """A run's folder while the run is written. Each trial is on the disk before the next one begins."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.configs = directory / CONFIGS_DIRECTORY
        self.raw = directory / RAW_DIRECTORY

    def create(self) -> None:
        """Make the folder. Raises ResultsError when it already holds something or cannot be made."""
        if (self.directory / RUN_FILE).exists():
            raise ResultsError(
                f"{self.directory}: already holds a run; continue it with --resume {self.directory}, "
                "or give --to another folder"
            )
        if self.directory.is_dir() and any(self.directory.iterdir()):
            raise ResultsError(f"{self.directory}: not empty, and not a run; give --to a new folder")
        try:
            self.configs.mkdir(parents=True, exist_ok=True)
            self.raw.mkdir(exist_ok=True)
        except OSError as error:
            raise ResultsError(f"{self.directory}: cannot be made: {error.strerror}") from None

    def begin(self, info: RunInfo, environment: Environment) -> None:
        """Write the first records. Raises ResultsError, and removes the folder, when they cannot be written."""
        try:
            self.write_environment(environment)
            self.write_info(info)
        except OSError as error:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise ResultsError(
                f"{self.directory}: cannot be written: {error.strerror}; make room, or give --to another folder"
            ) from None

    def require_space(self) -> None:
        """Raise OSError when the disk has hardly room for another record: then it may be why a trial failed."""
        disk = os.statvfs(self.directory)
        if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES or (disk.f_files and not disk.f_favail):
            raise OSError(errno.ENOSPC, DISK_FULL)

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """The folder for this process alone, as long as the context lasts. Raises ResultsError when another has it."""
        return locked(self.directory, "a run is under way in it; wait until it ends, or stop it")

    def relative(self, path: Path | None) -> str | None:
        """The path as records name it: relative to the folder when it is inside, the file's name when not."""
        if path is None:
            return None
        try:
            return str(path.absolute().relative_to(self.directory.absolute()))
        except ValueError:
            return path.name

    def write_info(self, info: RunInfo) -> None:
        """Write run.json, whole or not at all."""
        write_json(self.directory / RUN_FILE, info)

    def write_environment(self, environment: Environment) -> None:
        """Write environment.json, whole or not at all."""
        write_json(self.directory / ENVIRONMENT_FILE, environment)

    def write_addresses(self, addresses: Mapping[str, Iterable[str]]) -> None:
        """Write workloads.json: the addresses that every deployment of the run is asked for, by workload."""
        write_json(self.directory / ADDRESSES_FILE, {name: list(paths) for name, paths in addresses.items()})

    def read_addresses(self) -> dict[str, tuple[str, ...]]:
        """The addresses by workload, empty when none were looked up yet."""
        return read_addresses(self.directory / ADDRESSES_FILE)

    def append(self, record: object) -> None:
        """Add a line for a trial or a fault to the file of its kind, and wait until it is on the disk."""
        append_lines(self.directory / (TRIALS_FILE if isinstance(record, Trial) else FAULTS_FILE), [record])

    def set_aside(self, key: str, attempts: int) -> None:
        """Rename the raw output of an item's last attempt, so that the next one does not replace it."""
        raw = self.raw / key
        aside = raw.with_name(f"{raw.name}~void{attempts}")
        if attempts and raw.is_dir() and not aside.exists():
            raw.rename(aside)

    def append_checks(self, checks: Iterable[Outcome]) -> None:
        """Add lines to verify.jsonl and wait until they are on the disk."""
        append_lines(self.directory / CHECKS_FILE, checks)

    def repair(self) -> None:
        """Cut off the torn last line that a kill can leave, so that the next line stands alone."""
        for name in (TRIALS_FILE, CHECKS_FILE, FAULTS_FILE):
            repair_lines(self.directory / name)


def repair_lines(path: Path) -> None:
    """Cut off the torn last line of a file of JSON lines, if there is one."""
    lines = _lines(path)
    if lines and not _is_json(lines[-1]):
        lines.pop()
    if path.exists():
        _replace(path, b"".join(line + b"\n" for line in lines))


def write_json(path: Path, content: object) -> None:
    """Write a record as indented JSON, whole or not at all."""
    _replace(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _replace(path: Path, content: bytes) -> None:
    """Write beside and rename, so that a reader or a kill never meets half a file."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def append_lines(path: Path, records: Iterable[object]) -> None:
    """Add all of the lines, or none when there is no room for them."""
    before = path.stat().st_size if path.exists() else 0
    try:
        with path.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.truncate(path, before)
        raise
