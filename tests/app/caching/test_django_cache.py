"""Both layers in Django's cache: which pages they cache, and that no account gets the page of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import permutations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.app.conftest import Rows, account


@pytest.fixture(autouse=True, params=["CACHING_VIEW_CACHE", "CACHING_SITE_MIDDLEWARE"])
def layer(request: pytest.FixtureRequest, site_with: Callable[..., AbstractContextManager[None]]) -> Iterator[None]:
    """The site with the layer on and empty; the per-site middleware makes the same promises."""
    with site_with(**{request.param: "1"}):
        cache.clear()
        yield
        cache.clear()


def test_second_reader_gets_the_same_rendering_without_a_query(rows: Rows):
    for path in ("/", "/posts/", f"/posts/{rows.post.pk}/"):
        first = Client().get(path)
        with CaptureQueriesContext(connection) as queries:
            second = Client().get(path)
        assert len(queries) == 0
        assert first["X-Render-Id"] == second["X-Render-Id"]
        assert first.content == second.content


def test_no_account_gets_the_page_of_another_in_any_order(rows: Rows):
    readers = {name: account(name) for name in ("ann-of-the-hill", "bob-of-the-dale")} | {"": Client()}
    path = f"/posts/{rows.post.pk}/"
    for order in permutations(readers):
        cache.clear()
        for name in [*order, *order]:
            html = readers[name].get(path).content.decode()
            assert {other for other in readers if other and other in html} == ({name} - {""})
            assert ("csrfmiddlewaretoken" in html) == bool(name)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.1:65000", "LOCALHOST", "localhost."])
def test_a_page_is_the_same_under_each_spelling_of_our_hosts(rows: Rows, host: str):
    first = Client().get("/posts/", headers={"host": "127.0.0.1:8000"})["X-Render-Id"]
    again = Client().get("/posts/", headers={"host": host})
    assert again["X-Render-Id"] == first
    assert again.wsgi_request.build_absolute_uri("/posts/") == f"http://{host}/posts/"


@pytest.mark.parametrize("cookie", ["_ga=1.2.3", "csrftoken=" + "a" * 32, "a=b; _pk=c; x"])
def test_cookies_without_an_account_share_the_cached_page(rows: Rows, cookie: str):
    first = Client().get("/posts/")["X-Render-Id"]
    assert Client().get("/posts/", HTTP_COOKIE=cookie)["X-Render-Id"] == first


def test_a_page_rendered_for_an_analytics_cookie_is_shared(rows: Rows):
    first = Client().get("/posts/", HTTP_COOKIE="_ga=1")["X-Render-Id"]
    assert Client().get("/posts/", HTTP_COOKIE="_ga=2")["X-Render-Id"] == first
    assert Client().get("/posts/")["X-Render-Id"] == first


def test_a_page_rendered_for_a_csrf_cookie_is_cached_since_it_holds_no_token(rows: Rows):
    first = Client().get("/posts/", HTTP_COOKIE="csrftoken=" + "a" * 32)["X-Render-Id"]
    assert Client().get("/posts/")["X-Render-Id"] == first


@pytest.mark.parametrize("extra", [{"QUERY_STRING": "a=1"}, {"HTTP_AUTHORIZATION": "Basic eA=="}])
def test_requests_that_bypass_the_cache_neither_fill_it_nor_hit_it(rows: Rows, extra: dict[str, str]):
    names = [Client().get("/posts/", **more)["X-Render-Id"] for more in (extra, {}, extra, extra)]
    assert len(set(names)) == 4


def test_the_login_page_is_never_cached(rows: Rows):
    assert len({Client().get("/login/")["X-Render-Id"] for _ in range(3)}) == 3
