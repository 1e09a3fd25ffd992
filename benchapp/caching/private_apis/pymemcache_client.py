"""Repairs of pymemcache's clients, each with a link to the fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient
from pymemcache.client.rendezvous import RendezvousHash
from pymemcache.client.retrying import RetryingClient
from pymemcache.exceptions import MemcacheUnexpectedCloseError

from benchapp.caching.resilience import CircuitBreaker

# A memcached that hangs delays a page for a second.
DEFAULTS = {"use_pooling": True, "connect_timeout": 1, "timeout": 1, "no_delay": True}


class OneNode(RendezvousHash):
    """The node of every key if only one server exists: no key is hashed in Python."""

    def get_node(self, key: str) -> str | None:
        return self.nodes[0] if self.nodes else None


def reconnecting(*args: Any, **kwargs: Any) -> RetryingClient:
    """A client for one connection, which connects again, once, after memcached has closed the connection.

    Repairs: after a restart of memcached each kept connection fails its next command, such as a write's invalidation.
    https://github.com/pinterest/pymemcache/blob/v4.0.0/pymemcache/client/base.py#L1660
    """
    return RetryingClient(Client(*args, **kwargs), retry_for=(ConnectionError, MemcacheUnexpectedCloseError))


class ThreadSafeClient(HashClient):
    """pymemcache's client for the threads of a process: a key of an unreachable server is a miss.

    For a moment after a failure reads and single writes skip a server. `set_many`, which invalidates pages, does not:
    other processes may read stale pages meanwhile. No server is ever taken out: its keys would move to another server,
    and back to old pages.

    Repairs: two threads that find at once that a server may be retried raise KeyError out of a page.
    https://github.com/pinterest/pymemcache/issues/124

    Repairs: with `ignore_exc`, keys that `set_many` could not write count as written, so no invalidation is retried.
    https://github.com/pinterest/pymemcache/blob/v4.0.0/pymemcache/client/hash.py#L324
    """

    client_class = staticmethod(reconnecting)

    def __init__(self, servers: list[str], **options: Any) -> None:
        self._breakers: dict[Any, CircuitBreaker] = defaultdict(CircuitBreaker)
        hasher = OneNode if len(servers) == 1 else RendezvousHash
        super().__init__(servers, **{"hasher": hasher, **DEFAULTS, **options})

    def _safely_run_func(
        self, client: Any, func: Callable[..., Any], default_val: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if self._breakers[client.server].is_open:
            return default_val
        return self._tried(client.server, lambda: func(*args, **kwargs), default_val)

    def _safely_run_set_many(self, client: Any, values: dict[str, Any], *args: Any, **kwargs: Any) -> list[str]:
        return self._tried(client.server, lambda: client.set_many(values, *args, **kwargs), list(values))

    def _tried(self, server: Any, command: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return command()
        except OSError:
            self._breakers[server].trip()
        except Exception:  # any, such as one of a value that cannot be unpickled any more
            pass
        return otherwise
