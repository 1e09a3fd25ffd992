"""Costs of hosts under load, sampled on this machine instead."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench import paths
from bench.serve.production.inventory import Host, Inventory
from bench.verify.hosts import sample_host, ssh
from bench.verify.hosts import sampling as module
from bench.verify.hosts.costs import HostCosts
from bench.verify.hosts.sampling import sampling

# Each needs a second or more of requests or of other programs.
pytestmark = pytest.mark.servers

FRONT = Host("front1", "127.0.0.1", ("front",), "127.0.0.1", local=True, link_mbit=8)
WEB = [Host(f"web{number}", f"10.0.0.{number}", ("web",), "127.0.0.1", local=True) for number in (1, 2)]
LINE = '10.0.0.9 - - [22/Nov/2026:20:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" site.example 1a 0.001 0.001 "{}"\n'


def hosts(*more: Host) -> Inventory:
    return Inventory(Path("hosts.ini"), (FRONT, *WEB, *more))


def some_traffic(seconds: float) -> int:
    """Bytes carried by loopback at least, with a measurable CPU time."""
    sent, until = 0, time.monotonic() + seconds
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        taker, _ = server.accept()
        with taker:
            while time.monotonic() < until:
                client.sendall(b"x" * 10_000)
                sent += len(taker.recv(10_000, socket.MSG_WAITALL))
    return sent


def test_a_host_tells_its_cpu_memory_and_network_and_the_front_each_share(tmp_path):
    log = tmp_path / "access.log"
    log.write_text(LINE.format("10.0.0.1:8001") * 5)
    with sampling(hosts(), str(log)) as sampler:
        sampler.start()
        # The first response counts as the beginning of the next interval.
        sent = some_traffic(0.7)
        with log.open("a") as file:
            file.write(LINE.format("10.0.0.1:8001") * 2 + LINE.format("-"))
            file.write(LINE.format("10.0.0.1:8001, 10.0.0.2:8001") + LINE.format("10.0.0.2:8002")[:-1])
        found = sampler.stop()
        front, web1, web2 = (found[name] for name in ("front1", "web1", "web2"))
        assert sent * 0.5 < front.sent_bytes < sent * 3 and front.received_bytes > sent * 0.5
        # Far more than the link's capacity in the inventory.
        assert (front.link_bits_per_second, front.link_peak_share > 1) == (8e6, True)
        assert 0.1 < front.cpu_seconds <= 1.5 * psutil.cpu_count() * front.sampled_s
        assert front.cpu_share > 0 and 0.5 < front.sampled_s < 30
        assert 0 < front.memory_peak_bytes < psutil.virtual_memory().total
        assert [(web.requests, web.requests_share) for web in (web1, web2)] == [(2, 0.5), (2, 0.5)]
        # This machine has no interface with their address.
        assert (web1.sent_bytes, web1.link_peak_share, web1.database_connections_peak, web1.not_sampled) == (None,) * 4
        sampler.start()
        assert sampler.stop()["web1"].requests is None


def test_a_log_that_names_no_upstream_and_one_that_was_rotated_tell_no_share(tmp_path):
    log = tmp_path / "access.log"
    log.write_text("")
    with sampling(hosts(), str(log)) as sampler:
        sampler.start()
        log.write_text(LINE.format("10.0.0.1:8001").rsplit(' "', 1)[0] + "\n")
        assert sampler.stop()["web1"].requests_share is None
        sampler.start()
        log.rename(tmp_path / "access.log.1")
        log.write_text(LINE.format("10.0.0.1:8001") * 9)
        assert sampler.stop()["web1"].requests_share is None


def test_a_host_that_is_gone_stops_nothing_and_says_why():
    if shutil.which("ssh") is None:
        pytest.skip("program not installed: ssh")
    gone = Host("load1", "10.0.0.8", ("load",), "127.0.0.1", port=1)
    with sampling(hosts(gone)) as sampler:
        sampler.start()
        found = sampler.stop()
    assert found["load1"] == HostCosts(not_sampled="connect to host 127.0.0.1 port 1: Connection refused")
    assert found["web1"].cpu_seconds is not None


def test_a_host_that_hangs_is_given_up(monkeypatch):
    silent = replace(WEB[0], name="web3", address="10.0.0.3")
    monkeypatch.setattr(Host, "argv", lambda host, script: ["sleep", "60"] if host == silent else ["sh", "-c", script])
    monkeypatch.setattr(module, "ANSWER_S", 1.0)
    with sampling(Inventory(Path("hosts.ini"), (WEB[0], silent))) as sampler:
        sampler.start()
        assert sampler.stop()["web3"] == HostCosts(not_sampled="no response within 1 s")


@pytest.mark.parametrize("said", ['printf \'{"cores": 2, "cpu_se\'', "echo 'Welcome'; cat > /dev/null"])
def test_an_answer_that_is_cut_short_or_none_is_a_lost_host(monkeypatch, said):
    # A shell's own files may print, also without an end of the line.
    script = f"printf 'Welcome\\nto this host'; echo {ssh.BEGINS}; echo 1; read a; echo 2; read a; {said}"
    odd = replace(WEB[0], name="web3", address="10.0.0.3")
    monkeypatch.setattr(Host, "argv", lambda host, own: ["sh", "-c", script if host == odd else own])
    with sampling(Inventory(Path("hosts.ini"), (WEB[1], odd))) as sampler:
        sampler.start()
        found = sampler.stop()
    assert found["web3"] == HostCosts(not_sampled="the connection ended")
    assert found["web2"].not_sampled is None


def test_a_host_ends_by_itself_when_its_controller_says_nothing_more():
    """As when the controller's machine is gone: the connection stays open."""
    asked = json.dumps({"address": "127.0.0.1", "database": False, "access_log": "", "limit_s": 1})
    argv = [sys.executable, module.SCRIPT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as there:
        there.stdin.write(f"{asked}\n".encode())
        there.stdin.flush()
        assert json.loads(there.stdout.readline()) == "ready"
        assert there.wait(60) == -signal.SIGALRM


def test_nothing_is_left_on_a_host_when_the_controller_is_killed():
    program = (
        "import sys; from pathlib import Path; from bench.serve.production.inventory import Host, Inventory\n"
        "from bench.verify.hosts.sampling import sampling\n"
        "web = Host('web1', '127.0.0.1', ('web', 'db'), '127.0.0.1', local=True)\n"
        "with sampling(Inventory(Path('hosts.ini'), (web,))) as sampler:\n"
        "    sampler.start(); print('ready', flush=True); sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], cwd=paths.KIT, stdin=pipe, stdout=pipe) as controller:
        assert controller.stdout.readline() == b"ready\n"
        there = psutil.Process(controller.pid).children(recursive=True)
        assert any("python3" in process.name() for process in there)
        controller.kill()
    assert psutil.wait_procs(there, 10)[1] == []


@pytest.mark.parametrize(
    ("of_inventory", "limit", "cores"),
    [
        (None, None, psutil.cpu_count()),
        (None, "max 100000\n", psutil.cpu_count()),
        (None, "25000 100000\n", 0.25),
        (0.5, None, 0.5),
        (0.5, "25000 100000\n", 0.25),
        (0.5, "400000 100000\n", 0.5),
    ],
)
def test_cores_are_those_that_a_limit_of_cpu_time_leaves(tmp_path, monkeypatch, of_inventory, limit, cores):
    monkeypatch.setattr(sample_host, "SLICE", tmp_path / "cpu.max")
    if limit:
        (tmp_path / "cpu.max").write_text(limit)
    assert sample_host.cores(of_inventory) == cores
