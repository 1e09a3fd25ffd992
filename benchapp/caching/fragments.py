"""Parts of the home page kept in the cache alias `template_fragments`, which holds nothing when the layer is off.

Two kinds: fragments of HTML, by Django's {% cache %} tag in the template, and single values, by `lookup`.
What they show is asked for lazily, from inside, so that on a hit no query runs. Their keys hold the generation of
the home page, asked for before all else: what is computed across a write is kept where nobody looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.core.cache.utils import make_template_fragment_key
from django.urls import reverse

from benchapp.caching.generations import generation, renew
from benchapp.caching.staleness import Stale, pages_stale

ALIAS = "template_fragments"
# The names of the {% cache %} tags in templates/home.html, and of the lookups in benchapp/home.py: asked for at once.
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


def home_generation() -> str:
    """The word in the key of each part of the home page; another one after a write, empty while the layer is off."""
    word = page_generation(reverse("home"))
    if word and hasattr(cache := caches[ALIAS], "fetch_ahead"):
        parts = [make_template_fragment_key(name, [word]) for name in HOME_FRAGMENTS]
        cache.fetch_ahead([*parts, *(_key(name, word) for name in HOME_LOOKUPS)])
    return word


def page_generation(path: str) -> str:
    """The same word for any page that keeps parts of itself."""
    return generation(caches[ALIAS], path) if settings.BENCHAPP_FRAGMENTS else ""


def lookup(name: str, word: str, compute: Callable[[], Any]) -> Any:
    """The value kept under a name and a generation, computed when it is not there; None is a value too."""
    cache = caches[ALIAS]
    key = _key(name, word)
    value = cache.get(key, _MISSING)
    if value is _MISSING:
        value = compute()
        cache.set(key, value, settings.BENCHAPP_CACHE_SECONDS)
    return value


def connect() -> None:
    """Forget the parts of a stale home page; called once, when the application is ready."""
    pages_stale.connect(_forget, dispatch_uid="fragments")


def _forget(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_FRAGMENTS:
        renew(ALIAS, stale)


def _key(name: str, word: str) -> str:
    return f"lookup.{name}.{word}"
