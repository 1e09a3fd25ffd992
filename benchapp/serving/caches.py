"""Caches for the layers inside Django, with repaired backends."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from benchapp.serving.environment import Env, needs_package

# What each scheme of CACHE_URL needs beyond Django itself.
SCHEMES = dict.fromkeys(("locmemcache", "dummycache", "filecache", "dbcache"))
SCHEMES |= dict.fromkeys(("memcache", "pymemcache"), "pymemcache")
SCHEMES |= dict.fromkeys(("redis", "rediss", "rediscache"), "redis")
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


def cache(env: Env, name: str, prefix: str, timeout_s: int) -> dict:
    """The cache of the URL in a variable, with its own key prefix, so that two layers never share an entry."""
    cache = _of_url(env, name, env.text(name, "locmemcache://"))
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


def _of_url(env: Env, name: str, url: str) -> dict:
    """Django's settings for the cache of a URL, with memcached through pymemcache."""
    scheme = url.partition(":")[0]
    if scheme not in SCHEMES:
        raise ImproperlyConfigured(f"{name}: {scheme!r} is not a cache: use {', '.join(SCHEMES)}")
    needs_package(name, SCHEMES[scheme], f"{scheme}://")
    try:
        for host in urlsplit(url).netloc.split(","):
            urlsplit(f"//{host}").port  # noqa: B018  raises on a port that is none
        settings = env.cache_url_config("py" + url if scheme == "memcache" else url)
    except (ValueError, ImproperlyConfigured) as error:
        raise ImproperlyConfigured(f"{name} cannot be read as a cache URL: {error}") from error
    if settings["LOCATION"] in ("", "unix:") and scheme not in ("locmemcache", "dummycache"):
        raise ImproperlyConfigured(f"{name}: {scheme}:// needs a place: a host and port, a path or a table")
    return settings
