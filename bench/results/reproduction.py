"""The files of a reproduction: a folder of runs, one a part, and `reproduction.json`, which lists them.

Like `bench.results.records` it depends on nothing that measures: reports read it, `bench.cli.reproduce` writes it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from bench.results.folder import convert, read_json, require_format, write_json
from bench.results.records import ResultsError, means

FORMAT = 2
FILE = "reproduction.json"
# How often the claims of a reproduction are judged: each time but the last, rounds are added where one is open.
LOOKS = 3
PUBLISHED = Path(__file__).resolve().parent / "published.toml"


@dataclass(frozen=True)
class Part:
    """One run of a reproduction, or its faults, in the folder of its name."""

    name: Annotated[str, means("Name of the part, and of its folder.")]
    reason: Annotated[str | None, means("Why it could not run here; null when it ran or is still to run.")] = None
    notes: Annotated[tuple[str, ...], means("What differs from the publication, and why.")] = ()


@dataclass(frozen=True)
class Reproduction:
    """Which published benchmark a folder repeats, and how."""

    format: Annotated[int, means("Version of this file's format.")]
    benchmark: Annotated[str, means("Name of the benchmark in published.toml.")]
    quick: Annotated[bool, means("True when rounds and seconds were shortened.")]
    command: Annotated[tuple[str, ...], means("Command line of the reproduction.")]
    started_at: Annotated[str, means("When it began, ISO 8601 with offset.")]
    finished_at: Annotated[str | None, means("When it ended; null when it was stopped and can be resumed.")]
    parts: Annotated[tuple[Part, ...], means("Its runs.")]
    guards: Annotated[
        tuple[str, ...], means("Guards of its runs with other bounds than usual, as NAME=BOUND or NAME=off.")
    ] = ()
    looks: Annotated[
        int, means("How often its claims are judged at most: after the planned rounds, and after added ones.")
    ] = 1


@cache
def benchmarks() -> dict[str, dict[str, Any]]:
    """Everything in published.toml, by benchmark."""
    return tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))


def parts_of(benchmark: str) -> list[dict[str, Any]]:
    """The parts of a benchmark in their order: its runs, then its faults."""
    data = benchmarks()[benchmark]
    return [*data["parts"], *data.get("faults", [])]


def is_reproduction(directory: Path) -> bool:
    """Whether the folder holds a reproduction and not a single run."""
    return (directory / FILE).is_file()


def read(directory: Path) -> Reproduction:
    """The reproduction.json of `directory`. Raises ResultsError, in one line, when it cannot be read."""
    path = directory / FILE
    if not path.exists():
        raise ResultsError(
            f"{directory}: not a reproduction, it has no {FILE}; give a folder that `python -m bench reproduce` made"
        )
    content = read_json(path)
    require_format(path, content, FORMAT)
    found = convert(Reproduction, content, path)
    if found.benchmark not in benchmarks():
        raise ResultsError(f"{path}: no published benchmark called {found.benchmark!r}")
    return found


def write(directory: Path, record: Reproduction) -> None:
    """Write reproduction.json, whole or not at all."""
    write_json(directory / FILE, record)
