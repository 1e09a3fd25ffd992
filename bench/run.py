"""Measure stacks under layers: plan the cases, bring each deployment up in every round in a shuffled order, verify it
once, measure it, take it down. Results are a folder; a run that is stopped goes on with --resume."""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from bench import (
    compose,
    database,
    deployment,
    listing,
    load,
    machine,
    manifest,
    paths,
    programs,
    results,
    site,
    values,
)
from bench import plan as planning
from bench import workload as workloads
from bench.compose import Composition
from bench.deployment import Running
from bench.errors import BenchError, DeploymentError
from bench.identity import worker
from bench.interrupt import Interrupts, Stopped
from bench.plan import Deployment
from bench.progress import Progress, say
from bench.results import Check, Folder, Plan, RunInfo, Trial
from bench.trial import Load, failed, measure, newest_log, now
from bench.up import add_set, environment
from bench.verify import Verifier
from bench.visit import get

SUMMARY = "measure stacks under layers into a folder of results"

LEVEL = 16
ROUNDS = 3
DURATION_S = 10
LONGEST_WARMUP_S = 2.0
MOST_CONNECTIONS = 10_000
# Below this many cores the load tool cannot have one of its own.
CORES_FOR_ALL = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `run`."""
    several = "(repeatable; default: %s)"
    parser.add_argument("--stack", action="append", metavar="S", help="a stack of `list` " + several % "all")
    parser.add_argument(
        "--layer", action="append", metavar="L", help="a layer, or several joined with + " + several % "all"
    )
    parser.add_argument(
        "--workload", action="append", metavar="W", help=f"{', '.join(workloads.workloads())} " + several % "session"
    )
    parser.add_argument(
        "--level", action="append", type=_level, metavar="N", help="concurrent connections " + several % LEVEL
    )
    parser.add_argument("--rounds", type=_count, metavar="R", help=f"trials of each case (default: {ROUNDS})")
    parser.add_argument("--duration", type=_count, metavar="SEC", help=f"seconds of a trial (default: {DURATION_S})")
    parser.add_argument(
        "--warmup",
        type=_seconds,
        metavar="SEC",
        help="seconds of load before a trial (default: a fifth of it, at most 2)",
    )
    parser.add_argument(
        "--size", action="append", metavar="Z", help="resource limits " + several % "unlimited, the only one"
    )
    parser.add_argument("--database", metavar="D", help="sqlite (default), postgresql (a private cluster) or a URL")
    parser.add_argument("--tool", metavar="T", help="the load tool: " + ", ".join(tool.name for tool in load.TOOLS))
    parser.add_argument("--to", type=Path, metavar="DIR", help="folder of the results (default: results/DATE-TIME)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with the run in that folder")
    parser.add_argument(
        "--env", action="append", metavar="K=V", help="a variable of the site's environment (kept with the results)"
    )
    add_set(parser)


def main(args: argparse.Namespace, host: Host | None = None) -> int:
    """Measure; returns 0, 1 when a case failed, 130 or 143 when stopped by Ctrl-C or SIGTERM."""
    host = host or Host()
    run = _resumed(args, host) if args.resume else _begun(args, host)
    with Interrupts() as interrupts:
        try:
            return run.go(interrupts)
        except Stopped as stopped:
            where = run.folder.directory
            print(f"bench run: {stopped.name}; go on with: python -m bench run --resume {where}", file=sys.stderr)
            return stopped.exit_status


class Host:
    """What a run needs of the rest of the instrument."""

    def __init__(self) -> None:
        self._verifier = Verifier()

    def compose(self, stack: str, layer: str) -> Composition | compose.Skip:
        """The stack with the layer, or why it cannot run here; raises BenchError for a name that does not exist."""
        return compose.compose(compose.stack(stack), compose.layers(layer))

    def deployed(self, stack: str, layer: str, **how) -> AbstractContextManager[Running]:
        """The deployment, up as long as the context lasts."""
        return deployment.deployed(stack, layer, **how)

    def verify(self, running: Running) -> list[Check]:
        """Every check of the behaviour suite."""
        return [
            Check(item.stack, item.layer, item.check, item.ok, item.expected, item.got, item.declared)
            for item in self._verifier.verify(running)
        ]

    def static_names(self) -> dict[str, str]:
        """Collected names of the static files by their plain ones."""
        return site.static_names()

    def rows_total(self, running: Running) -> int | None:
        """How many rows the site holds."""
        printed = site.manage(["siterows", "--json"], running.env["DATABASE_URL"], worker())
        return sum(json.loads(printed).values())

    def programs(self, cases: Iterable[results.Case], database_label: str) -> dict[str, str]:
        """Versions of the servers and services of these cases, by name."""
        survey = listing.survey()
        found: dict[str, str | None] = {}
        services = {database_label}
        for stack, layer in dict.fromkeys((case.stack, case.layer) for case in cases):
            found |= {server["name"]: server["version"] for server in survey["stacks"][stack]["servers"]}
            services |= {service.name for service in self.compose(stack, layer).services}
        found |= {name: about["version"] for name, about in survey["services"].items() if name in services}
        return {name: version for name, version in found.items() if version}


@dataclass
class Run:
    """A run under way.

    made    trials already recorded
    asked   the database as `deployed` takes it, which may hold a password and is not recorded
    """

    folder: Folder
    info: RunInfo
    load: Load
    host: Host
    asked: str | None
    made: tuple[Trial, ...] = ()
    checks: tuple[Check, ...] = ()

    def __post_init__(self) -> None:
        plan = self.info.plan
        done = {trial.trial_id for trial in self.made}
        self.schedule = []
        for item in planning.schedule(self.info.cases, plan.levels, plan.rounds, plan.order_seed or 0):
            if left := tuple(m for m in item.measurements if m.trial_id not in done):
                self.schedule.append(replace(item, measurements=left))
        remaining = sum(len(item.measurements) for item in self.schedule)
        self.progress = Progress(len(self.info.cases), plan.rounds, remaining, self.made)
        self.failures = sum(trial.status == "failed" for trial in self.made)
        self.addresses = self.folder.read_addresses()
        self.verified = {(check.stack, check.layer) for check in self.checks}
        self.wrong = {(check.stack, check.layer): check for check in reversed(self.checks) if not check.ok}

    def go(self, interrupts: Interrupts) -> int:
        """Measure all that is left; returns the exit status."""
        self._announce()
        for item in self.schedule:
            self._deployment(item, interrupts)
        self.info = replace(self.info, finished_at=now())
        self.folder.write_info(self.info)
        if self.failures:
            say(f"{self.failures} of {len(self.info.cases) * self._trials_a_case()} trials failed")
        say(f"results in {self.folder.directory}; next: python -m bench report {self.folder.directory}")
        return 1 if self.failures else 0

    def _trials_a_case(self) -> int:
        return len(self.info.plan.levels) * self.info.plan.rounds

    def _announce(self) -> None:
        trials = sum(len(item.measurements) for item in self.schedule)
        say(f"{len(self.info.cases)} cases, {trials} trials to make by {self.load.tool.name}")
        say(f"results go to {self.folder.directory}")
        for skip in self.info.skips:
            say(f"skipped: {skip.stack} with layer {skip.layer}: {skip.reason}")
        for note in self.info.notes:
            say(f"note: {note}")

    def _deployment(self, item: Deployment, interrupts: Interrupts) -> None:
        """Make the measurements of a deployment; when it dies on the way, it is brought up again for the rest."""
        left = list(item.measurements)
        attempt = 0
        while left:
            attempt += 1
            if wrong := self.wrong.get((item.stack, item.layer)):
                self._fail(left, _wrong_answer(wrong))
                return
            directory = self.folder.raw / (f"{item.name}~r{item.round}" + (f"~{attempt}" if attempt > 1 else ""))
            try:
                self._bring_up(item, left, directory, interrupts)
            except DeploymentError as error:
                self._fail(left, error.message, error.log or newest_log(directory / "logs"))
                return
            except BenchError as error:
                self._fail(left, str(error), newest_log(directory / "logs"))
                return
            finally:
                _tidy(directory, self.folder.configs / item.name)

    def _bring_up(self, item: Deployment, left: list, directory: Path, interrupts: Interrupts) -> None:
        plan = self.info.plan
        deployed = self.host.deployed(
            item.stack,
            item.layer,
            database=self.asked,
            size=item.size,
            run_dir=directory,
            env=environment(list(plan.env)),
            changes=values.parse_changes(list(plan.changes)),
        )
        with interrupts.released_at_end(), deployed as running:
            try:
                self._look_at_site(running)
                if self._verify(item, running):
                    self._measure(left, running)
            finally:
                # Now all is taken down, which no signal may cut short.
                interrupts.hold()

    def _look_at_site(self, running: Running) -> None:
        """What is asked of the site once in a run: how many rows it has, and the addresses of the workloads."""
        if self.addresses:
            return
        self.info = replace(self.info, plan=replace(self.info.plan, rows_total=self.host.rows_total(running)))
        self.folder.write_info(self.info)
        found = {}
        for name in self.info.plan.workloads:
            found[name] = workloads.resolve(
                workloads.named(name), lambda path: get(running.url, path).decode(), self.host.static_names()
            )
        self.folder.write_addresses(found)
        self.addresses = found

    def _verify(self, item: Deployment, running: Running) -> bool:
        """Whether the deployment gives right answers; it is asked the first time that it appears in the run."""
        key = (item.stack, item.layer)
        if key not in self.verified:
            started = time.monotonic()
            checks = self.host.verify(running)
            self.folder.append_checks(checks)
            self.verified.add(key)
            wrong = [check for check in checks if not check.ok]
            if wrong:
                self.wrong[key] = wrong[0]
            verdict = f"{len(wrong)} of {len(checks)} checks FAILED" if wrong else f"{len(checks)} checks passed"
            say(f"verified {item.stack}, layer {item.layer}: {verdict} in {time.monotonic() - started:.1f} s")
        return key not in self.wrong

    def _measure(self, left: list, running: Running) -> None:
        while left:
            measurement = left[0]
            trial = measure(
                measurement.case,
                measurement.level,
                measurement.round,
                self.addresses[measurement.case.workload],
                running,
                self.load,
                self.folder,
            )
            died = running.died() if trial.status == "failed" else None
            if died:
                log = self.folder.relative(died.log) or trial.log
                trial = replace(trial, reason=f"{trial.reason}; {died.message}", log=log)
            self._record(trial)
            left.pop(0)
            if died:
                return

    def _fail(self, left: list, reason: str, log: Path | None = None) -> None:
        for measurement in left:
            where = self.folder.relative(log)
            trial = failed(measurement.case, measurement.level, measurement.round, self.load, reason, where)
            self._record(trial)
        left.clear()

    def _record(self, trial: Trial) -> None:
        self.folder.append_trial(trial)
        self.failures += trial.status == "failed"
        self.progress.trial(trial)


def _wrong_answer(check: Check) -> str:
    return f"not measured, it gives wrong answers: {check.check}: expected {check.expected}, got {check.got}"


def _tidy(directory: Path, configs: Path) -> None:
    """Keep the logs and, once, the rendered files of a deployment; remove its stored pages and the rest."""
    if not directory.is_dir():
        return
    if (directory / "conf").is_dir() and not configs.exists():
        shutil.copytree(directory / "conf", configs)
    for path in directory.iterdir():
        if path.name != "logs":
            shutil.rmtree(path, ignore_errors=True)


# ------------------------------------------------------------------------------------- beginning, resuming


def _begun(args: argparse.Namespace, host: Host) -> Run:
    """A new run of what the arguments ask for, its folder made. Raises BenchError for what does not exist."""
    asked = database.parse(args.database, manifest.services())
    duration_s = args.duration or DURATION_S
    for name in args.size or ():
        deployment.check_size(name)
    environment(args.env or [])
    values.read("bench").changed(values.parse_changes(args.set))
    plan = Plan(
        stacks=_unique(args.stack) or tuple(manifest.stacks()),
        layers=_unique(args.layer) or tuple(manifest.layers()),
        workloads=_unique(args.workload) or (workloads.DEFAULT,),
        levels=_unique(args.level) or (LEVEL,),
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
    )
    tool = _load(plan, args.tool)
    cases, skips = planning.cases(plan, host.compose)
    folder = Folder(args.to or _new_folder())
    folder.create()
    about_tool = results.LoadTool(
        tool.tool.name, programs.version((tool.program, *tool.tool.version)), tool.tool.fallback
    )
    folder.write_environment(machine.environment(host.programs(cases, plan.database), about_tool))
    command = tuple(_without_password(word) for word in ("python", "-m", "bench", *sys.argv[1:]))
    info = RunInfo(results.FORMAT, command, now(), None, plan, cases, skips, _notes(tool))
    folder.write_info(info)
    return Run(folder, info, tool, host, args.database)


def _resumed(args: argparse.Namespace, host: Host) -> Run:
    """The run in a folder, with what is left of it. Raises BenchError when it cannot be gone on with as it was."""
    for name in (
        "stack",
        "layer",
        "workload",
        "level",
        "rounds",
        "duration",
        "warmup",
        "size",
        "tool",
        "to",
        "env",
        "set",
    ):
        if getattr(args, name) not in (None, []):
            raise BenchError(f"--resume takes its plan from {args.resume}; leave out --{name}")
    run = results.read_run(args.resume)
    plan = run.info.plan
    known = database.parse(args.database, manifest.services())
    if plan.database_given and known.own:
        raise BenchError(f"--resume {args.resume}: its database was named by URL, which is not kept; give --database")
    asked = args.database or (None if plan.database_given else plan.database)
    if database.parse(asked, manifest.services()).label != plan.database:
        raise BenchError(f"--resume {args.resume}: it measures {plan.database}; leave out --database {known.label}")
    tool = _load(plan, run.environment.load_tool.name)
    folder = Folder(args.resume)
    folder.repair()
    if not run.info.finished_at:
        return Run(folder, run.info, tool, host, asked, run.trials, run.checks)
    raise BenchError(f"--resume {args.resume}: the run is complete; next: python -m bench report {args.resume}")


def _load(plan: Plan, wanted: str | None) -> Load:
    steps = [workloads.named(name).steps for name in plan.workloads]
    tool, program = load.choose(steps, programs.find, wanted)
    # The servers need the cores more than the load tool does.
    return Load(tool, str(program), int(plan.duration_s), plan.warmup_s, max(1, machine.cores() // 2))


def _notes(tool: Load) -> tuple[str, ...]:
    notes = []
    cores = machine.cores()
    if cores < CORES_FOR_ALL:
        notes.append(
            f"{cores} cores: the load tool shares them with the servers, so figures hold against each other on this "
            "machine and not as capacities"
        )
    if tool.tool.fallback:
        notes.append(
            f"load made by {tool.tool.name} from pip, as no system load tool is installed; it costs more processor "
            "time than those, and on shared cores the servers have the less"
        )
    if not tool.tool.can_keep_alive:
        notes.append(f"{tool.tool.name} opens a new connection for each request")
    return tuple(notes)


def _new_folder() -> Path:
    name = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = paths.RESULTS / name
    number = 1
    while folder.exists():
        number += 1
        folder = paths.RESULTS / f"{name}-{number}"
    return folder


def _unique(values: Iterable | None) -> tuple:
    return tuple(dict.fromkeys(values or ()))


def _without_password(word: str) -> str:
    return re.sub(r"://[^/@\s]*@", "://...@", word)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _level(text: str) -> int:
    number = _count(text)
    if number > MOST_CONNECTIONS:
        raise argparse.ArgumentTypeError(f"{text} connections are too many; use at most {MOST_CONNECTIONS}")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds
