"""Fragments: parts of a page in the cache alias `template_fragments`, a dummy cache while the layer is off.

Two kinds: fragments of HTML, by Django's {% cache %} tag in a template, and single values, by `cached_value`. They
are computed lazily, so a hit runs no query. Their keys hold the generation of the page, which is read before anything
else: a value computed across a write is stored where nobody looks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from django.core.cache import caches
from django.core.cache.utils import make_template_fragment_key
from django.http import HttpRequest, HttpResponse

from benchapp.caching import registry
from benchapp.caching.cacheability import html, policies
from benchapp.caching.conf import app_settings
from benchapp.caching.generations import generation, renew
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import page_name

ALIAS = "template_fragments"

_MISSING = object()
NONCES = re.compile(rb"<[a-z]+\s[^>]*?\bnonce\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)

logger = logging.getLogger(__name__)


# The last generation of the pages that have these parts.
_last: dict[tuple[str, ...], str] = {}


def page_generation(path: str, fragments: Sequence[str] = (), values: Sequence[str] = ()) -> str:
    """The generation of a page, for the keys of its parts; empty while the layer is off.

    The named fragments and values are fetched in the same request, where the cache can do that: under the generation
    that was the last one, which it mostly still is, and once more if it is another.
    """
    if not registry.is_active("fragments"):
        return ""
    cache, parts = caches[ALIAS], (*fragments, *values)
    if not (parts and hasattr(cache, "answer_ahead")):
        return generation(cache, page_name(path))[0]

    def keys_under(generation: str) -> list[str]:
        of_fragments = [make_template_fragment_key(name, [generation]) for name in fragments]
        return of_fragments + [_key(name, generation) for name in values]

    keys = keys_under(last := _last.get(parts, ""))
    current, found = generation(cache, page_name(path), keys)
    if current != last:
        keys = keys_under(current)
        found = cache.get_many(keys)
        _last[parts] = current
    cache.answer_ahead(keys, found)
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
        cache.set(key, value, app_settings.CACHING_SECONDS)
    return value


def report_stored_nonces(get_response: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Middleware of the layer: log a page with a nonce of an earlier page, which a fragment has stored.

    A browser refuses its scripts, and everybody who has seen the earlier page knows the nonce.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not response.streaming and "'nonce-" in (allowed := policies(response)):
            found = {nonce.decode("latin-1") for nonce in NONCES.findall(html(response))}
            if any(f"'nonce-{nonce}'" not in allowed for nonce in found):
                logger.warning(
                    "%s: a nonce that is not of its Content-Security-Policy: a fragment has stored it; take it out of "
                    "the {%% cache %%} tag, or allow the script by its hash",
                    request.path,
                )
        return response

    return middleware


def purge(stale: StalePages) -> None:
    """For the layer `fragments`: drop the parts of stale pages."""
    renew(ALIAS, stale)


def _key(name: str, generation: str) -> str:
    return f"value.{name}.{generation}"
