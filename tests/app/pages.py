"""Reading all pages of all lists, for the tests of pagination."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from django.db import connection, reset_queries
from django.test.utils import CaptureQueriesContext

from benchapp import pagination
from benchapp.models import Author, Comment, Post

Pages = list[list[int]]

COUNTING = re.compile(r"\bcount\s*\(", re.IGNORECASE)
OFFSET = re.compile(r"\boffset\s+(\d+)", re.IGNORECASE)


def keys_of(page: pagination.Page) -> list[int]:
    return [row.pk for row in page.object_list]


def walk(page_of: Callable[[int], pagination.Page]) -> Pages:
    """All pages from the first to the one that has no next."""
    pages: Pages = []
    number = 1
    while True:
        reset_queries()  # the log of queries is short, a walk long
        page = page_of(number)
        assert page.number == number
        pages.append(keys_of(page))
        if not page.has_next():
            break
        number = page.next_page_number()
    assert page.num_pages == number
    assert page.count == sum(map(len, pages))
    return pages


def walk_table(page_of: Callable[[int], pagination.Page]) -> Pages:
    """All pages of a whole table, read in constant time."""

    def constant(number: int) -> pagination.Page:
        with CaptureQueriesContext(connection) as queries:
            page = page_of(number)
        assert_constant(queries)
        return page

    return walk(constant)


def assert_constant(queries: CaptureQueriesContext) -> None:
    """No statement counts the list or reads past rows by the hundreds."""
    for query in queries:
        assert not COUNTING.search(query["sql"]), query["sql"]
        assert all(int(offset) < 256 for offset in OFFSET.findall(query["sql"])), query["sql"]


def sliced(keys: list[int]) -> Pages:
    size = pagination.PER_PAGE
    return [keys[start : start + size] for start in range(0, len(keys), size)] or [[]]


def every_page() -> Iterator[tuple[Pages, Pages]]:
    """The pages of each list, beside what slices of the ordered rows say they should be."""
    lists = [
        (pagination.page_of_authors, Author.objects.order_by("-id")),
        (pagination.page_of_posts, Post.objects.order_by("-id")),
        (pagination.page_of_comments, Comment.objects.order_by("-id")),
    ]
    for page_of, rows in lists:
        yield walk_table(page_of), sliced(list(rows.values_list("pk", flat=True)))
    for author in Author.objects.all():
        rows = author.posts.order_by("-id").values_list("pk", flat=True)
        yield walk(lambda n, author=author: pagination.page_of_author_posts(author, n)), sliced(list(rows))
    # The others are like these, and walking them all would be most of the tests' time.
    for post in Post.objects.order_by("-comment_count", "id")[:5]:
        rows = post.comments.order_by("id").values_list("pk", flat=True)
        yield walk(lambda n, post=post: pagination.page_of_post_comments(post, n)), sliced(list(rows))
