"""Clients so slow that each holds what serves it, and whether others are served meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from bench.verify import wire
from bench.verify.wire import BadAnswer, Connection, Target

BODY_BYTES = 1000
# Others ask for this long, and each answer may take as long as this. On a busy machine one may be late: two in a row
# are not.
OTHERS_S = 1.0
LIMIT_S = 1.0
# Between two of their requests: they are visitors, not a load.
PAUSE_S = 0.05
# So long the slow clients have to reach the workers.
SETTLED_S = 0.3
# The smallest receive buffer that the kernel grants: what does not fit waits in the servers.
BUFFER_BYTES = 2048


@dataclass(frozen=True)
class Slowness:
    """One way to be slow.

    request  what is sent, and nothing after it
    reads    whether the client could read an answer; it reads nothing
    """

    name: str
    request: bytes
    reads: bool = True


def headers(target: Target, path: str) -> Slowness:
    """A header block that does not end."""
    return Slowness("unfinished header blocks", wire.build(target, "GET", path).removesuffix(b"\r\n"))


def bodies(target: Target, path: str) -> Slowness:
    """A form of which 1 byte of 1,000 comes."""
    lines = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(BODY_BYTES)}
    return Slowness("slow bodies", wire.build(target, "POST", path, lines, b"x"))


def readers(target: Target, path: str) -> Slowness:
    """A large answer of which nothing is read."""
    return Slowness("slow readers", wire.build(target, "GET", path), reads=False)


class SlowClients:
    """Connections of slow clients, more of them with each call, closed by `with`."""

    def __init__(self, target: Target, how: Slowness):
        self.count = 0
        self.target, self.how = target, how
        self._open = ExitStack()

    def __enter__(self) -> SlowClients:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def grow(self, count: int, settled_s: float | None = None) -> None:
        """Open connections up to so many, and wait for `settled_s`, by default until the servers have them."""
        buffer = None if self.how.reads else BUFFER_BYTES
        while self.count < count:
            connection = self._open.enter_context(Connection(self.target, receive_buffer=buffer))
            connection.send(self.how.request)
            self.count += 1
        time.sleep(SETTLED_S if settled_s is None else settled_s)


def held_up(target: Target, paths: Iterable[str]) -> tuple[str, str] | None:
    """The first of these paths, asked by turns, that is late twice in a row, and why; None when none is."""
    late: dict[str, str | None] = dict.fromkeys(paths)
    deadline = time.monotonic() + OTHERS_S
    while time.monotonic() < deadline or any(late.values()):
        for path, before in late.items():
            now = _problem(target, path)
            if before and now:
                return path, now
            late[path] = now
        time.sleep(PAUSE_S)
    return None


def _problem(target: Target, path: str) -> str | None:
    try:
        with Connection(target, timeout_s=LIMIT_S) as connection:
            status = connection.exchange("GET", path).status
    except (BadAnswer, OSError) as error:
        return str(error) or type(error).__name__
    return None if status == 200 else f"status {status}"
