"""Generations in a Django cache: after a write, what was kept before is not found any more, whoever kept it.

A page's keys hold its generation, which is read **before** anything else. A slow rendering that began before a
write keeps its page under the old generation, where nobody looks: it cannot bring old data back.

A write renews the words of some directories: of the whole site, of a section (`/posts/`), of what is below one
thing (`/posts/5/`), or of one short path alone. The generation of a page is made of the three that concern it, so
that a new comment leaves the pages of other posts where they are.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable
from hashlib import md5
from typing import ClassVar

from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache

from benchapp.caching.later import later
from benchapp.caching.staleness import Stale

# A word is forgotten when nothing that was kept before it can be there: two times to live, and the longest rendering.
SLOWEST_RENDERING_S = 120
# How soon a cache that could not be told of a write is tried again.
AGAIN_S = 0.25


def generation(cache: BaseCache, path: str) -> str:
    """The current generation of a page, for its keys: hexadecimal, the same until a write concerns the page.

    Of a cache that cannot be reached it is another one each time: what is kept under it, when the cache is back
    meanwhile, is found by nobody.
    """
    names = _names(path)
    words = cache.get_many(names)
    if names[0] not in words:
        # A word for the whole site where there is none: what was begun before a cache was emptied is not found in it.
        # Of several that begin at once, the first one's word stays for all.
        cache.add(names[0], secrets.token_hex(8), _lasting_s())
        words = cache.get_many(names)
    if names[0] not in words:
        return secrets.token_hex(16)
    return _digest(".".join(words.get(name, "") for name in names))


def renew(alias: str, stale: Stale) -> None:
    """Give new generations to all that a write made stale, in the cache of that alias."""
    names = {_below(prefix) for prefix in stale.prefixes} | {_names(path)[-1] for path in stale.paths}
    if untold := _tell(alias, names):
        # It may only hang, and come back with all that it held.
        _Later.of(alias).tell(untold)


def _tell(alias: str, names: Iterable[str]) -> set[str]:
    """Renew these words; returns those that could not be."""
    return set(caches[alias].set_many({name: secrets.token_hex(8) for name in names}, _lasting_s()))


class _Later:
    """Words of one cache that could not be renewed: tried again until what they stand for is too old to be there."""

    _all: ClassVar[dict[str, _Later]] = {}

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    @classmethod
    def of(cls, alias: str) -> _Later:
        return cls._all.setdefault(alias, cls(alias))

    def tell(self, names: Iterable[str]) -> None:
        """Renew these words as soon as the cache can be reached."""
        until = time.monotonic() + settings.BENCHAPP_CACHE_SECONDS
        with self._lock:
            self._until |= dict.fromkeys(names, until)
            self._begin()

    def _begin(self) -> None:
        if self._timer is None:
            self._timer = later(AGAIN_S, self._again)

    def _again(self) -> None:
        with self._lock:
            now = time.monotonic()
            tried, self._until = {name: until for name, until in self._until.items() if until > now}, {}
        untold = _tell(self.alias, tried) if tried else set()
        with self._lock:
            self._timer = None
            self._until = {name: tried[name] for name in untold} | self._until
            if self._until:
                self._begin()


def _lasting_s() -> int:
    return 2 * settings.BENCHAPP_CACHE_SECONDS + SLOWEST_RENDERING_S


def _names(path: str) -> list[str]:
    """The words that a page's generation is made of: the site's, its section's, and its own or that of its thing."""
    segments = path.split("/")[1:-1]
    own = _below(path) if len(segments) > 1 else _name(f"={path}")
    return [_below("/"), *([_below(f"/{segments[0]}/")] if segments else []), own]


def _below(prefix: str) -> str:
    """The word for all below a prefix; one deeper than two segments counts for the whole thing."""
    return _name("/".join(prefix.split("/")[:3]).rstrip("/") + "/")


def _name(text: str) -> str:
    return f"generation.{_digest(text)}"


def _digest(text: str) -> str:
    # Not a secret: any path, however long and strange, becomes a key that every cache takes.
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
