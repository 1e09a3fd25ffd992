"""The connections that a deployment holds to its database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from bench.serve import connections
from bench.serve.connections import Connections
from bench.verify import wire
from bench.verify.check import LAYER, check
from bench.verify.context import Context
from bench.verify.finding import NEEDS_PROBES, Figure, Finding, Mismatch, NotTried

PROBE = "/__probe__/connections"
# More clients than any stack has threads, and fewer than PostgreSQL takes connections (100).
CLIENTS = 80
ROUNDS = 4
# The probe holds a connection that long.
COUNT_EVERY_S = 0.02


@check("database-connections", stage=LAYER, thorough=True)
def database_connections(context: Context) -> Iterator[Finding]:
    """Under 80 clients at once no page fails for want of a database connection, and the stack never holds more than
    its threads."""
    if context.get(PROBE).status == 404:
        raise NotTried(NEEDS_PROBES)
    counter = connections.of(context.running.env.get("DATABASE_URL", "")) if context.running else None
    if context.running and counter is None:
        raise NotTried("only PostgreSQL reports its connections: give --database postgresql")
    with counter or nullcontext():
        if counter:
            counter.watch(COUNT_EVERY_S)
        with ThreadPoolExecutor(CLIENTS) as pool:
            answered = list(pool.map(lambda _: _holds(context), range(CLIENTS * ROUNDS)))
        if failed := answered.count(False):
            yield Mismatch(f"{len(answered)} requests by {CLIENTS} clients: status 200", f"{failed} of them failed")
        if not counter or not context.running:
            raise NotTried("the site's database and number of threads are not known: bench did not start it")
        yield from _too_many(counter, context.running.case.threads)


def _too_many(counter: Connections, limit: int) -> Iterator[Finding]:
    """How many connections there were, and were left, and which of both is beyond the limit."""
    most, left = counter.peak(), counter.left(time.monotonic())
    yield Figure("database_connections", most)
    yield Figure("database_connections_left", left)
    if most is None or most > limit:
        expected = f"{CLIENTS} clients at once: at most {limit} database connections, one for each thread"
        yield Mismatch(expected, "no answer" if most is None else f"{most} connections")
    if left is None or left > limit:
        expected = f"{connections.LEFT_S:g} s after the load: at most {limit} database connections, one for each thread"
        yield Mismatch(expected, "no answer" if left is None else f"{left} connections")


def _holds(context: Context) -> bool:
    """Whether a page that holds a connection for a moment is answered."""
    try:
        return wire.fetch(context.target, PROBE).status == 200
    except (wire.BadAnswer, OSError):
        return False
