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


def pages_of(rows: Rows) -> list[str]:
    return ["/", "/posts/", "/authors/page/2/", f"/posts/{rows.post.pk}/", f"/authors/{rows.author.pk}/"]


def test_second_reader_gets_the_same_rendering_without_a_query(rows: Rows):
    for path in pages_of(rows):
        first = Client().get(path)
        with CaptureQueriesContext(connection) as queries:
            second = Client().get(path)
        assert len(queries) == 0
        assert first["X-Render-Id"] == second["X-Render-Id"]
        assert first.content == second.content
        assert first["Content-Security-Policy"] == second["Content-Security-Policy"]
        assert second["Vary"] == "Cookie"
        # A cached page has no longer lifetime in browsers than a rendered one.
        assert not second.has_header("Cache-Control")
        assert not second.has_header("Expires")


def test_no_account_gets_the_page_of_another_in_any_order(rows: Rows):
    readers = {name: account(name) for name in ("ann-of-the-hill", "bob-of-the-dale")} | {"": Client()}
    # A page that nobody has seen for each order.
    for order, path in zip(permutations(readers), [*pages_of(rows), "/posts/page/2/"], strict=True):
        for name in [*order, *order]:
            response = readers[name].get(path)
            html = response.content.decode()
            assert {other for other in readers if other and other in html} == ({name} - {""}), path
            assert ("csrfmiddlewaretoken" in html) == bool(name)
            assert name or not response.cookies


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.1:65000", "LOCALHOST", "localhost."])
def test_a_page_is_the_same_under_each_spelling_of_our_hosts(rows: Rows, host: str):
    first = Client().get("/posts/", headers={"host": "127.0.0.1"})["X-Render-Id"]
    again = Client().get("/posts/", headers={"host": host})
    assert again["X-Render-Id"] == first


@pytest.mark.parametrize("extra", [{"QUERY_STRING": "a=1"}, {"HTTP_AUTHORIZATION": "Basic eA=="}])
def test_requests_that_bypass_the_cache_neither_fill_it_nor_hit_it(rows: Rows, extra: dict[str, str]):
    names = [Client().get("/posts/", **more)["X-Render-Id"] for more in (extra, {}, extra, extra)]
    assert len(set(names)) == 4


def test_head_after_get_is_a_hit(rows: Rows, client: Client):
    assert client.get("/posts/")["X-Render-Id"] == client.head("/posts/")["X-Render-Id"]


def test_a_page_of_an_account_is_never_cached(rows: Rows):
    reader = account("margaret")
    first, second = reader.get("/posts/"), reader.get("/posts/")
    assert first["X-Render-Id"] != second["X-Render-Id"]
    assert "max-age" not in first.get("Cache-Control", "")
    assert not cache._cache


def test_a_commenter_sees_the_comment_at_once(rows: Rows):
    reader, url = account("margaret"), f"/posts/{rows.post.pk}/"
    reader.get(f"{url}page/3/")
    Client().get(f"{url}page/3/")
    response = reader.post(f"{url}comment/", {"body": "There it is.", "rating": 5})
    assert b"There it is." in reader.get(response["Location"]).content


@pytest.mark.parametrize("path", ["/login/", "/nowhere/", "/posts/page/1/", "/posts/page/99/"])
def test_forms_redirects_and_errors_are_not_cached(rows: Rows, client: Client, path: str):
    client.get(path)
    client.get(path)
    assert not [key for key in cache._cache if "cache_page" in key]


def test_every_account_can_post_with_its_own_token(rows: Rows):
    for name in ("ann", "bob"):
        account(name)
        browser = Client(enforce_csrf_checks=True)
        for path in ("/", "/posts/", "/login/"):
            browser.get(path)
        token = browser.cookies["csrftoken"].value
        response = browser.post(
            "/login/", {"username": name, "password": "a quiet evening 7", "csrfmiddlewaretoken": token}
        )
        assert response.status_code == 302
        token = browser.cookies["csrftoken"].value
        url = f"/posts/{rows.post.pk}/comment/"
        response = browser.post(url, {"body": "Hi", "rating": 5, "csrfmiddlewaretoken": token})
        assert response.status_code == 302
