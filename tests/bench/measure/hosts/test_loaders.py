"""Load from several hosts: figures as from one load tool, and nothing left on a host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench import programs
from bench.errors import BenchError
from bench.measure.hosts import loaders, loaders_guards
from bench.measure.hosts.loaders import HostsLoaded, Loaders, LoadShare
from bench.measure.load import LoadJob
from bench.measure.load.engine import CLOSED_LOOP, OPEN_LOOP
from bench.measure.load.openloop.counts import Counts, together
from bench.serve.production.inventory import Host, Inventory
from bench.verify.hosts.host_costs import HostCosts
from bench.verify.hosts.reach import Clock
from bench.verify.hosts.ssh import BEGINS
from tests.bench.measure.hosts import inventories
from tests.bench.measure.load.load_target import target
from tests.skips import needs
from tests.waiting import until

pytestmark = pytest.mark.servers
ONE, TWO, THREE = (Host(f"load{n}", f"10.0.0.{n}", ("load",), f"10.0.0.{n}", local=True) for n in (1, 2, 3))
FAR = Host("load2", "10.0.0.2", ("load",), "load2")
WEB = Host("web1", "127.0.0.1", ("web",), "127.0.0.1", local=True)
LAST_WORD = "for last; do :; done"


@pytest.fixture(scope="module")
def site():
    with target(0.01) as running:
        yield running


@pytest.fixture(autouse=True)
def at_most_one_process_each(monkeypatch):
    """A core each is enough here, however many the machine has."""
    monkeypatch.setattr(loaders, "cores_used", lambda job, cores, hosts: 1)


def hosts(folder: Path, *load: Host, web: Host = WEB) -> Inventory:
    """An inventory with these load hosts and a web host."""
    return inventories.write(Inventory(folder / "hosts.ini", (web, *load)))


def measured(known: Inventory, url: str, paths: tuple[str, ...] = ("/",), **how) -> HostsLoaded:
    with Loaders(known) as making:
        return load_of(making, known, url, paths, **how)


def load_of(making: Loaders, known: Inventory, url: str, paths: tuple[str, ...] = ("/",), **how) -> HostsLoaded:
    job = LoadJob(url, paths, **{"connections": 100, "seconds": 1, **how})
    return making.make(job, known.path.parent)


def share(host, latencies_us, **counts):
    one = Counts(seconds=1.0, answers=len(latencies_us), latency=Counter(latencies_us), **counts)
    return LoadShare(host, Clock(0, 0), 1, one.packed(), 0.1)


def test_the_histogram_of_all_is_that_of_one_load_tool_with_the_same_samples():
    samples = [17 * number % 90_001 + 300 for number in range(5000)]
    parts = [share(host, samples[number::3]) for number, host in enumerate((ONE, TWO, THREE))]
    tool = OPEN_LOOP
    together, single = loaders.figures(tool, parts), loaders.figures(tool, [share(ONE, samples)])
    assert together == single
    assert (single.requests_total, single.latency_max_ms) == (5000, max(samples) / 1000)


def test_three_hosts_measure_what_one_does(site, tmp_path):
    """At the same time, so that other work of the machine affects both alike."""
    needs("ssh")
    site.requests.clear()
    gone = replace(WEB, local=False, port=1)
    one, three = hosts(tmp_path / "one", ONE), hosts(tmp_path / "three", ONE, TWO, THREE, web=gone)
    with ThreadPoolExecutor(2) as pool:
        kinds = [(one, ("/1", "/2", "/3")), (three, ("/4", "/5", "/6"))]
        futures = [pool.submit(measured, known, site.url, pages, rate=150, seconds=2) for known, pages in kinds]
        one, three = (future.result() for future in futures)
    assert {path: site.requests[f"/{path}"] for path in range(1, 7)} == dict.fromkeys(range(1, 7), 100)
    assert [item.counts["due"] for item in (*one.shares, *three.shares)] == [300, 100, 100, 100]
    figures = [loaders.figures(OPEN_LOOP, loaded.shares) for loaded in (one, three)]
    assert [(item.failure(), item.requests_total) for item in figures] == [(None, 300)] * 2
    # Neither takes longer than the other, beyond chance.
    first = three.shares[0]
    alike = [replace(first, counts=together([item.counts for item in loaded.shares])) for loaded in (one, three)]
    assert loaders_guards.disagreement(alike, 0.25) == ""
    # Both kinds of hosts tell what they used, and a missing one stops nothing.
    assert one.costs["web1"].sent_bytes > 0
    assert three.costs["web1"] == HostCosts(not_sampled="connect to host 127.0.0.1 port 1: Connection refused")
    assert all(three.costs[f"load{n}"].sampled_s > 0 for n in (1, 2, 3))
    assert [path.name for path in (tmp_path / "one").iterdir() if path.is_dir()] == []


def test_connections_of_a_closed_loop_are_dealt_out_in_each_of_several_loads(site, tmp_path):
    known = hosts(tmp_path, ONE, TWO)
    with Loaders(known) as making:
        for _ in range(2):
            before = site.connections
            shares = load_of(making, known, site.url, connections=3).shares
            assert site.connections - before == 3
            assert sorted(item.counts["opened"] for item in shares) == [1, 2]
            responses = sum(item.counts["answers"] for item in shares)
            assert loaders.figures(CLOSED_LOOP, shares).requests_total == responses


def test_the_cores_that_a_share_uses(monkeypatch):
    monkeypatch.undo()
    assert loaders.cores_used(LoadJob("http://h", ("/",), 6, 1), 4, 2) == 3


def test_without_ansible_one_line_says_what_to_install(tmp_path, monkeypatch):
    known = hosts(tmp_path, ONE)
    monkeypatch.setattr(programs, "find", lambda names: None)
    with pytest.raises(BenchError) as raised:
        measured(known, "http://127.0.0.1:9", rate=10)
    install = f"{programs.install_extra('hosts')} (with your other extras in the brackets)"
    message = f"program not installed: ansible-playbook; install it: {install}"
    assert str(raised.value) == message


# A Python whose clock is ahead, for the program of a load.
AHEAD = """import runpy, sys, time; real = time.time; time.time = lambda: real() + 0.2
sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv[0]); runpy.run_path(sys.argv[0], run_name=\\"__main__\\")"""


def test_a_clock_that_is_ahead_is_seen_and_changes_no_start(site, standing_in, monkeypatch, tmp_path):
    # Time enough for a slow machine to have both ready.
    monkeypatch.setattr(loaders, "LEAD_S", 5.0)
    there = tmp_path / "there"
    there.mkdir()
    (there / "date").write_text(f'#!/bin/sh\nexec {shutil.which("date")} -d "+0.2 seconds" "$@"\n')
    python = f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\nexec {sys.executable} -c "{AHEAD}" "$@"\n'
    (there / "python3").write_text(python)
    for program in there.iterdir():
        program.chmod(0o755)
    standing_in("ssh", f'{LAST_WORD}\nPATH={there}:$PATH exec sh -c "$last"')
    site.order.clear()
    known = hosts(tmp_path / "hosts", ONE, FAR)
    one, two = measured(known, site.url, ("/1", "/2"), rate=100).shares
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


def test_a_host_behind_a_slow_link_is_named(slow_link, standing_in, tmp_path):
    name, address = slow_link
    standing_in("ssh", f'{LAST_WORD}\nexec ip netns exec {name} sh -c "$last"')
    known = hosts(tmp_path / "hosts", ONE, FAR, THREE)
    with target(0.02, address) as site:
        # The link needs 80 ms for a page, in addition to the server's 20 ms.
        site.body = b"x" * 40_000
        shares = measured(known, f"http://{address}:{site.server_port}", rate=30, seconds=4).shares
    message = loaders_guards.disagreement(shares, loaders_guards.MAX_SLOWER)
    assert message.startswith("responses to load2 take ") and message.endswith(": look at that host or its link")
    assert loaders_guards.disagreement([shares[0], shares[2]], loaders_guards.MAX_SLOWER) == ""


def test_a_host_that_goes_during_the_load_is_named(site, standing_in, tmp_path):
    under_way = tmp_path / "under-way"
    # What begins after the load is under way, or runs then, is lost.
    standing_in(
        "ssh",
        f"""{LAST_WORD}
exec 3<&0
sh -c "$last" <&3 &
while kill -0 $! 2> /dev/null; do
    [ ! -e {under_way} ] || {{ kill -9 $!; echo "Timeout, server load2 not responding." >&2; exit 255; }}
    sleep 0.1
done
wait $!""",
    )
    known = hosts(tmp_path / "hosts", ONE, FAR)
    with Loaders(known) as making, ThreadPoolExecutor(1) as pool:
        load = pool.submit(load_of, making, known, site.url, ("/gone",), rate=10, seconds=5)
        until(lambda: site.requests["/gone"] > 2, "the load is under way")
        under_way.touch()
        with pytest.raises(BenchError) as raised:
            load.result()
        # Another trial is made with the host that has come back.
        under_way.unlink()
        again = load_of(making, known, site.url, rate=10)
    assert str(raised.value) == "load2: the load ended early: Timeout, server load2 not responding."
    assert [share.counts["answers"] for share in again.shares] == [5, 5]


def test_a_host_with_an_old_python_is_named(standing_in, tmp_path):
    standing_in("ssh", f"echo {BEGINS}; echo 3.7 2 yes yes; while read -r line; do date +%s%N; done")
    known = hosts(tmp_path / "hosts", FAR)
    with pytest.raises(BenchError, match=r"^load2: its Python is 3\.7; load needs Python 3\.10 or a later one$"):
        measured(known, "http://127.0.0.1:9", rate=10)


def test_a_host_that_hangs_is_given_up(standing_in, monkeypatch, tmp_path):
    """It tells its clock, and hangs when the load tool comes."""
    standing_in("ssh", f'{LAST_WORD}\ncase $last in *"{BEGINS}"*) exec sh -c "$last" ;; *) exec sleep 600 ;; esac')
    monkeypatch.setattr(loaders, "BESIDE_S", 1)
    known = hosts(tmp_path / "hosts", FAR)
    with pytest.raises(BenchError, match=r"^load2: cannot make load: .*Timed out after "):
        measured(known, "http://127.0.0.1:9", rate=10, timeout_s=1)


CONTROLLER = """
import sys
from pathlib import Path
from bench.measure.hosts.loaders import Loaders
from bench.measure.load import LoadJob
from bench.serve.production import inventory
path = Path(sys.argv[1])
with Loaders(inventory.read(path)) as making:
    making.make(LoadJob(sys.argv[2], ("/secret-path",), 100, 60, rate=20), path.parent)
"""


def test_a_killed_controller_leaves_nothing(site, tmp_path):
    """No processes, and no files on the hosts; no list of processes shows the requested paths."""
    known = hosts(tmp_path / "hosts", ONE, TWO)
    there = tmp_path / "there"
    there.mkdir()
    argv = [sys.executable, "-c", CONTROLLER, str(known.path), site.url]
    env = {**os.environ, "TMPDIR": str(there), "HOME": str(there), "ANSIBLE_REMOTE_TEMP": str(there / "tmp")}
    with subprocess.Popen(argv, env=env) as controller:
        until(lambda: site.requests["/secret-path"] > 5, "the load is under way")
        left = psutil.Process(controller.pid).children(recursive=True)
        # Ansible, and one process on each host at least.
        assert len(left) >= 3
        assert not any("secret" in word for process in left for word in process.cmdline())
        controller.kill()
    assert psutil.wait_procs(left, 60)[1] == []
    assert [path for path in there.rglob("*") if path.is_file()] == []
