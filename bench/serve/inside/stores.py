"""The caches of the site: how many entries they have, filled as by a busy site or a crawler, and empty."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core.cache import DEFAULT_CACHE_ALIAS, caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.memcached import PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from benchapp.caching import registry
from benchapp.caching.invalidation import all_pages, invalidate

# Sixteen times as many are more than a cache of 8 MB holds: large entries take its memory, small ones evict small ones.
LARGE, LARGE_BYTES = 20, 100_000
SMALL, BATCH = 2_500, 500
# Django's own names of the cache of fragments and of what names none.
USUAL = (DEFAULT_CACHE_ALIAS, "template_fragments")


@never_cache
@require_safe
def entries(request: HttpRequest) -> JsonResponse:
    """The entries in the caches of the settings, each server once, and in stores that only the site reaches."""
    aliases = {str(options.get("LOCATION")): alias for alias, options in caches.settings.items()}
    in_caches = sum(_count(caches[alias]) for alias in aliases.values())
    return JsonResponse({"entries": in_caches + registry.entries()})


def _count(cache: BaseCache) -> int:
    """The entries of a cache server; 0 for an unreachable cache."""
    if isinstance(cache, PyMemcacheCache):
        return sum(int(client.stats()[b"curr_items"]) for client in cache._cache.clients.values())
    if not isinstance(cache, RedisCache):
        return 0
    return cache._cache.get_client().dbsize()


@never_cache
@require_POST
def fill(request: HttpRequest) -> JsonResponse:
    """Put large and then small entries into each cache of a layer; others, such as a database, may take seconds."""
    aliases = caches.settings.keys() & {settings.CACHE_MIDDLEWARE_ALIAS, *USUAL}
    for alias in aliases:
        for _ in range(LARGE):
            caches[alias].set(_name(), b"x" * LARGE_BYTES)
        for _ in range(SMALL // BATCH):
            caches[alias].set_many({_name(): secrets.token_hex(8) for _ in range(BATCH)})
    return JsonResponse({"caches": len(aliases)})


@csrf_exempt
@never_cache
@require_POST
def purge(request: HttpRequest) -> JsonResponse:
    """Invalidate every cached page, in each layer with invalidation."""
    invalidate(all_pages())
    return JsonResponse({"purged": True})


def _name() -> str:
    """A name as long as the site's own small entries, so that a cache treats them alike."""
    return f"fill.probes.{secrets.token_hex(16)}"
