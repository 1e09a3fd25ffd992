"""The reader's view: pages, links between them, errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.paginator import Paginator
from django.db import connection
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import include, path
from lxml.html import fromstring

from benchapp.models import Author, Comment, Post
from benchapp.templatetags.site import pager
from tests.app.conftest import Rows

LISTS = ["/authors/", "/posts/", "/comments/"]
# The rows of each list of the small site.
LENGTHS = {"/authors/": 30, "/posts/": 60, "/comments/": 60, "/authors/{author}/": 55, "/posts/{post}/": 55}


def broken(request: HttpRequest) -> None:
    raise RuntimeError("on purpose")


def suspicious(request: HttpRequest) -> None:
    raise SuspiciousOperation("on purpose")


def forbidden(request: HttpRequest) -> None:
    raise PermissionDenied("on purpose")


urlpatterns = [
    path("broken/", broken),
    path("suspicious/", suspicious),
    path("forbidden/", forbidden),
    path("", include("benchapp.urls")),
]
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


def described(html: bytes) -> str:
    """The text that search engines show of a page."""
    [description] = fromstring(html).xpath("//head/meta[@name='description']/@content")
    return description.strip()


def test_every_page_has_a_description_of_what_it_shows(client: Client, every_page: list[str]):
    pages = [*every_page, "/login/", "/nowhere/"]
    descriptions = {url: described(client.get(url).content) for url in pages}
    assert len(set(descriptions.values())) == len(pages)
    for url, description in descriptions.items():
        assert 40 <= len(description) <= 170, url
    post, author = Post.objects.order_by("id")[0], Author.objects.order_by("id")[0]
    assert descriptions[f"/posts/{post.pk}/"][:40] == post.body[:40]
    assert author.bio[:40] in descriptions[f"/authors/{author.pk}/"]


def test_pages_depend_on_neither_host_nor_port(client: Client, every_page: list[str], settings):
    settings.ALLOWED_HOSTS = ["*"]
    for url in every_page:
        assert client.get(url).content == client.get(url, headers={"Host": "example.org:8443"}).content


@pytest.mark.parametrize("url", LISTS)
def test_list_shows_25_rows_newest_first(client: Client, rows: Rows, url: str):
    html = client.get(url).content.decode()
    numbers = re.findall(rf"<li>.*?(?:{'Reader' if url == '/comments/' else url[1:-2].title()}) (\d+)", html, re.S)
    total = 30 if url == "/authors/" else 60
    assert [int(number) for number in numbers[:25]] == list(range(total - 1, total - 26, -1))
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


def test_the_list_of_comments_reads_no_text_of_posts(client: Client, rows: Rows):
    with CaptureQueriesContext(connection) as queries:
        client.get("/comments/")
    sql = " ".join(query["sql"] for query in queries)
    assert '"benchapp_post"."title"' in sql
    assert '"benchapp_post"."body"' not in sql


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


def test_labels_of_the_pager_contain_what_is_seen(client: Client, db: None):
    """WCAG 2.5.3: who speaks to a browser says what they read, `1,234`."""
    page = Paginator(range(25 * 2000), 25).page(1234)
    html = render_to_string("pager.html", pager(page, "/posts/"))
    links = fromstring(html).xpath("//a[@aria-label]")
    assert [link.text for link in links] == ["1,232", "1,233", "1,234", "1,235", "1,236"]
    for link in links:
        assert link.text in link.get("aria-label")


def test_pager_of_children_leads_back_to_their_part_of_the_page(client: Client, rows: Rows):
    html = client.get(f"/posts/{rows.post.pk}/").content.decode()
    assert f'href="/posts/{rows.post.pk}/page/2/#comments" rel="next"' in html
    assert 'id="comments"' in html


def test_a_list_of_one_page_has_no_pager(client: Client, db: None):
    assert b"pager" not in client.get("/posts/").content


@pytest.mark.parametrize("base", [*LISTS, "/authors/{author}/", "/posts/{post}/"])
@pytest.mark.parametrize(("page", "target"), [("2", "page/2/"), (" 2 ", "page/2/"), ("1", "")])
def test_jump_goes_to_the_page_requested(client: Client, rows: Rows, base: str, page: str, target: str):
    base = base.format(author=rows.author.pk, post=rows.post.pk)
    response = client.get(f"{base}jump/", {"page": page})
    assert (response.status_code, response["Location"]) == (302, f"{base}{target}")


@pytest.mark.parametrize(("base", "last"), [(base, f"page/{-(-rows // 25)}/") for base, rows in LENGTHS.items()])
@pytest.mark.parametrize("page", ["4", "1000", "9" * 18])
def test_jump_beyond_the_last_page_goes_to_it(
    client: Client, rows: Rows, base: str, page: str, last: str, django_assert_max_num_queries: Callable
):
    base = base.format(author=rows.author.pk, post=rows.post.pk)
    with django_assert_max_num_queries(2):
        response = client.get(f"{base}jump/", {"page": page})
    assert (response.status_code, response["Location"]) == (302, f"{base}{last}")


def test_jump_in_an_empty_list_goes_to_its_one_page(client: Client, db: None):
    assert client.get("/posts/jump/", {"page": 7})["Location"] == "/posts/"


@pytest.mark.parametrize("base", ["/authors/999999/", "/posts/999999/"])
def test_jump_below_a_row_that_does_not_exist_is_404(client: Client, rows: Rows, base: str):
    assert client.get(f"{base}jump/", {"page": 2}).status_code == 404


@pytest.mark.parametrize("page", ["", "0", "-1", "1.5", "x", "03", "٣", "9" * 19, "//example.org"])
def test_jump_to_no_page_is_404(client: Client, db: None, page: str):
    assert client.get("/posts/jump/", {"page": page}).status_code == 404
    assert client.get("/posts/jump/").status_code == 404


def test_pages_are_for_reading_only(client: Client, every_page: list[str]):
    for url in every_page:
        assert client.post(url).status_code == 405


def test_times_are_those_of_html(client: Client, rows: Rows):
    """At most three digits of a second: https://html.spec.whatwg.org/multipage/common-microsyntaxes.html#times"""
    now = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    post = Post.objects.create(author=rows.author, title="New", body="new", published=now)
    Comment.objects.create(post=post, name="Bob", body="Yes", rating=5, created=now)
    for url in ["/posts/", "/comments/", f"/authors/{rows.author.pk}/", f"/posts/{post.pk}/"]:
        times = fromstring(client.get(url).content).xpath("//time/@datetime")
        assert "2026-01-02T03:04:05+00:00" in times, url
        for time in times:
            assert re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,3})?[+-]\d\d:?\d\d)?", time)


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
@pytest.mark.parametrize(("url", "status"), [("/broken/", 500), ("/suspicious/", 400), ("/forbidden/", 403)])
def test_error_pages_need_no_database(url: str, status: int):
    # Without the `db` fixture any query would raise.
    response = Client(raise_request_exception=False).get(url)
    assert response.status_code == status
    assert b"/static/site.css" in response.content
    assert b"on purpose" not in response.content
    assert described(response.content)
    assert '<a class="button" href="/">' in response.content.decode()


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


def may_crawl(robots: str, path: str) -> bool:
    """True if robots.txt allows all crawlers a path (RFC 9309)."""
    rules = re.findall(r"^Disallow: (\S+)$", robots, re.M)
    return not any(re.match(re.escape(rule).replace(r"\*", ".*"), path) for rule in rules)


def test_crawlers_reach_all_content_without_the_deep_pages(client: Client):
    response = client.get("/robots.txt")
    assert (response.status_code, response["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert "Vary" not in response
    assert not response.cookies
    robots = response.content.decode()
    assert robots.count("User-agent: *\n") == 1
    for url in ["/", *LISTS, "/authors/page/700/", "/authors/5/page/2/", "/posts/5/", "/posts/5/page/2/"]:
        assert may_crawl(robots, url), url
    for url in [*(f"{base}jump/?page=2" for base in LISTS), "/authors/5/jump/?page=2", "/posts/5/jump/?page=2"]:
        assert not may_crawl(robots, url), url
    for url in ["/posts/5/comment/", "/login/", "/login/?next=/", "/logout/", "/admin/", "/admin/login/"]:
        assert not may_crawl(robots, url), url
    for url in ["/posts/page/8000/", "/comments/page/32000/"]:
        assert not may_crawl(robots, url), url


def test_there_is_an_icon_where_clients_look_for_one(client: Client):
    response = client.get("/favicon.ico", follow=True)
    assert (response.status_code, response["Content-Type"]) == (200, "image/x-icon")
    assert b"".join(response).startswith(b"\0\0\1\0")


def test_health_check_uses_no_database(client: Client):
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")
    assert response["Content-Type"].startswith("text/plain")
    assert not response.cookies
    assert "Vary" not in response
