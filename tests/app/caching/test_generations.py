"""Generations in a Django cache: the keys that an invalidation makes unreachable."""

from __future__ import annotations

import pytest
from django.core.cache import caches
from django.db import transaction

from benchapp.caching import generations
from benchapp.caching.invalidation import StalePages, invalidate


@pytest.mark.django_db(transaction=True)
def test_a_rollback_invalidates_nothing():
    cache = caches["default"]
    before = generations.generation(cache, "/posts/5/")
    with pytest.raises(RuntimeError), transaction.atomic():
        invalidate(StalePages(prefixes=frozenset({"/posts/5/"})))
        raise RuntimeError
    assert generations.generation(cache, "/posts/5/") == before


@pytest.mark.parametrize(
    ("stale", "concerns"),
    [
        (StalePages(frozenset({"/"})), {"/"}),
        (StalePages(frozenset({"/posts/"})), {"/posts/"}),
        (
            StalePages(prefixes=frozenset({"/"})),
            {"/", "/posts/", "/posts/5/", "/posts/5/page/2/", "/posts/6/", "/authors/"},
        ),
        (StalePages(prefixes=frozenset({"/posts/"})), {"/posts/", "/posts/5/", "/posts/5/page/2/", "/posts/6/"}),
        (StalePages(prefixes=frozenset({"/posts/5/"})), {"/posts/5/", "/posts/5/page/2/"}),
        (StalePages(prefixes=frozenset({"/posts/5/page/2/"})), {"/posts/5/", "/posts/5/page/2/"}),
    ],
)
def test_an_invalidation_renews_the_generations_of_stale_pages_only(stale: StalePages, concerns: set[str]):
    cache = caches["default"]
    cache.clear()
    paths = ["/", "/posts/", "/posts/5/", "/posts/5/page/2/", "/posts/6/", "/authors/"]
    before = {path: generations.generation(cache, path) for path in paths}
    generations.renew("default", stale)
    assert {path for path in paths if generations.generation(cache, path) != before[path]} == concerns
    cache.clear()


def test_an_emptied_cache_begins_a_new_generation():
    cache = caches["default"]
    cache.clear()
    before = generations.generation(cache, "/posts/5/")
    assert generations.generation(cache, "/posts/5/") == before
    generations.renew("default", StalePages(prefixes=frozenset({"/posts/5/"})))
    # A service that is started again; another layer that empties the memcached they share.
    cache.clear()
    assert generations.generation(cache, "/posts/5/") != before
    cache.clear()
