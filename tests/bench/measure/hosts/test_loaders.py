"""Load from several hosts: figures as from one load tool, and nothing left on a host."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.errors import BenchError
from bench.measure.hosts import loaders, loaders_guards
from bench.measure.hosts.loaders import LoadShare
from bench.measure.load import Job
from bench.measure.load.engine import ClosedLoopTool, OpenLoopTool
from bench.measure.load.openloop.counts import Counts, together
from bench.serve.machine import ports
from bench.serve.machine.supervise import Address
from bench.serve.production.inventory import Host
from bench.verify.hosts.reach import Clock
from bench.verify.hosts.ssh import BEGINS
from tests.bench.measure.load.load_target import target
from tests.waiting import until

pytestmark = pytest.mark.servers
ONE, TWO, THREE = (Host(f"load{n}", f"10.0.0.{n}", ("load",), f"10.0.0.{n}", local=True) for n in (1, 2, 3))


@pytest.fixture(scope="module")
def site():
    with target(0.01) as running:
        yield running


@pytest.fixture(autouse=True)
def at_most_two_processes(monkeypatch):
    """A core each is enough here, however many the machine has."""
    monkeypatch.setattr(loaders, "cores_used", lambda job, cores, hosts: 1)


def made(hosts, url, paths=("/",), tool=None, **how):
    tool = tool or (OpenLoopTool() if how.get("rate") else ClosedLoopTool())
    job = Job(url, paths, **{"connections": 100, "seconds": 1, **how})
    return tool, loaders.make(hosts, job)


def share(host, latencies_us, **counts):
    one = Counts(seconds=1.0, answers=len(latencies_us), latency=Counter(latencies_us), **counts)
    return LoadShare(host, Clock(0, 0), 1, one.packed(), 0.1)


def test_the_histogram_of_all_is_that_of_one_load_tool_with_the_same_samples():
    samples = [17 * number % 90_001 + 300 for number in range(5000)]
    parts = [share(host, samples[number::3]) for number, host in enumerate((ONE, TWO, THREE))]
    tool = OpenLoopTool()
    together, alone = loaders.figures(tool, parts), loaders.figures(tool, [share(ONE, samples)])
    assert together == alone
    assert (alone.requests_total, alone.latency_max_ms) == (5000, max(samples) / 1000)


def test_three_hosts_measure_what_one_does(site):
    """At the same time, so that other work of the machine affects both alike."""
    site.requests.clear()
    with ThreadPoolExecutor(2) as pool:
        kinds = [((ONE,), ("/1", "/2", "/3")), ((ONE, TWO, THREE), ("/4", "/5", "/6"))]
        made_by = [pool.submit(made, hosts, site.url, pages, rate=150, seconds=2) for hosts, pages in kinds]
        one, three = (future.result()[1] for future in made_by)
    assert {path: site.requests[f"/{path}"] for path in range(1, 7)} == dict.fromkeys(range(1, 7), 100)
    assert [item.counts["due"] for item in (*one, *three)] == [300, 100, 100, 100]
    found = [loaders.figures(OpenLoopTool(), shares) for shares in (one, three)]
    assert [(item.failure(), item.requests_total) for item in found] == [(None, 300)] * 2
    # Neither takes longer than the other, beyond chance.
    alike = [replace(three[0], counts=together([item.counts for item in shares])) for shares in (one, three)]
    assert loaders_guards.disagreement(alike, 0.25) == ""


def test_connections_of_a_closed_loop_are_dealt_out(site):
    before = site.connections
    tool, shares = made((ONE, TWO), site.url, connections=3)
    assert site.connections - before == 3
    assert sorted(item.counts["opened"] for item in shares) == [1, 2]
    assert loaders.figures(tool, shares).requests_total == sum(item.counts["answers"] for item in shares)


def test_the_cores_that_a_share_uses(monkeypatch):
    monkeypatch.undo()
    assert loaders.cores_used(Job("http://h", ("/",), 6, 1), 4, 2) == 3


def test_the_freeze_test_over_two_hosts():
    """As with one load tool: a stall of one second shows in the percentiles."""
    port = ports.free_port()
    with subprocess.Popen([sys.executable, "-m", "tests.bench.measure.load.load_target", str(port)]) as server:
        until(lambda: Address("127.0.0.1", port).accepts(), "the site listens")
        # Within the 3 s of the load, which begins half a second after all hosts are ready.
        freezes = [
            threading.Timer(1.5, os.kill, (server.pid, signal.SIGSTOP)),
            threading.Timer(2.5, os.kill, (server.pid, signal.SIGCONT)),
        ]

        def begin() -> None:
            for timer in freezes:
                timer.start()

        job = Job(f"http://127.0.0.1:{port}", ("/",), 1000, 3, rate=200)
        tool = OpenLoopTool()
        try:
            shares = loaders.make((ONE, TWO), job, ready=begin)
        finally:
            for timer in freezes:
                timer.cancel()
            server.kill()
    figures = loaders.figures(tool, shares)
    assert (figures.failure(), figures.requests_total, figures.requests_dropped) == (None, 600, 0)
    # A third of the requests were due while it stood still.
    assert figures.latency_p99_ms > 850
    assert all(item.figures(tool).latency_p99_ms > 800 for item in shares)


# Runs its arguments like ssh, with a clock that is ahead.
AHEAD = """import sys, time; a, b = time.time_ns, time.time
time.time_ns, time.time = lambda: a() + 200_000_000, lambda: b() + 0.2
exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"""


def test_a_clock_that_is_ahead_is_seen_and_changes_no_start(site, standing_in):
    standing_in("ssh", f"echo {BEGINS}; exec {sys.executable} -I -u -c '{AHEAD}'")
    ahead = Host("load2", "10.0.0.2", ("load",), "load2")
    site.order.clear()
    _, (one, two) = made((ONE, ahead), site.url, ("/1", "/2"), rate=100)
    assert two.clock.ahead_ms == pytest.approx(200, abs=20) and abs(one.clock.ahead_ms) < 20
    # Their requests alternate from the first on.
    assert site.order[:20].count("/1") == pytest.approx(10, abs=3)


@pytest.fixture
def slow_link():
    """A network namespace at the end of a link of 4 Mbit/s; returns its name, and this machine's address there."""
    if absent := [name for name in ("ip", "tc") if shutil.which(name) is None]:
        pytest.skip(f"program not installed: {', '.join(absent)}")
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces")
    name, net = f"bs-{os.getpid()}", f"10.{os.getpid() % 200 + 20}.78"
    steps = [f"ip netns add {name}", f"ip link add {name} type veth peer name eth0 netns {name}"]
    steps += [f"ip addr add {net}.1/24 dev {name}", f"ip link set {name} up", f"ip -n {name} link set eth0 up"]
    steps += [f"ip -n {name} addr add {net}.2/24 dev eth0"]
    steps += [f"tc qdisc add dev {name} root tbf rate 4mbit burst 4kb latency 1s"]
    try:
        for step in steps:
            subprocess.run(step.split(), check=True, capture_output=True)
        yield name, f"{net}.1"
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)


def test_a_host_behind_a_slow_link_is_named(slow_link, standing_in):
    name, address = slow_link
    standing_in("ssh", f'for last; do :; done\nexec ip netns exec {name} sh -c "$last"')
    far = Host("load2", "10.0.0.2", ("load",), "load2")
    with target(0.02, address) as site:
        # The link needs 30 ms for a page, in addition to the server's 20 ms.
        site.body = b"x" * 15_000
        _, shares = made((ONE, far, THREE), f"http://{address}:{site.server_port}", rate=60, seconds=3)
    said = loaders_guards.disagreement(shares, loaders_guards.MAX_SLOWER)
    assert said.startswith("responses to load2 take ") and said.endswith(": look at that host or its link")
    assert loaders_guards.disagreement([shares[0], shares[2]], loaders_guards.MAX_SLOWER) == ""


def test_a_host_that_goes_during_the_load_is_named(site, standing_in, tmp_path):
    under_way = tmp_path / "under-way"
    script = f"""for last; do :; done
exec 3<&0
sh -c "$last" <&3 &
until [ -e {under_way} ]; do sleep 0.1; done
kill -9 $!
echo "Timeout, server load2 not responding." >&2"""
    standing_in("ssh", script)
    gone = Host("load2", "10.0.0.2", ("load",), "load2")
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(made, (gone, ONE), site.url, ("/gone",), rate=10, seconds=5)
        until(lambda: site.requests["/gone"] > 2, "the load is under way")
        under_way.touch()
        with pytest.raises(BenchError) as raised:
            load.result()
    assert str(raised.value) == "load2: the load ended early: Timeout, server load2 not responding."


def test_a_host_with_an_old_python_is_named(standing_in):
    standing_in("ssh", f"""echo {BEGINS}; echo '{{"python": [3, 7], "cores": 2}}'; cat > /dev/null""")
    old = Host("load2", "10.0.0.2", ("load",), "load2")
    with pytest.raises(BenchError, match=r"^load2: its Python is 3\.7; load needs Python 3\.10 or a later one$"):
        made((old,), "http://127.0.0.1:9", rate=10)


def test_a_host_that_gets_no_job_ends_by_itself():
    """As when the controller's machine is gone: the connection stays open."""
    program = Path(loaders.__file__).with_name("loaders_remote.py")
    text = re.sub(r"\bIDLE_S, GRACE_S = 300", "IDLE_S, GRACE_S = 1", program.read_text())
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", text], stdin=pipe, stdout=pipe) as there:
        assert there.wait(60) == -signal.SIGALRM


CONTROLLER = """
import sys
from bench.measure.hosts import loaders, loaders_guards
from tests.bench.measure.hosts.test_loaders import ONE, TWO, made
made((ONE, TWO), sys.argv[1], ("/secret-path",), rate=20, seconds=60)
"""


def test_a_killed_controller_leaves_nothing(site, tmp_path):
    """Neither processes nor files; and no list of processes shows the requested paths."""
    argv = [sys.executable, "-c", CONTROLLER, site.url]
    env = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    with subprocess.Popen(argv, env=env) as controller:
        until(lambda: site.requests["/secret-path"] > 5, "the load is under way")
        left = psutil.Process(controller.pid).children(recursive=True)
        # One process on each host at least.
        assert len(left) >= 2
        assert not any("secret" in word for process in left for word in process.cmdline())
        controller.kill()
    assert psutil.wait_procs(left, 10)[1] == []
    assert list(Path(tmp_path).iterdir()) == []
