"""Django's caches where one of its own would break a page or cost it much.

A Redis that is down or hangs breaks no page; a table that is not there yet is made; connections to memcached outlive a
request; of several that add the same entry as a file, one does.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.memcached import PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.core.files import locks
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connections, router

from benchapp.caching.silence import Silence

logger = logging.getLogger(__name__)


class FetchAhead:
    """Lets a page that is made of many parts ask for them all at once; each is then got without asking again."""

    _ahead: dict[str, Any] = {}

    def fetch_ahead(self, keys: list[str]) -> None:
        """Ask for these keys now, for the next `get` of each; forgotten when the request is over."""
        found = self.get_many(keys)
        self._ahead = {key: found.get(key, _ABSENT) for key in keys}

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        if version is None and key in self._ahead:
            value = self._ahead.pop(key)
            return default if value is _ABSENT else value
        return super().get(key, default, version)

    def close(self, **kwargs: Any) -> None:
        self._ahead = {}
        super().close(**kwargs)


_ABSENT = object()


class KeptMemcachedCache(FetchAhead, PyMemcacheCache):
    """memcached with connections that are kept: Django closes them after each request, which costs more than a get.

    One client serves all threads of a process, from its pool of connections.
    """

    @property
    def _cache(self) -> Any:
        # A forked process has its own.
        if self._process != os.getpid():
            self._process, self._kept = os.getpid(), _client(self)
        return self._kept

    _process, _kept = 0, None

    def close(self, **kwargs: Any) -> None:
        """Keep the connections."""
        self._ahead = {}


_clients: dict[tuple, Any] = {}


def _client(cache: KeptMemcachedCache) -> Any:
    """The client of this process for these servers."""
    from benchapp.caching.sharedclient import SharedClient  # of a package that only this cache needs

    options = dict(cache._options)
    if len(cache.client_servers) == 1:
        options["hasher"] = OneNode
    key = (os.getpid(), *cache.client_servers, repr(sorted(options.items())))
    if key not in _clients:
        _clients[key] = SharedClient(cache.client_servers, use_pooling=True, **options)
    return _clients[key]


class OneNode:
    """The choice among one server, without a hash of every key in Python."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def add_node(self, node: str) -> None:
        self.nodes.append(node)

    def remove_node(self, node: str) -> None:
        self.nodes.remove(node)

    def get_node(self, key: str) -> str | None:
        return self.nodes[0] if self.nodes else None


_silences: dict[tuple, Silence] = {}


def _silence(cache: RedisCache) -> Silence:
    """The one of this process for these servers: each thread has a cache of its own."""
    return _silences.setdefault((os.getpid(), *cache._servers), Silence())


def _forgiving(name: str, instead: Callable[[tuple], Any]) -> Callable[..., Any]:
    """The method of that name, with an answer of its own when Redis cannot be reached."""
    method = getattr(RedisCache, name)

    @wraps(method)
    def tried(self: RedisCache, *args: Any, **kwargs: Any) -> Any:
        import redis  # a package that only this cache needs

        silence = _silence(self)
        if silence.lasts:
            return instead(args)
        try:
            return method(self, *args, **kwargs)
        except redis.RedisError as error:
            # It hangs: a page that asks many times would wait each time.
            if isinstance(error, redis.TimeoutError):
                silence.begin()
            logger.warning("redis: %s", error)
            return instead(args)

    return tried


class _RedisCache(RedisCache):
    """A Redis that is down or hangs makes pages slower, not broken: nothing is found and nothing is kept."""

    get = _forgiving("get", lambda args: args[1] if len(args) > 1 else None)
    get_many = _forgiving("get_many", lambda args: {})
    add = _forgiving("add", lambda args: False)
    set = _forgiving("set", lambda args: None)
    set_many = _forgiving("set_many", lambda args: list(args[0]))
    delete = _forgiving("delete", lambda args: False)
    delete_many = _forgiving("delete_many", lambda args: None)
    has_key = _forgiving("has_key", lambda args: False)
    touch = _forgiving("touch", lambda args: False)


class ForgivingRedisCache(FetchAhead, _RedisCache):
    """The same, for pages made of many parts."""


class MadeTableCache(DatabaseCache):
    """The cache in a table of the database, which is made when it is first needed."""

    def get_many(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return super().get_many(*args, **kwargs)
        except DatabaseError:
            if not self._make_table():
                raise
            return super().get_many(*args, **kwargs)

    def _base_set(self, *args: Any, **kwargs: Any) -> bool:
        # A table that is not there looks like a row that could not be written.
        return super()._base_set(*args, **kwargs) or (self._make_table() and super()._base_set(*args, **kwargs))

    def _make_table(self) -> bool:
        """Make the table, unless it is there; whether it was made, by this worker or by another at the same time."""
        connection = connections[router.db_for_write(self.cache_model_class)]
        if connection.in_atomic_block or self._table in connection.introspection.table_names():
            return False
        try:
            call_command("createcachetable", self._table, database=connection.alias, verbosity=0)
        except CommandError as error:
            logger.warning("%s", error)
        return self._table in connection.introspection.table_names()


class AddingFileCache(FileBasedCache):
    """The cache in files, where one of several that add an entry at once does; Django's own lets all of them."""

    _LOCK = "adding.lock"

    def add(self, *args: Any, **kwargs: Any) -> bool:
        self._createdir()
        # The lock goes with the open file, also when the process is killed.
        with (Path(self._dir) / self._LOCK).open("ab") as lock:
            locks.lock(lock, locks.LOCK_EX)
            return super().add(*args, **kwargs)
