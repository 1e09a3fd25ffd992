"""Options of the commands that measure, inject faults and read results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import paths
from bench.cli import argument_types, options
from bench.cli.options import RESULTS, SERVED, Option, project_folder
from bench.errors import BenchError
from bench.measure import load, stats
from bench.measure.records.folder import RUN_FILE
from bench.measure.run import guards, plan, replay, workload
from bench.measure.stats.rate_search import parse_limit
from bench.serve.project import description


def _results_folder(text: str) -> Path:
    """A folder of results, not necessarily existing."""
    path = Path(text)
    try:
        (path / RUN_FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise BenchError(f"{text}: {error.strerror}") from None
    return path


def _workloads(args: argparse.Namespace) -> list[str]:
    """The workloads of a project; empty for an unreadable project, because its command explains why."""
    try:
        return workload.names(description.read_description(project_folder(args) or paths.KIT, args.config)[0])
    except BenchError:
        return []


# --- What is measured ----------------------------------------------------------------------------

WORKLOAD = Option(
    ("--workload",),
    f"a workload of the project; NAME{workload.CLOSE}: with a connection a request (default: the first)",
    SERVED,
    "WORKLOAD",
    argument_types.name,
    complete=_workloads,
    hosts=True,
)
WORKLOADS = replace(WORKLOAD, help=WORKLOAD.help.replace("(", "(repeatable; "), many=True, usual=())
REFS = Option(("--ref",), "serve a commit (repeatable); . is the working tree", SERVED, "REF", many=True, usual=())
SAME_RESPONSES = Option(
    ("--same-responses",), "fail a case whose pages differ from the first --ref's", SERVED, needs="--ref"
)

# --- Load ----------------------------------------------------------------------------------------

LOAD = "load"

CONNECTIONS = Option(
    ("--connections",),
    f"connections (repeatable; default: {plan.LEVEL})",
    LOAD,
    "N",
    argument_types.count(plan.MAX_CONNECTIONS),
    many=True,
    usual=(),
    hosts=True,
)
RATE = Option(
    ("--rate",),
    "fixed requests/s (repeatable); x1: those of a recording",
    LOAD,
    "N",
    replay.rate,
    many=True,
    usual=(),
    hosts=True,
    excludes=("--connections",),
)
CAPACITY = Option(
    ("--capacity",),
    "find the highest rate within a latency: p95=200ms",
    LOAD,
    "LIMIT",
    parse_limit,
    hosts=True,
    excludes=("--until-decided", "--rate", "--connections"),
)
DURATION = Option(
    ("--duration",),
    f"seconds of a trial (default: {plan.DURATION_S}; {plan.CAPACITY_DURATION_S} with --capacity)",
    LOAD,
    "SECONDS",
    argument_types.count(plan.MAX_SECONDS),
    hosts=True,
)
TOOL = Option(
    ("--tool",),
    f"{', '.join(load.CHOICES)} (default: the best that is installed)",
    LOAD,
    "TOOL",
    argument_types.choice(load.CHOICES),
    complete=lambda _: load.CHOICES,
)
# Of `run`.
LOADS = (CONNECTIONS, RATE, CAPACITY, DURATION, TOOL)

# --- When to stop --------------------------------------------------------------------------------

STOP = "when to stop"

ROUNDS = Option(
    ("--rounds",),
    f"trials of each case (default: {plan.ROUNDS}; {plan.ROUNDS_UNTIL_DECIDED} until decided)",
    STOP,
    "N",
    argument_types.count(plan.MAX_ROUNDS),
    hosts=True,
)
UNTIL_DECIDED = Option(("--until-decided",), "drop cases that cannot win, until one leads or all tie", STOP)
MAX_TIME = Option(
    ("--max-time",),
    "time limit, such as 3m (at least two rounds are made)",
    STOP,
    "TIME",
    argument_types.seconds,
    needs="--until-decided",
)
MARGIN = Option(
    ("--margin",),
    f"ignore smaller differences (default: {stats.MARGIN})",
    STOP,
    "SHARE",
    argument_types.share,
    hosts=True,
)
KEEP_GOING = Option(("--keep-going",), "do not stop when a busy machine spoils trials", STOP, resumes=True)
# Verdicts that may fail a run.
VERDICTS = ("slower", "inconclusive")
FAIL_IF = Option(
    ("--fail-if",),
    "exit with 1 if a later --ref is slower, or inconclusive",
    STOP,
    "VERDICT",
    argument_types.choice(VERDICTS),
    complete=lambda _: VERDICTS,
    many=True,
    usual=(),
    resumes=True,
    needs="--ref",
)


def guard(bounds: Mapping[str, float]) -> Option:
    """The option for the bounds of guards, with their defaults."""
    usual = ", ".join(f"{name}={bound:g}" for name, bound in bounds.items())
    text = f"bound of a guard, or off (repeatable): {usual}"
    read = partial(guards.parse_bound, usual=bounds)
    return Option(("--guard",), text, STOP, "NAME=BOUND", read, by_name=True, usual={}, hosts=True)


GUARD = guard(guards.BOUNDS)
# Of `run`.
STOPS = (ROUNDS, UNTIL_DECIDED, MAX_TIME, MARGIN, FAIL_IF, GUARD, KEEP_GOING)

# --- Results -------------------------------------------------------------------------------------

OUTPUT = replace(options.OUTPUT, help="folder of the results (default: results/DATE-TIME)", read=_results_folder)
OUTPUT_PAGE = replace(OUTPUT, help="the page (default: DIR/report.html)", metavar="FILE", read=Path)
RESUME = Option(
    ("--resume",),
    "go on with the results in this folder",
    RESULTS,
    "DIR",
    _results_folder,
    resumes=True,
    hosts=True,
    source="takes its plan from {}",
)
DRY_RUN = Option(
    ("--dry-run",), "print the plan and how long it takes; start nothing", RESULTS, hosts=True, excludes=("--json",)
)
FAIL_IF_B = replace(FAIL_IF, help="exit with 1 if B is slower, or inconclusive (repeatable)", group=RESULTS, needs="")
SCHEMA = Option(("--schema",), "print the JSON Schema of the files of results", RESULTS, excludes=("--json",))
FOLDERS = Option(("DIR",), "folder of a run or of faults", RESULTS, "DIR", _results_folder, many=True, usual=())
BEFORE = Option(("DIR_A",), "folder of a run", RESULTS, "DIR_A", _results_folder)
AFTER = replace(BEFORE, names=("DIR_B",), help="folder of the run to compare with it", metavar="DIR_B")
FORCE_COMPARE = replace(
    options.FORCE, help="compare runs from different environments anyway", group=RESULTS, hosts=False
)
