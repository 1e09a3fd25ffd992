"""Every application server as its stack renders it, against the plain command of its documentation.

    python -m tests.proofs.plain [SERVER ...] [--rounds 12] [--duration 2] [--connections 16] [--json FILE]

The stack and the plain command serve the same site, as the same user, from the same database, with the same environment
and as many worker processes. Both are up at the same time. In each round each of them is loaded once, in an order drawn
again and on new connections, so that other work on the machine disturbs both. Printed are the medians of the rounds,
their ranges, and their ratio with its 95 % interval, of requests/s and of requests for each
second of the servers' CPU time (which other work disturbs less). A stack must reach 0.95 of the requests/s.

Threads are as many as each side has: on a busy machine the side with more of them gets more of its cores, so read
requests/s on an idle one. If a stack has a web server in front, its CPU time counts, too. flup is left
out: it has no command, and its stacks start it as its documentation does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import paths
from bench.errors import BenchError
from bench.measure.stats import Table
from bench.serve.catalog import catalog
from bench.serve.deployment import database, deployment
from bench.serve.deployment.case import CannotRun, resolve
from bench.serve.deployment.chain import READY_TIMEOUT_S
from bench.serve.deployment.deployment import Running
from bench.serve.deployment.program import Program
from bench.serve.machine import ports, supervise
from bench.serve.project.opened import open_project
from tests.proofs.arguments import count
from tests.proofs.loading import closed_loop, loaded

BAR = 0.95
PAGES = ("/posts/", "/")
PLAIN, STACK = "plain", "stack"


@dataclass(frozen=True)
class Server:
    """An application server.

    stack       the stack that shows it with the least around it
    link        the documentation that gives the command
    command     its words, with `port`, `processes` and `folder` (a new directory) to fill in
    changes     values of the stack that differ, since the plain command can have no others
    keep_alive  whether connections of the load are reused
    """

    stack: str
    link: str
    command: str
    changes: dict[str, Any] = field(default_factory=dict)
    keep_alive: bool = True


SERVERS = {
    "gunicorn": Server(
        "gunicorn",
        "https://docs.djangoproject.com/en/5.2/howto/deployment/wsgi/gunicorn/",
        "gunicorn --workers {processes} --bind 127.0.0.1:{port} config.wsgi",
    ),
    "uwsgi": Server(
        "uwsgi",
        "https://uwsgi-docs.readthedocs.io/en/latest/WSGIquickstart.html",
        "uwsgi --http 127.0.0.1:{port} --module config.wsgi --master --processes {processes}",
        # Both sides close each connection, and the plain command does not announce it.
        keep_alive=False,
    ),
    "granian": Server(
        "granian",
        "https://github.com/emmett-framework/granian#quickstart",
        "granian --interface wsgi --workers {processes} --port {port} config.wsgi:application",
    ),
    "uvicorn": Server(
        "uvicorn",
        "https://docs.djangoproject.com/en/5.2/howto/deployment/asgi/uvicorn/",
        "uvicorn --workers {processes} --port {port} config.asgi:application",
    ),
    "hypercorn": Server(
        "hypercorn",
        "https://docs.djangoproject.com/en/5.2/howto/deployment/asgi/hypercorn/",
        "hypercorn --workers {processes} --bind 127.0.0.1:{port} config.asgi:application",
    ),
    "daphne": Server(
        "daphne",
        "https://docs.djangoproject.com/en/5.2/howto/deployment/asgi/daphne/",
        "daphne --port {port} config.asgi:application",
    ),
    "waitress": Server(
        "waitress",
        "https://docs.pylonsproject.org/projects/waitress/en/latest/runner.html",
        "waitress-serve --listen 127.0.0.1:{port} config.wsgi:application",
    ),
    "cheroot": Server(
        "nginx-cherrypy",
        "https://cheroot.cherrypy.dev/en/latest/pkg/cheroot.cli/",
        "cheroot --bind 127.0.0.1:{port} config.wsgi:application",
        # Its command starts one process.
        {"processes": 1},
        # The plain command keeps 10 connections open, and closes some of more without announcing it.
        keep_alive=False,
    ),
    "mod_wsgi": Server(
        "apache-modwsgi",
        "https://pypi.org/project/mod-wsgi/",
        "mod_wsgi-express start-server --processes {processes} --host 127.0.0.1 --port {port} --server-root {folder} "
        "config/wsgi.py",
    ),
}


@dataclass
class Pair:
    """One page of one server: for each side, round -> requests/s, and round -> requests for a second of CPU time."""

    server: str
    page: str
    rates: dict[str, dict[int, float]] = field(default_factory=lambda: {PLAIN: {}, STACK: {}})
    per_cpu_s: dict[str, dict[int, float]] = field(default_factory=lambda: {PLAIN: {}, STACK: {}})

    @property
    def ratio(self) -> tuple[float, float, float]:
        """The stack's requests/s against those of the plain command, with the ends of its 95 % interval."""
        return Table(self.rates).ratio(STACK, PLAIN)

    @property
    def ratio_per_cpu_s(self) -> tuple[float, float, float]:
        """The stack's requests for a second of CPU time against those of the plain command, with its interval."""
        return Table(self.per_cpu_s).ratio(STACK, PLAIN)

    @property
    def below(self) -> bool:
        """True if the stack does not reach the bar."""
        return self.ratio[0] < BAR


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.plain", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=f"of {', '.join(SERVERS)} (default: all)")
    parser.add_argument("--rounds", type=count(), default=12, metavar="N", help="pairs (default: %(default)s)")
    parser.add_argument("--duration", type=count(), default=2, metavar="SEC", help="of a load (default: %(default)s)")
    parser.add_argument(
        "--connections", type=count(), default=16, metavar="N", help="connections (default: %(default)s)"
    )
    parser.add_argument("--database", default="sqlite", help="as of `up` (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args(arguments)
    if unknown := [name for name in args.servers if name not in SERVERS]:
        parser.error(f"no server called {unknown[0]!r}; there are: {', '.join(SERVERS)}")
    return args


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns 1 when a stack is below the bar or could not be measured."""
    args = parse(arguments)
    pairs: list[Pair] = []
    failed = False
    for name in args.servers or SERVERS:
        try:
            pairs.extend(measure(name, args))
        except BenchError as error:
            print(f"{name} failed: {error}", file=sys.stderr)
            failed = True
    print(f"load average: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores", file=sys.stderr)
    print(table(pairs))
    if args.json:
        args.json.write_text(json.dumps([as_json(pair) for pair in pairs], indent=1) + "\n")
    return int(failed or any(pair.below for pair in pairs))


def measure(name: str, args: argparse.Namespace) -> list[Pair]:
    """All rounds of one server; none when its stack cannot run here."""
    server = SERVERS[name]
    project = open_project()
    rows = database.parse(project, args.database)
    chosen = catalog.read().of_user(server.changes, {})
    if isinstance(case := resolve(project, server.stack, database=rows, chosen=chosen), CannotRun):
        print(f"{name} left out: {case.reason}", file=sys.stderr)
        return []
    # wrk takes a connection that is closed without a word for an error.
    wanted = None if server.keep_alive else "closedloop"
    how = closed_loop(PAGES, args.duration, wanted)
    pairs = [Pair(name, page) for page in PAGES]
    with deployment.deployed(case) as running, plain(server, running) as (url, pid):
        sides = {PLAIN: (url, [pid]), STACK: (running.url, list(running.pids.values()))}
        # The first round is a warm-up.
        for number in range(args.rounds + 1):
            for pair in pairs:
                for side in random.sample(list(sides), 2):
                    url, pids = sides[side]
                    job = how.job(url, (pair.page,), args.connections, server.keep_alive)
                    rate, per_cpu_s = loaded(how, job, pids)
                    if number:
                        pair.rates[side][number], pair.per_cpu_s[side][number] = rate, per_cpu_s
            print(f"{name}: round {number} of {args.rounds}", file=sys.stderr)
    return pairs


@contextmanager
def plain(server: Server, running: Running) -> Iterator[tuple[str, int]]:
    """Start the plain command beside the deployment; its URL and the root of its process tree. Stops it at the end."""
    port = ports.free_port()
    launcher = running.chain.launcher
    with tempfile.TemporaryDirectory() as folder:
        launcher.identity.give(Path(folder))
        workers = running.case.values.names["processes"]
        program, *words = server.command.format(port=port, processes=workers, folder=folder).split()
        argv = [str(paths.VENV / "bin" / program), *words]
        env = {**running.env, "PYTHONPATH": str(paths.KIT)}
        process = launcher.start(Program("plain", "", argv, "", "INT", 1), env, cwd=paths.KIT, stop_signal="INT")
        try:
            url = f"http://127.0.0.1:{port}"
            supervise.wait_healthy([process], url, running.case.project.health, READY_TIMEOUT_S)
            yield url, process.pid
        finally:
            supervise.stop([process])


def as_json(pair: Pair) -> dict[str, object]:
    """The figures of a pair, and where its command comes from."""
    server = SERVERS[pair.server]
    return {
        "server": pair.server,
        "stack": server.stack,
        "page": pair.page,
        "plain": server.command,
        "documentation": server.link,
        "requests_per_s": {side: list(rates.values()) for side, rates in pair.rates.items()},
        "requests_per_cpu_s": {side: list(rates.values()) for side, rates in pair.per_cpu_s.items()},
        "ratio": pair.ratio,
        "ratio_per_cpu_s": pair.ratio_per_cpu_s,
        "below": pair.below,
    }


def table(pairs: list[Pair]) -> str:
    """The table in Markdown, with what is below the bar marked."""
    lines = [
        "| server | stack | page | plain, requests/s | range | stack, requests/s | range | ratio | 95 % interval "
        "| ratio per CPU second | 95 % interval |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for pair in pairs:
        cells = [pair.server, SERVERS[pair.server].stack, pair.page]
        for rates in pair.rates.values():
            values = list(rates.values())
            cells += [f"{statistics.median(values):,.0f}", f"{min(values):,.0f} to {max(values):,.0f}"]
        for ratio, low, high in (pair.ratio, pair.ratio_per_cpu_s):
            cells += [f"{ratio:.2f}", f"{low:.2f} to {high:.2f}"]
        lines.append(f"| {' | '.join(cells)} |" + (" below the bar" if pair.below else ""))
    return "\n".join([*lines, "", f"bar: {BAR:g} of the plain command's requests/s"])


if __name__ == "__main__":
    sys.exit(main())
