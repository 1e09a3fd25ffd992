"""Pages of the lists: right, bounded in cost, and honest about their number."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.paginator import Paginator
from django.db import connection, transaction
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from benchapp import page_index, pagination
from benchapp.models import Author, Comment, Post

from .pages import assert_constant, every_page, keys_of

BUSY = 70_000  # rows: more than one full block of 65,536 ids

TABLES = {
    "authors": pagination.page_of_authors,
    "posts": pagination.page_of_posts,
    "comments": pagination.page_of_comments,
}
LISTS = TABLES | {
    "author's posts": lambda number: pagination.page_of_author_posts(Author.objects.get(name="Busy"), number),
    "post's comments": lambda number: pagination.page_of_post_comments(Post.objects.get(title="Busy"), number),
}

# A page needs two levels of up to 256 blocks, 256 ids of a block, and its rows.
MAX_BLOCKS = 800
MAX_STEPS = 25_000


@pytest.fixture
def small_site(site_database: str) -> str:
    """A few hundred rows with gaps."""
    author = Author.objects.create(id=3, name="Busy", city="Ghent")
    Author.objects.bulk_create([Author(id=n, name="n", city="x") for n in range(4, 64)])
    post = Post.objects.create(id=BUSY * 3, author=author, title="Busy", body="b")
    Post.objects.bulk_create([Post(author=author, id=n, title="t", body="b") for n in range(1, 300)])
    Comment.objects.bulk_create([Comment(post=post, name="n", body=str(n), rating=3) for n in range(600)])
    Comment.objects.filter(id__range=(200, 290)).delete()
    Author.objects.filter(id__in=(7, 8, 30)).delete()
    return site_database


@pytest.fixture
def busy_site(site_database: str) -> str:
    """70,000 posts with every third id, filled without triggers."""
    if connection.vendor == "postgresql":
        series = f"generate_series(1, {BUSY}) AS s (i)"
    else:
        series = (
            f"(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {BUSY}) SELECT i FROM s) AS s"
        )
    with transaction.atomic(), connection.cursor() as cursor:
        page_index.drop_triggers(cursor, connection.vendor)
        cursor.execute(f"INSERT INTO benchapp_author VALUES (3, 'Busy', 'c', '', '2024-01-01', {BUSY})")
        cursor.execute(
            "INSERT INTO benchapp_post (id, author_id, title, body, published, views, comment_count)"
            f" SELECT i * 3, 3, 't', 'b', '2024-01-01', 0, 0 FROM {series}"
        )
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        page_index.fill(cursor)
        page_index.create_triggers(cursor, connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return site_database


def test_all_pages_together_are_the_list(small_site):
    for pages, expected in every_page():
        assert pages == expected


def test_both_modes_show_the_same(small_site, settings):
    def shown(page_of: Callable, number: int) -> tuple:
        page = page_of(number)
        assert isinstance(page.object_list, list)
        return (
            *(keys_of(page), page.number, page.num_pages, page.count, len(page)),
            *(page.has_previous(), page.has_next(), page.has_other_pages()),
            *(page.start_index(), page.end_index(), page.paginator.num_pages),
            page.has_next() and page.next_page_number(),
            page.has_previous() and page.previous_page_number(),
        )

    for name, page_of in LISTS.items():
        for number in range(1, page_of(1).num_pages + 1):
            settings.BENCHAPP_PAGINATION = "offset"
            expected = shown(page_of, number)
            settings.BENCHAPP_PAGINATION = "counted"
            assert shown(page_of, number) == expected, name


def test_a_page_out_of_range_is_not_found(small_site, settings):
    for mode in ("counted", "offset"):
        settings.BENCHAPP_PAGINATION = mode
        for page_of in LISTS.values():
            last = page_of(1).num_pages
            assert page_of(last).has_next() is False
            for number in (0, -1, last + 1, last + 1000, 1 << 62, 1 << 63, 10**30, "x", None):
                with pytest.raises(Http404, match=f"There is no page {number} of the "):
                    page_of(number)


@pytest.mark.parametrize("mode", ["counted", "offset"])
def test_an_empty_list_has_one_page(site_database, settings, mode: str):
    settings.BENCHAPP_PAGINATION = mode
    for page_of in TABLES.values():
        page = page_of(1)
        assert (page.object_list, page.count, page.num_pages, page.number) == ([], 0, 1, 1)
        assert not page.has_other_pages()
        with pytest.raises(Http404):
            page_of(2)


def test_the_last_page_goes_when_its_only_row_does(site_database):
    Author.objects.bulk_create([Author(name=str(n), city="x") for n in range(51)])
    assert pagination.page_of_authors(3).count == 51
    Author.objects.order_by("id").first().delete()
    assert pagination.page_of_authors(2).num_pages == 2
    with pytest.raises(Http404):
        pagination.page_of_authors(3)


def test_offset_mode_is_djangos_paginator(small_site, settings):
    settings.BENCHAPP_PAGINATION = "offset"
    with CaptureQueriesContext(connection) as queries:
        page = pagination.page_of_comments(3)
        totals = pagination.total_authors(), pagination.total_posts(), pagination.total_comments()
    assert isinstance(page.paginator, Paginator)
    assert sum("COUNT(" in query["sql"] for query in queries) == 4
    assert "OFFSET 50" in queries[1]["sql"]
    assert totals == (Author.objects.count(), Post.objects.count(), Comment.objects.count())


def test_totals_come_from_the_index(small_site):
    with CaptureQueriesContext(connection) as queries:
        totals = pagination.total_authors(), pagination.total_posts(), pagination.total_comments()
    assert_constant(queries)
    assert len(queries) == 3
    assert totals == (Author.objects.count(), Post.objects.count(), Comment.objects.count())


def test_children_need_no_count(small_site):
    with CaptureQueriesContext(connection) as queries:
        page = LISTS["post's comments"](3)
    assert not any("COUNT(" in query["sql"] for query in queries)
    assert page.count == 509


def test_what_the_rows_show_needs_no_query_a_row(small_site):
    # In PostgreSQL one finds the page and one reads its rows.
    most = 2 if connection.vendor == "postgresql" else 4
    for name, page_of in LISTS.items():
        with CaptureQueriesContext(connection) as queries:
            for row in page_of(2).object_list:
                parent = getattr(row, "author", None) or getattr(row, "post", None)
                assert parent or name == "authors"
        assert len(queries) <= most, name


# --- Depth --------------------------------------------------------------------------------------


@pytest.fixture
def steps() -> Iterator[Callable]:
    """Counts the steps of SQLite's virtual machine: its cost, without the machine's moods."""

    @contextmanager
    def counting() -> Iterator[list[int]]:
        count = [0]

        def step() -> int:
            count[0] += 1
            return 0

        connection.connection.set_progress_handler(step, 1)
        try:
            yield count
        finally:
            connection.connection.set_progress_handler(None, 1)

    return counting


def blocks_of(queries: CaptureQueriesContext) -> int:
    """Blocks that PostgreSQL touches for these statements."""
    blocks = 0
    with connection.cursor() as cursor:
        for query in queries.captured_queries:
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query["sql"])
            plan = cursor.fetchone()[0][0]["Plan"]
            blocks += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return blocks


def test_a_page_costs_little_at_any_depth(busy_site, steps, settings):
    def cost(page_of: Callable, number: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            page_of(number)
        if settings.BENCHAPP_PAGINATION == "counted":
            assert_constant(queries)
        if connection.vendor == "postgresql":
            return blocks_of(queries)
        with steps() as count:
            page_of(number)
        return count[0]

    most = MAX_BLOCKS if connection.vendor == "postgresql" else MAX_STEPS
    settings.BENCHAPP_PAGINATION = "counted"
    page_of = pagination.page_of_posts
    last = page_of(1).num_pages
    assert last == BUSY // pagination.PER_PAGE
    for depth in (0, 0.01, 0.25, 0.5, 0.75, 0.95, 1):
        number = max(1, round(last * depth))
        assert cost(page_of, number) < most, f"page {number}"
    settings.BENCHAPP_PAGINATION = "offset"
    assert cost(page_of, last) > most


# PostgreSQL appends to a log instead.
@pytest.mark.parametrize("site_database", ["sqlite"], indirect=True)
def test_a_delete_looks_for_its_own_blocks_alone(busy_site, steps):
    with steps() as count:
        Post.objects.filter(pk=3 * 40_000)._raw_delete("default")
    assert count[0] < 1_000


def test_pages_of_a_busy_site_are_those_of_offset(busy_site, settings):
    last = BUSY // pagination.PER_PAGE
    Post.objects.filter(id__range=(3 * 1000, 3 * 1002)).delete()
    Post.objects.filter(id__range=(3 * 40_000, 3 * 40_400)).delete()
    assert page_index.differences(connection) == []
    for number in (1, 2, 39, 40, 41, 1_200, 1_201, 2_620, 2_622, last - 17):
        settings.BENCHAPP_PAGINATION = "offset"
        expected = pagination.page_of_posts(number)
        settings.BENCHAPP_PAGINATION = "counted"
        page = pagination.page_of_posts(number)
        assert (keys_of(page), page.count) == (keys_of(expected), expected.count), f"page {number}"


# --- The benchmark ------------------------------------------------------------------------------


@pytest.mark.servers
def test_the_benchmark_prints_every_list_mode_and_depth():
    result = subprocess.run(
        [sys.executable, "-m", "tests.proofs.pagination", "--rows", "5100", "--rounds", "2"],
        cwd=Path(__file__).resolve().parents[2],
        env=os.environ | {"PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "sqlite, 5,100 rows; a page of 25 rows as objects, in process, no template" in lines
    for name in ("posts", "comments", "author's", "post's"):
        for mode in ("counted", "offset"):
            assert sum(line.startswith(f"{name} ") and f" {mode} " in line for line in lines) == 3


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--rows", "many"], 2, "argument --rows: 'many' is not a whole number from 1"),
        (["--rounds", "0"], 2, "argument --rounds: '0' is not a whole number from 1"),
        (["--database", "postgres://nobody@127.0.0.1:9/x"], 1, "tests.proofs.pagination: connection to server at"),
    ],
)
def test_the_benchmark_refuses_what_it_cannot_use(arguments: list[str], status: int, message: str):
    result = subprocess.run(
        [sys.executable, "-m", "tests.proofs.pagination", *arguments],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == status
    assert message in result.stderr
    assert "Traceback" not in result.stderr
