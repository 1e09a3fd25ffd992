"""What malformed requests cost in log files."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.verify import wire
from bench.verify.check import LAYER, check
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.hits import new_path
from bench.verify.wire import BadAnswer, Connection

TIMES = 10
# A line with the address, the time and a reason, with room to spare; no traceback, and no copy of the request.
MAX_BYTES = 500
# The kind of request whose address the project itself refuses.
ADDRESS = "broken escape"
# What is logged later counts for the next kind of request.
SETTLED_S = 0.1
# A chunk without a size.
BROKEN = b"zz\r\n" + b"a" * 4000 + b"\r\n0\r\n\r\n"


@check("log-bytes", stage=LAYER)
def log_bytes(context: Context) -> Iterator[Finding]:
    """A malformed request costs at most 500 bytes of log, so that clients cannot fill the disk."""
    if context.running is None:
        raise NotTried("the log files are not known: bench did not start the site")
    for what, request in malformed(context).items():
        before = context.running.log_bytes()
        for _ in range(TIMES):
            _send(context, request)
        time.sleep(SETTLED_S)
        each = (context.running.log_bytes() - before) / TIMES
        yield Figure(f"log_bytes_{what.replace(' ', '_')}", each)
        # A project's own log may name the address of a page that it does not have.
        limit = MAX_BYTES + (len(request) if what == ADDRESS and not context.strict else 0)
        if each > limit:
            yield Mismatch(f"{what}: at most {limit:,} bytes of log a request", f"{each:,.0f} bytes")


def malformed(context: Context) -> dict[str, bytes]:
    """Requests that a server or the site refuses, by what is wrong with them."""
    target, home = context.target, context.site.url("home")
    # Where the site itself reads a body, or else a probe.
    form = context.site.urls.get("login", new_path("form"))
    chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/x-www-form-urlencoded"}
    return {
        "foreign host": wire.build(target, "GET", home, host="other.example"),
        "long foreign host": wire.build(target, "GET", home, host="a" * 4000),
        "long header": wire.build(target, "GET", home, {"X-Verify": "a" * 100_000}),
        "broken chunk": wire.build(target, "POST", form, chunked, BROKEN),
        "broken chunk and long header": wire.build(target, "POST", form, {**chunked, "X-Verify": "a" * 7000}, BROKEN),
        ADDRESS: wire.build(target, "GET", "/%" + "a" * 2000),
        "no request": b"\0\1\2" * 1000 + b"\r\n\r\n",
    }


def _send(context: Context, request: bytes) -> None:
    try:
        with Connection(context.target, timeout_s=2) as connection:
            if connection.send_anyway(request):
                connection.read()
    except (BadAnswer, OSError):
        # How it is refused is the subject of other checks.
        return
