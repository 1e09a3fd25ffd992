"""What a reader gets: pages, links between them, errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest
from django.test import Client, override_settings
from django.urls import include, path

from benchapp.models import Author, Comment, Post
from tests.app.conftest import Rows

LISTS = ["/authors/", "/posts/", "/comments/"]


def broken(request: HttpRequest) -> None:
    raise RuntimeError("on purpose")


def suspicious(request: HttpRequest) -> None:
    raise SuspiciousOperation("on purpose")


urlpatterns = [path("broken/", broken), path("suspicious/", suspicious), path("", include("benchapp.urls"))]
handler400 = "benchapp.views.bad_request"
handler500 = "benchapp.views.server_error"


@pytest.fixture
def every_page(rows: Rows) -> list[str]:
    details = [f"/authors/{rows.author.pk}/", f"/posts/{rows.post.pk}/"]
    return ["/", *LISTS, *(f"{base}page/2/" for base in [*LISTS, *details]), *details]


def test_every_page_refers_to_one_stylesheet_one_script_and_one_image(client: Client, every_page: list[str]):
    for url in every_page:
        html = client.get(url).content.decode()
        assert set(re.findall(r'/static/[^"]+', html)) == {
            "/static/site.css",
            "/static/site.js",
            "/static/logo.svg",
        }, url
        assert html.count("<h1>") == 1, url
        assert 'name="viewport"' in html


def test_pages_depend_on_neither_host_nor_port(client: Client, every_page: list[str], settings):
    settings.ALLOWED_HOSTS = ["*"]
    for url in every_page:
        assert client.get(url).content == client.get(url, headers={"Host": "example.org:8443"}).content


@pytest.mark.parametrize("url", LISTS)
def test_list_shows_25_rows_newest_first(client: Client, rows: Rows, url: str):
    html = client.get(url).content.decode()
    found = re.findall(rf"<li>.*?(?:{'Reader' if url == '/comments/' else url[1:-2].title()}) (\d+)", html, re.S)
    total = 30 if url == "/authors/" else 60
    assert [int(number) for number in found[:25]] == list(range(total - 1, total - 26, -1))
    assert f"Page 1 of {-(-total // 25)}." in html


def test_author_page_lists_posts_newest_first(client: Client, rows: Rows):
    html = client.get(f"/authors/{rows.author.pk}/page/3/").content.decode()
    assert re.findall(r"Post (\d+) about", html) == ["4", "3", "2", "1", "0"]
    assert "55 posts" in html


def test_post_page_lists_comments_oldest_first(client: Client, rows: Rows):
    html = client.get(f"/posts/{rows.post.pk}/page/3/").content.decode()
    assert re.findall(r"<b>Reader (\d+)</b>", html) == ["50", "51", "52", "53", "54"]
    assert "55 comments" in html


def test_pages_hold_few_queries_whatever_the_page(
    client: Client, every_page: list[str], django_assert_max_num_queries: Callable
):
    for url in [*every_page[1:], "/comments/page/3/"]:
        # The detail itself, the place of the page (two or three levels), and its rows.
        with django_assert_max_num_queries(4):
            assert client.get(url).status_code == 200


def test_first_page_has_one_url(client: Client, rows: Rows):
    for base in [*LISTS, f"/authors/{rows.author.pk}/", f"/posts/{rows.post.pk}/"]:
        response = client.get(f"{base}page/1/")
        assert (response.status_code, response["Location"]) == (301, base)


@pytest.mark.parametrize("base", [*LISTS, "/authors/{author}/", "/posts/{post}/"])
@pytest.mark.parametrize("end", ["page/4/", "page/0/", "page/02/", "page/-1/", "page/x/", f"page/{'9' * 18}/"])
def test_page_that_does_not_exist_is_404(client: Client, rows: Rows, base: str, end: str):
    base = base.format(author=rows.author.pk, post=rows.post.pk)
    assert client.get(f"{base}{end}").status_code == 404


@pytest.mark.parametrize("url", ["/posts/{}/", "/authors/{}/", "/posts/{}/page/2/", "/authors/{}/page/2/"])
@pytest.mark.parametrize("number", ["999999", "0", "01", "9" * 18, "9" * 30, "٣"])
def test_row_that_does_not_exist_is_404(client: Client, rows: Rows, url: str, number: str):
    assert client.get(url.format(number)).status_code == 404


def test_pager_leads_to_first_previous_neighbours_next_and_last(client: Client, rows: Rows):
    html = client.get("/posts/page/2/").content.decode()
    links = re.findall(r'<a href="([^"]+)"[^>]*>(First|Previous|\d|Next|Last)</a>', html)
    assert links == [
        ("/posts/", "First"),
        ("/posts/", "Previous"),
        ("/posts/", "1"),
        ("/posts/page/2/", "2"),
        ("/posts/page/3/", "3"),
        ("/posts/page/3/", "Next"),
        ("/posts/page/3/", "Last"),
    ]
    assert re.findall(r'aria-current="page"[^>]*>(\d)', html) == ["2"]
    assert '<form action="/posts/jump/">' in html


def test_pager_of_children_leads_back_to_their_part_of_the_page(client: Client, rows: Rows):
    html = client.get(f"/posts/{rows.post.pk}/").content.decode()
    assert f'href="/posts/{rows.post.pk}/page/2/#comments" rel="next"' in html
    assert 'id="comments"' in html


def test_a_list_of_one_page_has_no_pager(client: Client, db: None):
    assert b"pager" not in client.get("/posts/").content


@pytest.mark.parametrize("base", [*LISTS, "/authors/5/", "/posts/5/"])
@pytest.mark.parametrize(("page", "target"), [("3", "page/3/"), (" 3 ", "page/3/"), ("1", "")])
def test_jump_goes_to_the_page_asked_for(client: Client, base: str, page: str, target: str):
    response = client.get(f"{base}jump/", {"page": page})
    assert (response.status_code, response["Location"]) == (302, f"{base}{target}")


@pytest.mark.parametrize("page", ["", "0", "-1", "1.5", "x", "03", "٣", "9" * 19, "//example.org"])
def test_jump_to_no_page_is_404(client: Client, db: None, page: str):
    assert client.get("/posts/jump/", {"page": page}).status_code == 404
    assert client.get("/posts/jump/").status_code == 404


def test_pages_are_for_reading_only(client: Client, every_page: list[str]):
    for url in every_page:
        assert client.post(url).status_code == 405


def test_empty_site_has_all_its_pages(client: Client, db: None):
    for url in ["/", *LISTS]:
        assert client.get(url).status_code == 200
    assert client.get("/posts/page/2/").status_code == 404


def test_what_people_write_is_text_not_html(client: Client, db: None):
    author = Author.objects.create(name="<i>Ann</i>", city="<i>", bio="<script>1</script>")
    post = Post.objects.create(author=author, title="<b>Hello</b>", body="<script>2</script>")
    Comment.objects.create(post=post, name="<u>Bob</u>", body='"><img src=x>', rating=5)
    for url in ["/", *LISTS, f"/authors/{author.pk}/", f"/posts/{post.pk}/"]:
        html = client.get(url).content.decode()
        assert not re.search(r"<i>|<script>|<b><|<b>Hello|<u>|<img src=x", html), url


def test_section_of_the_page_is_marked_in_the_header(client: Client, rows: Rows):
    assert b'<a href="/posts/" aria-current="page">' in client.get("/posts/").content
    assert b'<a href="/posts/" aria-current="true">' in client.get(f"/posts/{rows.post.pk}/").content
    assert b"aria-current" not in client.get("/nowhere/").content


def test_unknown_url_is_a_404_page_of_the_site(client: Client, db: None):
    response = client.get("/nowhere/")
    assert response.status_code == 404
    assert b"There is no plate at this place." in response.content
    assert not response.cookies


@override_settings(ROOT_URLCONF=__name__, DEBUG_PROPAGATE_EXCEPTIONS=False)
@pytest.mark.parametrize(("url", "status"), [("/broken/", 500), ("/suspicious/", 400)])
def test_error_pages_need_no_database(url: str, status: int):
    # Without the `db` fixture any query would raise.
    response = Client(raise_request_exception=False).get(url)
    assert response.status_code == status
    assert b"/static/site.css" in response.content
    assert b"on purpose" not in response.content


def test_a_foreign_host_is_a_400_and_costs_one_short_line_of_log(db: None, client: Client, caplog):
    logger = logging.getLogger("django")
    logger.addHandler(caplog.handler)
    try:
        assert client.get("/", headers={"host": "a" * 4000}).status_code == 400
    finally:
        logger.removeHandler(caplog.handler)
    record = next(item for item in caplog.records if item.name == "django.security.DisallowedHost")
    assert len(record.getMessage()) == 200
    assert record.exc_info is None


def test_health_check_asks_no_database(client: Client):
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")
    assert response["Content-Type"].startswith("text/plain")
    assert not response.cookies
    assert "Vary" not in response
