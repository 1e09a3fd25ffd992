"""Load tools as pure adapters: arguments to a command, output text to numbers. No module here starts a process.

The trial runner writes the command's files into a directory of the trial, runs the command there with only the
command's environment, and returns its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bench.errors import BenchError
from bench.measure.load.ab import Ab
from bench.measure.load.base import Command, Figures, LoadError, Tool
from bench.measure.load.engine import CLOSED_LOOP, OPEN_LOOP, Engine
from bench.measure.load.openloop.job import LoadJob
from bench.measure.load.siege import Siege
from bench.measure.load.wrk import Wrk

__all__ = ["CHOICES", "TOOLS", "Command", "Figures", "LoadError", "LoadJob", "Tool", "choose"]

# In order of preference: the first suitable installed tool is used. The engine is always available; siege measures less
# and runs only on request.
TOOLS: tuple[Tool, ...] = (Wrk(), Ab(), CLOSED_LOOP, OPEN_LOOP, Siege())
# Names for the user to choose from. The engine is chosen automatically.
CHOICES = tuple(tool.name for tool in TOOLS if not isinstance(tool, Engine))


def choose(
    workloads: Iterable[Iterable[str]],
    find: Callable[[Iterable[str]], Path | None],
    wanted: str | None = None,
    mode: str = "closed",
) -> tuple[Tool, str]:
    """The load tool of a whole run, and its program.

    `workloads` are the paths of each workload, `find` looks a program up, `wanted` is the name of a required tool,
    `mode` is closed or open loop. Raises BenchError if no installed tool fits.
    """
    candidates = [tool for tool in TOOLS if tool.mode == mode and wanted in (None, tool.name)]
    if not candidates:
        raise BenchError(f"--tool {wanted} makes no {mode} loop; leave it out")
    counts = [len(set(paths)) for paths in workloads]
    for tool in candidates:
        fits = tool.url_list or all(count <= 1 for count in counts)
        if fits and (program := find(tool.programs)):
            return tool, str(program)
        if wanted is not None and not fits:
            raise BenchError(f"--tool {wanted} loads a single URL; choose workloads of one URL, or another tool")
    raise BenchError(f"--tool {wanted} is not installed; install it, as `make servers` does in a clone")
