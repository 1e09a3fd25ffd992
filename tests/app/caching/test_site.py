"""The site's own pages on every layer of whole pages: which are everybody's, and that no account gets another's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import permutations

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchapp.caching.outside.marks import MARK
from benchapp.models import Comment, Post
from tests.app.caching.layers import OUTSIDE, Laid
from tests.app.conftest import PASSWORD, Rows, account

DJANGO = ("site-middleware", "view-cache")


def pages_of(rows: Rows) -> list[str]:
    details = [f"/posts/{rows.post.pk}/", f"/posts/{rows.post.pk}/page/2/", f"/authors/{rows.author.pk}/"]
    return ["/", "/posts/", "/authors/page/2/", *details]


def is_shared(layer: Laid, first: HttpResponse, second: HttpResponse) -> bool:
    """Whether the second answer is the first, or the first may be stored outside; a stored body has no render id."""
    if layer.name in OUTSIDE:
        return first.has_header(MARK)
    return second.get("X-Render-Id", first["X-Render-Id"]) == first["X-Render-Id"]


def test_a_public_page_is_everybodys_with_its_headers(layer: Laid, rows: Rows):
    visitor = Client()
    assert visitor.get("/login/").cookies["csrftoken"], "whoever has this cookie is anonymous, too"
    for path in pages_of(rows):
        first = Client().get(path)
        with CaptureQueriesContext(connection) as queries:
            second = visitor.get(path)
        assert is_shared(layer, first, second), path
        assert first.content == second.content
        if layer.name not in OUTSIDE:
            assert len(queries) == 0
            assert first["Content-Security-Policy"] == second["Content-Security-Policy"]
            assert second["Vary"] == "Cookie"
            # A cached page has no longer lifetime in browsers than a rendered one.
            assert not {"Cache-Control", "Expires"} & set(second.headers)


def test_forms_redirects_errors_and_queries_are_nobodys(layer: Laid, rows: Rows, client: Client):
    paths = ["/login/", "/nowhere/", "/healthz", "/?a=1", "/posts/page/1/", "/posts/999999999/", "/posts/jump/?page=2"]
    for path in [*paths, "/posts/page/99/"]:
        first, second = client.get(path), client.get(path)
        assert not is_shared(layer, first, second), path
        assert "s-maxage" not in first.get("Cache-Control", "")


@pytest.mark.parametrize("extra", [{"QUERY_STRING": "a=1"}, {"HTTP_AUTHORIZATION": "Basic eA=="}])
def test_a_request_that_bypasses_the_cache_neither_fills_it_nor_hits_it(
    layer: Laid, rows: Rows, client: Client, extra: dict[str, str]
):
    answers = [client.get("/posts/", **more) for more in (extra, {}, extra, extra)]
    assert len({answer["X-Render-Id"] for answer in answers}) == 4
    assert not any(answers[number].has_header(MARK) for number in (0, 2, 3))


def test_no_account_gets_the_page_of_another_in_any_order(layer: Laid, rows: Rows):
    readers = {name: account(name) for name in ("ann-of-the-hill", "bob-of-the-dale")} | {"": Client()}
    # A page that nobody has seen for each order.
    for order, path in zip(permutations(readers), pages_of(rows), strict=True):
        for name in [*order, *order]:
            response = readers[name].get(path)
            html = response.content.decode()
            assert {other for other in readers if other and other in html} == ({name} - {""}), path
            assert ("csrfmiddlewaretoken" in html) == bool(name)
            assert name or not response.cookies
            assert not (name and response.has_header(MARK))
            said = {word.strip() for word in response.get("Cache-Control", "").split(",")}
            assert not name or ({"private", "no-cache"} <= said and "max" not in str(said))


def test_every_account_can_post_with_its_own_token_and_sees_the_comment_at_once(inside: Laid, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    for name in ("ann", "bob"):
        account(name)
        browser = Client(enforce_csrf_checks=True)
        for path in ("/", url, "/login/"):
            browser.get(path)
        login = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"].value}
        assert browser.post("/login/", login).status_code == 302
        assert f"{name}</span>" in browser.get(url).content.decode()
        said = {"body": f"{name} was here.", "rating": 5, "csrfmiddlewaretoken": browser.cookies["csrftoken"].value}
        answer = browser.post(f"{url}comment/", said)
        assert said["body"] in browser.get(answer["Location"]).content.decode()


def test_a_comment_shows_at_once_and_other_pages_stay(
    inside: Laid, rows: Rows, client: Client, django_capture_on_commit_callbacks: Callable
):
    other = f"/posts/{Post.objects.exclude(pk=rows.post.pk).latest('id').pk}/"
    before = {path: client.get(path) for path in ("/", "/comments/", "/posts/", other)}
    with django_capture_on_commit_callbacks(execute=True):
        Comment.objects.create(post=rows.post, name="Z", body="Fresh words.", rating=3)
    after = {path: client.get(path) for path in before}
    assert {path for path in before if is_shared(inside, before[path], after[path])} == {"/posts/", other}
    assert "Fresh words." in after["/comments/"].text


def test_a_cached_page_does_not_answer_a_foreign_host(rows: Rows, inside: Laid):
    assert Client().get("/posts/").status_code == 200
    assert Client().get("/posts/", headers={"Host": "other.test"}).status_code == 400


@pytest.mark.parametrize("name", DJANGO)
def test_a_page_is_the_same_under_each_spelling_of_our_hosts_and_to_head(
    rows: Rows, laid: Callable[[str], AbstractContextManager[Laid]], name: str
):
    with laid(name):
        first = Client().get("/posts/", headers={"host": "127.0.0.1"})["X-Render-Id"]
        assert Client().head("/posts/")["X-Render-Id"] == first
        for host in ("127.0.0.1:1", "127.0.0.1:65000", "LOCALHOST", "localhost."):
            assert Client().get("/posts/", headers={"host": host})["X-Render-Id"] == first, host
