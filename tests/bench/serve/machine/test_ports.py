"""Free ports: nobody listens on them, no client is given them, and no other instrument."""

from __future__ import annotations

import collections
import socket
import subprocess
import sys

from bench import paths
from bench.serve.machine import ports


def test_a_free_port_is_no_clients_and_nobody_elses():
    given = [ports.free_port() for _ in range(20)]
    assert len(set(given)) == 20
    assert not set(given) & set(ports.ephemeral())
    # Another instrument is not given a port that this one was, though no server has bound it yet.
    script = f"from bench.serve.machine import ports; print([ports._reserve(port) for port in {given}])"
    other = subprocess.run([sys.executable, "-c", script], cwd=paths.KIT, capture_output=True, text=True)
    assert other.stdout.strip() == str([None] * 20)


def test_a_port_given_long_ago_is_no_longer_reserved(monkeypatch):
    monkeypatch.setattr(ports, "_reserved", collections.deque())
    monkeypatch.setattr(ports, "MAX_RESERVED", 2)
    first, second, third = (ports.free_port() for _ in range(3))
    retaken = [ports._reserve(port) for port in (first, second, third)]
    assert [reservation is not None for reservation in retaken] == [True, False, False]
    for reservation in [retaken[0], *ports._reserved]:
        reservation.close()


def test_a_port_with_a_listener_is_listening():
    families = [socket.AF_INET, *([socket.AF_INET6] if socket.has_dualstack_ipv6() else [])]
    for family in families:
        with socket.create_server(("", 0), family=family) as server:
            port = server.getsockname()[1]
            assert port in ports.listening()
        assert port not in ports.listening()


def test_sockets_that_cannot_be_read_are_none(monkeypatch, tmp_path):
    monkeypatch.setattr(ports, "NET", tmp_path)
    assert ports.listening() == set()
