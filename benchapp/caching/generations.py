"""Generations: a write makes entries of a Django cache unreachable.

Each cached page or part has its generation, which is read **before** anything else. A slow rendering that began before
a write stores its page under the old generation, so stale data cannot come back.

A write renews the random words of some directories: the whole site, a section (`/posts/`), everything below one item
(`/posts/5/`), or only one short path. The generation of a page consists of the words of the directories above, so a new
comment leaves the pages of other posts cached.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache

from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import digest
from benchapp.caching.resilience import Retry

# A word outlives everything stored before it: two times to live, and the longest rendering.
SLOWEST_RENDERING_S = 120
RETRY_S = 0.25


def generation(backend: BaseCache, name: str, keys: Iterable[str] = ()) -> tuple[str, Mapping[str, Any]]:
    """The current generation of a page, the same until a write concerns the page, and the values of these keys.

    While the cache is unreachable each call returns a new generation, so that no later request finds the page.
    """
    words = _words(name)
    values = backend.get_many([*keys, *words])
    if missing := [word for word in words if word not in values]:
        # A full cache may have evicted the word of a write, and still hold a page from before it: an absent word is a
        # new one. `add` lets the first of several workers win.
        for word in missing:
            backend.add(word, secrets.token_hex(8), _word_ttl_s())
        values |= backend.get_many(missing)
    if any(word not in values for word in words):
        return secrets.token_hex(16), values
    return digest(".".join(values[word] for word in words)), values


def renew(alias: str, stale: StalePages) -> None:
    """Give new generations to all stale pages in the cache of that alias.

    A renewal that the cache does not accept is retried, and then drops every page: the cache may come back with old
    pages.
    """
    words = {_below(prefix) for prefix in stale.prefixes} | {_words(name)[-1] for name in stale.paths}
    if not _set_new_words(alias, words):
        _retry(alias).request(for_s=app_settings.CACHING_SECONDS)


@cache
def _retry(alias: str) -> Retry:
    return Retry(lambda: _set_new_words(alias, [_below("/")]), RETRY_S)


def _set_new_words(alias: str, words: Iterable[str]) -> bool:
    return not caches[alias].set_many({word: secrets.token_hex(8) for word in words}, _word_ttl_s())


def _word_ttl_s() -> int:
    return 2 * app_settings.CACHING_SECONDS + SLOWEST_RENDERING_S


def _words(name: str) -> list[str]:
    """The keys of the words in a page's generation: of the site, the section, the page or the item."""
    segments = name.split("/")[1:-1]
    own = _below(name) if len(segments) > 1 else f"generation.{digest(f'={name}')}"
    return [_below("/"), *([_below(f"/{segments[0]}/")] if segments else []), own]


def _below(prefix: str) -> str:
    """The key of the word for everything below a prefix; a prefix deeper than two segments counts as its item."""
    return f"generation.{digest('/'.join(prefix.split('/')[:3]).rstrip('/') + '/')}"
