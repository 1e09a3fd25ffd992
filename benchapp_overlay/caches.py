"""Caches for the layers inside Django: repaired backends for the page cache, stock ones for Django's own layers."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from benchapp_overlay.environment import Env, needs_package

DJANGO, REPAIRED = "django.core.cache.backends", "benchapp.caching.private_apis.django_backends"
REDIS = f"{DJANGO}.redis.RedisCache"
# The backend of each scheme of CACHE_URL, and the package that it needs beyond Django itself.
SCHEMES = {
    "locmemcache": (f"{DJANGO}.locmem.LocMemCache", None),
    "dummycache": (f"{DJANGO}.dummy.DummyCache", None),
    "filecache": (f"{REPAIRED}.AtomicAddFileCache", None),
    "dbcache": (f"{REPAIRED}.SelfCreatingDatabaseCache", None),
    **dict.fromkeys(("memcache", "pymemcache"), (f"{REPAIRED}.SharedMemcachedCache", "pymemcache")),
    **dict.fromkeys(("redis", "rediss", "rediscache"), (f"{REPAIRED}.TolerantRedisCache", "redis")),
}
# Django's own in place of each repaired one.
STOCK = {
    f"{REPAIRED}.AtomicAddFileCache": f"{DJANGO}.filebased.FileBasedCache",
    f"{REPAIRED}.SelfCreatingDatabaseCache": f"{DJANGO}.db.DatabaseCache",
    f"{REPAIRED}.SharedMemcachedCache": f"{DJANGO}.memcached.PyMemcacheCache",
    f"{REPAIRED}.TolerantRedisCache": REDIS,
}
# For backends with a limit of entries: Django's default of 300 is 150 pages, since each page takes two.
MAX_ENTRIES = 10_000
# Seconds, for a response and for a connection.
REDIS_OPTIONS = {"socket_timeout": 1, "socket_connect_timeout": 1}


def site_of(databases: Mapping[str, Mapping[str, Any]], urlconf: str, folder: Path) -> str:
    """A word that tells a site from others in the same cache, and is the same on all hosts and in each command.

    Databases and URLs identify the site. The folder changes with each release, so only the word of a site without a
    database depends on the folder. Servers and commands may have different engines, so the engine does not count.
    """
    places = []
    for _, database in sorted(databases.items()):
        place = [str(database.get(key) or "") for key in ("HOST", "PORT", "NAME")]
        place.append(str(database.get("OPTIONS", {}).get("service", "")))
        if any(place) and ":memory:" not in place:
            places.append(" ".join(place))
    text = "\n".join([urlconf, *(places or [str(folder)])])
    return md5(text.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()[:12]


def cache(env: Env, name: str, site: str, prefix: str, timeout_s: int) -> dict:
    """The cache of the URL in a variable, with a key prefix: no two layers, and no two sites, share an entry.

    site  the word of `site_of`; a `key_prefix` in the URL replaces the word
    """
    url = env.text(name, "locmemcache://")
    scheme = url.partition(":")[0]
    cache = _of_url(env, name, scheme, url)
    cache.setdefault("TIMEOUT", timeout_s)
    cache["KEY_PREFIX"] = f"{cache.get('KEY_PREFIX') or f'benchapp-{site}'}-{prefix}"
    if scheme == "locmemcache":
        cache["LOCATION"] = f"{cache['LOCATION']}{prefix}"
    if scheme in ("locmemcache", "filecache", "dbcache"):
        cache.setdefault("OPTIONS", {}).setdefault("MAX_ENTRIES", MAX_ENTRIES)
    elif scheme.startswith("redis"):
        cache["OPTIONS"] = REDIS_OPTIONS | cache.get("OPTIONS", {})
    return cache


def stock_cache(env: Env, name: str, site: str, prefix: str, timeout_s: int) -> dict:
    """The cache of the URL in a variable, in Django's own backend."""
    settings = cache(env, name, site, prefix, timeout_s)
    return {**settings, "BACKEND": STOCK.get(settings["BACKEND"], settings["BACKEND"])}


def _of_url(env: Env, name: str, scheme: str, url: str) -> dict:
    """Django's settings for the cache of a URL, with memcached through pymemcache."""
    if scheme not in SCHEMES:
        raise ImproperlyConfigured(f"{name}: {scheme!r} is not a cache: use {', '.join(SCHEMES)}")
    backend, package = SCHEMES[scheme]
    needs_package(name, package, f"{scheme}://")
    try:
        for host in urlsplit(url).netloc.split(","):
            urlsplit(f"//{host}").port  # noqa: B018  raises on an invalid port
        # The library spells options as this backend does.
        spelt = REDIS if scheme.startswith("redis") else backend
        settings = env.cache_url_config("py" + url if scheme == "memcache" else url, backend=spelt)
    except (ValueError, ImproperlyConfigured) as error:
        raise ImproperlyConfigured(f"{name} cannot be read as a cache URL: {error}") from error
    if settings["LOCATION"] in ("", "unix:") and scheme not in ("locmemcache", "dummycache"):
        raise ImproperlyConfigured(f"{name}: {scheme}:// needs a place: a host and port, a path or a table")
    # For Redis it spells this one as a client's option, which Django does not look at.
    if "key_prefix" in settings:
        settings["KEY_PREFIX"] = settings.pop("key_prefix")
    return {**settings, "BACKEND": backend}
