"""Run commands of the project as a user does, and keep deployments up while a test looks at them."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import psutil
import pytest

from bench import paths
from bench.serve.deployment import case as cases
from bench.serve.deployment.case import CannotRun
from bench.serve.deployment.database import NO_DATABASE
from bench.serve.machine.supervise import Address
from tests.cases import kit


def command(
    *words: str, database: str = "", timeout_s: float = 300, folder: Path = paths.KIT, **more
) -> subprocess.CompletedProcess:
    """Run a command of the project as a user would, in the checkout or in a copy of it."""
    env = {**os.environ, **({"DATABASE_URL": database} if database else {})}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
        **more,
    )


def runnable(stack: str, layer: str = "none") -> None:
    """Skip the test when a program that it needs is not installed, naming it."""
    case = cases.resolve(kit(), stack, layer, database=NO_DATABASE)
    if isinstance(case, CannotRun):
        pytest.skip(case.reason)


# The longest wait for a response: the machine may be busy with other tests.
PATIENCE_S = 30
# Half the processes of the benchmarks' values: each takes half a second of a core to start.
FEW = {"processes": 2}
# Where logins are many and their hash is of no account; commands are tested with the site's own settings.
QUICK_LOGINS = {"DJANGO_SETTINGS_MODULE": "tests.deploy.quick_logins"}
# If a test needs no processes beside each other.
ONE = {"processes": 1}


class Up:
    """`benchapp up`, started as a user would, with one process unless `words` say otherwise, and stopped in the end."""

    def __init__(self, *words: str):
        one = [word for name, value in ONE.items() for word in ("--set", f"{name}={value}")]
        argv = [sys.executable, "-m", "bench", "up", *one, *words]
        self.process = subprocess.Popen(
            argv, cwd=paths.KIT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        )
        self.line = self.process.stdout.readline()

    @property
    def url(self) -> str:
        return self.line.removeprefix("ready ").strip()

    def tree(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=60)


def get(url: str, **more) -> httpx2.Response:
    """Make one request, on a separate connection; `more` are httpx2's keywords.

    No certificate is verified: to read every authority of the machine takes each client of httpx2 40 ms of a core.
    """
    return httpx2.get(url, verify=False, **{"timeout": PATIENCE_S, **more})


def client_of(url: str, **more) -> httpx2.Client:
    """A visitor of the site; see `get`."""
    return httpx2.Client(base_url=url, verify=False, **{"timeout": PATIENCE_S, **more})


def alive(processes) -> list[psutil.Process]:
    return [item for item in processes if item.is_running() and item.status() != psutil.STATUS_ZOMBIE]


def closed(url: str) -> bool:
    parts = httpx2.URL(url)
    return not Address(parts.host, parts.port).accepts()


@contextlib.contextmanager
def idle_connection(address: Address):
    """A connection on which a request got its response."""
    family = socket.AF_UNIX if address.path else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as opened:
        opened.settimeout(PATIENCE_S)
        opened.connect(address.path or (address.host, address.port))
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        response = http.client.HTTPResponse(opened)
        response.begin()
        response.read()
        assert response.status == 200
        yield opened
