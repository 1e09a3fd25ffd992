"""A run's folder, and the only way to write or read it.

``run.json`` (the request), ``environment.json`` (the machine), ``trials.jsonl`` (one trial a line), ``faults.jsonl``
(one fault a line), ``verify.jsonl`` (one check a line), ``workloads.json`` (the addresses requested), ``configs/``
(rendered files) and ``raw/`` (output of the load tool and the servers). Reports and comparisons use only `read_run`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench import PROGRAM
from bench.errors import DISK_FULL
from bench.measure.records.fault_outcomes import FaultOutcome
from bench.measure.records.records import FORMAT, Environment, ResultsError, RunInfo
from bench.measure.records.trials import Trial
from bench.verify.outcome import Outcome
from bench.words import command_line

RUN_FILE = "run.json"
CHECKS_FILE = "verify.jsonl"
ADDRESSES_FILE = "workloads.json"
# Record -> its file: as a whole, or each as a line.
DOCUMENTS: dict[type, str] = {RunInfo: RUN_FILE, Environment: "environment.json"}
LINES: dict[type, str] = {Trial: "trials.jsonl", Outcome: CHECKS_FILE, FaultOutcome: "faults.jsonl"}
MIN_FREE_BYTES = 65_536
# A process killed while starting a program leaves its lock to the child, until the program begins.
LOCK_WAIT_S = 2.0
LOCK_POLL_S = 0.05

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError)

Record = TypeVar("Record")


@dataclass(frozen=True)
class Run:
    """A whole run, read from its folder.

    latency   trials of a closed loop's cases in an open loop, made at one rate for all after the rounds
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
        """Trial id -> its last record."""
        return {trial.trial_id: trial for trial in self.trials}

    @property
    def latest_of_all(self) -> dict[str, Trial]:
        """Trial id -> its last record, also of the trials at one rate."""
        return self.latest | {trial.trial_id: trial for trial in self.latency}

    @property
    def latest_outcomes(self) -> dict[str, FaultOutcome]:
        """Fault id -> its last outcome."""
        return {outcome.fault_id: outcome for outcome in self.outcomes}

    @property
    def is_measured(self) -> bool:
        """True if any trial has figures to trust."""
        return any(trial.status == "ok" for trial in self.trials)

    @property
    def repeated(self) -> int:
        """Number of trials repeated because of disturbance by other processes."""
        return sum(trial.is_disturbed and trial is not self.latest[trial.trial_id] for trial in self.trials)

    @property
    def missing(self) -> int:
        """Number of planned trials without a record; 0 for a finished run until decided."""
        if self.info.plan.until and self.info.finished_at:
            return 0
        plan = self.info.plan
        return len(self.info.cases) * len(plan.levels) * plan.rounds - len(self.latest)

    def resume_command(self) -> str:
        """The command that makes the remaining trials, and the discarded ones again."""
        return resume_command(self.directory, self.info)


def resume_command(directory: Path, info: RunInfo) -> str:
    """The command that resumes a run."""
    words = [command_line(info.plan.command, "--resume", directory)]
    if info.plan.inventory:
        words.append("--inventory FILE")
    if info.plan.database_given:
        words.append("--database URL")
    return " ".join(words)


# ---------------------------------------------------------------------------------------------- reading


def read_run(directory: Path | str) -> Run:
    """The run in `directory`. Raises ResultsError, in one line, if it is not a run."""
    directory = Path(directory)
    if directory.is_file():
        raise ResultsError(f"{directory}: a file; give the folder that `{PROGRAM} run` made")
    if not directory.is_dir():
        raise ResultsError(f"{directory}: no such directory; give a folder that `{PROGRAM} run` made")
    if not (directory / RUN_FILE).is_file():
        raise ResultsError(f"{directory}: not a run, it has no {RUN_FILE}; give a folder that `{PROGRAM} run` made")
    info, environment = read_info(directory), directory / DOCUMENTS[Environment]
    trials = tuple(read_lines(Trial, directory))
    latency: tuple[Trial, ...] = ()
    if info.plan.latency:
        latency = tuple(trial for trial in trials if trial.mode == "open")
        trials = tuple(trial for trial in trials if trial.mode == "closed")
    return Run(
        directory=directory,
        info=info,
        environment=convert(Environment, read_json(environment), environment),
        trials=trials,
        latency=latency,
        checks=tuple(read_lines(Outcome, directory)),
        addresses=read_addresses(directory),
        outcomes=tuple(read_lines(FaultOutcome, directory)),
    )


def is_faults(directory: Path) -> bool:
    """True if the folder is one of `benchapp faults`."""
    return (directory / RUN_FILE).is_file() and bool(read_info(directory).plan.faults)


def read_faults(directory: Path) -> Run:
    """The run of faults in `directory`. Raises ResultsError, in one line, for any other folder."""
    if directory.is_dir() and not is_faults(directory):
        raise ResultsError(f"{directory}: it holds no faults; give a folder that `{PROGRAM} faults` made")
    return read_run(directory)


def read_info(directory: Path) -> RunInfo:
    """The run.json of `directory`."""
    path = directory / RUN_FILE
    content = read_json(path)
    require_format(path, content, FORMAT)
    return convert(RunInfo, content, path)


def require_format(path: Path, content: Mapping[str, Any], known: int) -> None:
    """Raise ResultsError unless the file has the one format known to this version."""
    version = content.get("format")
    if version == known:
        return
    is_earlier = isinstance(version, int) and version < known
    origin, do = "another", "read it with that version"
    if is_earlier:
        origin, do = "an earlier", "make the run again"
    raise ResultsError(f"{path}: format {version!r} of {origin} version, and this one reads {known}; {do}")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file. Raises ResultsError."""
    try:
        return msgspec.json.decode(_content(path), type=dict[str, Any])
    except NOT_JSON as error:
        raise ResultsError(f"{path}: cannot be read as JSON: {error}; restore the file") from None


def read_lines(record: type[Record], directory: Path) -> Iterator[Record]:
    """The records of a kind in a folder of results, in the order of writing."""
    path = directory / LINES[record]
    for number, line in enumerate(_lines(path), 1):
        try:
            content = msgspec.json.decode(line, type=record)
        except NOT_JSON as error:
            raise ResultsError(f"{path} line {number}: {error}; restore it or measure again") from None
        yield content


def read_addresses(directory: Path) -> dict[str, tuple[str, ...]]:
    """The addresses by workload in a folder of results, empty if none were looked up yet."""
    path = directory / ADDRESSES_FILE
    if not path.exists():
        return {}
    return convert(dict[str, tuple[str, ...]], read_json(path), path)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; the run's folder is incomplete") from None
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from None


def _lines(path: Path) -> list[bytes]:
    """The lines of a file, except a torn last line left by a kill; empty without the file."""
    if not path.exists():
        return []
    lines = [line for line in _content(path).split(b"\n") if line.strip()]
    if lines:
        try:
            msgspec.json.decode(lines[-1])
        except NOT_JSON:
            lines.pop()
    return lines


def convert(record: type[Record], content: object, where: Path | str) -> Record:
    """A record from decoded JSON. Unknown fields, written by a newer program, are left out. Raises ResultsError."""
    try:
        return msgspec.convert(content, record)
    except msgspec.ValidationError as error:
        raise ResultsError(f"{where}: {error}; restore it or measure again") from None


# ---------------------------------------------------------------------------------------------- writing


def require_new(directory: Path | None) -> None:
    """Raise ResultsError when the folder holds a run, or anything except the beginning of one."""
    if directory is None:
        return
    if (directory / RUN_FILE).exists():
        raise ResultsError(
            f"{directory}: already holds a run; go on with --resume {directory}, or name another folder by --output"
        )
    begun = [directory / name for name in ("configs", "raw", *DOCUMENTS.values())]
    begun += [path.with_name(f"{path.name}.new") for path in begun]
    if directory.is_dir() and any(path not in begun for path in directory.rglob("*")):
        raise ResultsError(f"{directory}: not empty, and not a run; name a new folder by --output")


class Folder:
    """A run's folder while the run is written. Each trial is on the disk before the next one begins."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.configs = directory / "configs"
        self.raw = directory / "raw"

    def create(self, info: RunInfo, environment: Environment) -> None:
        """Make the folder with its first records, replacing leftovers of a kill.

        Raises ResultsError, and leaves no folder, on failure.
        """
        require_new(self.directory)
        try:
            self.configs.mkdir(parents=True, exist_ok=True)
            self.raw.mkdir(exist_ok=True)
        except OSError as error:
            raise ResultsError(f"{self.directory}: cannot be made: {error.strerror}") from None
        try:
            self.write(environment)
            self.write(info)
        except OSError as error:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise ResultsError(
                f"{self.directory}: cannot be written: {error.strerror}; make room, or name another folder by --output"
            ) from None

    def require_space(self) -> None:
        """Raise OSError if the disk has hardly room for another record: a full disk may be the cause of a failed
        trial."""
        disk = os.statvfs(self.directory)
        if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES or (disk.f_files and not disk.f_favail):
            raise OSError(errno.ENOSPC, DISK_FULL)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """The folder for this process only, as long as the context lasts. Raises ResultsError if another process has
        it."""
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            deadline = time.monotonic() + LOCK_WAIT_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        busy = "a run is under way in it; wait until it ends, or stop it"
                        raise ResultsError(f"{self.directory}: {busy}") from None
                    time.sleep(LOCK_POLL_S)
            yield
        finally:
            os.close(handle)

    def relative(self, path: Path | None) -> str | None:
        """The path in records: relative to the folder if inside, else the file's name."""
        if path is None:
            return None
        try:
            return str(path.absolute().relative_to(self.directory.absolute()))
        except ValueError:
            return path.name

    def write(self, record: RunInfo | Environment) -> None:
        """Write the file of a record, whole or not at all."""
        write_json(self.directory / DOCUMENTS[type(record)], record)

    def append(self, *records: Trial | Outcome | FaultOutcome) -> None:
        """Add a line for each of these records, all of one kind, and wait until all are on the disk.

        If the disk has no room for all, none is added.
        """
        if not records:
            return
        path = self.directory / LINES[type(records[0])]
        before = 0
        if path.exists():
            before = path.stat().st_size
        try:
            with path.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.truncate(path, before)
            raise

    def set_aside(self, key: str, attempts: int) -> None:
        """Rename the raw output of an item's last attempt, to keep it from being replaced."""
        raw = self.raw / key
        aside = raw.with_name(f"{raw.name}~discarded{attempts}")
        if attempts and raw.is_dir() and not aside.exists():
            raw.rename(aside)

    def repair(self) -> None:
        """Cut off a torn last line left by a kill, so that the next line begins a new one."""
        for path in map(self.directory.joinpath, LINES.values()):
            if path.exists():
                _replace(path, b"".join(line + b"\n" for line in _lines(path)))


def write_json(path: Path, content: object) -> None:
    """Write a record as indented JSON, whole or not at all."""
    _replace(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def _replace(path: Path, content: bytes) -> None:
    """Write a temporary file and rename, so that neither a reader nor a kill meets half a file."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
