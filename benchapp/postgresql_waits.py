"""A bounded wait for PostgreSQL's answers, for psycopg2."""

from __future__ import annotations

import select
import time
from typing import Any

from psycopg2 import OperationalError
from psycopg2.extensions import POLL_OK, POLL_READ, set_wait_callback

from benchapp.caching.resilience import CircuitBreaker

# The database itself ends a statement first, if it can.
MARGIN_S = 0.25


def install(seconds: float) -> None:
    """Let no connection of this process, and of those it forks, wait longer for an answer."""
    set_wait_callback(Patience(seconds + MARGIN_S))


class Patience:
    """Waits for PostgreSQL's next bytes, in place of libpq, which waits for a server that hangs for ever.

    The kernel of such a server still acknowledges what it gets, so that neither keepalives nor timeouts of TCP notice,
    and a Unix socket has none. After a wait in vain, others are not even tried for a moment: each would hold a worker.

    https://www.psycopg.org/docs/extensions.html#psycopg2.extensions.set_wait_callback
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.breaker = CircuitBreaker()

    def __call__(self, connection: Any) -> None:
        """Return once the connection has an answer; raises OperationalError, upon which psycopg2 closes it."""
        if self.breaker.is_open:
            raise OperationalError("the database has just not answered: not asked again yet")
        deadline = time.monotonic() + self.seconds
        while (state := connection.poll()) != POLL_OK:
            poller = select.poll()
            poller.register(connection.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
            if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                self.breaker.trip()
                raise OperationalError(f"no answer of the database within {self.seconds:g} s")
