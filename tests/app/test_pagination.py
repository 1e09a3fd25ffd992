"""Pages of the lists: right, bounded in cost, and honest about their number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.paginator import EmptyPage, InvalidPage
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from benchapp import page_index
from benchapp.models import Author, Post
from benchapp.pagination import TablePaginator

from .conftest import make_rows
from .pages import PER_PAGE, TABLES, children_page, constant, cost, keys_of, stock_page, table_page

BUSY = 70_000  # rows: several full blocks of both sizes
# A page needs two levels of blocks, 256 ids of a block, and its rows.
MAX_BLOCKS = 800
MAX_STEPS = 25_000


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
        page_index.drop_triggers(connection)
        cursor.execute(f"INSERT INTO benchapp_author VALUES (3, 'Busy', 'c', '', '2024-01-01', {BUSY})")
        cursor.execute(
            "INSERT INTO benchapp_post (id, author_id, title, body, published, views, comment_count)"
            f" SELECT i * 3, 3, 't', 'b', '2024-01-01', 0, 0 FROM {series}"
        )
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        page_index.fill(connection)
        page_index.create_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return site_database


@pytest.mark.parametrize("model", TABLES)
def test_a_page_out_of_range_is_not_found(site_database, model):
    make_rows()
    last = stock_page(model.objects.order_by("-id"), 1).paginator.num_pages
    for number in (0, -1, last + 1, 1 << 62, 1 << 63, 10**30, "x", None):
        with pytest.raises(InvalidPage):
            table_page(model, number)


def test_rows_that_go_between_two_looks_at_the_index_bring_no_other_page(site_database):
    Author.objects.bulk_create([Author(name=str(n), city="x") for n in range(100)])
    pages = TablePaginator(Author.objects.order_by("-id"), PER_PAGE)
    assert pages.count == 100
    Author.objects.filter(id__gt=40).delete()
    with pytest.raises(EmptyPage):
        pages.page(3)


def test_children_need_no_count(site_database):
    post = make_rows().post
    with CaptureQueriesContext(connection) as queries:
        page = children_page(post.comments.order_by("id"), post.comment_count, 2)
        assert len(keys_of(page)) == PER_PAGE
    assert len(queries) == 1 and "COUNT(" not in queries[0]["sql"]


# --- Depth --------------------------------------------------------------------------------------


def test_a_page_costs_little_at_any_depth(busy_site):
    most = MAX_BLOCKS if connection.vendor == "postgresql" else MAX_STEPS
    last = BUSY // PER_PAGE
    for depth in (0, 0.01, 0.25, 0.5, 0.75, 0.95, 1):
        number = max(1, round(last * depth))
        assert cost(lambda number=number: constant(Post, number)) < most, f"page {number}"
    stock = Post.objects.order_by("-id")
    assert cost(lambda: keys_of(stock_page(stock, last))) > most


def test_pages_of_a_busy_site_are_those_of_offset(busy_site):
    Post.objects.filter(id__range=(3 * 1000, 3 * 1002)).delete()
    Post.objects.filter(id__range=(3 * 40_000, 3 * 40_400)).delete()
    assert page_index.differences(connection) == []
    for number in (1, 2, 39, 40, 41, 1_200, 1_201, 2_620, 2_622, BUSY // PER_PAGE - 17):
        assert keys_of(constant(Post, number)) == keys_of(stock_page(Post.objects.order_by("-id"), number))


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
    for name in ("posts", "comments", "author's", "post's"):
        for mode in ("counted", "offset"):
            assert sum(line.startswith(f"{name} ") and f" {mode} " in line for line in result.stdout.splitlines()) == 3
