"""Generations: keys in a Django cache that a write makes unreachable.

The keys of a page hold its generation, which is read **before** anything else. A slow rendering that began before a
write stores its page under the old generation, where nobody looks: it cannot bring stale data back.

A write renews the random words of some directories: the whole site, a section (`/posts/`), everything below one item
(`/posts/5/`), or one short path alone. The generation of a page is made of the three words that concern it, so a new
comment leaves the pages of other posts cached.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from functools import cache
from hashlib import md5
from urllib.parse import unquote

from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache

from benchapp.caching.invalidation import StalePages
from benchapp.caching.resilience import Retry

# A word outlives everything stored before it: two times to live, and the longest rendering.
SLOWEST_RENDERING_S = 120
RETRY_S = 0.25


def generation(backend: BaseCache, path: str) -> str:
    """The current generation of a page, for its keys: hexadecimal, the same until a write concerns the page.

    While the cache is unreachable each call returns another one, so that pages stored under it are never found.
    """
    names = _names(path)
    words = backend.get_many(names)
    if missing := [name for name in names if name not in words]:
        # A full cache may have evicted the word of a write, and still hold a page from before it: an absent word is a
        # new one. `add` lets the first of several workers win.
        for name in missing:
            backend.add(name, secrets.token_hex(8), _word_ttl_s())
        words = backend.get_many(names)
    if len(words) < len(names):
        return secrets.token_hex(16)
    return _digest(".".join(words[name] for name in names))


def renew(alias: str, stale: StalePages) -> None:
    """Give new generations to all stale pages in the cache of that alias.

    If the cache does not take them it is retried, and then loses every page: it may come back with all its pages.
    """
    # Keys are made of paths as requests have them: without percent-encoding.
    below, exact = map(unquote, stale.prefixes), map(unquote, stale.paths)
    names = {_below(prefix) for prefix in below} | {_names(path)[-1] for path in exact}
    if not _set_new_words(alias, names):
        _retry(alias).request(for_s=settings.CACHING_SECONDS)


@cache
def _retry(alias: str) -> Retry:
    return Retry(lambda: _set_new_words(alias, [_below("/")]), RETRY_S)


def _set_new_words(alias: str, names: Iterable[str]) -> bool:
    return not caches[alias].set_many({name: secrets.token_hex(8) for name in names}, _word_ttl_s())


def _word_ttl_s() -> int:
    return 2 * settings.CACHING_SECONDS + SLOWEST_RENDERING_S


def _names(path: str) -> list[str]:
    """The words that make up a page's generation: the site's, its section's, and its own or its item's."""
    segments = path.split("/")[1:-1]
    own = _below(path) if len(segments) > 1 else _name(f"={path}")
    return [_below("/"), *([_below(f"/{segments[0]}/")] if segments else []), own]


def _below(prefix: str) -> str:
    """The word for everything below a prefix; a prefix deeper than two segments counts as its item."""
    return _name("/".join(prefix.split("/")[:3]).rstrip("/") + "/")


def _name(text: str) -> str:
    return f"generation.{_digest(text)}"


def _digest(text: str) -> str:
    # Not a secret: any path, however long and strange, becomes a key that every cache takes.
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
