"""Measure stacks under layers: plan the cases, bring each deployment up in every round in a shuffled order, verify it
once, measure it, take it down. Results are a folder; a run that is stopped goes on with --resume."""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from bench import load, paths, programs
from bench.catalog import catalog, sizes, values
from bench.catalog import workload as workloads
from bench.cli import options
from bench.errors import BenchError, GlobalFault
from bench.figures import stats
from bench.host import machine, pin
from bench.interrupt import Interrupts, Stopped
from bench.measure import guards
from bench.measure import plan as planning
from bench.measure.session import Host, Run
from bench.measure.trial import Load, now
from bench.results import records
from bench.results.folder import Folder, read_run
from bench.results.records import Case, Environment, LoadTool, Plan, RunInfo
from bench.serve import database

LEVEL = 16
# Requests a second that any stack should stand.
RATE = 50
ROUNDS = 5
DURATION_S = 10
LONGEST_WARMUP_S = 2.0
MOST_CONNECTIONS = 10_000
MOST_RATE = 100_000
MOST_ROUNDS = 10_000
MOST_SECONDS = 86_400
# Arguments that a run keeps and --resume may not change.
PLAN_ARGUMENTS = [
    "stack",
    "layer",
    "workload",
    "mode",
    "level",
    "rate",
    "rounds",
    "duration",
    "warmup",
    "size",
    "tool",
    "to",
    "env",
    "set",
    "margin",
    "guard",
    "pin",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `run`."""
    several = "(repeatable; default: %s)"
    parser.add_argument("--stack", action="append", metavar="S", help="a stack of `list` " + several % "all")
    options.add_layer(parser, several=True)
    parser.add_argument(
        "--workload", action="append", metavar="W", help=f"{', '.join(workloads.workloads())} " + several % "session"
    )
    parser.add_argument(
        "--mode",
        choices=("closed", "open"),
        help="closed: connections, as fast as answers come (default); open: requests leave on a schedule",
    )
    parser.add_argument(
        "--level",
        action="append",
        type=_count,
        metavar="N",
        help="connections, or requests a second with --mode open " + several % f"{LEVEL}, or {RATE} requests a second",
    )
    parser.add_argument(
        "--rate", action="append", type=_count, metavar="N", help="--mode open with this --level (repeatable)"
    )
    parser.add_argument("--rounds", type=_count, metavar="R", help=f"trials of each case (default: {ROUNDS})")
    parser.add_argument("--duration", type=_count, metavar="SEC", help=f"seconds of a trial (default: {DURATION_S})")
    parser.add_argument(
        "--warmup",
        type=_seconds,
        metavar="SEC",
        help="seconds of load before a trial (default: a fifth of it, at most 2)",
    )
    options.add_size(parser, several=True)
    options.add_database(parser)
    parser.add_argument("--tool", metavar="T", help="the load tool: " + ", ".join(tool.name for tool in load.TOOLS))
    options.add_folder(parser, "run")
    options.add_env(parser)
    parser.add_argument(
        "--verify",
        choices=("quick", "full"),
        default="quick",
        help="full: before a deployment is measured, also the checks of its layer that take seconds (default: quick)",
    )
    parser.add_argument(
        "--margin",
        type=_share,
        metavar="SHARE",
        help=f"what differs by less is no difference (default: {stats.MARGIN})",
    )
    options.add_guard(parser)
    parser.add_argument(
        "--pin",
        action=argparse.BooleanOptionalAction,
        help=f"keep load tool, stack and services on cores of their own (default: with {pin.CORES_FOR_ALL} or more)",
    )
    options.add_set(parser)


def main(args: argparse.Namespace, host: Host | None = None) -> int:
    """Measure; returns 0, 1 when a case failed, 130 or 143 when stopped by Ctrl-C or SIGTERM."""
    host = host or Host(thorough=args.verify == "full")
    run = _resumed(args, host) if args.resume else _begun(args, host)
    with run.folder.locked(), Interrupts() as interrupts:
        try:
            return run.go(interrupts)
        except Stopped as stopped:
            print(f"bench run: {stopped.name}; go on with: {_again(run)}", file=sys.stderr)
            return stopped.exit_status
        except GlobalFault as fault:
            raise BenchError(f"stopped: {fault}; mend it and go on with: {_again(run)}") from None


def _again(run: Run) -> str:
    url = " --database URL" if run.info.plan.database_given else ""
    return f"python -m bench run --resume {run.folder.directory}{url}"


# ------------------------------------------------------------------------------------- beginning, resuming


def _begun(args: argparse.Namespace, host: Host) -> Run:
    """A new run of what the arguments ask for, its folder made. Raises BenchError for what does not exist."""
    known, asked = catalog.read(), database.parse(args.database)
    _check_lengths(args)
    duration_s = args.duration or DURATION_S
    mode, levels = _mode(args)
    for name in args.size or ():
        known.size(name)
    values.environment(args.env)
    known.values[values.BENCH].changed(values.parse_changes(args.set))
    plan = Plan(
        stacks=_unique(args.stack) or tuple(known.stacks),
        layers=_unique(args.layer) or tuple(known.layers),
        workloads=_unique(args.workload) or (workloads.DEFAULT,),
        levels=levels,
        rounds=args.rounds or ROUNDS,
        duration_s=float(duration_s),
        warmup_s=min(LONGEST_WARMUP_S, duration_s / 5) if args.warmup is None else args.warmup,
        sizes=_unique(args.size) or ("unlimited",),
        database=asked.label,
        rows_total=None,
        order_seed=random.SystemRandom().randrange(2**31),
        database_given=not asked.own,
        changes=tuple(args.set),
        env=tuple(args.env or ()),
        mode=mode,
        margin=stats.MARGIN if args.margin is None else args.margin,
        guards=guards.bounds(args.guard or []),
    )
    pinned = pin.cores(machine.affinity(), args.pin)
    tool = _load(plan, args.tool, pinned)
    cases, skips = planning.cases(plan, host.compose, lambda name: sizes.problem(known.size(name)))
    folder = Folder(args.to or new_folder())
    paths.must_be_plain(folder.directory)
    about = _environment(cases, plan, tool, host, pinned)
    folder.create()
    folder.write_environment(about)
    command = tuple(without_password(word) for word in ("python", "-m", "bench", *sys.argv[1:]))
    info = RunInfo(records.FORMAT, command, now(), None, plan, cases, skips, _notes(tool, pinned))
    folder.write_info(info)
    return Run(folder, info, tool, host, args.database, about)


def _check_lengths(args: argparse.Namespace) -> None:
    """Raise BenchError for a plan that could not be carried out."""
    for name, most in (("rounds", MOST_ROUNDS), ("duration", MOST_SECONDS), ("warmup", MOST_SECONDS)):
        if (getattr(args, name) or 0) > most:
            raise BenchError(f"--{name} {getattr(args, name)}: too many; use at most {most}")


def _mode(args: argparse.Namespace) -> tuple[str, tuple[int, ...]]:
    """Closed or open loop, and its levels. Raises BenchError for what does not go together or is too much."""
    if args.rate and (args.level or args.mode == "closed"):
        other = "--level" if args.level else "--mode closed"
        raise BenchError(f"--rate is --mode open with a --level; leave out {other}")
    mode = "open" if args.rate else args.mode or "closed"
    levels = _unique(args.rate or args.level) or (LEVEL if mode == "closed" else RATE,)
    most, what = (MOST_CONNECTIONS, "connections") if mode == "closed" else (MOST_RATE, "requests a second")
    if max(levels) > most:
        raise BenchError(f"--level {max(levels)}: too many {what}; use at most {most}")
    return mode, levels


def _resumed(args: argparse.Namespace, host: Host) -> Run:
    """The run in a folder, with what is left of it. Raises BenchError when it cannot be gone on with as it was."""
    for name in PLAN_ARGUMENTS:
        if getattr(args, name) not in (None, []):
            raise BenchError(f"--resume takes its plan from {args.resume}; leave out --{name}")
    run = read_run(args.resume)
    if run.info.finished_at:
        raise BenchError(f"--resume {args.resume}: the run is complete; next: python -m bench report {args.resume}")
    asked = _same_database(args, run.info.plan)
    pinned = run.environment.affinity
    if pinned and not set().union(*pinned.values()) <= set(machine.affinity()):
        raise BenchError(f"--resume {args.resume}: it was kept on processor cores that are not here; begin a new run")
    tool = _load(run.info.plan, run.environment.load_tool.name, pinned)
    paths.must_be_plain(args.resume)
    folder = Folder(args.resume)
    with folder.locked():
        folder.repair()
    here = _environment(run.info.cases, run.info.plan, tool, host, pinned)
    began = run.environment
    here = replace(here, configs=began.configs, rows_seed=began.rows_seed, rows_total=began.rows_total)
    notes = (*run.info.notes, *_changes(run.environment, here))
    info = replace(run.info, notes=notes)
    return Run(folder, info, tool, host, asked, run.environment, run.trials, run.checks)


def _same_database(args: argparse.Namespace, plan: Plan) -> str:
    """The database to go on with. Raises BenchError when it is not the one that the run began with."""
    asked = args.database
    if asked is None:
        asked = os.environ.get("DATABASE_URL") if plan.database_given else plan.database
    if asked is None:
        raise BenchError(f"--resume {args.resume}: its database was named by URL, which is not kept; give --database")
    chosen = database.parse(asked)
    if chosen.label != plan.database or chosen.own == plan.database_given:
        hint = "give its URL" if plan.database_given else "leave out --database"
        raise BenchError(f"--resume {args.resume}: it measures another database, {plan.database}; {hint}")
    return asked


def _changes(before: Environment, here: Environment) -> list[str]:
    """A note when a run goes on in another environment than the one it began in."""
    told = asdict(here)
    names = [name for name, value in asdict(before).items() if told[name] != value]
    return [f"gone on with after a stop, with another {', '.join(names)} than it began with"] if names else []


def _environment(cases: Iterable[Case], plan: Plan, chosen: Load, host: Host, pinned: pin.Cores | None) -> Environment:
    tool = chosen.tool
    version = programs.version((chosen.program, *tool.version))
    about_tool = LoadTool(tool.name, version, tool.fallback)
    return machine.environment(host.programs(cases, plan.database), about_tool, pinned)


def _load(plan: Plan, wanted: str | None, pinned: pin.Cores | None) -> Load:
    steps = [catalog.read().workload(name).steps for name in plan.workloads]
    tool, program = load.choose(steps, programs.find, wanted, plan.mode)
    # Where it has no core of its own, one thread could not keep up with the fastest servers.
    threads = len(pinned[pin.LOAD]) if pinned else machine.cores()
    bounds = guards.BOUNDS if plan.guards is None else plan.guards
    return Load(tool, str(program), int(plan.duration_s), plan.warmup_s, threads, plan.mode, bounds)


def _notes(tool: Load, pinned: pin.Cores | None) -> tuple[str, ...]:
    notes = []
    cores = machine.cores()
    if pinned:
        shared = ", ".join(f"{part} on {', '.join(map(str, numbers))}" for part, numbers in pinned.items())
        notes.append(f"processor cores: {shared}")
    if cores < pin.CORES_FOR_ALL and not pinned:
        notes.append(
            f"{cores} cores: the load tool shares them with the servers, so figures hold against each other on this "
            "machine and not as capacities"
        )
    if tool.tool.fallback:
        notes.append(
            f"load made by {tool.tool.name}, the load tool of this project; a request costs it two to three times the "
            "processor time that it costs wrk, and on shared cores that is taken from the servers"
        )
    if not tool.tool.can_keep_alive:
        notes.append(f"{tool.tool.name} opens a new connection for each request")
    return tuple(notes)


def new_folder() -> Path:
    """A folder under results/ that is named after the time and does not exist yet."""
    name = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = paths.RESULTS / name
    number = 1
    while folder.exists():
        number += 1
        folder = paths.RESULTS / f"{name}-{number}"
    return folder


def _unique(values: Iterable | None) -> tuple:
    return tuple(dict.fromkeys(values or ()))


def without_password(word: str) -> str:
    """A word of a command line; of a URL in it without user and password."""
    return re.sub(r"://[^/@\s]*@", "://...@", word)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 0.05")
    return share


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds
