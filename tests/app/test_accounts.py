"""Logging in and out, and writing comments."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.connection import ConnectionDoesNotExist
from lxml.html import fromstring

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
    assert (response.status_code, response["Location"]) == (302, f"/login/?next=/posts/{rows.post.pk}/%23write")
    assert Comment.objects.count() == 60


def test_the_address_of_an_invalid_comment_leads_to_the_form(client: Client, reader: Client, rows: Rows):
    for visitor in (client, reader):
        for get in (visitor.get, visitor.head):
            response = get(f"/posts/{rows.post.pk}/comment/")
            assert (response.status_code, response["Location"]) == (302, f"/posts/{rows.post.pk}/#write")
            assert get("/posts/999999/comment/").status_code == 404
        assert visitor.get(f"/posts/{rows.post.pk}/").content.count(b'id="write"') == 1


def statuses(html: bytes) -> list[str]:
    return [
        element.text_content() for element in fromstring(html).find_class("message") if element.get("role") == "status"
    ]


def test_a_posted_comment_is_confirmed_once_and_to_its_author(client: Client, reader: Client, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    other = account("ada")
    response = reader.post(f"{url}comment/", {"body": "Well said.", "rating": 5})
    for visitor in (client, other):
        assert statuses(visitor.get(url).content) == []
    assert len(statuses(reader.get(response["Location"]).content)) == 1
    for path in (url, "/", "/nowhere/"):
        assert statuses(reader.get(path).content) == []
    assert "messages" not in reader.cookies


def test_an_invalid_comment_is_not_confirmed(reader: Client, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    assert statuses(reader.post(f"{url}comment/", {"body": "", "rating": 5}).content) == []
    assert statuses(reader.get(url).content) == []


def test_a_message_goes_with_its_session(reader: Client, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    reader.post(f"{url}comment/", {"body": "Well said.", "rating": 5})
    reader.post("/logout/")
    assert statuses(reader.get(url).content) == []
    reader.force_login(get_user_model().objects.get(username="margaret"))
    assert statuses(reader.get(url).content) == []


def written(html: bytes) -> tuple[str, str]:
    """The text and the rating that the form under a post holds."""
    form = fromstring(html).get_element_by_id("write")
    return form.fields["body"].removeprefix("\n"), form.fields["rating"]


def test_a_comment_survives_the_login(strict: Client, rows: Rows):
    url, other = f"/posts/{rows.post.pk}/", f"/posts/{rows.post.pk + 1}/"
    token = token_in(strict.get("/login/").content)
    text = "Half an hour of work:\r\n\r\n<b>&amp;</b> “quoted” 😀"
    data = {"body": text, "rating": "2", "csrfmiddlewaretoken": token}
    login = strict.post(f"{url}comment/", data)["Location"]
    assert b"Half an hour" not in strict.get(url).content
    target = log_in(strict, next=parse_qs(urlsplit(login).query)["next"][0])["Location"]
    assert target == f"{url}#write"
    # As often as the form is shown, and only under this post.
    for _ in range(2):
        page = strict.get(target).content
        assert written(page) == (text.replace("\r\n", "\n"), "2")
        assert written(strict.get(other).content) == ("", "")
    body, rating = written(page)
    strict.post(f"{url}comment/", {"body": body, "rating": rating, "csrfmiddlewaretoken": token_in(page)})
    assert Comment.objects.filter(name="margaret", body=body, rating=2).count() == 1
    assert written(strict.get(url).content) == ("", "")


def test_a_comment_survives_the_end_of_its_session(strict: Client, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    log_in(strict)
    page = strict.get(url).content
    Session.objects.all().delete()
    data = {"body": "Written for long", "rating": "4", "csrfmiddlewaretoken": token_in(page)}
    assert strict.post(f"{url}comment/", data)["Location"].startswith("/login/")
    log_in(strict)
    assert written(strict.get(url).content) == ("Written for long", "4")


def test_a_draft_is_for_its_visitor_only(client: Client, reader: Client, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    client.post(f"{url}comment/", {"body": "a secret", "rating": 5})
    for visitor in (Client(), reader):
        assert b"a secret" not in visitor.get(url).content
    assert "private" in client.get(url)["Cache-Control"]
    client.force_login(get_user_model().objects.get(username="margaret"))
    client.post("/logout/")
    client.force_login(get_user_model().objects.get(username="margaret"))
    assert written(client.get(url).content) == ("", "")


def test_a_draft_is_bounded(client: Client, rows: Rows):
    url = f"/posts/{rows.post.pk}/"
    for body in ("", " \r\n"):
        client.post(f"{url}comment/", {"body": body, "rating": 5})
    assert not Session.objects.exists()
    longest = "x\r\n" * 1000
    client.post(f"{url}comment/", {"body": longest, "rating": "5"})
    client.post(f"/posts/{rows.post.pk + 1}/comment/", {"body": "y" * 100_000, "rating": "5" * 100_000})
    kept = Session.objects.get()
    assert len(kept.session_data) < 10_000
    client.post(f"{url}comment/", {"body": longest, "rating": "5"})
    client.force_login(get_user_model().objects.create_user("margaret"))
    assert written(client.get(url).content) == (longest.replace("\r\n", "\n"), "5")


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace"])
def test_a_comment_is_read_or_posted(reader: Client, rows: Rows, method: str):
    response = getattr(reader, method)(f"/posts/{rows.post.pk}/comment/")
    assert (response.status_code, set(response["Allow"].split(", "))) == (405, {"GET", "HEAD", "POST"})


def test_comment_takes_a_post(reader: Client, client: Client, rows: Rows):
    for visitor in (reader, client):
        assert visitor.post("/posts/999999/comment/", {"body": "Hello", "rating": 5}).status_code == 404


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


def test_a_rating_is_chosen_not_given_by_default(reader: Client, rows: Rows):
    html = reader.get(f"/posts/{rows.post.pk}/").content.decode()
    # A browser sends the first option, and refuses an empty one if the field is required.
    assert re.findall(r'<select name="rating"[^>]* required[^>]*>\s*<option value="([^"]*)" selected>', html) == [""]
    response = reader.post(f"/posts/{rows.post.pk}/comment/", {"body": "Good", "rating": ""})
    assert response.status_code == 422
    assert b"Choose a rating." in response.content


@pytest.mark.parametrize("text", ["x", "é", "x\r\n", "x\n", "x\r", "x\r\n\r\n", "😀", "x😀\r\n"])
def test_a_comment_is_as_long_as_the_browser_counts_it(reader: Client, rows: Rows, text: str):
    """A line break is one character, and one outside of the Basic Multilingual Plane two."""
    counted = len(re.sub("\r\n?", "\n", text).encode("utf-16-le")) // 2
    times, rest = divmod(1999, counted)
    longest = text * times + "z" * (rest + 1)
    url = f"/posts/{rows.post.pk}/comment/"
    assert reader.post(url, {"body": f"{longest}z", "rating": 5}).status_code == 422
    assert reader.post(url, {"body": longest, "rating": 5}).status_code == 302
    assert Comment.objects.latest("id").body == re.sub("\r\n?", "\n", longest)


def test_the_browser_refuses_a_comment_that_the_site_refuses(reader: Client, rows: Rows):
    assert b'maxlength="2000"' in reader.get(f"/posts/{rows.post.pk}/").content


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


def test_each_comment_knows_its_page(client: Client, rows: Rows, django_assert_num_queries: Callable):
    comments = list(rows.post.comments.order_by("id"))
    for place, comment in enumerate(comments):
        with django_assert_num_queries(1):
            url = comment.get_absolute_url()
        base = f"/posts/{rows.post.pk}/" if place < 25 else f"/posts/{rows.post.pk}/page/{place // 25 + 1}/"
        assert url == f"{base}#comment-{comment.pk}"
    assert f'id="comment-{comments[-1].pk}"' in client.get(url).content.decode()


def test_a_comment_of_another_database_is_counted_there(rows: Rows):
    comment = Comment.objects.latest("id")
    comment._state.db = "archive"
    with pytest.raises(ConnectionDoesNotExist, match="archive"):
        comment.get_absolute_url()


@pytest.mark.parametrize("key", [r'"abcdefgh\000"', "a" * 4000, "ABCDEFGH" * 4, "abcdefgh" * 4 + "'"])
def test_a_session_key_of_another_shape_is_no_session(client: Client, rows: Rows, key: str):
    with CaptureQueriesContext(connection) as queries:
        page = client.get("/", headers={"cookie": f"sessionid={key}"})
    assert page.status_code == 200
    assert b"Log in</a>" in page.content
    assert not [query for query in queries if "django_session" in query["sql"]]


def test_a_page_of_a_session_is_private(reader: Client, rows: Rows):
    # A browser goes back to a page after a logout, unless it may not store it.
    assert {"private", "no-cache", "no-store"} <= set(reader.get("/posts/")["Cache-Control"].split(", "))
    forged = Client()
    forged.cookies["sessionid"] = "forged"
    for client in (Client(), forged):
        assert "no-cache" not in client.get("/posts/").get("Cache-Control", "")
