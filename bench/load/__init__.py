"""Load tools as pure adapters: arguments to a command, output text to numbers. Nothing here starts a process.

The trial runner writes the command's files into a directory of the trial, runs the command there with nothing
but the command's environment, and returns its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bench.errors import BenchError, hint
from bench.load.ab import Ab
from bench.load.base import Command, Figures, Job, LoadError, Tool
from bench.load.engine import ClosedLoopTool, OpenLoopTool
from bench.load.hey import Hey
from bench.load.k6 import K6
from bench.load.siege import Siege
from bench.load.wrk import Wrk

__all__ = ["TOOLS", "Command", "Figures", "Job", "LoadError", "Tool", "choose"]

# In the order of preference: the first that is installed and fits is taken. The engine is always there; the tools after
# it run only on request: siege and hey measure less, k6 costs more.
TOOLS: tuple[Tool, ...] = (Wrk(), Ab(), ClosedLoopTool(), OpenLoopTool(), Siege(), Hey(), K6())


def choose(
    workloads: Iterable[Iterable[str]],
    find: Callable[[Iterable[str]], Path | None],
    wanted: str | None = None,
    mode: str = "closed",
) -> tuple[Tool, Path]:
    """The one tool that makes the load of a whole run, and its program.

    `workloads` are the paths of each workload, `find` looks a program up, `wanted` is the name of a tool that
    must be taken, `mode` is closed or open loop. Raises BenchError when there is none that is installed and fits.
    """
    counts = [len(set(paths)) for paths in workloads]
    able = [tool for tool in TOOLS if mode in tool.modes]
    candidates = able if wanted is None else [tool for tool in _named(wanted) if tool in able]
    if not candidates:
        names = ", ".join(tool.name for tool in able)
        raise BenchError(f"--tool {wanted} makes no {mode} loop; leave it out or choose one that does: {names}")
    for tool in candidates:
        fits = tool.url_list or all(count <= 1 for count in counts)
        if fits and (program := find(tool.programs)):
            return tool, program
        if wanted is not None and not fits:
            raise BenchError(f"--tool {wanted} loads a single URL; choose workloads of one URL, or another tool")
    if wanted is not None:
        raise BenchError(f"--tool {wanted} is not installed; {candidates[0].install}")
    raise BenchError(
        "no load tool is installed and no python3 is found to run this project's own; `make bench` brings one"
    )


def _named(name: str) -> list[Tool]:
    """The tools of that name; `openloop` and `closedloop` both name the engine, for either loop."""
    if found := [tool for tool in TOOLS if name == tool.name or name in tool.aliases]:
        return found
    raise BenchError(f"no load tool called {name!r}; {hint(name, (tool.name for tool in TOOLS))}")
