"""Parts of the home page kept in the cache alias `template_fragments`, which holds nothing when the layer is off.

Two kinds: fragments of HTML, by Django's {% cache %} tag in the template, and single values, by `lookup`.
What they show is asked for lazily, from inside, so that on a hit no query runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.core.cache.utils import make_template_fragment_key
from django.urls import reverse

from benchapp.caching.staleness import Stale, pages_stale

ALIAS = "template_fragments"
# The names of the {% cache %} tags in templates/home.html, and of the lookups in benchapp/home.py.
HOME_FRAGMENTS = (
    "recent_posts",
    "most_viewed",
    "most_discussed",
    "archive_months",
    "archive_pick",
    "busiest_authors",
    "newest_authors",
    "cities",
    "latest_comments",
    "five_stars",
)
HOME_LOOKUPS = ("total_authors", "total_posts", "total_comments", "latest_comment_time")

_MISSING = object()


def lookup(name: str, compute: Callable[[], Any]) -> Any:
    """The value kept under a name of HOME_LOOKUPS, computed when it is not there; None is a value too."""
    cache = caches[ALIAS]
    value = cache.get(_lookup_key(name), _MISSING)
    if value is _MISSING:
        value = compute()
        cache.set(_lookup_key(name), value, settings.BENCHAPP_CACHE_SECONDS)
    return value


def connect() -> None:
    """Forget the parts of a stale home page; called once, when the application is ready."""
    pages_stale.connect(_forget, dispatch_uid="fragments")


def _forget(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_FRAGMENTS and stale.covers(reverse("home")):
        keys = [make_template_fragment_key(name) for name in HOME_FRAGMENTS]
        caches[ALIAS].delete_many(keys + [_lookup_key(name) for name in HOME_LOOKUPS])


def _lookup_key(name: str) -> str:
    return f"lookup.{name}"
