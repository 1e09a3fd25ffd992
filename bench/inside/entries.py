"""How many entries there are in the stores that the site reaches, to see what a flood of requests leaves there."""

from __future__ import annotations

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.memcached import PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from benchapp.caching import registry
from benchapp.caching.stores import uwsgi


@never_cache
@require_safe
def entries(request: HttpRequest) -> JsonResponse:
    """The entries in the caches of the settings, each server once, and in the shared memory of uWSGI."""
    aliases = {str(options.get("LOCATION")): alias for alias, options in caches.settings.items()}
    total = sum(_count(caches[alias]) for alias in aliases.values())
    if registry.is_active("uwsgi-cache") and uwsgi.uwsgi is not None:
        total += sum(len(uwsgi.uwsgi.cache_keys(name)) for name in (uwsgi.PAGES, uwsgi.GUARDS))
    return JsonResponse({"entries": total})


def _count(cache: BaseCache) -> int:
    """The entries of a cache server; 0 for a cache that cannot be asked."""
    if isinstance(cache, PyMemcacheCache):
        return sum(int(client.stats()[b"curr_items"]) for client in cache._cache.clients.values())
    return cache._cache.get_client().dbsize() if isinstance(cache, RedisCache) else 0
