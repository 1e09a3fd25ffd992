"""Django's caches where one of its own would break a page: a Redis that is down, a table that is not there yet."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.redis import RedisCache
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connections, router

logger = logging.getLogger(__name__)


def _forgiving(name: str, instead: Callable[[tuple], Any]) -> Callable[..., Any]:
    """The method of that name, with an answer of its own when Redis cannot be reached."""
    method = getattr(RedisCache, name)

    @wraps(method)
    def tried(self: RedisCache, *args: Any, **kwargs: Any) -> Any:
        import redis  # a package that only this cache needs

        try:
            return method(self, *args, **kwargs)
        except redis.RedisError as error:
            logger.warning("redis: %s", error)
            return instead(args)

    return tried


class ForgivingRedisCache(RedisCache):
    """A Redis that is down makes pages slower, not broken: nothing is found and nothing is kept."""

    get = _forgiving("get", lambda args: args[1] if len(args) > 1 else None)
    get_many = _forgiving("get_many", lambda args: {})
    add = _forgiving("add", lambda args: False)
    set = _forgiving("set", lambda args: None)
    set_many = _forgiving("set_many", lambda args: list(args[0]))
    delete = _forgiving("delete", lambda args: False)
    delete_many = _forgiving("delete_many", lambda args: None)
    has_key = _forgiving("has_key", lambda args: False)
    touch = _forgiving("touch", lambda args: False)


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
