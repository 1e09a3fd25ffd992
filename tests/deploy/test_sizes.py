"""Sizes on real deployments: who is inside, what is left, and the Cherokee report's story with a real server."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import psutil
import pytest

from bench.measure.run import local
from bench.serve.catalog.sizes import Size
from bench.serve.deployment import deployment
from bench.serve.machine import cgroups
from bench.serve.machine.cgroups import Unavailable
from tests.cases import resolved
from tests.deploy.running import Up, alive, closed, get, runnable
from tests.waiting import until

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def _groups_can_be_had():
    try:
        cgroups.group()
    except Unavailable as error:
        pytest.skip(str(error))


def groups_of(pid: int) -> set[str]:
    """The control groups of a process that are ours, by their names."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().split()
    return {name for line in lines if (name := line.rpartition("/")[2]).startswith(cgroups.PREFIX)}


def folders(name: str) -> list[Path]:
    """The directories of a control group that exist."""
    return [Path(path) for path, *_ in os.walk("/sys/fs/cgroup") if path.endswith(f"/{name}")]


EATER = """
import sys
for file in sys.argv[1:]:
    with open(file, "w") as procs:
        procs.write("0")
eaten = []
while True:
    eaten.append(bytearray(1 << 20))
"""


def test_stack_layer_and_services_are_inside_and_the_instrument_says_who_is_killed_for_lack_of_memory(site_url):
    runnable("nginx-uwsgi", "fragments")
    with Up("nginx-uwsgi", "--layer", "fragments", "--size", "bronze", "--database", site_url) as up:
        assert get(up.url).status_code == 200
        tree = up.tree()
        inside = [groups_of(process.pid) for process in tree]
        (name,) = set.union(*inside)
        assert inside == [{name}] * len(tree)
        assert not groups_of(up.process.pid)
        processes = [str(folder / "cgroup.procs") for folder in folders(name)]
        assert processes
        eater = subprocess.run([sys.executable, "-c", EATER, *processes], timeout=180)
        assert eater.returncode == -signal.SIGKILL
        limit = threading.Timer(60, up.process.kill)
        limit.start()
        line = next((line for line in up.process.stderr if "memory" in line), "")
        limit.cancel()
        assert re.fullmatch(
            r"benchapp up: out of memory: the kernel killed \d+ process(es)? at the limit of size bronze\n", line
        )
        up.process.terminate()
        assert up.process.wait(60) == 0
        assert not folders(name)


def test_a_killed_instrument_leaves_all_to_the_next_command(site_url):
    runnable("nginx-uwsgi")
    with Up("nginx-uwsgi", "--size", "silver", "--database", site_url) as up:
        tree = up.tree()
        (name,) = set.union(*(groups_of(process.pid) for process in tree))
        up.process.kill()
        up.process.wait()
        assert folders(name)
        with Up("gunicorn", "--database", site_url) as other:
            assert get(other.url).status_code == 200
        until(lambda: alive(tree) == [] and not folders(name), "all that the killed one left is gone")
        assert closed(up.url)


VISITORS = """
import http.client, sys, threading
def visit():
    while True:
        connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=60)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
for _ in range(int(sys.argv[3])):
    threading.Thread(target=visit, daemon=True).start()
threading.Event().wait()
"""


def load(url: str, connections: int) -> subprocess.Popen:
    """Many who request the home page at once, again and again, until it is killed."""
    target = httpx2.URL(url)
    return subprocess.Popen([sys.executable, "-c", VISITORS, target.host, str(target.port), str(connections)])


def test_a_server_of_unlimited_threads_is_killed_and_stays_dead(site_url, monkeypatch):
    runnable("lighttpd-flup")
    monkeypatch.setattr(local, "COME_BACK_S", 0.5)
    # Less than bronze, so that fewer threads, and less time, are enough.
    small = Size("small", 32, 56, 1)
    case = dataclasses.replace(resolved("lighttpd-flup", database_url=site_url), size=small)
    with deployment.deployed(case) as running:
        observer = local.Observer(running)
        visitors = load(running.url, 100)
        try:
            observer.start()
            until(lambda: running.died() is not None, "it is killed")
            observer.stop()
            assert "flup was killed by SIGKILL" in str(running.died())
        finally:
            visitors.kill()
            visitors.wait()
            observer.stop()
        observer.record_effects()
        left = observer.condition
        assert (left.oom_kills, left.came_back) == (1, False)
        # The web server lives, and has nobody behind it.
        assert get(running.url + "/healthz").status_code == 503
        assert get(running.url + "/static/small.txt").status_code == 200


def test_a_worker_that_has_a_master_is_replaced_and_the_site_comes_back(site_url):
    runnable("nginx-uwsgi")
    with deployment.deployed(resolved("nginx-uwsgi", database_url=site_url, size="bronze")) as running:
        observer = local.Observer(running)
        observer.start()
        master = psutil.Process(running.pids["uwsgi"])
        worker, *others = master.children()
        os.kill(worker.pid, signal.SIGKILL)
        until(lambda: len({*master.children()} - {worker}) > len(others), "the master has started another worker")
        observer.stop()
        observer.record_effects()
        left = observer.condition
        assert (left.restarts, left.oom_kills, left.came_back) == (1, 0, True)
