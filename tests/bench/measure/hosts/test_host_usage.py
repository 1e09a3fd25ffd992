"""Usage of a host in the time of a load: of control groups made for the test, and of this machine's loopback."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import psutil
import pytest

from bench.measure.hosts import host_usage
from bench.measure.hosts.host_usage import HostUsage

MIB = 1024**2
HERE = {"address": "127.0.0.1", "cores": None, "link_bits_per_second": 8e6, "database": False, "access_log": ""}
LINE = '10.0.0.9 - - [22/Nov/2026:20:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" site.example 1a 0.001 0.001 "{}"\n'


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Two control groups, whose files a test writes."""
    slices = (tmp_path / "benchapp.slice", tmp_path / "postgresql.slice")
    for group in slices:
        group.mkdir()
    monkeypatch.setattr(host_usage, "UNITS", slices[0])
    monkeypatch.setattr(host_usage, "GROUPS", slices)
    return slices


def put(group: Path, cpu_us: int, memory: int, inactive: int = 0) -> None:
    (group / "cpu.stat").write_text(f"usage_usec {cpu_us}\nuser_usec 1\n")
    (group / "memory.current").write_text(f"{memory}\n")
    (group / "memory.stat").write_text(f"anon 7\ninactive_file {inactive}\n")


def used(settings: dict[str, object], meanwhile=lambda: None) -> dict[str, object]:
    usage = HostUsage({**HERE, **settings})
    usage.begin()
    meanwhile()
    return usage.result()


def test_usage_is_that_of_the_units_and_of_postgresql(groups):
    units, postgresql = groups
    put(units, 5_000_000, 100 * MIB, 30 * MIB)
    put(postgresql, 1_000_000, 20 * MIB)

    def load() -> None:
        put(units, 7_500_000, 200 * MIB, 50 * MIB)
        put(postgresql, 1_250_000, 25 * MIB)

    usage = used({}, load)
    # Files that the kernel drops first are nobody's need.
    assert (usage["cpu_seconds"], usage["memory_peak_bytes"]) == (2.75, 175 * MIB)
    assert usage["database_connections_peak"] is None


def test_a_host_with_one_of_the_groups_tells_of_that_one(groups):
    put(groups[1], 1_000_000, 20 * MIB)
    usage = used({}, lambda: put(groups[1], 3_000_000, 10 * MIB))
    assert (usage["cpu_seconds"], usage["memory_peak_bytes"]) == (2.0, 20 * MIB)


def test_a_host_with_neither_group_tells_of_its_link_only(groups):
    usage = used({})
    assert (usage["cpu_seconds"], usage["memory_peak_bytes"]) == (None, None)
    assert usage["received_bytes"] >= 0 and usage["memory_bytes"] == psutil.virtual_memory().total


@pytest.mark.servers
def test_the_peak_of_a_link_and_of_memory_are_those_between_two_samples(groups, monkeypatch):
    monkeypatch.setattr(host_usage, "INTERVAL_S", 0.2)
    put(groups[0], 0, 10 * MIB)
    usage = HostUsage(HERE)
    usage.begin()
    sent, ended = [], threading.Event()

    def send() -> None:
        """Far more than the capacity of the link in the inventory, until the samples are taken."""
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            taker, _ = server.accept()
            with taker:
                while not ended.is_set():
                    client.sendall(b"x" * 100_000)
                    sent.append(len(taker.recv(100_000, socket.MSG_WAITALL)))

    put(groups[0], 0, 90 * MIB)
    sender = threading.Thread(target=send)
    sender.start()
    usage.watch(time.monotonic() + 1)
    ended.set()
    sender.join()
    put(groups[0], 0, 10 * MIB)
    result = usage.result()
    assert result["memory_peak_bytes"] == 90 * MIB
    assert min(result["sent_bytes"], result["received_bytes"]) >= sum(sent)
    assert result["link_peak_share"] > 1 and result["sampled_s"] >= 1


def test_an_address_without_an_interface_has_no_traffic(groups):
    usage = used({"address": "192.0.2.1"})
    assert (usage["received_bytes"], usage["sent_bytes"], usage["link_peak_share"]) == (None, None, None)


def test_the_front_counts_requests_by_web_host(groups, tmp_path):
    log = tmp_path / "access.log"
    log.write_text(LINE.format("10.0.0.1:8001") * 5)

    def load() -> None:
        with log.open("a") as file:
            file.write(LINE.format("10.0.0.1:8001") * 2 + LINE.format("-"))
            file.write(LINE.format("10.0.0.1:8001, 10.0.0.2:8001") + LINE.format("10.0.0.2:8002")[:-1])

    assert used({"access_log": str(log)}, load)["by_address"] == {"10.0.0.1": 2, "10.0.0.2": 2}


def test_a_log_without_addresses_or_a_rotated_one_tells_nothing(groups, tmp_path):
    log = tmp_path / "access.log"
    log.write_text("")
    plain = LINE.format("10.0.0.1:8001").rsplit(' "', 1)[0] + "\n"
    assert used({"access_log": str(log)}, lambda: log.write_text(plain))["by_address"] is None

    def rotate() -> None:
        log.rename(tmp_path / "access.log.1")
        log.write_text(LINE.format("10.0.0.1:8001") * 9)

    assert used({"access_log": str(log)}, rotate)["by_address"] is None


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
def test_cores_are_those_that_a_limit_of_cpu_time_leaves(groups, of_inventory, limit, cores):
    if limit:
        (groups[0] / "cpu.max").write_text(limit)
    assert used({"cores": of_inventory})["cores"] == cores


@pytest.mark.parametrize(("limit", "bytes_"), [("max\n", psutil.virtual_memory().total), (f"{64 * MIB}\n", 64 * MIB)])
def test_memory_is_that_which_a_limit_leaves(groups, limit, bytes_):
    (groups[0] / "memory.max").write_text(limit)
    assert used({})["memory_bytes"] == bytes_
