"""More slow clients than the stack has threads, while others visit the site."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from bench.verify import wire
from bench.verify.check import AFTER, check
from bench.verify.context import Context
from bench.verify.finding import Mismatch, NotTried
from bench.verify.wire import BadAnswer, Connection

BODY_BYTES = 1000
# Others ask for this long, and each answer may take as long as this. On a busy machine one may be late: two in a row
# are not.
OTHERS_S = 1.0
LIMIT_S = 1.0
# The kernel spreads connections over processes by chance: with so many for each thread, none stays free by luck.
FOR_EACH_THREAD = 4
# So long the slow clients have to reach the workers.
SETTLED_S = 0.3


@check("slow-bodies", stage=AFTER, thorough=True)
def slow_bodies(context: Context) -> Iterator[Mismatch]:
    """Clients that send 1 byte of 1,000, more of them than threads, delay no one else: others are served within 1 s."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(BODY_BYTES)}
    request = wire.build(context.target, "POST", context.site.url("login"), headers, b"x")
    yield from _held_up(context, "slow bodies", request)


@check("slow-headers", stage=AFTER, thorough=True)
def slow_headers(context: Context) -> Iterator[Mismatch]:
    """Unfinished header blocks, more of them than threads, delay no one else: others are served within 1 s."""
    request = wire.build(context.target, "GET", context.site.url("home")).removesuffix(b"\r\n")
    yield from _held_up(context, "unfinished header blocks", request)


def _held_up(context: Context, what: str, request: bytes) -> Iterator[Mismatch]:
    if context.running is None:
        raise NotTried("the site's number of threads is not known: bench did not start it")
    count = FOR_EACH_THREAD * context.running.composition.threads + 1
    with contextlib.ExitStack() as slow:
        for _ in range(count):
            slow.enter_context(Connection(context.target)).send(request)
        time.sleep(SETTLED_S)
        for path in (context.site.url("home"), context.site.url("healthz")):
            if problem := _late(context, path):
                yield Mismatch(f"GET {path} during {count} {what}: an answer within {LIMIT_S:g} s", problem)


def _late(context: Context, path: str) -> str | None:
    """Why two answers in a row did not come in time; None when they did."""
    before, deadline = None, time.monotonic() + OTHERS_S
    while time.monotonic() < deadline or before:
        now = _problem(context, path)
        if before and now:
            return now
        before = now
    return None


def _problem(context: Context, path: str) -> str | None:
    try:
        with Connection(context.target, timeout_s=LIMIT_S) as connection:
            status = connection.exchange("GET", path).status
    except (BadAnswer, OSError) as error:
        return str(error) or type(error).__name__
    return None if status == 200 else f"status {status}"
