"""Costs of requests: connections to the database, and bytes of log for malformed requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress

from bench.serve.deployment import connections
from bench.serve.machine import http
from bench.serve.machine.http import BadResponse
from bench.verify import wire
from bench.verify.check import LAYER, check, excused
from bench.verify.context import Context
from bench.verify.hits import new_path
from bench.verify.mismatch import NEEDS_PROBES, Figure, Finding, Mismatch, NotTried
from bench.verify.wire import Connection

PROBE = "/__probe__/connections"
# More clients than any stack has threads, and fewer than PostgreSQL takes connections (100).
CLIENTS = 80
ROUNDS = 4
# The probe holds a connection that long.
COUNT_EVERY_S = 0.02
TIMES = 10
# A line with the address, the time and a reason, with room to spare; no traceback, and no copy of the request.
MAX_BYTES = 500
# Requests that reach the project, whose own logging may write more.
HOST, LONG_HOST, ADDRESS = "foreign host", "long foreign host", "broken escape"
# Later log lines count for the next kind of request.
SETTLED_S = 0.1
# A chunk without a size.
BROKEN = b"zz\r\n" + b"a" * 4000 + b"\r\n0\r\n\r\n"


@check("database-connections", stage=LAYER, thorough=True)
def database_connections(context: Context) -> Iterator[Finding]:
    """Under 80 clients at once no page fails for lack of a database connection, and the stack never holds more than its
    threads."""
    if context.get(PROBE).status == 404:
        raise NotTried(NEEDS_PROBES)
    counter = None
    if context.running:
        counter = connections.connection_counter(context.running.env.get("DATABASE_URL", ""))
        if counter is None:
            raise NotTried("only PostgreSQL reports its connections: give --database postgresql")
    with counter or nullcontext():
        if counter:
            counter.watch(COUNT_EVERY_S)
        with ThreadPoolExecutor(CLIENTS) as pool:
            held = list(pool.map(lambda _: _holds(context), range(CLIENTS * ROUNDS)))
        if failed := held.count(False):
            yield Mismatch(f"{len(held)} requests by {CLIENTS} clients: status 200", f"{failed} of them failed")
        if not counter or not context.running:
            raise NotTried("the site's database and number of threads are not known: benchapp did not start this site")
        limit = context.running.case.threads
        for when, name, most in (
            (f"{CLIENTS} clients at once", "database_connections", counter.peak()),
            (f"{connections.LEFT_S:g} s after the load", "database_connections_left", counter.left(time.monotonic())),
        ):
            yield Figure(name, most)
            if most is None or most > limit:
                expected = f"{when}: at most {limit} database connections, one for each thread"
                got = "no response"
                if most is not None:
                    got = f"{most} connections"
                yield Mismatch(expected, got)


def _holds(context: Context) -> bool:
    """True if the page that holds a connection for a moment responds."""
    try:
        return wire.fetch(context.target, PROBE).status == 200
    except (BadResponse, OSError):
        return False


@check("log-bytes", stage=LAYER, is_exclusive=True)
@excused({"own log": "more bytes a request by the project's own logging"})
def log_bytes(context: Context) -> Iterator[Finding]:
    """A malformed request costs at most 500 bytes of log, so that clients cannot fill the disk."""
    running = context.own
    for what, request in malformed(context).items():
        before = running.log_bytes()
        for _ in range(TIMES):
            # Other checks judge the kind of refusal.
            with suppress(BadResponse, OSError), Connection(context.target, timeout_s=2) as connection:
                if connection.send_anyway(request):
                    connection.read()
        time.sleep(SETTLED_S)
        each = (running.log_bytes() - before) / TIMES
        yield Figure(f"log_bytes_{what.replace(' ', '_')}", each)
        if each <= MAX_BYTES:
            continue
        excuse = ""
        if what in (HOST, LONG_HOST, ADDRESS):
            excuse = "own log"
        yield Mismatch(f"{what}: at most {MAX_BYTES} bytes of log a request", f"{each:,.0f} bytes", excuse=excuse)


def malformed(context: Context) -> dict[str, bytes]:
    """Requests refused by a server or the site, by fault."""
    target, home = context.target, context.site.url("home")
    # A page that reads a body: of the site, or else a probe.
    form = context.site.urls.get("login", new_path("form"))
    chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/x-www-form-urlencoded"}
    return {
        HOST: http.build(target, "GET", home, host="other.example"),
        LONG_HOST: http.build(target, "GET", home, host="a" * 4000),
        "long header": http.build(target, "GET", home, {"X-Verify": "a" * 100_000}),
        "broken chunk": http.build(target, "POST", form, chunked, BROKEN),
        "broken chunk and long header": http.build(target, "POST", form, {**chunked, "X-Verify": "a" * 7000}, BROKEN),
        ADDRESS: http.build(target, "GET", "/%" + "a" * 2000),
        "no request": b"\0\1\2" * 1000 + b"\r\n\r\n",
    }
