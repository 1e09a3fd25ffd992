"""Reach a port of a host as programs on that host do, whatever firewall is before it: by a tunnel of ssh."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.errors import BenchError
from bench.hosts.ssh import Connection
from bench.machine.ports import free_port
from bench.production.inventory import Host

CONNECT_S = 20.0


@contextmanager
def tunnel(host: Host, address: str, port: int) -> Iterator[tuple[str, int]]:
    """Where this machine reaches that address of the host while the block lasts; raises BenchError when it cannot."""
    if host.local:
        yield address, port
        return
    here = free_port()
    options = ("-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{here}:{address}:{port}")
    # `cat` answers once the tunnel stands, and ends with this process.
    with Connection(host, "exec cat", options) as connection:
        connection.send(b"\n")
        if not connection.line(CONNECT_S):
            raise BenchError(f"{host.name}: no tunnel by ssh: {connection.why(CONNECT_S)}")
        try:
            yield "127.0.0.1", here
        finally:
            # ssh would wait for the end of what goes through it.
            connection.kill()
