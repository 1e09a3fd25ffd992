"""Ports to listen on, which nothing else takes before the server does."""

from __future__ import annotations

import atexit
import collections
import random
import socket
from pathlib import Path

# Where the kernel takes the ports of outgoing connections from (ip(7)); a port of that range can be gone by the time a
# server binds it, since any client of the machine may be given it.
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Below are the ports of well-known programs, which the machine may start at any time.
LOWEST, HIGHEST = 10_240, 65_535
TRIES = 200
# A port is promised until this many others were given: by then its server has bound it.
PROMISES = 256
_promised: collections.deque[socket.socket] = collections.deque()


@atexit.register
def _close() -> None:
    for promise in _promised:
        promise.close()


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on and nobody else is being given.

    It lies outside the range of outgoing connections where that leaves room. Other instruments of this machine, which
    look for ports the same way, do not get it as long as this process lives, or until it has asked for many others.
    """
    taken_by_clients = ephemeral()
    candidates = [port for port in range(LOWEST, HIGHEST + 1) if port not in taken_by_clients]
    for port in random.sample(candidates, min(TRIES, len(candidates))):
        promise = _promise(port)
        if promise is None:
            continue
        if not _is_free(port):
            promise.close()
            continue
        _promised.append(promise)
        if len(_promised) > PROMISES:
            _promised.popleft().close()
        return port
    return _any_port()


def ephemeral() -> range:
    """The ports that the kernel gives to outgoing connections; empty where it does not say."""
    try:
        low, high = map(int, EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        return range(0)
    return range(low, high + 1)


def _promise(port: int) -> socket.socket | None:
    """Something that only one process of the machine can hold for a port, and that ends with it: a name for a socket
    that is no file (unix(7), "abstract"). None when another holds it."""
    promise = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        promise.bind(f"\0benchapp-port-{port}")
    except OSError:
        promise.close()
        return None
    return promise


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
