"""Locust's master here and its workers on load hosts, which are this machine, too: figures, and what goes wrong."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from bench import paths, programs
from bench.errors import BenchError
from bench.fleet import locust as module
from bench.fleet.inventory import Host
from bench.fleet.locust import Wanted, run
from bench.machine.ports import free_port
from bench.results.locust import ALL
from tests.waiting import until

# It is not imported here: it would change the sockets of this process.
missing = importlib.util.find_spec("locust") is None
pytestmark = [pytest.mark.servers, pytest.mark.skipif(missing, reason="package not installed: locust")]

LOAD = [Host(f"load{number}", f"127.0.0.{number}", ("load",), "127.0.0.1", local=True) for number in (1, 2)]
OLDER: list[psutil.Process] = []
LOCUSTFILE = """
from locust import FastHttpUser, HttpUser, constant_pacing, task

class Reader(HttpUser):
    wait_time = constant_pacing(0.05)

    @task
    def page(self):
        self.client.get("/page")

class Quick(FastHttpUser):
    wait_time = constant_pacing(0.05)

    @task
    def absent(self):
        self.client.get("/absent")
"""


class Site(ThreadingHTTPServer):
    """Answers everything but /absent, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, address: str = "127.0.0.1"):
        super().__init__((address, 0), Handler)
        self.asked: list[tuple[str, str, str]] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.path, self.headers["Host"], self.headers.get("X-Test", "")))
        self.send_response(404 if self.path == "/absent" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    with Site() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def locustfile(tmp_path):
    def write(text: str = LOCUSTFILE) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(text)
        return path

    return write


def wanted(site, locustfile: Path, **more) -> Wanted:
    url = f"http://site.example:{site.server_port}"
    given = {"users": 2, "each_s": 20, "seconds": 2, "address": "127.0.0.1", "headers": {"X-Test": "yes"}}
    return Wanted(locustfile, url, **{**given, **more})


def locusts() -> list[psutil.Process]:
    """The processes that this test has started. Those of others are older: this process may serve a database."""
    every = psutil.Process(os.getpid()).children(recursive=True)
    return [one for one in every if one.status() != psutil.STATUS_ZOMBIE and one not in OLDER]


@pytest.fixture(autouse=True)
def older():
    OLDER[:] = psutil.Process(os.getpid()).children(recursive=True)


def test_two_hosts_make_the_load_and_the_master_counts_it(site, locustfile, tmp_path):
    site.asked.clear()
    found = run(LOAD, wanted(site, locustfile()), tmp_path / "raw")
    *named, every = found.requests
    assert {(one.method, one.name, one.failures > 0) for one in named} == {
        ("GET", "/page", False),
        ("GET", "/absent", True),
    }
    assert every.name == ALL
    assert every.requests == sum(one.requests for one in named)
    # Those under way at the end are in nobody's figures.
    assert 0 <= len(site.asked) - every.requests <= 2
    assert {asked[1:] for asked in site.asked} == {(f"site.example:{site.server_port}", "yes")}
    assert found.failures[0].occurrences == sum(one.failures for one in named)
    # Its percentiles are rounded, its maximum is not.
    assert 0 < every.latency_p50_ms <= every.latency_p99_ms <= 1.1 * every.latency_max_ms
    assert found.hosts == {"load1": 1, "load2": 1}
    assert (found.users, found.locustfile) == (2, "mine.py")
    kept = {path.name for path in (tmp_path / "raw").iterdir()}
    assert {"locust.json", "locust_stats.csv", "locust_stats_history.csv", "locust_failures.csv"} <= kept
    assert {"this machine.log", "load1.log", "load2.log"} <= kept
    assert locusts() == []


def refused(*arguments) -> str:
    with pytest.raises(BenchError) as caught:
        run(*arguments)
    assert locusts() == []
    return str(caught.value)


def test_a_locustfile_that_cannot_be_loaded_is_one_line(site, locustfile, tmp_path):
    path = locustfile("import absent")
    reason = f"{path}: Locust cannot run it: ModuleNotFoundError: No module named 'absent'"
    assert refused(LOAD, wanted(site, path), tmp_path / "raw") == reason


def test_a_worker_that_ends_is_named(site, locustfile, tmp_path):
    path = locustfile(f"import sys\nif '--worker' in sys.argv: raise RuntimeError('not here')\n{LOCUSTFILE}")
    assert refused(LOAD[:1], wanted(site, path, users=1), tmp_path / "raw") == (
        "load1: Locust's worker ended: RuntimeError: not here"
    )


def test_workers_that_do_not_come_are_counted(site, locustfile, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WORKERS_S", 1)
    worker = Wanted.worker
    monkeypatch.setattr(Wanted, "worker", lambda self, port, processes: worker(self, free_port(), processes))
    job = wanted(site, locustfile(), users=1)
    assert refused(LOAD[:1], job, tmp_path / "raw") == "0 of 1 Locust workers came within 1 s"


def test_a_host_without_locust_and_one_that_cannot_be_reached_are_named(site, locustfile, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *metadata*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    lacking = replace(LOAD[1], python=str(python))
    assert refused([LOAD[0], lacking], wanted(site, locustfile()), tmp_path / "raw") == (
        f"load2: Locust is not installed; install it there: {python} -m pip install locust"
    )
    closed = replace(LOAD[1], local=False, port=1)
    assert refused([closed], wanted(site, locustfile()), tmp_path / "raw") == (
        "load2: cannot be reached: connect to host 127.0.0.1 port 1: Connection refused"
    )


def test_what_cannot_be_wanted_is_one_line(site, tmp_path, locustfile, monkeypatch):
    with pytest.raises(BenchError, match=f"{tmp_path}/none.py: no such file; give --locustfile a locustfile of yours"):
        wanted(site, tmp_path / "none.py")
    with pytest.raises(BenchError, match="Locust needs at least one user and a second"):
        wanted(site, locustfile(), users=0)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BenchError, match=r"package not installed: locust; install it: .* -r requirements-hosts.txt"):
        wanted(site, locustfile())


KILLED = """
import os, sys, threading
from pathlib import Path
from tests.bench.fleet.test_locust import LOAD, Wanted, run
run(LOAD[:1], Wanted(Path(sys.argv[1]), sys.argv[2], 1, 1.0, 60), Path(sys.argv[3]))
"""


def test_nothing_is_left_when_the_controller_is_killed(site, locustfile, tmp_path):
    site.asked.clear()
    words = [str(locustfile()), f"http://127.0.0.1:{site.server_port}", str(tmp_path / "raw")]
    with subprocess.Popen([sys.executable, "-c", KILLED, *words], cwd=paths.PROJECT) as controller:
        until(lambda: site.asked, "users ask for pages")
        running = psutil.Process(controller.pid).children(recursive=True)
        folders = {Path(one.cwd()) for one in running if "benchapp-locust-" in one.cwd()}
        assert len(running) >= 4 and len(folders) == 2
        controller.kill()
    until(
        lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in running), "all have ended"
    )
    assert not any(folder.exists() for folder in folders)


@pytest.fixture
def far(tmp_path):
    """A load host behind ssh, in a network namespace of its own."""
    programs_found = {name: programs.find([name]) for name in ("ip", "sshd", "ssh-keygen")}
    if absent := [name for name, path in programs_found.items() if path is None]:
        pytest.skip(f"program not installed: {', '.join(absent)}")
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces")
    name, net = f"bl-{os.getpid()}", f"10.{os.getpid() % 200 + 20}.77"
    keys = [tmp_path / "key", tmp_path / "host_key"]
    for key in keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, stdin=subprocess.DEVNULL)
    inside = [f"addr add {net}.2/24 dev eth0", "link set lo up", "link set eth0 up"]
    steps = [f"netns add {name}", f"link add {name} type veth peer name eth0 netns {name}"]
    steps += [f"addr add {net}.1/24 dev {name}", f"link set {name} up", *(f"-n {name} {step}" for step in inside)]
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    serve = ["ip", "netns", "exec", name, programs_found["sshd"], "-D", "-e", "-f", "/dev/null", "-p", "2222"]
    options = [f"HostKey={keys[1]}", f"AuthorizedKeysFile={keys[0]}.pub", "UsePAM=no", "StrictModes=no", "PidFile=none"]
    try:
        for step in steps:
            subprocess.run(["ip", *step.split()], check=True, capture_output=True)
        sshd = subprocess.Popen([*serve, *(word for option in options for word in ("-o", option))], stderr=-3)
        try:
            until(lambda: reached(f"{net}.2"), "sshd listens")
            known = ("-o", f"UserKnownHostsFile={tmp_path}/known", "-o", "StrictHostKeyChecking=accept-new")
            yield Host(
                "far1", f"{net}.2", ("load",), f"{net}.2", 2222, "root", str(keys[0]), known, python=sys.executable
            )
        finally:
            sshd.kill()
            sshd.wait()
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)


def reached(address: str) -> bool:
    try:
        socket.create_connection((address, 2222), timeout=1).close()
    except OSError:
        return False
    return True


def test_workers_reach_the_master_through_ssh(far, locustfile, tmp_path):
    own = far.address.removesuffix("2") + "1"
    with Site(own) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        job = Wanted(locustfile(), f"http://{own}:{server.server_port}", 1, 1.0, 1)
        found = run([far], job, tmp_path / "raw")
        server.shutdown()
    assert found.hosts == {"far1": 1} and found.requests[-1].requests > 5
