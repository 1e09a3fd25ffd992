"""Caches for the layers inside Django, with repaired backends."""

from __future__ import annotations

import environ

from benchapp.serving import environment

# For backends with a limit of entries: Django's default of 300 is 150 pages, since each page takes two.
MAX_ENTRIES = 10_000
LIMITED_BACKENDS = ("LocMemCache", "AtomicAddFileCache", "SelfCreatingDatabaseCache")
# Django's backends that would break or slow down a page, and their repaired versions.
REPAIRED_BACKENDS = {
    f"django.core.cache.backends.{django_name}": f"benchapp.caching.repairs.django_backends.{repaired_name}"
    for django_name, repaired_name in {
        "memcached.PyMemcacheCache": "SharedMemcachedCache",
        "redis.RedisCache": "TolerantRedisCache",
        "db.DatabaseCache": "SelfCreatingDatabaseCache",
        "filebased.FileBasedCache": "AtomicAddFileCache",
    }.items()
}
REDIS_OPTIONS = {"socket_timeout": 1}  # seconds


def cache(env: environ.Env, name: str, prefix: str, timeout_s: int) -> dict:
    """The cache of the URL in a variable, with its own key prefix, so that two layers never share an entry."""
    cache = environment.cache(env, name, default="locmemcache://")
    cache.setdefault("TIMEOUT", timeout_s)
    cache["KEY_PREFIX"] = f"{cache.get('KEY_PREFIX', 'benchapp')}-{prefix}"
    cache["BACKEND"] = REPAIRED_BACKENDS.get(cache["BACKEND"], cache["BACKEND"])
    kind = cache["BACKEND"].rpartition(".")[2]
    if kind == "LocMemCache":
        cache["LOCATION"] = f"{cache['LOCATION']}{prefix}"
    if kind in LIMITED_BACKENDS:
        cache.setdefault("OPTIONS", {}).setdefault("MAX_ENTRIES", MAX_ENTRIES)
    elif kind == "TolerantRedisCache":
        cache["OPTIONS"] = REDIS_OPTIONS | cache.get("OPTIONS", {})
    return cache
