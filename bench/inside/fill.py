"""Fill the caches of pages with entries of other names, as a busy site or a crawler does."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core.cache import DEFAULT_CACHE_ALIAS, caches
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

# Sixteen times as many are more than a cache of 8 MB holds: large entries take its memory, small ones evict small ones.
LARGE, LARGE_BYTES = 20, 100_000
SMALL, BATCH = 2_500, 500
# Django's own names of the cache of fragments and of what names none.
USUAL = (DEFAULT_CACHE_ALIAS, "template_fragments")


@never_cache
@require_POST
def fill(request: HttpRequest) -> JsonResponse:
    """Put large and then small entries into each cache that layers use; others may take seconds, as a database does."""
    aliases = caches.settings.keys() & {settings.CACHE_MIDDLEWARE_ALIAS, *USUAL}
    for alias in aliases:
        for _ in range(LARGE):
            caches[alias].set(_name(), b"x" * LARGE_BYTES)
        for _ in range(SMALL // BATCH):
            caches[alias].set_many({_name(): secrets.token_hex(8) for _ in range(BATCH)})
    return JsonResponse({"caches": len(aliases)})


def _name() -> str:
    """As long as the names of the site's own small entries, so that a cache treats them alike."""
    return f"fill.probes.{secrets.token_hex(16)}"
