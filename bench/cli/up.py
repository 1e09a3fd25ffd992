"""Serve the site by a stack until a signal comes. Prints one line, `ready http://127.0.0.1:PORT/`, when ready; Ctrl-C
or SIGTERM stops everything, SIGUSR1 reloads."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from dataclasses import replace
from types import FrameType

from bench.cli import options
from bench.errors import BenchError, DeploymentError
from bench.printer import Printer, working
from bench.serve.deployment import database, deployment, reload
from bench.serve.deployment.case import Case, must_resolve
from bench.serve.deployment.supervisor import Supervisor
from bench.serve.project import health

POLL_S = 0.2
# If set, the settings laid over a project leave its task queues unchanged.
QUEUES = "BENCHAPP_QUEUES"


OPTIONS = (
    *(options.STACK, options.LAYER, options.SIZE, *options.PROJECT_SERVED),
    *(options.PORT, options.RESTART, options.WORKERS),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `up`."""
    options.add(parser, OPTIONS)


def main(args: argparse.Namespace) -> int:
    """Serve until a signal comes; returns 0 after a signal, 130 or 143 if the signal came before the site was ready."""
    # Both are set: a shell starts background commands with SIGINT ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    reload_due = threading.Event()
    ready = False
    try:
        case = _case(args)
        with (
            Printer(sys.stderr) as printer,
            database.in_use(case.project, case.database, is_exclusive=False),
            deployment.deployed(case, port=args.port, progress=printer.show) as running,
        ):
            printer.clear()
            for note in running.notes:
                printer.say(f"note: {note}")
            # Not SIGHUP, which a closed terminal sends.
            signal.signal(signal.SIGUSR1, lambda *_: reload_due.set())
            with reload.reachable(running) as served:
                ready = True
                print(f"ready {running.url}/", flush=True)
                _watch(running, served, reload_due, args)
    except KeyboardInterrupt as interrupt:
        if ready:
            # A person stops the command by Ctrl-C, so this is no failure.
            return 0
        (number,) = interrupt.args
        _print(f"{signal.Signals(number).name} before it was ready; everything it started is stopped")
        return 128 + int(number)
    return 0


def _case(args: argparse.Namespace) -> Case:
    """The case of the command line; raises BenchError if it cannot run here."""
    with working("looking at the project"):
        project = options.project_of(args)
        rows = options.database_of(args, project)
        # Before servers are installed for it.
        health.require_page(project, rows.of_project)
    env = args.env
    if args.workers:
        if not project.description.workers:
            raise BenchError(f"--workers: {project.folder} has none; describe one as [tool.benchapp.workers.NAME]")
        env = {QUEUES: "1", **env}
    case = must_resolve(
        project,
        options.one_stack(args),
        args.layer,
        size=args.size,
        database=rows,
        changes=args.set,
        env=env,
    )
    return replace(case, workers=args.workers)


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


def _watch(
    running: deployment.Running, served: reload.Served, reload_due: threading.Event, args: argparse.Namespace
) -> None:
    """Wait for a signal, and reload on SIGUSR1.

    A server or service that ends by itself raises DeploymentError or, with --restart, is restarted. A process killed by
    the kernel at the memory limit may be replaced at once, so the kill is printed here.
    """
    supervisor = None
    if args.restart:
        supervisor = Supervisor(running, _print)
    killed = 0
    while True:
        if reload_due.wait(POLL_S):
            reload_due.clear()
            _reload(running, served, args.restart)
        if (kills := running.oom_kills() or 0) > killed:
            some = f"{kills - killed} process{'es'[: 2 * (kills - killed > 1)]}"
            _print(f"out of memory: the kernel killed {some} at the limit of size {args.size}")
            killed = kills
        if supervisor:
            supervisor.step()
        elif error := running.died():
            raise DeploymentError(f"{error.message}; all else is stopped", error.log)


def _print(what: str) -> None:
    print(f"benchapp up: {what}", file=sys.stderr, flush=True)


def _reload(running: deployment.Running, served: reload.Served, restart: bool) -> None:
    """Reload, and note the outcome for `reload`; a refusal changes nothing."""
    served.problem, served.done = "", {}
    try:
        served.done = reload.reload(running)
    except DeploymentError as error:
        served.problem = error.message
        if not restart:
            raise
    except BenchError as error:
        served.problem = f"nothing was reloaded: {error}"
    finally:
        served.reloads += 1
        served.write()
    print(
        "reload:", served.problem or "; ".join(f"{name} {done}" for name, done in served.done.items()), file=sys.stderr
    )
