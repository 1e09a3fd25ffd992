"""Generations in a Django cache: after a write, what was kept before is not found any more, whoever kept it.

A page's keys hold its generation, which is read **before** anything else. A slow rendering that began before a
write keeps its page under the old generation, where nobody looks: it cannot bring old data back.

A write renews the words of some directories: of the whole site, of a section (`/posts/`), of what is below one
thing (`/posts/5/`), or of one short path alone. The generation of a page is made of the three that concern it, so
that a new comment leaves the pages of other posts where they are.
"""

from __future__ import annotations

import secrets
from hashlib import md5

from django.conf import settings
from django.core.cache.backends.base import BaseCache

from benchapp.caching.staleness import Stale

# A word is forgotten when nothing that was kept before it can be there: two times to live, and the longest rendering.
SLOWEST_RENDERING_S = 120


def generation(cache: BaseCache, path: str) -> str:
    """The current generation of a page, for its keys: hexadecimal, the same until a write concerns the page."""
    names = _names(path)
    words = cache.get_many(names)
    if names[0] not in words:
        words[names[0]] = _begin(cache, names[0])
    return _digest(".".join(words.get(name, "") for name in names))


def renew(cache: BaseCache, stale: Stale) -> None:
    """Give new generations to all that a write made stale."""
    names = {_below(prefix) for prefix in stale.prefixes} | {_names(path)[-1] for path in stale.paths}
    cache.set_many({name: secrets.token_hex(8) for name in names}, _lasting_s())


def _begin(cache: BaseCache, name: str) -> str:
    """A word for the whole site where there is none: what was begun before a cache was emptied is not found in it."""
    cache.add(name, secrets.token_hex(8), _lasting_s())
    # Of several that begin at once, the first one's word stays for all; empty where nothing can be kept.
    return cache.get(name, "")


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
