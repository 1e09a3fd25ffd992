"""Logging in and out, and writing comments."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchapp.models import Comment, Post
from tests.app.conftest import PASSWORD, Rows, account, make_rows


def token_in(html: bytes) -> str:
    return re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', html).group(1).decode()


@pytest.fixture
def strict(db: None) -> Client:
    """A client that gets no exemption from CSRF checks."""
    get_user_model().objects.create_user("margaret", password=PASSWORD)
    return Client(enforce_csrf_checks=True)


def log_in(client: Client, **data: str) -> object:
    token = token_in(client.get("/login/").content)
    return client.post(
        "/login/",
        {"username": "margaret", "password": PASSWORD, "csrfmiddlewaretoken": token} | data,
    )


def test_round_trip_with_csrf_checks(strict: Client, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    response = log_in(strict, next=url)
    assert (response.status_code, response["Location"]) == (302, url)
    page = strict.get(url).content
    assert b"margaret" in page
    response = strict.post(f"{url}comment/", {"body": "Well said.", "rating": 4, "csrfmiddlewaretoken": token_in(page)})
    new = Comment.objects.get(name="margaret")
    # The post had 55 comments: the new one is on page 3.
    assert (response.status_code, response["Location"]) == (302, f"{url}page/3/#comment-{new.pk}")
    assert f'id="comment-{new.pk}"'.encode() in strict.get(f"{url}page/3/").content
    assert (new.body, new.rating, new.post_id) == ("Well said.", 4, rows.post.pk)
    response = strict.post("/logout/", {"csrfmiddlewaretoken": token_in(strict.get("/").content)})
    assert (response.status_code, response["Location"]) == (302, "/")
    assert b"Log in</a>" in strict.get("/").content


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_login_leads_nowhere_else(strict: Client, target: str):
    assert log_in(strict, next=target)["Location"] == "/"


def test_login_link_leads_back(client: Client, rows: Rows):
    assert b'href="/login/?next=/posts/page/2/"' in client.get("/posts/page/2/").content
    html = client.get(f"/posts/{rows.post.pk}/").content.decode()
    assert f'href="/login/?next=/posts/{rows.post.pk}/%23write"' in html
    assert 'value="/posts/7/#write"' in client.get("/login/?next=/posts/7/%23write").content.decode()


@pytest.mark.parametrize("token", [None, "x" * 64])
def test_forms_without_a_good_token_are_refused(strict: Client, rows: Rows, token: str | None):
    log_in(strict)
    data = {"body": "Hello", "rating": 5} | ({"csrfmiddlewaretoken": token} if token else {})
    for url in [f"/posts/{rows.post.pk}/comment/", "/logout/"]:
        response = strict.post(url, data)
        assert response.status_code == 403
        assert b"That form could not be accepted." in response.content
    assert not Comment.objects.filter(name="margaret").exists()


def test_comment_takes_an_account(client: Client, rows: Rows):
    response = client.post(f"/posts/{rows.post.pk}/comment/", {"body": "Hello", "rating": 5})
    assert (response.status_code, response["Location"]) == (302, f"/login/?next=/posts/{rows.post.pk}/")
    assert Comment.objects.count() == 60


def test_comment_takes_a_post_request_and_a_post(reader: Client, rows: Rows):
    assert reader.get(f"/posts/{rows.post.pk}/comment/").status_code == 405
    assert reader.post("/posts/999999/comment/", {"body": "Hello", "rating": 5}).status_code == 404


@pytest.mark.parametrize(
    "data",
    [
        *({"body": body, "rating": 5} for body in (" \n ", "x" * 2001, "nul\0byte")),
        *({"body": "typed text", **rating} for rating in ({}, {"rating": 6}, {"rating": "x"})),
    ],
)
def test_comment_with_errors_comes_back(reader: Client, rows: Rows, data: dict):
    response = reader.post(f"/posts/{rows.post.pk}/comment/", data)
    html = response.content.decode()
    assert (response.status_code, html.count('class="errorlist"')) == (422, 1)
    assert ("typed text" in html) == (data["body"] == "typed text")
    assert Comment.objects.count() == 60


def test_nobody_signs_with_another_name(reader: Client, rows: Rows):
    reader.post(f"/posts/{rows.post.pk}/comment/", {"body": "Hi", "rating": 5, "name": "Ann", "post": 2})
    new = Comment.objects.latest("id")
    assert (new.name, new.post_id) == ("margaret", rows.post.pk)


def test_redirect_shows_the_new_comment(site_database: str):
    """On the page that has it, whatever was deleted before, on both databases."""
    rows = make_rows()
    client = account("margaret")
    oldest = rows.post.comments.order_by("id").values_list("pk", flat=True)[:30]
    Comment.objects.filter(pk__in=list(oldest)).delete()  # 25 are left: one page
    for page in [2, 2]:
        response = client.post(f"/posts/{rows.post.pk}/comment/", {"body": "Hi", "rating": 3})
        new = Comment.objects.latest("id")
        assert response["Location"] == f"/posts/{rows.post.pk}/page/{page}/#comment-{new.pk}"
        assert f'id="comment-{new.pk}"' in client.get(response["Location"]).content.decode()
    assert Post.objects.get(pk=rows.post.pk).comment_count == 27


@pytest.mark.parametrize("key", [r'"abcdefgh\000"', "a" * 4000, "ABCDEFGH" * 4, "abcdefgh" * 4 + "'"])
def test_a_session_key_of_another_shape_is_no_session(client: Client, rows: Rows, key: str):
    with CaptureQueriesContext(connection) as queries:
        page = client.get("/", headers={"cookie": f"sessionid={key}"})
    assert page.status_code == 200
    assert b"Log in</a>" in page.content
    assert not [query for query in queries if "django_session" in query["sql"]]


def test_a_page_of_a_session_is_private(reader: Client, rows: Rows):
    assert {"private", "no-cache"} <= set(reader.get("/posts/")["Cache-Control"].split(", "))
    forged = Client()
    forged.cookies["sessionid"] = "forged"
    for client in (Client(), forged):
        assert "no-cache" not in client.get("/posts/").get("Cache-Control", "")
