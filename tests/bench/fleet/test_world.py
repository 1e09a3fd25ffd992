"""A world of hosts on this machine: built, asked, and removed, also after its builder was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bench import paths, programs
from bench.catalog import catalog
from bench.errors import BenchError
from bench.fleet import inventory, reach
from bench.fleet.world import build, machines, plan

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def possible():
    try:
        plan.must_be_possible()
    except BenchError as error:
        pytest.skip(str(error))
    if programs.find(["ansible-inventory"]) is None:
        pytest.skip("program not installed: ansible-inventory")


@contextmanager
def tried(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`hosts try`, and the first line it prints."""
    argv = [sys.executable, "-m", "bench", "hosts", "try", "--web", "1", "--load", "1", *words]
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
    return [str(path) for path in places if path.exists()] + [path for path in mounted if str(plan.ROOT) in path]


def programs_of(started: subprocess.Popen[str]) -> list[psutil.Process]:
    """All processes of the hosts."""
    found = psutil.Process(started.pid).children(recursive=True)
    assert sum(process.name() == "sshd" for process in found) >= 5
    return found


def test_a_world_is_asked_by_ssh_and_goes_without_a_trace():
    with tried("--link", "10mbit", "--size", "bronze") as (started, line):
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


def test_the_next_world_removes_what_a_killed_one_left():
    with tried() as (started, line):
        assert line.startswith("ready ")
        running = programs_of(started)
        started.kill()
        # Its hosts end with it.
        assert psutil.wait_procs(running, 20)[1] == [] and left() != []
    with build.standing(plan.members(1, 1)[:1], "1gbit") as world:
        assert list(world.machines) == ["front1"] and world.ended() == ""
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
