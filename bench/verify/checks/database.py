"""The connections that a deployment holds to its database."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.verify import wire
from bench.verify.check import LAYER, check
from bench.verify.context import Context
from bench.verify.finding import NEEDS_PROBES, Figure, Finding, Mismatch, NotTried

PROBE = "/__probe__/connections"
# More clients than any stack has threads, and fewer than PostgreSQL takes connections (100).
CLIENTS = 80
ROUNDS = 4
# Closing connections are gone by then.
LEFT_S = 5.0
PAUSE_S = 0.5


@check("database-connections", stage=LAYER, thorough=True)
def database_connections(context: Context) -> Iterator[Finding]:
    """Under 80 clients at once no page fails for want of a database connection, and the stack never holds more than
    its threads."""
    answer = context.get(PROBE)
    if answer.status == 404:
        raise NotTried(NEEDS_PROBES)
    if answer.status == 200 and json.loads(answer.body)["connections"] is None:
        raise NotTried("only PostgreSQL reports its connections: give --database postgresql")
    with ThreadPoolExecutor(CLIENTS) as pool:
        counts = list(pool.map(lambda _: _count(context), range(CLIENTS * ROUNDS)))
    if failed := counts.count(None):
        yield Mismatch(f"{len(counts)} requests by {CLIENTS} clients: status 200", f"{failed} of them failed")
    most, left = max(count or 0 for count in counts), _left(context)
    yield Figure("database_connections", most)
    yield Figure("database_connections_left", left)
    if context.running is None:
        raise NotTried("the site's number of threads is not known: bench did not start it")
    limit = context.running.composition.threads
    if most > limit:
        expected = f"{CLIENTS} clients at once: at most {limit} database connections, one for each thread"
        yield Mismatch(expected, f"{most} connections")
    if left is None or left > limit:
        expected = f"{LEFT_S:g} s after the load: at most {limit} database connections, one for each thread"
        yield Mismatch(expected, "no answer" if left is None else f"{left} connections")


def _left(context: Context) -> int | None:
    """Connections left besides the counting one, at the latest after LEFT_S; None without an answer."""
    deadline = time.monotonic() + LEFT_S
    while (count := _count(context)) != 1 and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    return None if count is None else count - 1


def _count(context: Context) -> int | None:
    """The number of connections to the database; None when it does not report them."""
    try:
        answer = wire.fetch(context.target, PROBE)
    except (wire.BadAnswer, OSError):
        return None
    return json.loads(answer.body)["connections"] if answer.status == 200 else None
