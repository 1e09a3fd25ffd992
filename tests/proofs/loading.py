"""A load outside of any run, as several proofs make it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench import programs
from bench.errors import BenchError
from bench.measure import load
from bench.measure.load import LoadJob
from bench.measure.run import load_process
from bench.measure.run.local import GRACE_S
from bench.measure.run.trial import LoadSettings
from bench.serve.machine import processes


def closed_loop(pages: Iterable[str], duration_s: int, wanted: str | None = None) -> LoadSettings:
    """A closed loop over these pages, by the tool `wanted` or by the one that is there."""
    tool, program = load.choose([(page,) for page in pages], programs.find, wanted)
    return LoadSettings(tool, str(program), duration_s, threads=1)


def loaded(how: LoadSettings, job: LoadJob, pids: Iterable[int]) -> tuple[float, float]:
    """Requests/s, and requests for a second of the CPU time of these process trees. Raises BenchError."""
    before = sum(map(processes.cpu_seconds, pids))
    with tempfile.TemporaryDirectory() as folder:
        command = how.tool.command(how.program, job)
        texts = load_process.run(command, job.connections, Path(folder) / "load", job.seconds + GRACE_S)
    figures = how.tool.parse(*texts)
    if problem := figures.failure():
        raise BenchError(f"{job.base_url}{job.paths[0]}: {how.tool.name}: {problem}")
    used = sum(map(processes.cpu_seconds, pids)) - before
    return figures.requests_per_second, figures.requests_total / used
