"""The limits of waits for PostgreSQL, and the circuit breaker that opens after a failed connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.conf import settings

from benchapp.caching.resilience import CircuitBreaker
from benchapp.postgresql.timeouts import statement_timeout_s

# The server itself ends a statement first, if it can.
MARGIN_S = 0.25

CONNECT_S: int = settings.BENCHAPP_DATABASE_TIMEOUT
# A URL may allow more time to a statement. One without any limit is no reason to wait for a server that hangs.
_OPTIONS = settings.DATABASES["default"]["OPTIONS"].get("options", "")
STATEMENT_S: float = max(CONNECT_S, statement_timeout_s(_OPTIONS)) + MARGIN_S

# True while a connection is made or checked, with statements that take no time.
_connecting = ContextVar("connecting", default=False)

# A slow statement never opens it: other connections may be fast.
breaker = CircuitBreaker()


def statement_s() -> float:
    """Return the limit of the wait for the response to a statement, in seconds."""
    return CONNECT_S if _connecting.get() else STATEMENT_S


@contextmanager
def connecting() -> Iterator[None]:
    """Give each statement of the block no more time than a connection."""
    token = _connecting.set(True)
    try:
        yield
    finally:
        _connecting.reset(token)
