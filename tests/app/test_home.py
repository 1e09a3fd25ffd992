"""The home page of the caching comparison: its size, its queries, its cached parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import caches
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from lxml.html import fromstring

from benchapp.home import Home
from benchapp.models import Author, Comment, Post
from tests.app.conftest import Rows, account, make_rows
from tests.app.pages import cost

Site = Callable[..., AbstractContextManager[None]]


def queries_of(client: Client, url: str = "/") -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return [query["sql"] for query in captured]


def test_ten_fragments_and_four_lookups_are_one_query_each(client: Client, rows: Rows):
    assert len(queries_of(client)) == 14


def test_warm_fragments_are_the_same_page_and_only_its_first_condition_is_a_query(
    client: Client, rows: Rows, site_with: Site
):
    bare = client.get("/").content
    with site_with(CACHING_FRAGMENTS="1"):
        caches["template_fragments"].clear()
        assert client.get("/").content == bare
        assert len(queries_of(client)) == 1
        # Django's tag knows of no write: it shows when the time to live ends.
        Post.objects.create(author=rows.author, title="Brand new", body="x")
        assert client.get("/").content == bare


def test_fragments_hold_nothing_of_who_is_logged_in(rows: Rows, site_with: Site):
    with site_with(CACHING_FRAGMENTS="1"):
        caches["template_fragments"].clear()
        ann, bob = account("ann-of-the-hill"), account("bob-of-the-dale")
        assert b"ann-of-the-hill" in ann.get("/").content
        page = bob.get("/").content
        assert b"bob-of-the-dale" in page
        assert b"ann-of-the-hill" not in page
        assert b"-of-the-" not in Client().get("/").content


def test_home_shows_each_kind_of_thing(client: Client, rows: Rows):
    html = client.get("/").content.decode()
    assert "30 authors, 60 posts and 60 comments, the latest on 29 July 2024 at 12:59." in html
    for heading in re.findall(r"<h2>(.+?)</h2>", html):
        assert html.count(heading) == 1
    assert html.count("<h2>") == 10
    home = Home()
    assert [post.views for post in home.most_viewed()] == [60, 59, 58, 57, 56, 55]
    assert next(iter(home.most_discussed())).pk == rows.post.pk
    assert next(iter(home.busiest_authors())).pk == rows.author.pk
    five_stars, latest = set(home.five_stars()), set(home.latest_comments())
    assert [comment.rating for comment in five_stars] == [5, 5, 5, 5]
    assert five_stars.isdisjoint(latest)
    assert sum(count for _, count in home.cities()) == 30


def test_quotations_name_who_said_them_outside_of_their_words(client: Client, rows: Rows):
    figures = fromstring(client.get("/").content).xpath("//figure[blockquote and figcaption]")
    assert len(figures) == 9
    for figure in figures:
        words, source = (figure.find(tag).text_content() for tag in ("blockquote", "figcaption"))
        assert re.match(r"Thoughts of reader \d+", words.strip())
        assert re.match(r"Reader \d+ on Post", source.strip())
        assert "Reader" not in words


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_page_has_nine_to_ten_thousand_bytes(sqlite_site: str, seed: int):
    """As the page of the benchmark had, with plain names of the static files and with hashed ones alike."""
    call_command("loadfixtures", rows=20_400, seed=seed, verbosity=0)
    html = Client().get("/").content
    hashes = html.count(b"/static/") * len(".0123456789ab")
    assert len(html) >= 9_000
    assert len(html) + hashes <= 10_000


def test_months_link_to_the_page_where_they_begin(client: Client, rows: Rows):
    # 60 posts, one every third day from 31 January 2024, the last on 26 July.
    months = Home().archive_months()
    assert [f"{month.newest:%Y-%m-%d}" for month in months] == [
        "2024-07-26",
        "2024-06-29",
        "2024-05-30",
        "2024-04-30",
        "2024-03-31",
        "2024-02-27",
    ]
    home = client.get("/").content.decode()
    for month in months:
        html = client.get(month.url).content.decode()
        assert f"{month.newest.day} {month.newest:%B %Y}" in html
        assert f'<a href="{month.url}">{month.newest:%B %Y}</a>' in home


def test_a_post_after_the_newest_comment_has_its_own_month(rows: Rows):
    Post.objects.create(author=rows.author, title="Late", body="x", published=datetime(2024, 9, 1, tzinfo=UTC))
    months = [f"{month.newest:%Y-%m}" for month in Home().archive_months()]
    assert months == ["2024-09", "2024-07", "2024-06", "2024-05", "2024-04", "2024-03"]


@pytest.mark.parametrize(
    ("newest", "expected"),
    [("9999-12-31", ["9999-12", "9999-11"]), ("9999-11-30", ["9999-12", "9999-11"]), ("0001-01-01", ["0001-01"])],
)
def test_months_at_the_ends_of_the_calendar_are_shown(site_database: str, newest: str, expected: list[str]):
    author = Author.objects.create(name="A", city="Oslo")
    comment = datetime.fromisoformat(newest).replace(tzinfo=UTC)
    times = [datetime(9999, month, 3, tzinfo=UTC) for month in (11, 12)]
    if comment.year == 1:
        times = [comment]
    for time in times:
        post = Post.objects.create(author=author, title="t", body="b", published=time)
    Comment.objects.create(post=post, name="n", body="b", rating=1, created=comment)
    months = Home().archive_months()
    assert [month.newest.isoformat()[:7] for month in months] == expected
    assert Client().get("/").status_code == 200


ZONES = ["UTC", "Pacific/Honolulu", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Kiritimati", "Asia/Beirut"]


@pytest.mark.parametrize("zone", ZONES)
def test_months_are_those_of_the_time_zone_and_lead_to_their_posts(site_database: str, zone: str):
    author = Author.objects.create(name="A", city="Oslo")
    midnight = datetime(2024, 3, 31, tzinfo=UTC)
    # Two posts a day for three months, none in June, and a post a day around the beginning of July.
    times = [midnight + timedelta(hours=12 * number) for number in range(122)]
    times += [datetime(2024, 6, 30, 14, 30, tzinfo=UTC) + timedelta(hours=7 * number) for number in range(4)]
    # Every third one was written when others were there: ids are in another order than times.
    times = [*times[1::3], *times[2::3], *times[0::3]]
    Post.objects.bulk_create(Post(author=author, title="t", body="b", published=time) for time in times)
    Comment.objects.create(post=Post.objects.first(), name="n", body="b", rating=1, created=max(times))
    with timezone.override(zone):
        expected = sorted({f"{timezone.localtime(time):%Y-%m}" for time in times}, reverse=True)
        months = Home().archive_months()
        assert [f"{timezone.localtime(month.newest):%Y-%m}" for month in months] == expected
        html = Client().get("/").content.decode()
        for month, name in zip(months, expected, strict=True):
            page = Client().get(month.url).context["page_obj"]
            assert name in {f"{timezone.localtime(post.published):%Y-%m}" for post in page}
            assert f"{timezone.localtime(month.newest):%B %Y}</a>" in html


def test_months_cost_the_same_on_a_large_site(sqlite_site: str):
    author = Author.objects.create(name="A", city="Oslo")
    begin = datetime(2024, 1, 1, tzinfo=UTC)

    def write(posts: int) -> None:
        times = [begin + timedelta(days=180) * number / posts for number in range(posts)]
        Post.objects.bulk_create(Post(author=author, title="t", body="b", published=time) for time in times)

    write(600)
    Comment.objects.create(post=Post.objects.first(), name="n", body="b", rating=1, created=begin + timedelta(days=180))
    few = cost(lambda: Home().archive_months())
    write(5_400)
    assert cost(lambda: Home().archive_months()) < 2 * few


def test_an_empty_site_says_how_to_load_rows(client: Client, db: None):
    page = client.get("/").content.decode()
    assert "Nothing is on the table yet: <code>./manage.py loadfixtures</code>" in page
    assert "<h2>" not in page
    Author.objects.create(name="A", city="Oslo")
    assert "Nothing is on the table yet" not in client.get("/").content.decode()


def test_five_stars_on_a_site_without_any(client: Client, rows: Rows):
    Comment.objects.filter(rating=5).delete()
    assert client.get("/").status_code == 200
    assert list(Home().five_stars()) == []


def test_cities_are_the_most_frequent_first(db: None):
    for city in ["Oslo", "Ghent", "Oslo", "Ghent", "Cork", "Oslo"]:
        Author.objects.create(name="A", city=city)
    assert Home().cities() == [("Oslo", 3), ("Ghent", 2), ("Cork", 1)]


def test_no_query_sorts_or_scans_a_table(site_database: str):
    """Each query of the page reads off the end of an index: no sorting, no sequential scan."""
    make_rows()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE")
            # Small tables are read whole whatever the indexes: see whether they could be used.
            cursor.execute("SET enable_seqscan = off")
    for sql in queries_of(Client()):
        with connection.cursor() as cursor:
            sqlite = connection.vendor == "sqlite"
            cursor.execute(f"EXPLAIN {'QUERY PLAN ' if sqlite else ''}{sql}")
            plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
        assert "TEMP B-TREE" not in plan, f"{sql}\n{plan}"
        assert "Seq Scan" not in plan or "pageblock" in sql, f"{sql}\n{plan}"
        # SQLite calls a walk along an index or the key a scan too: fine if it stops.
        assert "SCAN" not in plan or "LIMIT" in sql, f"{sql}\n{plan}"
