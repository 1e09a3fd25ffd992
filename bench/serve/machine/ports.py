"""Ports to listen on, reserved until the server binds them, and the machine's TCP sockets."""

from __future__ import annotations

import atexit
import collections
import contextlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path

# The kernel's range of ports for outgoing connections (ip(7)); a port of that range can be gone by the time a
# server binds it, since any client of the machine may be given it.
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
NET = Path("/proc/net")
# State of a socket there: with a listener.
LISTEN = "0A"
# Below are the ports of well-known programs, which the machine may start at any time.
MIN_PORT, MAX_PORT = 10_240, 65_535
TRIES = 200
# A port stays reserved until this many others were given: by then its server has bound it.
MAX_RESERVED = 256
_reserved: collections.deque[socket.socket] = collections.deque()


@atexit.register
def _close() -> None:
    for reservation in _reserved:
        reservation.close()


def free_port() -> int:
    """A TCP port of the loopback interface without a listener, reserved for the caller.

    The port lies outside the range of outgoing connections if that leaves room. Other instruments of this machine,
    which find ports the same way, do not get this port as long as the process lives, or until it has requested many
    others.
    """
    taken_by_clients = ephemeral()
    candidates = [port for port in range(MIN_PORT, MAX_PORT + 1) if port not in taken_by_clients]
    for port in random.sample(candidates, min(TRIES, len(candidates))):
        if reservation := _reserve(port):
            _reserved.append(reservation)
            if len(_reserved) > MAX_RESERVED:
                _reserved.popleft().close()
            return port
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


def ephemeral() -> range:
    """The ports that the kernel gives to outgoing connections; empty if unknown."""
    try:
        low, high = map(int, EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        return range(0)
    return range(low, high + 1)


def listening() -> set[int]:
    """The TCP ports with a listener on this machine; empty if unknown."""
    return {int(row[1].rpartition(":")[2], 16) for row in sockets(LISTEN)}


def sockets(state: str) -> Iterator[list[str]]:
    """The columns of every TCP socket in a state (proc(5)); empty if unreadable.

    After a load ten thousand others exist, which psutil would decode one by one.
    """
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (NET / name).read_text().splitlines()[1:]:
                # Most lines are of others, and dividing them takes longer.
                if f" {state} " not in line:
                    continue
                row = line.split()
                if row[3] == state:
                    yield row


def _reserve(port: int) -> socket.socket | None:
    """A name that one process of the machine can have at a time, until its end: an abstract socket (unix(7)).

    None if another process has the name, or listens on the port.
    """
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        reservation.bind(f"\0benchapp-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        reservation.close()
        return None
    return reservation
