"""The site's own pages on every layer of whole pages: which are everybody's, and that no account gets another's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchapp.caching.external.cacheable_header import MARK
from benchapp.models import Comment, Post
from tests.app.caching.layers import OUTSIDE, ActiveLayer
from tests.app.conftest import Rows, account


def pages_of(rows: Rows) -> list[str]:
    details = [f"/posts/{rows.post.pk}/", f"/posts/{rows.post.pk}/page/2/", f"/authors/{rows.author.pk}/"]
    return ["/", "/posts/", "/authors/page/2/", *details]


def is_shared(layer: ActiveLayer, first: HttpResponse, second: HttpResponse) -> bool:
    """True if the second response is the first, or may be stored outside; a stored body has no render id."""
    if layer.name in OUTSIDE:
        return first.has_header(MARK)
    return second.get("X-Render-Id", first["X-Render-Id"]) == first["X-Render-Id"]


def test_a_public_page_is_everybodys_with_its_headers(layer: ActiveLayer, rows: Rows):
    visitor = Client()
    assert visitor.get("/login/").cookies["csrftoken"], "a visitor with this cookie is anonymous, too"
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


def test_no_account_gets_the_page_of_another_in_any_order(layer: ActiveLayer, rows: Rows):
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
            directives = {word.strip() for word in response.get("Cache-Control", "").split(",")}
            assert not name or ({"private", "no-cache"} <= directives and "max" not in str(directives))


def test_a_comment_shows_at_once_and_other_pages_stay(
    inside: ActiveLayer, rows: Rows, client: Client, django_capture_on_commit_callbacks: Callable
):
    other = f"/posts/{Post.objects.exclude(pk=rows.post.pk).latest('id').pk}/"
    before = {path: client.get(path) for path in ("/", "/comments/", "/posts/", other)}
    with django_capture_on_commit_callbacks(execute=True):
        Comment.objects.create(post=rows.post, name="Z", body="Fresh words.", rating=3)
    after = {path: client.get(path) for path in before}
    assert {path for path in before if is_shared(inside, before[path], after[path])} == {"/posts/", other}
    assert "Fresh words." in after["/comments/"].text
