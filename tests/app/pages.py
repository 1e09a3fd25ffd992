"""Reading all pages of all lists, for the tests of pagination."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.core.paginator import Page, Paginator
from django.db import connection, reset_queries
from django.test.utils import CaptureQueriesContext

from benchapp.models import Author, Comment, Post
from benchapp.pagination import PER_PAGE, ChildrenPaginator, TablePaginator

TABLES = (Author, Post, Comment)
COUNTING = re.compile(r"\bcount\s*\(", re.IGNORECASE)
OFFSET = re.compile(r"\boffset\s+(\d+)", re.IGNORECASE)


def table_page(model: Any, number: Any) -> Page:
    """A page of a whole table, as the site finds it."""
    return TablePaginator(model.objects.order_by("-id"), PER_PAGE).page(number)


def children_page(children: Any, count: int, number: Any) -> Page:
    """A page of the children of one parent, as the site finds it."""
    return ChildrenPaginator(children, PER_PAGE, count).page(number)


def stock_page(rows: Any, number: Any) -> Page:
    """The same page by Django's paginator."""
    return Paginator(rows, PER_PAGE).page(number)


def keys_of(page: Page) -> list[int]:
    return [row.pk for row in page.object_list]


def walk(page_of: Callable[[int], Page]) -> list[list[int]]:
    """All pages from the first to the one that has no next."""
    pages: list[list[int]] = []
    while True:
        reset_queries()  # the log of queries is short, a walk long
        page = page_of(len(pages) + 1)
        pages.append(keys_of(page))
        if not page.has_next():
            break
    assert page.paginator.num_pages == len(pages)
    assert page.paginator.count == sum(map(len, pages))
    return pages


def constant(model: Any, number: int) -> Page:
    """A page of a whole table, found without counting it and without reading past rows by the hundreds."""
    with CaptureQueriesContext(connection) as queries:
        page = table_page(model, number)
    for query in queries:
        assert not COUNTING.search(query["sql"]), query["sql"]
        assert all(int(offset) < 256 for offset in OFFSET.findall(query["sql"])), query["sql"]
    return page


def cost(read: Callable[[], object]) -> int:
    """Blocks that PostgreSQL touches for a read, or steps of SQLite's virtual machine, which has no moods."""
    count = 0
    if connection.vendor == "postgresql":
        with CaptureQueriesContext(connection) as queries:
            read()
        with connection.cursor() as cursor:
            for query in queries.captured_queries:
                cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query["sql"])
                plan = cursor.fetchone()[0][0]["Plan"]
                count += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return count

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    connection.connection.set_progress_handler(step, 1)
    read()
    connection.connection.set_progress_handler(None, 1)
    return count


def every_page() -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """The pages of each list, beside those of Django's paginator."""
    for model in TABLES:
        rows = model.objects.order_by("-id").only("pk")
        yield walk(lambda n, model=model: constant(model, n)), walk(lambda n, rows=rows: stock_page(rows, n))
    # The others are like these, and walking them all would be most of the tests' time.
    parents = [*Author.objects.all()[:20], *Post.objects.order_by("-comment_count", "id")[:5]]
    for parent in parents:
        rows = parent.posts.order_by("-id") if isinstance(parent, Author) else parent.comments.order_by("id")
        count = parent.post_count if isinstance(parent, Author) else parent.comment_count
        yield (
            walk(lambda n, rows=rows, count=count: children_page(rows, count, n)),
            walk(lambda n, rows=rows: stock_page(rows, n)),
        )
