"""Reach a port of a host as programs on that host do, whatever firewall is before it: by a tunnel of ssh."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.errors import BenchError
from bench.fleet.inventory import Host
from bench.host.ports import free_port

CONNECT_S = 20.0


@contextmanager
def tunnel(host: Host, address: str, port: int) -> Iterator[tuple[str, int]]:
    """Where this machine reaches that address of the host while the block lasts; raises BenchError when it cannot."""
    if host.local:
        yield address, port
        return
    here = free_port()
    # `cat` answers once the tunnel stands, and ends with this process.
    ssh, *words = host.argv("exec cat")
    argv = [ssh, "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{here}:{address}:{port}", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1) as talk:
        late = threading.Timer(CONNECT_S, talk.kill)
        late.start()
        try:
            assert talk.stdin and talk.stdout and talk.stderr
            if not _answers(talk):
                talk.kill()
                said = [line.strip() for line in talk.stderr.read().splitlines() if line.strip()]
                why = said[-1].removeprefix("ssh: ") if said else f"no answer within {CONNECT_S:.0f} s"
                raise BenchError(f"{host.name}: no tunnel by ssh: {why}")
            late.cancel()
            yield "127.0.0.1", here
        finally:
            late.cancel()
            talk.kill()


def _answers(talk: subprocess.Popen[str]) -> bool:
    assert talk.stdin and talk.stdout
    try:
        talk.stdin.write("\n")
        return bool(talk.stdout.readline())
    except OSError:
        return False
