"""Cache-Control for a shared cache that stores pages by itself, such as Nginx.

For the first half of the time to live a page is fresh. In the second half the cache may serve it stale while it fetches
a new one, or because that fails. The limit matters: a deleted page gives no response that could replace the
cached one, so without a limit the cache would serve it for as long as anybody requests it.

Nginx breaks an answer off that it cannot write to its cache. On a disk that is nearly full it gets nothing to cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control

from benchapp.caching import registry
from benchapp.caching.cacheability import may_store, may_store_for

# Enough for the pages that are on their way at the same time, each with its directories.
MIN_FREE_BYTES, MIN_FREE_FILES = 2_000_000, 100


class AllowSharedCaching:
    """Middleware that adds s-maxage to each cacheable page. Browsers ignore it, and so store nothing.

    While the cache's disk is nearly full, X-Accel-Expires forbids Nginx to store anything; no other cache reads it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        stale = settings.CACHING_SECONDS // 2
        fresh = settings.CACHING_SECONDS - stale
        self.directives = {"s_maxage": fresh, "stale_while_revalidate": stale, "stale_if_error": stale}
        self.directory = registry.options("nginx-microcache")["directory"]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not may_store_for(request):
            return response
        if not has_room(self.directory):
            response.headers["X-Accel-Expires"] = "0"
        elif may_store(response):
            patch_cache_control(response, **self.directives)
            response.has_shared_lifetime = True
        return response


def has_room(directory: Path) -> bool:
    """Whether the disk of this directory takes some more pages. One that does not exist yet has room."""
    try:
        disk = os.statvfs(directory)
    except FileNotFoundError:
        return True
    # Some file systems have no limit of files and count none.
    has_names = disk.f_files == 0 or disk.f_favail >= MIN_FREE_FILES
    return has_names and disk.f_bavail * disk.f_frsize >= MIN_FREE_BYTES
