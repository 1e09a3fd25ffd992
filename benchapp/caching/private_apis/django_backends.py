"""Repairs of Django's cache backends, each with a link to the fault."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.memcached import PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.core.files import locks
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connections, router

from benchapp.caching.resilience import CircuitBreaker

logger = logging.getLogger(__name__)


class SharedMemcachedCache(PyMemcacheCache):
    """memcached over persistent connections: one client, with a pool, serves all threads of a process.

    Repairs: Django closes all connections after each request, which costs more than a get.
    https://code.djangoproject.com/ticket/11331
    """

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._client_key = (*self.client_servers, *map(str, self._options.items()))

    @property
    def _cache(self) -> Any:
        from benchapp.caching.private_apis.pymemcache_client import ThreadSafeClient  # an optional package

        # A forked process gets its own client.
        key = (os.getpid(), *self._client_key)
        return _clients.get(key) or _clients.setdefault(key, ThreadSafeClient(self.client_servers, **self._options))

    @property
    def only_client(self) -> Any:
        """The client of the only server, for methods that Django lacks; always tried, and raises on failure."""
        (client,) = self._cache.clients.values()
        return client

    def append(self, key: str, value: bytes) -> bool:
        """Append to the value of a key; returns whether there is one."""
        return bool(self._cache.append(self.make_and_validate_key(key), value))

    def close(self, **kwargs: Any) -> None:
        """Keep the connections open."""


_clients: dict[tuple, Any] = {}


@cache
def _breaker(*servers: str) -> CircuitBreaker:
    """The circuit breaker of this process for these servers: each thread has another cache object."""
    return CircuitBreaker()


def _tolerant(name: str, fallback: Callable[..., Any], skips: bool = True) -> Callable[..., Any]:
    """The method of that name, with a fallback for an unreachable Redis.

    skips  whether the method is not tried for a moment after a timeout
    """
    method = getattr(RedisCache, name)

    @wraps(method)
    def tolerant(self: RedisCache, *args: Any, **kwargs: Any) -> Any:
        import redis  # an optional package

        breaker = _breaker(*self._servers)
        if skips and breaker.is_open:
            return fallback(*args, **kwargs)
        try:
            return method(self, *args, **kwargs)
        except redis.RedisError as error:
            # A page has many requests for Redis, and would wait for a hung one each time.
            if isinstance(error, redis.TimeoutError):
                breaker.trip()
            logger.warning("redis: %s", error)
            return fallback(*args, **kwargs)

    return tolerant


class TolerantRedisCache(RedisCache):
    """A Redis that is down or hangs makes pages slower, not broken: reads miss, and writes do nothing.

    Repairs: every method of Django's raises the exceptions of redis-py, so an unreachable cache is an error 500.
    https://github.com/django/django/blob/5.2/django/core/cache/backends/redis.py
    """

    get = _tolerant("get", lambda key, default=None, version=None: default)
    get_many = _tolerant("get_many", lambda *_, **__: {})
    add = _tolerant("add", lambda *_, **__: False)
    set = _tolerant("set", lambda *_, **__: None)
    # Pages are invalidated by this: other processes may read stale ones meanwhile.
    set_many = _tolerant("set_many", lambda data, *_, **__: list(data), skips=False)
    delete = _tolerant("delete", lambda *_, **__: False)
    delete_many = _tolerant("delete_many", lambda *_, **__: None)
    has_key = _tolerant("has_key", lambda *_, **__: False)
    touch = _tolerant("touch", lambda *_, **__: False)


class SelfCreatingDatabaseCache(DatabaseCache):
    """The cache in a table of the database, created on first use.

    Repairs: Django raises until somebody runs `createcachetable`.
    https://docs.djangoproject.com/en/5.2/topics/cache/#creating-the-cache-table
    """

    def get_many(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return super().get_many(*args, **kwargs)
        except DatabaseError:
            if not self._create_table():
                raise
            return super().get_many(*args, **kwargs)

    def _base_set(self, *args: Any, **kwargs: Any) -> bool:
        # A missing table looks like a row that could not be written.
        return super()._base_set(*args, **kwargs) or (self._create_table() and super()._base_set(*args, **kwargs))

    def _create_table(self) -> bool:
        """Create the table if missing; returns whether this worker, or another at the same time, created one."""
        connection = connections[router.db_for_write(self.cache_model_class)]
        if connection.in_atomic_block or self._table in connection.introspection.table_names():
            return False
        try:
            call_command("createcachetable", self._table, database=connection.alias, verbosity=0)
        except CommandError as error:
            logger.warning("%s", error)
        return self._table in connection.introspection.table_names()


class AtomicAddFileCache(FileBasedCache):
    """The cache in files, with an `add` that only one of several workers wins.

    Repairs: Django's `add` looks first and writes afterwards, so all who look at once win.
    https://github.com/django/django/blob/5.2/django/core/cache/backends/filebased.py#L27
    """

    LOCK = "add.lock"

    def add(self, *args: Any, **kwargs: Any) -> bool:
        self._createdir()
        # The lock ends with the open file, also when the process is killed.
        with (Path(self._dir) / self.LOCK).open("ab") as lock:
            locks.lock(lock, locks.LOCK_EX)
            return super().add(*args, **kwargs)


class FileLocks(AtomicAddFileCache):
    """The render locks of pages in files; the command `expirepages` removes the old ones."""

    def _cull(self) -> None:
        """Keep the lock of a page that is being rendered, whatever the limit."""
