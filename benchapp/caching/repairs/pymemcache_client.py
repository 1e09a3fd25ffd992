"""Repairs of pymemcache's clients, each with a link to the fault."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient
from pymemcache.client.retrying import RetryingClient
from pymemcache.exceptions import MemcacheUnexpectedCloseError


def reconnecting(*args: Any, **kwargs: Any) -> RetryingClient:
    """A client for one connection, which connects anew, once, when memcached has closed that.

    Repairs: after a restart of memcached each kept connection fails its next command, such as a write's invalidation.
    https://github.com/pinterest/pymemcache/blob/v4.0.0/pymemcache/client/base.py#L1660
    """
    return RetryingClient(Client(*args, **kwargs), retry_for=(ConnectionError, MemcacheUnexpectedCloseError))


class ThreadSafeClient(HashClient):
    """pymemcache's client for the threads of a process, with true answers about failed writes.

    Repairs: two threads that find at once that a server may be retried raise KeyError out of a page.
    https://github.com/pinterest/pymemcache/issues/124

    Repairs: with `ignore_exc`, keys that `set_many` could not write count as written, so no invalidation is retried.
    https://github.com/pinterest/pymemcache/blob/v4.0.0/pymemcache/client/hash.py#L324
    """

    client_class = staticmethod(reconnecting)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._servers_lock = threading.RLock()
        super().__init__(*args, **kwargs)

    def remove_server(self, *args: Any, **kwargs: Any) -> None:
        with self._servers_lock:
            super().remove_server(*args, **kwargs)

    def _retry_dead(self) -> None:
        with self._servers_lock:
            # pymemcache may skip the check for another `dead_timeout`.
            self._last_dead_check_time = 0.0
            super()._retry_dead()

    def _set_many(self, client: Any, values: Any, *args: Any, **kwargs: Any) -> tuple[list, list, Exception | None]:
        try:
            failed = client.set_many(values, *args, **kwargs)
        except Exception as error:  # any: the caller marks the server as failed, or ignores the error
            return [], list(values), error
        return [key for key in values if key not in failed], failed, None

    def _mark_failed_server(self, server: Any) -> None:
        # Another thread may have reached the server meanwhile; then it has not failed.
        with self._servers_lock, contextlib.suppress(KeyError):
            super()._mark_failed_server(server)
