"""The ceiling of the load tool, measured once in a run, so that no trial measures the tool instead of the server.

The tool loads a small plain file of the fastest static server there is. On shared cores the two slow each other down,
so the rate says little. The processor time that the tool takes for a request says more: the ceiling is the rate at
which it would fill one core. A trial's ceiling is that of as many cores as the tool can keep busy with its connections.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from bench import paths
from bench.measure.trial import Load, Running, TrialError, load_once

STACKS = paths.DEPLOY / "calibration.toml"
FILE = "small.txt"
SECONDS = 2
# Connections of a closed loop, requests a second of an open one.
LEVELS = {"closed": 16, "open": 1000}


def stacks(path: Path = STACKS) -> list[str]:
    """Stacks to calibrate on, the fastest static server first."""
    return tomllib.loads(path.read_text("utf-8"))["stacks"]


def ceilings(running: Running, name: str, load: Load, kinds: set[bool], directory: Path) -> dict[bool, float]:
    """Requests a second at most with all of one core, with keep-alive (True) or without (False), where measured.

    `name` is the collected name of the file; the output of the tool goes to `directory`.
    """
    found = {}
    for keep_alive in kinds:
        job = load.job(running.url, (f"/static/{name}",), LEVELS[load.mode], keep_alive, SECONDS)
        folder = directory / ("reused" if job.keep_alive else "new")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            figures, seconds = load_once(job, load, folder)
        except TrialError:
            continue
        if seconds > 0 and not figures.failure():
            found[job.keep_alive] = round(figures.requests_total / seconds, 1)
    return found


def write(path: Path, found: dict[bool, float]) -> None:
    """Store the ceilings, so that a resumed run has the same."""
    path.write_text(json.dumps([[keep_alive, ceiling] for keep_alive, ceiling in found.items()]) + "\n", "utf-8")


def read(path: Path) -> dict[bool, float] | None:
    """The stored ceilings, None when there are none."""
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else None
