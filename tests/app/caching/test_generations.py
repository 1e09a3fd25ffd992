"""Generations in a Django cache: the keys that an invalidation makes unreachable."""

from __future__ import annotations

import pytest
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache

from benchapp.caching import generations
from benchapp.caching.invalidation import StalePages


def generation(cache: BaseCache, name: str) -> str:
    return generations.generation(cache, name)[0]


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
    before = {path: generation(cache, path) for path in paths}
    generations.renew("default", stale)
    assert {path for path in paths if generation(cache, path) != before[path]} == concerns
    cache.clear()


@pytest.mark.parametrize("path", ["/", "/posts/", "/posts/5/", "/posts/5/page/2/"])
def test_an_evicted_word_does_not_bring_back_the_pages_from_before_a_write(path: str):
    cache = caches["default"]
    cache.clear()
    seen = {generation(cache, path)}
    for name in generations._words(path):
        # A full cache evicts the word that a write has just set, and still holds older pages.
        cache.set(name, "the word of a write")
        seen.add(generation(cache, path))
        cache.delete(name)
        current = generation(cache, path)
        assert current not in seen
        assert generation(cache, path) == current
        seen.add(current)
    cache.clear()


def test_a_cache_that_takes_no_word_has_another_generation_each_time():
    cache = caches["template_fragments"]  # a dummy
    assert generation(cache, "/") != generation(cache, "/")
