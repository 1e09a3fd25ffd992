"""Somebody's locustfile on the load hosts: Locust's own master here, its workers there, and what they count.

The master listens on loopback alone; workers reach it through the ssh connection that started them. All of it ends with
the call that runs it, and with this process however that ends.
"""

from __future__ import annotations

import importlib.util
import math
import re
import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.errors import BenchError
from bench.fleet.inventory import INSTALL, LOAD, Host
from bench.fleet.locust_talk import Talk
from bench.machine.ports import free_port
from bench.results.locust import LocustFigures

HOOKS = Path(__file__).with_name("locust_hooks.py")
FILES = ("locustfile.py", "benchapp_hooks.py")
FIGURES = "figures.json"
HERE = "127.0.0.1"
CONTROLLER = Host("this machine", HERE, (LOAD,), HERE, local=True)
# Until Locust has read the locustfile, and until its workers have come.
START_S, WORKERS_S = 30.0, 30
# For what is left to be counted, and for all to end.
GRACE_S = 30
POLL_S = 0.05

Answers = dict[Future[dict[str, Any]], Talk]


@dataclass(frozen=True)
class Wanted:
    """What Locust shall do.

    url      of the site, with which a locustfile's relative addresses begin
    users    at the same time
    each_s   users that begin each second
    seconds  from the first user's begin to the end
    address  where connections to the name in `url` go; empty: where the name leads
    trust    certificates (PEM) to verify https by; empty: those of the load hosts
    headers  of every request
    """

    locustfile: Path
    url: str
    users: int
    each_s: float
    seconds: int
    address: str = ""
    trust: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.locustfile.is_file():
            raise BenchError(f"{self.locustfile}: no such file; give --locustfile a locustfile of yours")
        if min(self.users, self.each_s, self.seconds) <= 0:
            raise BenchError("Locust needs at least one user and a second")
        if importlib.util.find_spec("locust") is None:
            raise BenchError(f"package not installed: locust; install it: {INSTALL}")

    def job(self, arguments: Sequence[str], processes: int) -> dict[str, Any]:
        """The job of a host."""
        settings = {"name": urlsplit(self.url).hostname, "address": self.address, "headers": dict(self.headers)}
        texts = (self.locustfile.read_text("utf-8"), HOOKS.read_text("utf-8"), msgspec.json.encode(settings).decode())
        trust = {"trust.pem": self.trust} if self.trust else {}
        return {
            "files": dict(zip((*FILES, "settings.json"), texts, strict=True)) | trust,
            "arguments": ["-f", ",".join(FILES), *arguments],
            "environment": dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), "trust.pem") if trust else {},
            "processes": processes,
            "limit_s": START_S + WORKERS_S + self.seconds + GRACE_S,
        }

    def master(self, port: int, workers: int) -> dict[str, Any]:
        """The job of the master, which counts what so many workers do."""
        words = ["--headless", "--master", "--master-bind-host", HERE, "--master-bind-port", port, "--host", self.url]
        words += ["--expect-workers", workers, "--expect-workers-max-wait", WORKERS_S, "--run-time", f"{self.seconds}s"]
        words += ["--users", self.users, "--spawn-rate", self.each_s, "--csv", "locust", "--json-file", "locust"]
        words += ["--only-summary", "--exit-code-on-error", 0]
        return self.job(list(map(str, words)), 1)

    def worker(self, port: int, processes: int) -> dict[str, Any]:
        """The job of a load host."""
        return self.job(["--worker", "--master-host", HERE, "--master-port", str(port)], processes)


def run(hosts: Sequence[Host], wanted: Wanted, raw: Path) -> LocustFigures:
    """Run a locustfile from these hosts; what Locust wrote and said goes into the folder `raw`.

    Raises BenchError, in one line, when it cannot be run; then nothing of it is left on any host.
    """
    with ExitStack() as ends, ThreadPoolExecutor(len(hosts) + 1) as pool:
        port = free_port()
        talks = [ends.enter_context(Talk(host, port)) for host in (CONTROLLER, *hosts)]
        try:
            _, *greetings = pool.map(Talk.greet, talks)
            most = math.ceil(wanted.users / len(hosts))
            workers = [min(greeting["cores"], most) for greeting in greetings]
            started_at = datetime.now(UTC).isoformat(timespec="seconds")
            master = pool.submit(talks[0].do, wanted.master(port, sum(workers)))
            _wait_for(port, master)
            answers = {master: talks[0]}
            if not master.done():
                pairs = zip(talks[1:], workers, strict=True)
                answers |= {pool.submit(talk.do, wanted.worker(port, count)): talk for talk, count in pairs}
            files = _files(wanted, answers, master, sum(workers))
        finally:
            # Before the pool waits for answers.
            for talk in talks:
                talk.end()
            _keep(raw, {f"{talk.host.name}.log": talk.log for talk in talks if talk.log})
    _keep(raw, files)
    here = {host.name: count for host, count in zip(hosts, workers, strict=True)}
    return replace(_figures(wanted, files), hosts=here, started_at=started_at)


def _wait_for(port: int, master: Future[dict[str, Any]]) -> None:
    """Return when the master listens, or has ended."""
    until = time.monotonic() + START_S
    while not master.done():
        try:
            socket.create_connection((HERE, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise BenchError(f"Locust's master does not listen within {START_S:.0f} s") from None
            time.sleep(POLL_S)


def _files(wanted: Wanted, answers: Answers, master: Future[dict[str, Any]], workers: int) -> dict[str, str]:
    """What the master wrote, once it has ended; raises BenchError when it or one of the workers ended early."""
    until = time.monotonic() + WORKERS_S + wanted.seconds + GRACE_S
    left = set(answers)
    while master in left:
        done, left = wait(left, max(0, until - time.monotonic()), FIRST_COMPLETED)
        if not done:
            raise BenchError(f"{wanted.locustfile}: Locust does not end; a load shape of its own must end in time")
        for answer in done - {master}:
            if any(answer.result()["ended"]):
                raise BenchError(f"{answers[answer].host.name}: Locust's worker ended: {_reason(answers[answer].log)}")
    files: dict[str, str] = master.result()["files"]
    if FIGURES in files:
        return files
    said = answers[master].log
    if "Gave up waiting for workers" in said:
        came = said.count(" reported as ready")
        raise BenchError(f"{came} of {workers} Locust workers came within {WORKERS_S} s")
    raise BenchError(f"{wanted.locustfile}: Locust cannot run it: {_reason(said)}")


def _reason(said: str) -> str:
    """The last line of a log that says something, without its time."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith((" ", "Traceback "))]
    return re.sub(r"^\[[^]]*\] \S+: ", "", lines[-1]).strip()[:200] if lines else "it said nothing"


def _figures(wanted: Wanted, files: Mapping[str, str]) -> LocustFigures:
    asked = {
        "locustfile": wanted.locustfile.name,
        "hosts": {},
        "users": wanted.users,
        "users_per_second": wanted.each_s,
        "duration_s": wanted.seconds,
        "started_at": "",
    }
    found = msgspec.convert(asked | msgspec.json.decode(files[FIGURES]), LocustFigures)
    if not found.requests[-1].requests:
        raise BenchError(f"{wanted.locustfile}: its users made no request; see what Locust said of it")
    return found


def _keep(raw: Path, files: Mapping[str, str]) -> None:
    """Write files as they are."""
    raw.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (raw / name.replace("/", "_")).write_text(text, "utf-8")
