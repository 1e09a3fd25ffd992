"""Fragments: parts of a page in the cache alias `template_fragments`, a dummy cache while the layer is off.

Two kinds: fragments of HTML, by Django's {% cache %} tag in a template, and single values, by `cached_value`. They
are computed lazily, so a hit runs no query. Their keys hold the generation of the page, which is read before anything
else: a value computed across a write is stored where nobody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.core.cache.utils import make_template_fragment_key

from benchapp.caching import registry
from benchapp.caching.generations import generation, renew
from benchapp.caching.invalidation import StalePages

ALIAS = "template_fragments"

_MISSING = object()


def page_generation(path: str, fragments: Iterable[str] = (), values: Iterable[str] = ()) -> str:
    """The generation of a page, for the keys of its parts; empty while the layer is off.

    The named fragments and values are fetched at once, where the cache can do that.
    """
    if not registry.is_active("fragments"):
        return ""
    cache = caches[ALIAS]
    current = generation(cache, path)
    if hasattr(cache, "fetch_ahead"):
        keys = [make_template_fragment_key(name, [current]) for name in fragments]
        keys += [_key(name, current) for name in values]
        if keys:
            cache.fetch_ahead(keys)
    return current


def cached_value(name: str, generation: str, compute: Callable[[], Any]) -> Any:
    """The value of that name and generation, computed on a miss, and always while the layer is off; None is one too."""
    if not registry.is_active("fragments"):
        return compute()
    cache = caches[ALIAS]
    key = _key(name, generation)
    value = cache.get(key, _MISSING)
    if value is _MISSING:
        value = compute()
        cache.set(key, value, settings.CACHING_SECONDS)
    return value


def purge(stale: StalePages, **kwargs: object) -> None:
    """Receiver of the layer `fragments`: drop the parts of stale pages."""
    renew(ALIAS, stale)


def _key(name: str, generation: str) -> str:
    return f"value.{name}.{generation}"
