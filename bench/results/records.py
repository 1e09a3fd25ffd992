"""What a run leaves on disk, and the only way to write or read it.

A run is a folder: ``run.json`` (what was asked), ``environment.json`` (on what machine), ``trials.jsonl``
(one measurement a line), ``verify.jsonl`` (one check a line), ``workloads.json`` (the addresses requested),
``configs/`` (rendered files) and ``raw/`` (what the load tool and the servers printed). Reports and comparisons read
it through `read_run` alone.

``None`` means "not measured". A failed trial has a reason and no figures, never a zero. A voided trial has its figures
and the reason why they are not to be trusted: no median, interval or ratio may use them.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Annotated

from bench.errors import BenchError

FORMAT = 2
# Format 1 lacks fields that later ones added; they are read as not measured.
READABLE = (1, 2)

RUN_FILE = "run.json"
ENVIRONMENT_FILE = "environment.json"
TRIALS_FILE = "trials.jsonl"
CHECKS_FILE = "verify.jsonl"
ADDRESSES_FILE = "workloads.json"
CONFIGS_DIRECTORY = "configs"
RAW_DIRECTORY = "raw"


Record = typing.TypeVar("Record")


def folder(text: str) -> Path:
    """A folder of results as a command line names it, there or not; raises ArgumentTypeError for what never can be."""
    path = Path(text)
    try:
        (path / RUN_FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from None
    return path


class ResultsError(BenchError):
    """A folder or a line that cannot be read as results; one line that says what, where and what next."""


def describe(record: type) -> dict[str, str]:
    """Field name -> the sentence that says what the field means, for any record of this module."""
    hints = typing.get_type_hints(record, include_extras=True)
    return {item.name: hints[item.name].__metadata__[0] for item in fields(record)}


@dataclass(frozen=True)
class LoadTool:
    """The program that made the load."""

    name: Annotated[str, "Name of the load tool, such as wrk."]
    version: Annotated[str | None, "Version the load tool printed."]
    fallback: Annotated[bool, "True when the tool is the fallback, used where no faster load tool is installed."]


@dataclass(frozen=True)
class Environment:
    """The machine and the programs of a run; what must be alike for two runs to be compared."""

    cpu_model: Annotated[str | None, "Model name of the processor."]
    cores: Annotated[int, "Processor cores this process may use."]
    memory_bytes: Annotated[int, "Memory of the machine, in bytes."]
    kernel: Annotated[str, "Name and release of the kernel."]
    os: Annotated[str | None, "Name of the operating system's distribution."]
    hostname: Annotated[str | None, "Always null: results are made to be shared."]
    python: Annotated[str, "Implementation and version of the Python that runs the site and the instrument."]
    packages: Annotated[dict[str, str], "Python package -> version, of everything in requirements.txt."]
    programs: Annotated[dict[str, str], "Server or service program -> the version it printed."]
    load_tool: Annotated[LoadTool, "The program that made the load."]
    commit: Annotated[str | None, "Git commit of the working tree."]
    dirty: Annotated[bool | None, "True when the working tree had changes that are not in that commit."]
    governor: Annotated[str | None, "Frequency governor of the processor, such as performance."] = None
    limits: Annotated[dict[str, str] | None, "Kernel or process limit -> its value, of those that bound load."] = None
    configs: Annotated[
        dict[str, str] | None,
        "Rendered configuration file, by deployment -> SHA-256 of it with the run's own paths and ports left out.",
    ] = None
    rows_seed: Annotated[int | None, "Seed of the site's rows."] = None
    rows_total: Annotated[int | None, "Rows in the site's three tables together."] = None
    affinity: Annotated[
        dict[str, tuple[int, ...]] | None, "load, stack, services -> processor cores it was kept on; null: any core."
    ] = None


MODES = ("closed", "open")


@dataclass(frozen=True)
class Plan:
    """What the run was asked to measure."""

    stacks: Annotated[tuple[str, ...], "Stacks asked for."]
    layers: Annotated[tuple[str, ...], "Layers asked for."]
    workloads: Annotated[tuple[str, ...], "Workloads asked for."]
    levels: Annotated[tuple[int, ...], "Levels: connections of a closed loop, or requests a second of an open one."]
    rounds: Annotated[int, "How often each case is measured at each level."]
    duration_s: Annotated[float, "Seconds of load in a trial."]
    warmup_s: Annotated[float, "Seconds of unmeasured load before each trial."]
    sizes: Annotated[tuple[str, ...], "Resource limits asked for."]
    database: Annotated[str, "Database behind the site."]
    rows_total: Annotated[int | None, "Rows in the site's three tables together."]
    order_seed: Annotated[int | None, "Seed of the shuffled order in which deployments are measured."] = None
    database_given: Annotated[bool, "True when the database was named by its URL, which is not recorded."] = False
    changes: Annotated[tuple[str, ...], "Values changed for every stack, as NAME=VALUE."] = ()
    env: Annotated[tuple[str, ...], "Variables added to the site's environment, as NAME=VALUE."] = ()
    mode: Annotated[
        str, "closed: connections, as fast as answers come; open: requests leave on a schedule whatever comes back."
    ] = "closed"
    margin: Annotated[float, "Share by which a figure must differ to be called faster or slower."] = 0.05
    guards: Annotated[dict[str, float] | None, "Guard's setting -> the bound beyond which it voids a trial."] = None

    def __post_init__(self):
        if self.mode not in MODES:
            raise ResultsError(f"plan: mode is {self.mode!r}, not closed or open")


@dataclass(frozen=True)
class Case:
    """Stack x layer x workload x size x database."""

    case_id: Annotated[str, "Stack, layer, workload, size and database joined with ~."]
    stack: Annotated[str, "Name of the stack."]
    layer: Annotated[str, "Name of the layer."]
    workload: Annotated[str, "Name of the workload."]
    size: Annotated[str, "Name of the resource limit."]
    database: Annotated[str, "Database behind the site."]
    notes: Annotated[tuple[str, ...], "What differs from the other cases, and why."] = ()


@dataclass(frozen=True)
class Skip:
    """What was asked for and cannot run here."""

    stack: Annotated[str, "Name of the stack."]
    layer: Annotated[str, "Name of the layer."]
    workload: Annotated[str | None, "Name of the workload, null when all workloads are skipped."]
    reason: Annotated[str, "Why it cannot run here."]
    size: Annotated[str | None, "Name of the resource limit, null when all sizes are skipped."] = None


@dataclass(frozen=True)
class RunInfo:
    """What was asked, when, and what came of the plan."""

    format: Annotated[int, "Version of the folder's format."]
    command: Annotated[tuple[str, ...], "Command line of the run."]
    started_at: Annotated[str, "When the run began, ISO 8601 with offset."]
    finished_at: Annotated[str | None, "When the run ended; null when it was stopped and can be resumed."]
    plan: Annotated[Plan, "What was asked."]
    cases: Annotated[tuple[Case, ...], "Cases that can run here."]
    skips: Annotated[tuple[Skip, ...], "Cases that cannot run here, with reasons."]
    notes: Annotated[tuple[str, ...], "What a reader must know about the whole run."] = ()


# Figures that a failed trial does not have.
FIGURES = (
    "requests_total",
    "requests_per_second",
    "bytes_per_second",
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p90_ms",
    "latency_p99_ms",
    "latency_p999_ms",
    "latency_max_ms",
    "histogram",
    "thirds",
    "memory",
    "memory_peak_bytes",
    "cpu_seconds",
    "processes",
)

Samples = tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Trial:
    """One timed measurement of a case at a level."""

    trial_id: Annotated[
        str,
        "Name of the trial, and of its directory under raw/. A trial made again has a line for each time; the last "
        "stands.",
    ]
    case_id: Annotated[str, "The case it measures."]
    stack: Annotated[str, "Name of the stack."]
    layer: Annotated[str, "Name of the layer."]
    workload: Annotated[str, "Name of the workload."]
    size: Annotated[str, "Name of the resource limit."]
    database: Annotated[str, "Database behind the site."]
    level_connections: Annotated[
        int | None, "Connections the load tool kept busy, each waiting for its answer; null in an open loop."
    ]
    round: Annotated[int, "Round of the run, from 1."]
    state: Annotated[str, "cold: the layer was emptied before the trial; warm: it was filled."]
    status: Annotated[str, "ok; failed: it has no figures; voided: it has figures that a guard says not to trust."]
    reason: Annotated[str | None, "Why the trial failed or is voided."]
    log: Annotated[str | None, "Log that tells more about a failure, relative to the run's folder."]
    started_at: Annotated[str, "When the timed load began, ISO 8601 with offset."]
    duration_s: Annotated[float | None, "Seconds the timed load lasted."]
    tool: Annotated[str, "Name of the load tool."]
    requests_total: Annotated[int | None, "Answers received in the timed load."]
    requests_per_second: Annotated[float | None, "Answers received a second."]
    bytes_per_second: Annotated[float | None, "Bytes received a second, as the load tool counts them."]
    latency_mean_ms: Annotated[float | None, "Mean time of an answer, in milliseconds."]
    latency_p50_ms: Annotated[
        float | None,
        "Half of the answers came within this many milliseconds; in an open loop counted from the intended start.",
    ]
    latency_p90_ms: Annotated[float | None, "90 in 100 answers came within this many milliseconds."]
    latency_p99_ms: Annotated[float | None, "99 in 100 answers came within this many milliseconds."]
    latency_max_ms: Annotated[float | None, "The longest request, in milliseconds."]
    errors_connect: Annotated[int | None, "Connections that could not be made."]
    errors_read: Annotated[int | None, "Connections that broke before the answer was whole."]
    errors_timeout: Annotated[int | None, "Requests without an answer in the load tool's time limit."]
    responses_not_2xx: Annotated[int | None, "Answers with a status outside 200 to 299."]
    memory: Annotated[
        dict[str, Samples] | None,
        "Server or service -> pairs of seconds since the load began and bytes of memory (proportional set "
        "size, PSS) summed over its process tree; empty when it could not be read.",
    ]
    memory_peak_bytes: Annotated[dict[str, int | None] | None, "Server or service -> largest PSS seen, in bytes."]
    cpu_seconds: Annotated[
        dict[str, float | None] | None,
        "Server or service -> processor seconds, user and system, its process tree used in the timed load.",
    ]
    processes: Annotated[dict[str, int | None] | None, "Server or service -> most processes seen in its tree."]
    time_to_ready_s: Annotated[float | None, "Seconds from starting the deployment until it answered."]
    keep_alive: Annotated[
        bool | None, "True when the load tool asked to reuse its connections; a server may close them all the same."
    ] = None
    rate_requested: Annotated[float | None, "Requests a second due by the schedule; null in a closed loop."] = None
    latency_p999_ms: Annotated[float | None, "999 in 1,000 answers came within this many milliseconds."] = None
    histogram: Annotated[
        str | None, "HDR histogram of the latency in microseconds, compressed (V2), in base64; for merging rounds."
    ] = None
    statuses: Annotated[dict[str, int] | None, "Status -> answers that had it."] = None
    thirds: Annotated[
        tuple[float, ...] | None, "Answers a second in the first, second and last third of the timed load."
    ] = None
    requests_dropped: Annotated[
        int | None, "Requests due by the schedule that the load tool did not send; null in a closed loop."
    ] = None
    send_delay_p99_ms: Annotated[
        float | None, "99 in 100 requests were sent within this many milliseconds of their intended start."
    ] = None
    guards: Annotated[
        dict[str, str] | None, "Guard -> ok, or not measured and why, or what it found that voids the trial."
    ] = None
    body_bytes: Annotated[float | None, "Mean bytes of the workload's bodies, as visited before the load."] = None
    bodies_checked: Annotated[int | None, "Pages fetched and compared with what is right during the load."] = None
    requests_served: Annotated[int | None, "Requests of the load as the front server counted them."] = None
    tool_ceiling_per_second: Annotated[
        float | None,
        "Requests a second that would fill the load tool's processor time, by what a plain file cost it in this run.",
    ] = None
    tool_cpu_share: Annotated[
        float | None, "Processor time of the load tool as a share of what its threads could use."
    ] = None
    other_cpu_share: Annotated[
        float | None, "Share of the machine's processor time that went to processes outside the trial."
    ] = None
    threads: Annotated[dict[str, int | None] | None, "Server or service -> most threads seen in its tree."] = None
    close_wait: Annotated[
        dict[str, int | None] | None, "Server or service -> connections left in CLOSE_WAIT after the load."
    ] = None
    queries_per_request: Annotated[
        float | None, "Database queries of a request of the workload, on average; 0 where a cache answers."
    ] = None
    requests_per_worker: Annotated[
        dict[str, int] | None,
        "Worker process -> requests it answered of those sent right before the load to see how they spread.",
    ] = None
    observer_cpu_seconds: Annotated[float | None, "Processor seconds the instrument itself used in the load."] = None
    observer_share: Annotated[float | None, "Those seconds as a share of the machine's in the same time."] = None
    oom_kills: Annotated[int | None, "Processes of the deployment killed for want of memory during the trial."] = None
    restarts: Annotated[
        int | None, "Worker processes of servers that ended and were replaced during the timed load."
    ] = None
    came_back: Annotated[bool | None, "True when the site answered again by itself after the trial."] = None
    memory_idle_bytes: Annotated[
        dict[str, int | None] | None, "Server or service -> PSS when the deployment had just become ready, in bytes."
    ] = None
    memory_slope_bytes_per_s: Annotated[
        dict[str, float | None] | None, "Server or service -> how fast its PSS grew in the timed load, in bytes/s."
    ] = None

    @property
    def level(self) -> int:
        """Connections of a closed loop or requests a second of an open one: the level as the plan names it."""
        return self.level_connections if self.level_connections is not None else round(self.rate_requested or 0)

    @property
    def mode(self) -> str:
        """`closed` or `open`."""
        return "closed" if self.level_connections is not None else "open"

    def __post_init__(self):
        if (self.level_connections is None) == (self.rate_requested is None):
            raise ResultsError(f"trial {self.trial_id}: needs level_connections or rate_requested, and not both")
        if self.thirds is not None and len(self.thirds) != 3:
            raise ResultsError(f"trial {self.trial_id}: thirds are {len(self.thirds)} numbers, not 3")
        if self.state not in ("cold", "warm"):
            raise ResultsError(f"trial {self.trial_id}: state is {self.state!r}, not cold or warm")
        if self.status not in ("ok", "failed", "voided"):
            raise ResultsError(f"trial {self.trial_id}: status is {self.status!r}, not ok, failed or voided")
        if self.status != "failed" and self.requests_per_second is None:
            raise ResultsError(f"trial {self.trial_id}: status is {self.status} without requests_per_second")
        if self.status != "ok" and not self.reason:
            raise ResultsError(f"trial {self.trial_id}: status is {self.status} without a reason")
        if self.status == "failed" and (kept := [name for name in FIGURES if getattr(self, name) is not None]):
            raise ResultsError(f"trial {self.trial_id}: status is failed and yet it has {kept[0]}")


@dataclass(frozen=True)
class Outcome:
    """What one check of verify found on one deployment."""

    stack: Annotated[str, "Name of the stack."]
    layer: Annotated[str, "Name of the layer."]
    check: Annotated[str, "Name of the check."]
    ok: Annotated[bool, "False when an answer was wrong."]
    expected: Annotated[str | None, "The right answer; null unless an answer was wrong."] = None
    got: Annotated[str | None, "The wrong answer received; null unless an answer was wrong."] = None
    declared: Annotated[str | None, "Why the stack or layer declares that it does not support it, or null."] = None
    group: Annotated[str, "Group of the check: behaviour, caching, privacy, ..."] = "behaviour"
    figures: Annotated[
        dict[str, float | None] | None, "Figure the check measured -> its value; the unit is in the name."
    ] = None
    not_tried: Annotated[str | None, "Why the check was not made, which is not a pass; null when it was."] = None

    @property
    def word(self) -> str:
        """`FAIL`, `declared`, `not tried` or `pass`."""
        if not self.ok:
            return "FAIL"
        if self.declared:
            return "declared"
        return "not tried" if self.not_tried else "pass"


@dataclass(frozen=True)
class Run:
    """A whole run, read from its folder."""

    directory: Path
    info: RunInfo
    environment: Environment
    trials: tuple[Trial, ...]
    checks: tuple[Outcome, ...]


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
    return Run(
        directory=directory,
        info=read_info(directory),
        environment=parse(Environment, _json_object(directory / ENVIRONMENT_FILE), directory / ENVIRONMENT_FILE),
        trials=tuple(_read_lines(Trial, directory / TRIALS_FILE)),
        checks=tuple(_read_lines(Outcome, directory / CHECKS_FILE)),
    )


def read_info(directory: Path) -> RunInfo:
    """The run.json of `directory`."""
    path = directory / RUN_FILE
    content = _json_object(path)
    if content.get("format") not in READABLE:
        raise ResultsError(
            f"{path}: format is {content.get('format')!r} and this program reads up to {FORMAT}; "
            "use the version of the instrument that made the run"
        )
    return parse(RunInfo, content, path)


def _json_object(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; the run's folder is incomplete") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ResultsError(f"{path}: holds {type(content).__name__}, not a JSON object")
    return content


def _read_lines(record: type[Record], path: Path) -> Iterable[Record]:
    """The records of a file of JSON lines. A torn last line, left by a kill, is not a record."""
    lines = _lines(path)
    for number, line in enumerate(lines, 1):
        try:
            content = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise ResultsError(f"{path} line {number}: not JSON: {error}") from None
        if not isinstance(content, dict):
            raise ResultsError(f"{path} line {number}: not a JSON object")
        yield parse(record, content, f"{path} line {number}")


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().split(b"\n") if line.strip()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from None


def parse(record: type[Record], content: Mapping, where: Path | str) -> Record:
    """A record from a JSON object. Fields it does not know are left out: a newer program wrote them."""
    hints = typing.get_type_hints(record)
    values = {}
    for item in fields(record):
        if item.name in content:
            values[item.name] = _value(hints[item.name], content[item.name], f"{where}: {item.name}")
        elif item.default is MISSING:
            raise ResultsError(f"{where}: {item.name} is missing ({describe(record)[item.name]})")
    return record(**values)


def _value(hint, value, where: str):
    """`value` as `hint` says, JSON's lists turned into tuples. Raises ResultsError when it does not fit."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        (hint,) = (option for option in arguments if option is not type(None))
        return _value(hint, value, where)
    if hint in (str, bool) and isinstance(value, hint):
        return value
    if hint in (int, float) and isinstance(value, (int, hint)) and not isinstance(value, bool):
        return hint(value)
    if origin is tuple and isinstance(value, list):
        if arguments[-1] is Ellipsis:
            return tuple(_value(arguments[0], element, where) for element in value)
        if len(arguments) == len(value):
            return tuple(_value(option, element, where) for option, element in zip(arguments, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: _value(arguments[1], element, f"{where}.{key}") for key, element in value.items()}
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__") and isinstance(value, dict):
        return parse(hint, value, where)
    raise ResultsError(f"{where}: {value!r} is not what belongs there")


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

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The folder for this process alone, as long as the context lasts. Raises ResultsError when another has it."""
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ResultsError(f"{self.directory}: a run is under way in it; wait until it ends, or stop it") from None
        finally:
            os.close(handle)

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
        _write_json(self.directory / RUN_FILE, asdict(info))

    def write_environment(self, environment: Environment) -> None:
        """Write environment.json, whole or not at all."""
        _write_json(self.directory / ENVIRONMENT_FILE, asdict(environment))

    def write_addresses(self, addresses: Mapping[str, Iterable[str]]) -> None:
        """Write workloads.json: the addresses that every deployment of the run is asked for, by workload."""
        _write_json(self.directory / ADDRESSES_FILE, {name: list(paths) for name, paths in addresses.items()})

    def read_addresses(self) -> dict[str, tuple[str, ...]]:
        """The addresses by workload, empty when none were looked up yet."""
        path = self.directory / ADDRESSES_FILE
        if not path.exists():
            return {}
        return {name: tuple(paths) for name, paths in _json_object(path).items()}

    def append_trial(self, trial: Trial) -> None:
        """Add one line to trials.jsonl and wait until it is on the disk."""
        _append_lines(self.directory / TRIALS_FILE, [trial])

    def append_checks(self, checks: Iterable[Outcome]) -> None:
        """Add lines to verify.jsonl and wait until they are on the disk."""
        _append_lines(self.directory / CHECKS_FILE, list(checks))

    def repair(self) -> None:
        """Cut off the torn last line that a kill can leave, so that the next line stands alone."""
        for name in (TRIALS_FILE, CHECKS_FILE):
            path = self.directory / name
            lines = _lines(path)
            if lines and not _is_json(lines[-1]):
                lines.pop()
            if path.exists():
                _replace(path, b"".join(line + b"\n" for line in lines))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _write_json(path: Path, content: dict) -> None:
    _replace(path, (json.dumps(content, indent=2) + "\n").encode())


def _replace(path: Path, content: bytes) -> None:
    """Write beside and rename, so that a reader or a kill never meets half a file."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _append_lines(path: Path, records: list) -> None:
    with path.open("ab") as file:
        file.write("".join(json.dumps(asdict(record)) + "\n" for record in records).encode())
        file.flush()
        os.fsync(file.fileno())
