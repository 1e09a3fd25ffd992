"""The folder of `bench faults`: ``faults.json`` (what was asked, on what machine) and ``faults.jsonl`` (outcomes).

Each field is declared once, with its type and the sentence that says what it means. None means "not measured".
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from bench.results import folder
from bench.results.records import Environment, ResultsError, means

FORMAT = 2
INFO_FILE = "faults.json"
OUTCOMES_FILE = "faults.jsonl"
RAW_DIRECTORY = "raw"

# Group of faults -> what its faults show, in the order they are made and shown.
GROUPS = {
    "replaced": "a new configuration, version or certificate takes the place of the old one",
    "killed": "a process dies by SIGKILL, and is started again as the units do",
    "hung": "a process or the database accepts requests and answers none",
    "starved": "memory or room on a disk runs out",
    "abused": "clients that are slow or malformed ask beside ordinary ones",
}


@dataclass(frozen=True)
class FaultsPlan:
    """What was asked."""

    stacks: Annotated[tuple[str, ...], means("Stacks asked for.")]
    layers: Annotated[tuple[str, ...], means("Layers asked for.")]
    faults: Annotated[tuple[str, ...], means("Names of the faults asked for.")]
    rounds: Annotated[int, means("How often each fault is made on each deployment.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    guards: Annotated[dict[str, float], means("Guard -> the bound beyond which it voids an outcome.")]
    database_given: Annotated[bool, means("True when the database was named by its URL, which is not recorded.")] = (
        False
    )
    changes: Annotated[tuple[str, ...], means("Values changed for every stack, as NAME=VALUE.")] = ()
    env: Annotated[tuple[str, ...], means("Variables added to the site's environment, as NAME=VALUE.")] = ()
    project: Annotated[str, means("Folder of the project under test; empty for the site that the kit ships.")] = ""
    describe: Annotated[str, means("File with its description, where --describe named one; else empty.")] = ""
    named: Annotated[tuple[str, ...], means("Faults asked for by their own name, and not by a group or all.")] = ()


@dataclass(frozen=True)
class FaultsInfo:
    """The request, its times and its machine."""

    format: Annotated[int, means("Version of the folder's format."), Meta(ge=1, le=FORMAT)]
    command: Annotated[tuple[str, ...], means("Command line.")]
    started_at: Annotated[str, means("When it began, ISO 8601 with offset.")]
    finished_at: Annotated[str | None, means("When it ended; null when it was stopped and can be resumed.")]
    plan: Annotated[FaultsPlan, means("What was asked.")]
    environment: Annotated[Environment, means("The machine and the programs.")]


@dataclass(frozen=True)
class FaultOutcome:
    """What visitors noticed of one fault."""

    fault_id: Annotated[str, means("Stack, layer, size, database, fault and round joined with ~.")]
    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    size: Annotated[str, means("Name of the resource limit.")]
    database: Annotated[str, means("Database behind the site.")]
    fault: Annotated[str, means("Name of the fault.")]
    group: Annotated[str, means("Group of the fault: replaced, killed, hung, starved, abused.")]
    round: Annotated[int, means("Round, counted from 1.")]
    started_at: Annotated[str, means("When it was made, ISO 8601 with offset.")]
    status: Annotated[
        Literal["ok", "failed", "voided", "skipped"],
        means("ok: as expected or declared; failed: not; voided: not to be trusted; skipped: not possible here."),
    ]
    reason: Annotated[str | None, means("Why it failed, is void or was skipped; null when it is ok.")] = None
    declared: Annotated[
        str | None, means("Why stack, server or layer declare that it is not as expected; null when it is, or unsaid.")
    ] = None
    operator: Annotated[
        str | None, means("What the operator had to do: nothing, reload, restart with N requests refused, ...")
    ] = None
    capacity_per_second: Annotated[
        float | None, means("Requests a second that the deployment answered in a closed loop right before.")
    ] = None
    rate_per_second: Annotated[float | None, means("Requests a second that the visitors made.")] = None
    watched_s: Annotated[float | None, means("Seconds from the fault to the end of the visits.")] = None
    requests_new: Annotated[int | None, means("Requests since the fault that opened a connection.")] = None
    requests_kept: Annotated[int | None, means("Requests since the fault on a keep-alive connection.")] = None
    failed_new: Annotated[
        int | None, means("Those without a right answer (refused, broken, no answer in time, not 200) on a new one.")
    ] = None
    failed_kept: Annotated[int | None, means("Those without a right answer on a keep-alive connection.")] = None
    retried: Annotated[
        int | None,
        means("Requests whose keep-alive connection closed before the first byte: browsers send them once more."),
    ] = None
    failures: Annotated[
        dict[str, int] | None,
        means("Kind of failure (connect, read, timeout, dropped or a status) -> requests since the fault."),
    ] = None
    longest_gap_s: Annotated[float | None, means("Longest time since the fault without a right page.")] = None
    recovery_s: Annotated[
        float | None,
        means("From the end of the cause to the first right answer after the last failure; null: none came."),
    ] = None
    slowest_s: Annotated[float | None, means("Longest time that a visitor waited for a right answer.")] = None
    wrong: Annotated[
        int | None, means("Answers with status 200 that were another account's, cut, or of two versions at once.")
    ] = None
    stale: Annotated[
        int | None, means("Pages older than the time to live, or of the old version after the deploy was complete.")
    ] = None
    stale_s: Annotated[float | None, means("For how long after the deploy the old version came.")] = None
    mixed_s: Annotated[
        float | None, means("From the first answer of the new version to the last of the old; null without a deploy.")
    ] = None
    missing_static: Annotated[
        int | None, means("Static files that pages name and that were not there, right after the page or at the end.")
    ] = None
    figures: Annotated[
        dict[str, float | None] | None, means("Figure of this fault alone -> its value; the unit is in the name.")
    ] = None
    example: Annotated[str | None, means("The first wrong or stale answer, in words.")] = None
    request: Annotated[
        str | None,
        means("The first request without a right answer, as a curl command for `up --port 8000`; null without one."),
    ] = None
    servers: Annotated[dict[str, str] | None, means("Server -> what was done to it, or what became of it.")] = None
    other_cpu_share: Annotated[float | None, means("Share of the machine's CPU time that other processes took.")] = None
    late_p99_ms: Annotated[float | None, means("How late 1 in 100 requests of the visitors left.")] = None

    @property
    def failed(self) -> int | None:
        """All requests without a right answer."""
        return None if self.failed_new is None else self.failed_new + (self.failed_kept or 0)

    @property
    def word(self) -> str:
        """`FAIL`, `VOIDED`, `skipped`, `declared` or `pass`."""
        words = {"failed": "FAIL", "voided": "VOIDED", "skipped": "skipped"}
        return words.get(self.status, "declared" if self.declared else "pass")


@dataclass(frozen=True)
class FaultsRun:
    """The whole folder, read."""

    directory: Path
    info: FaultsInfo
    outcomes: tuple[FaultOutcome, ...]

    @property
    def latest(self) -> dict[str, FaultOutcome]:
        """Fault id -> its last outcome; a repeated one replaces the earlier."""
        return {outcome.fault_id: outcome for outcome in self.outcomes}


def is_faults(directory: Path) -> bool:
    """Whether the folder is one of `bench faults`."""
    return (directory / INFO_FILE).is_file()


def read_faults(directory: Path) -> FaultsRun:
    """The folder's records. Raises ResultsError, in one line, when it is not one of `bench faults`."""
    if not is_faults(directory):
        raise ResultsError(f"{directory}: it has no {INFO_FILE}; give a folder that `python -m bench faults` made")
    path = directory / INFO_FILE
    content = folder.read_json(path)
    folder.require_format(path, content, FORMAT)
    outcomes = folder.read_lines(FaultOutcome, directory / OUTCOMES_FILE)
    return FaultsRun(directory, folder.convert(FaultsInfo, content, path), tuple(outcomes))


class FaultsFolder:
    """The folder while it is written. Each outcome is on the disk before the next fault begins."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.raw = directory / RAW_DIRECTORY

    def create(self, info: FaultsInfo) -> None:
        """Make the folder. Raises ResultsError when it already holds something or cannot be made."""
        if self.directory.is_dir() and any(self.directory.iterdir()):
            raise ResultsError(f"{self.directory}: not empty; give --to a new folder, or continue with --resume")
        try:
            self.raw.mkdir(parents=True, exist_ok=True)
            self.write_info(info)
        except OSError as error:
            raise ResultsError(f"{self.directory}: cannot be made: {error.strerror}") from None

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """The folder for this process alone, as long as the context lasts. Raises ResultsError when another has it."""
        return folder.locked(self.directory, "faults are being made in it; wait until they end")

    def write_info(self, info: FaultsInfo) -> None:
        """Write faults.json, whole or not at all."""
        folder.write_json(self.directory / INFO_FILE, info)

    def append(self, outcome: FaultOutcome) -> None:
        """Add one line to faults.jsonl and wait until it is on the disk."""
        folder.append_lines(self.directory / OUTCOMES_FILE, [outcome])

    def repair(self) -> None:
        """Cut off the torn last line that a kill can leave."""
        folder.repair_lines(self.directory / OUTCOMES_FILE)
