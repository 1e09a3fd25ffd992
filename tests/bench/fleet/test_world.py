"""A world of hosts on this machine: built, asked, and removed, also after its builder was killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from bench import paths, programs
from bench.catalog import catalog
from bench.errors import BenchError
from bench.fleet import loaders, loaders_guards, reach, trials
from bench.fleet.loaders_connection import Loader
from bench.fleet.sampling import sampling
from bench.load import Job
from bench.load.engine import ClosedLoopTool, OpenLoopTool
from bench.measure.guards import Observed
from bench.production import inventory
from tests import once
from tests.bench.fleet.world import build, machines, plan
from tests.waiting import until

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def possible(tmp_path_factory):
    try:
        plan.must_be_possible()
    except BenchError as error:
        pytest.skip(str(error))
    if programs.find(["ansible-inventory"]) is None:
        pytest.skip("program not installed: ansible-inventory")
    # One stands at a time.
    with once.alone(tmp_path_factory, "world"):
        yield


@contextmanager
def in_another_process(rate: str = "1gbit") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A world that another process builds, and the first line it prints."""
    argv = [sys.executable, "-m", "tests.bench.fleet.world", "1", "1", rate, "bronze"]
    started = subprocess.Popen(
        argv, cwd=paths.PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    try:
        line = started.stdout.readline()
        if "no host can be made here" in (said := "" if line else started.stderr.read()):
            pytest.skip(said.strip())
        yield started, line or said
    finally:
        started.terminate()
        started.wait(30)
        started.stdout.close()
        started.stderr.close()


def left() -> list[str]:
    """What there is of a world on this machine."""
    places = [plan.ROOT, *Path("/run/netns").glob(f"{plan.PREFIX}*"), *Path("/sys/class/net").glob(f"{plan.PREFIX}*")]
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    # Control groups with processes are of hosts that other tests have booted.
    groups = [Path("/sys/fs/cgroup/unified/payload"), Path("/sys/fs/cgroup/payload")]
    places += [path for path in groups if path.exists() and "populated 0" in (path / "cgroup.events").read_text()]
    return [str(path) for path in places if path.exists()] + [path for path in mounted if str(plan.ROOT) in path]


def programs_of(started: subprocess.Popen[str]) -> list[psutil.Process]:
    """All processes of the hosts."""
    found = psutil.Process(started.pid).children(recursive=True)

    def name(process: psutil.Process) -> str:
        # What a unit has started may end meanwhile.
        with suppress(psutil.NoSuchProcess):
            return process.name()
        return ""

    assert sum(name(process) == "sshd" for process in found) >= 5
    return found


def test_a_world_is_asked_by_ssh_and_goes_without_a_trace():
    with in_another_process("10mbit") as (started, line):
        assert line == f"ready {plan.ROOT}/hosts.ini\n"
        found = reach.look(inventory.read(plan.ROOT / "hosts.ini"))
        assert {item.host.name: item.lacks for item in found} == dict.fromkeys(
            ("front1", "web1", "cache1", "db1", "load1"), ()
        )
        # One clock for all: what is measured is how well offsets are.
        assert all(abs(item.clock.ahead_ms) <= item.clock.error_ms for item in found)
        web, front = (next(item.host for item in found if item.host.name == name) for name in ("web1", "front1"))
        assert limits_of(web) == [catalog.read().size("bronze").limits.burstable_bytes]
        assert (bits_a_second(front) < 11e6, front.link_mbit) == (True, 10)
        (load,) = (item.host for item in found if item.host.name == "load1")
        assert_that_a_full_link_is_named(load, front)
        assert_that_a_lost_connection_leaves_nothing(load)
        with pytest.raises(BenchError), build.standing(plan.members(1, 1), "1gbit"):
            pass
        # Refused, it has removed nothing of the other world.
        assert started.poll() is None and (plan.ROOT / "hosts.ini").exists()
        running = programs_of(started)
        started.send_signal(signal.SIGINT)
        assert started.wait(30) == 0
        assert (left(), psutil.wait_procs(running, 10)[1]) == ([], [])


def limits_of(host: inventory.Host) -> list[int]:
    """The memory limit of the control groups of a host's container, as this machine has them."""
    for process in psutil.process_iter(["cmdline"]):
        if f"--machine={plan.PREFIX}{host.name}" in (process.info["cmdline"] or []):
            pid = process.pid
            groups = Path(f"/proc/{pid}/cgroup").read_text()
            names = [line.split(":")[2] for line in groups.splitlines() if "benchapp-" in line]
            roots = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"))
            files = [
                root / name.lstrip("/") / file
                for root in roots
                for name in names[:1]
                for file in ("memory.max", "memory.limit_in_bytes")
            ]
            return [int(path.read_text()) for path in files if path.exists()]
    return []


def bits_a_second(host: inventory.Host) -> float:
    """How fast two megabytes get from a host to this machine, over its link."""
    began = time.monotonic()
    done = subprocess.run(host.argv("head -c 2000000 /dev/urandom"), capture_output=True, check=True)
    return len(done.stdout) * 8 / (time.monotonic() - began)


# A page of which a link of 10 Mbit/s carries six a second.
SITE = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "200000")
        self.end_headers()
        self.wfile.write(bytes(200000))
    def log_message(self, *words):
        pass
server = ThreadingHTTPServer(("", 8080), Handler)
print("ready", flush=True)
server.serve_forever()
"""


def assert_that_a_full_link_is_named(load: inventory.Host, front: inventory.Host) -> None:
    tool, job = ClosedLoopTool(), Job(f"http://{front.address}:8080", ("/",), 4, 3)
    argv = front.argv(f"exec python3 -c '{SITE}'")
    known = inventory.read(plan.ROOT / "hosts.ini")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as site, sampling(known) as sampler:
        assert site.stdout.readline() == "ready\n"
        target = loaders.LoadTarget(f"{front.address}:8080")
        (share,) = loaders.make((load,), tool, job, target, ready=sampler.start)
        links = trials.links(sampler.stop(), job.seconds)
        site.kill()
    seen = Observed(share.figures(tool))
    found = loaders_guards.look(tool, seen, [share], links, {"tool": 0.9})
    assert re.fullmatch(r"the link of (front|load)1 is full: \d+\.\d of 10 Mbit/s", found["tool"])


def assert_that_a_lost_connection_leaves_nothing(load: inventory.Host) -> None:
    """As when the controller is killed: its end of the connection is gone."""

    def running() -> str:
        return subprocess.run(load.argv("pgrep -c python"), capture_output=True, text=True).stdout.strip()

    assert running() == "0"
    job = OpenLoopTool().content(Job("http://127.0.0.1:9", ("/",), 10, 60, rate=5))
    with Loader(load) as loader:
        loader.greet()
        loader.prepare({**job, "processes": 2, "own": [0, 1]})
        loader.begin(time.time())
        # One that listens to the controller, one that waits for the processes, and those.
        until(lambda: running() == "4", "it makes load")
        loader.kill()
        until(lambda: running() == "0", "nothing of it is left")


def test_the_next_world_removes_what_a_killed_one_left():
    with in_another_process() as (started, line):
        assert line.startswith("ready ")
        running = programs_of(started)
        groups = [Path(name) for path in plan.ROOT.glob("*/group.json") for name in json.loads(path.read_text())[0]]
        assert groups and all(group.is_dir() for group in groups)
        started.kill()
        # Its hosts end with it.
        assert psutil.wait_procs(running, 20)[1] == [] and left() != []
    with build.standing(plan.members(1, 1)[:1], "1gbit") as world:
        assert not any(group.exists() for group in groups)
        assert list(world.machines) == ["front1"]
    assert left() == []


def test_a_rate_that_is_none_is_one_line_and_leaves_nothing():
    with pytest.raises(BenchError) as raised, build.standing(plan.members(1, 1)[:1], "fast"):
        pass
    assert str(raised.value).startswith("the network of the hosts cannot be made: ") and left() == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "nothing said"),
        ("a\n\nb\n", "b"),
        ("ok\n\x1b[0;1;31mFailed to open it: Too many\x1b[0m\r\nExiting\n", "Failed to open it: Too many"),
    ],
)
def test_a_host_that_does_not_boot_says_why(monkeypatch, tmp_path, said, why):
    monkeypatch.setattr(plan, "ROOT", tmp_path)
    (member,) = plan.members(1, 1)[:1]
    member.folder.mkdir()
    (member.folder / "console").write_bytes(said.encode())
    assert machines.why(member) == why


def test_what_is_missing_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(plan.programs, "find", lambda names: None if names == ["sshd"] else Path("/bin/true"))
    with pytest.raises(BenchError) as raised:
        plan.must_be_possible()
    assert str(raised.value) == "program not installed: sshd; apt-get install openssh-server"
    monkeypatch.setattr(plan.os, "geteuid", lambda: 1000)
    with pytest.raises(BenchError, match="a world of hosts is built by root alone; use sudo"):
        plan.must_be_possible()
