"""Limited waits with psycopg2, by a wait callback instead of libpq's waits."""

from __future__ import annotations

import select
import time
from typing import Any

from psycopg2 import OperationalError
from psycopg2.extensions import POLL_OK, POLL_READ, STATUS_SETUP

from benchapp.postgresql import limits


def wait(connection: Any) -> None:
    """Return once the connection has a response; after OperationalError psycopg2 closes the connection.

    https://www.psycopg.org/docs/extensions.html#psycopg2.extensions.set_wait_callback
    """
    connecting = connection.status == STATUS_SETUP
    seconds = limits.CONNECT_S if connecting else limits.statement_s()
    deadline = time.monotonic() + seconds
    while (state := connection.poll()) != POLL_OK:
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            if connecting:
                limits.breaker.trip()
            raise OperationalError(f"no response of the database within {seconds:g} s")
