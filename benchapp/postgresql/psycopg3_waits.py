"""Limited waits with psycopg 3."""

from __future__ import annotations

from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.utils.version import get_version_tuple

from benchapp.postgresql import limits

# The first one whose waits can be limited.
OLDEST = (3, 3, 6)

if get_version_tuple(psycopg.__version__) < OLDEST:
    raise ImproperlyConfigured(f"psycopg {psycopg.__version__} is too old: pip install 'psycopg[binary,pool]>=3.3.6'")


class Connection(psycopg.Connection):
    """A connection with a limit for each wait."""

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Connection:
        """Connect like psycopg; its parameter `connect_timeout` is the limit."""
        try:
            return super().connect(*args, **kwargs)
        except psycopg.errors.ConnectionTimeout:
            limits.breaker.trip()
            raise

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait as psycopg does, but not for ever; after OperationalError the connection is closed."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        seconds = limits.statement_s()
        try:
            return super().wait(gen, interval, seconds)
        # Named by the docstring of `wait`, though it is private.
        except psycopg.errors._WaitTimeout:
            self.close()
            raise psycopg.OperationalError(f"no response of the database within {seconds:g} s") from None
