"""Repairs of pymemcache's clients, each with a link to the fault."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient
from pymemcache.client.rendezvous import RendezvousHash
from pymemcache.client.retrying import RetryingClient
from pymemcache.exceptions import MemcacheUnexpectedCloseError

# A memcached that is down or hangs makes pages slower, not broken; it is tried again soon. Times in seconds.
DEFAULTS = {
    "use_pooling": True,
    "ignore_exc": True,
    "connect_timeout": 1,
    "timeout": 1,
    "retry_timeout": 1,
    "no_delay": True,
}


class OneNode(RendezvousHash):
    """The node of every key where there is one server: no key is hashed in Python."""

    def get_node(self, key: str) -> str | None:
        return self.nodes[0] if self.nodes else None


def reconnecting(*args: Any, **kwargs: Any) -> RetryingClient:
    """A client for one connection, which connects anew, once, when memcached has closed that.

    Repairs: after a restart of memcached each kept connection fails its next command, such as a write's invalidation.
    https://github.com/pinterest/pymemcache/blob/v4.0.0/pymemcache/client/base.py#L1660
    """
    return RetryingClient(Client(*args, **kwargs), retry_for=(ConnectionError, MemcacheUnexpectedCloseError))


class ThreadSafeClient(HashClient):
    """pymemcache's client for the threads of a process, with true answers about failed writes.

    For a moment after a failure reads and single writes skip a server. `set_many`, by which pages are invalidated, does
    not: other processes may read stale pages meanwhile. No server is ever taken out: its keys would move to another
    one, and back to old pages.

    Repairs: two threads that find at once that a server may be retried raise KeyError out of a page.
    https://github.com/pinterest/pymemcache/issues/124

    Repairs: with `ignore_exc`, keys that `set_many` could not write count as written, so no invalidation is retried.
    https://github.com/pinterest/pymemcache/blob/v4.0.0/pymemcache/client/hash.py#L324
    """

    client_class = staticmethod(reconnecting)

    def __init__(self, servers: list[str], **options: Any) -> None:
        self._failed_lock = threading.Lock()
        hasher = OneNode if len(servers) == 1 else RendezvousHash
        super().__init__(servers, **{"hasher": hasher, **DEFAULTS, **options, "retry_attempts": sys.maxsize})

    def _safely_run_set_many(self, client: Any, values: Any, *args: Any, **kwargs: Any) -> list:
        try:
            failed = client.set_many(values, *args, **kwargs)
        except Exception as error:  # any: it is ignored or raised, as was asked for
            if isinstance(error, OSError):
                self._mark_failed_server(client.server)
            if not self.ignore_exc:
                raise
            return list(values)
        with self._failed_lock:
            self._failed_clients.pop(client.server, None)
        return failed

    def _mark_failed_server(self, server: Any) -> None:
        # Another thread may have reached the server meanwhile; then it has not failed.
        with self._failed_lock, contextlib.suppress(KeyError):
            super()._mark_failed_server(server)
