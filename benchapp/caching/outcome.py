"""The header X-Cache: hit, miss, or the reason why a page passed the cache.

Off by default (CACHING_X_CACHE): the reason names the cookie or the header that a page reads.
"""

from __future__ import annotations

from django.http import HttpRequest

X_CACHE = "X-Cache"
HIT, MISS = "hit", "miss"
# The active layers store no whole pages.
NO_OUTCOME = "pass; layer"


def report(request: HttpRequest, outcome: str) -> None:
    """Remember an outcome, unless a layer further in has one."""
    if not hasattr(request, "cache_outcome"):
        request.cache_outcome = outcome


def passed(reason: str) -> str:
    """The outcome of a page that is not stored."""
    return f"pass; {reason}"
