"""Reload the deployment of an `up`, as an operator would: new configuration files, and a new version of the site's
code.

A serving `up` has a file in var/up/. `reload` finds the file, sends SIGUSR1 to the process, and reads the outcome.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench import PROGRAM, paths
from bench.errors import BenchError
from bench.serve.deployment import config_check, render
from bench.serve.deployment.deployment import Running
from bench.serve.machine import orphans
from bench.serve.project import commands

FOLDER = paths.STATE / "up"
POLL_S = 0.1
# Longer than any server takes to reload or restart on a busy machine.
TIMEOUT_S = 120


@dataclass
class Served:
    """One `up`, and the outcome of its last reload.

    owner    see orphans.owner()
    reloads  the number of ended reloads
    done     the last reload's actions, by the server's name
    problem  the reason for a failure of the last reload, or empty
    """

    owner: str
    pid: int
    stack: str
    layer: str
    url: str
    reloads: int = 0
    done: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.pid}.json"

    @property
    def title(self) -> str:
        return f"{self.stack} with layer {self.layer} at {self.url}/, pid {self.pid}"

    def write(self) -> None:
        """Write the object to its file."""
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)), "utf-8")
        temporary.replace(self.path)


def reload(running: Running) -> dict[str, str]:
    """Render the files again, collect the static files, and have every server read changed files and code.

    Returns the actions, by the server's name. Raises BenchError, and changes nothing, if the site's own check, a
    template or a server's test of its files fails; raises DeploymentError if the site does not come back.
    """
    chain, case = running.chain, running.case
    identity = chain.launcher.identity
    commands.manage(case.project, ["check"], running.env, identity)
    commands.collect_static(case.project, identity, again=True)
    with tempfile.TemporaryDirectory(prefix="benchapp-check-") as folder:
        for server in case.servers:
            if server.check and (problem := config_check.problem(case, server, Path(folder))):
                raise BenchError(f"{server.name}: {problem}")
    before = _texts(running.layout.conf)
    render.write_files(chain.placed, running.layout.conf)
    after = _texts(running.layout.conf)
    changed = before.items() ^ after.items()
    return chain.reload({name for name, _ in changed})


@contextmanager
def reachable(running: Running) -> Iterator[Served]:
    """Let `reload` find this deployment until the block ends."""
    case = running.case
    served = Served(orphans.owner(), os.getpid(), case.stack.name, case.layer_name, running.url)
    FOLDER.mkdir(parents=True, exist_ok=True)
    served.write()
    try:
        yield served
    finally:
        served.path.unlink(missing_ok=True)


def find(*, port: int | None = None, pid: int | None = None) -> Served:
    """The `up` of this checkout with that port or process id, or the only one; raises BenchError without one."""
    wanted = running = all_served()
    if port is not None:
        wanted = [served for served in wanted if served.url.endswith(f":{port}")]
    if pid is not None:
        wanted = [served for served in wanted if served.pid == pid]
    if len(wanted) == 1:
        return wanted[0]
    if not running:
        raise BenchError(f"nothing of this checkout is served by `{PROGRAM} up`; start one first")
    there = "; ".join(served.title for served in running)
    if not wanted:
        name = f"port {port}"
        if pid is not None:
            name = f"pid {pid}"
        raise BenchError(f"no `up` has {name}; there are: {there}")
    raise BenchError(f"name one of them with --port or --pid: {there}")


def all_served() -> list[Served]:
    """Every running `up` of this checkout; files of killed ones are removed."""
    records = []
    for path in sorted(FOLDER.glob("*.json")):
        try:
            served = Served(**json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if orphans.is_gone(served.owner):
            path.unlink(missing_ok=True)
        else:
            records.append(served)
    return records


def request_reload(served: Served) -> Served:
    """Have that `up` reload, and wait for the outcome; raises BenchError for a failure, an ended `up` or a timeout."""
    if not orphans.is_of_this_host(served.owner):
        # Here the number is another process's, or nobody's.
        raise BenchError(f"{served.title}: it runs on another host; reload there, or remove {served.path}")
    try:
        os.kill(served.pid, signal.SIGUSR1)
    except ProcessLookupError:
        raise BenchError(f"{served.title}: this `up` has ended; start it again") from None
    except PermissionError:
        raise BenchError(f"pid {served.pid} belongs to another user; reload as the user who started it") from None
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        time.sleep(POLL_S)
        now = next((item for item in all_served() if item.owner == served.owner), None)
        if now is None:
            raise BenchError(f"{served.title}: `up` ended during the reload; it printed why")
        if now.reloads > served.reloads:
            if now.problem:
                raise BenchError(now.problem)
            return now
    raise BenchError(f"{served.title}: no outcome within {TIMEOUT_S} s")


def _texts(folder: Path) -> dict[str, bytes]:
    contents = {}
    for path in folder.rglob("*"):
        if path.is_file():
            contents[str(path.relative_to(folder))] = path.read_bytes()
    return contents
