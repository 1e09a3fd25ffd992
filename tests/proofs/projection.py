"""Hold a projection against what it projects: the law fitted to up to four limited hosts, and eight of them measured.

    python -m tests.proofs.projection [--seconds 3] [--rounds 3]

A host is a network namespace with a link of 1 Gbit/s and a server in it that has a small share of a core, by a control
group (as root). Each request takes it some processor time; where hosts contend, it also holds a lock that all of them
share, as a row in a database is. As many clients as a host can have waiting ask it, one request after another.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.client
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from bench import paths
from bench.cli.options import count
from bench.figures.projection import Point, Projected, Projection, project
from bench.fleet.inventory import WEB
from bench.fleet.world import build, links, plan
from bench.fleet.world.plan import NETWORK, Member
from bench.machine import cgroups
from bench.machine.cgroups import Limits
from bench.machine.lock import exclusive

MEASURED, HELD_AGAINST = (1, 2, 3, 4), 8
CPUS, MEMORY = 0.1, 256 * 1024 * 1024
WORK_S = 0.004  # of processor time for a request
CLIENTS = 2  # of each host
LINK, PORT = "1gbit", 8000
READY_S = 20.0
# What hosts share -> how long a request holds the lock.
SHARED = {"nothing shared": 0.0, "a lock of 8 ms": 0.008}


class Handler(BaseHTTPRequestHandler):
    """Answers a request after its work, and its turn at the lock."""

    protocol_version = "HTTP/1.1"
    lock, hold_s = Path(), 0.0

    def do_GET(self) -> None:
        until = time.thread_time() + WORK_S
        while time.thread_time() < until:
            pass
        if self.hold_s:
            with self.lock.open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep(self.hold_s)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def serve(address: str, lock: str, hold_s: float) -> None:
    """Be a host until killed."""
    Handler.lock, Handler.hold_s = Path(lock), hold_s
    ThreadingHTTPServer((address, PORT), Handler).serve_forever()


@contextlib.contextmanager
def hosts(number: int, hold_s: float) -> Iterator[list[str]]:
    """The addresses of so many limited hosts that serve; raises BenchError where none can be made."""
    plan.must_be_possible()
    members = [Member(f"web{each}", WEB, f"{NETWORK}.{each + 10}") for each in range(1, number + 1)]
    with exclusive(build.LOCK, "another world of hosts", timeout_s=0), ExitStack() as cleanup:
        build.remove()
        cleanup.callback(links.remove)
        links.make(members, LINK)
        lock = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="benchapp-"))) / "lock"
        for member in members:
            group = cgroups.group()
            cleanup.callback(group.remove)
            group.create(Limits(MEMORY, MEMORY, CPUS))
            words = [sys.executable, "-m", "tests.proofs.projection", "--serve", member.address, str(lock), str(hold_s)]
            there = ["ip", "netns", "exec", member.namespace, *words]
            server = subprocess.Popen([*group.join, *there], cwd=paths.PROJECT)
            cleanup.callback(server.wait)
            cleanup.callback(server.kill)
        for member in members:
            wait_for(member.address)
        yield [member.address for member in members]


def wait_for(address: str) -> None:
    """Return once it answers; a limited host needs some seconds for its imports."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            return ask(address, threading.Event(), [], once=True)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def ask(address: str, ended: threading.Event, answers: list[float], once: bool = False) -> None:
    """Ask again and again until the end; the times of the answers."""
    with contextlib.closing(http.client.HTTPConnection(address, PORT, timeout=READY_S)) as connection:
        while not ended.is_set():
            connection.request("GET", "/")
            connection.getresponse().read()
            answers.append(time.monotonic())
            if once:
                return


def rate(addresses: list[str], seconds: float) -> float:
    """Answers a second of all hosts together, after a second that does not count."""
    ended, answers = threading.Event(), [[] for _ in range(CLIENTS * len(addresses))]
    clients = [
        threading.Thread(target=ask, args=(address, ended, own))
        for address, own in zip(addresses * CLIENTS, answers, strict=True)
    ]
    for client in clients:
        client.start()
    begin = time.monotonic() + 1
    time.sleep(1 + seconds)
    ended.set()
    for client in clients:
        client.join()
    return sum(begin <= at < begin + seconds for own in answers for at in own) / seconds


def measure(hold_s: float, rounds: int, seconds: float) -> dict[int, list[float]]:
    """Number of hosts -> answers a second, round by round."""
    found: dict[int, list[float]] = {}
    with hosts(HELD_AGAINST, hold_s) as addresses:
        for _ in range(rounds):
            for number in (*MEASURED, HELD_AGAINST):
                found.setdefault(number, []).append(rate(addresses[:number], seconds))
    return found


def judge(found: dict[int, list[float]]) -> tuple[Projection, Projected | None]:
    """The projection from the smaller numbers, and its row for the largest; None where it does not go as far."""
    projection = project([Point(number, each) for number in MEASURED for each in found[number]])
    return projection, next((row for row in projection.rows if row.hosts == HELD_AGAINST), None)


# A difference below this does not count, as in a run: the share of a core that a host gets differs by some percent.
MARGIN = 1.05
HOLDS, MISSED, NOT_PROJECTED = "holds", "MISSED", "not projected"


def line(name: str, found: dict[int, list[float]]) -> tuple[str, str]:
    """A line of the table, and how it went: HOLDS, MISSED or NOT_PROJECTED, which proves neither."""
    medians = " ".join(f"{median(found[number]):7.1f}" for number in (*MEASURED, HELD_AGAINST))
    projection, row = judge(found)
    if row is None:
        return f"{name:16} {medians}  {NOT_PROJECTED}: {projection.refused or projection.ends}", NOT_PROJECTED
    verdict = HOLDS if row.low / MARGIN <= median(found[HELD_AGAINST]) <= row.high * MARGIN else MISSED
    return f"{name:16} {medians}  {row.low:7.1f} to {row.high:.1f}, law {row.law:.1f}: {verdict}", verdict


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table; 0 when a projection was made and each that was holds what was measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.projection", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=count, default=3, metavar="SEC", help="of a trial (default: %(default)s)")
    parser.add_argument("--rounds", type=count, default=3, metavar="R", help="default: %(default)s")
    parser.add_argument("--serve", nargs=3, metavar=("ADDRESS", "LOCK", "SEC"), help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.serve:
        serve(args.serve[0], args.serve[1], float(args.serve[2]))
    numbers = " ".join(f"{number:7}" for number in (*MEASURED, HELD_AGAINST))
    print(f"{'requests/s of':16} {numbers}  projected for {HELD_AGAINST} from up to {MEASURED[-1]}")
    verdicts = []
    for name, hold_s in SHARED.items():
        text, verdict = line(name, measure(hold_s, args.rounds, args.seconds))
        verdicts.append(verdict)
        print(text, flush=True)
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (HOLDS, MISSED, NOT_PROJECTED)))
    return 0 if HOLDS in verdicts and MISSED not in verdicts else 1


if __name__ == "__main__":
    sys.exit(main())
