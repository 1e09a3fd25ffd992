"""Several writers at once, each with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, transaction

from benchapp import counted, pagination
from benchapp.models import Author, Comment, Post

from .pages import every_page

WRITERS = 6
DEADLINE_SECONDS = 60


@pytest.fixture
def posts(site_database: str) -> list[Post]:
    author = Author.objects.create(name="Ann", city="Ghent")
    return [Post.objects.create(author=author, title="t", body="b") for _ in range(3)]


def at_once(task: Callable[[int], object], count: int = WRITERS) -> list:
    """The task's results for 0 to count - 1, all begun together, each in a thread with its connection."""
    start = threading.Barrier(count, timeout=DEADLINE_SECONDS)

    def run(index: int) -> object:
        try:
            start.wait()
            return task(index)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count), timeout=DEADLINE_SECONDS))


def comment_on(post: Post) -> int:
    return Comment.objects.create(post=post, name="n", body="b", rating=4).pk


def numbers(rows: object) -> list[int]:
    return list(rows.order_by("number").values_list("number", flat=True))


def test_comments_on_one_post_get_consecutive_numbers(posts):
    at_once(lambda _: [comment_on(posts[0]) for _ in range(25)])
    assert numbers(posts[0].comments) == list(range(1, 25 * WRITERS + 1))
    assert Post.objects.get(pk=posts[0].pk).comment_count == 25 * WRITERS
    assert counted.differences(connection) == []
    for pages, expected in every_page():
        assert pages == expected


def test_single_writes_of_every_kind_do_not_deadlock(posts):
    def work(index: int) -> None:
        for turn in range(20):
            post = posts[(index + turn) % 3]
            key = comment_on(post)
            if turn % 4 == 1:
                Comment.objects.filter(pk=key).delete()
            elif turn % 4 == 2:
                Comment.objects.filter(pk=key).update(post=posts[(index + turn + 1) % 3])
            elif turn % 4 == 3:
                Post.objects.create(author_id=post.author_id, title="more", body="b")

    at_once(work)
    assert counted.differences(connection) == []
    assert Comment.objects.count() == WRITERS * 15
    assert Author.objects.get().post_count == 3 + WRITERS * 5


def test_bulk_writes_to_one_parent_do_not_deadlock(posts):
    def work(index: int) -> None:
        for _ in range(4):
            Comment.objects.bulk_create([Comment(post=posts[0], name="n", body="b", rating=4) for _ in range(100)])

    at_once(work)
    assert numbers(posts[0].comments) == list(range(1, WRITERS * 400 + 1))
    assert counted.differences(connection) == []


def test_pages_can_be_read_while_rows_come_and_go(posts):
    Comment.objects.bulk_create([Comment(post=posts[0], name="n", body="b", rating=4) for _ in range(1000)])

    def work(index: int) -> None:
        for turn in range(30):
            if index < 2:
                key = comment_on(posts[0])
                Comment.objects.filter(pk__in=(key, key - 500)).delete()
            else:
                page = pagination.page_of_comments(turn + 1)
                assert len(page.object_list) == 25
                assert len({row.pk for row in page.object_list}) == 25
                page = pagination.page_of_post_comments(posts[0], turn + 1)
                assert len(page.object_list) == 25

    at_once(work, 4)
    assert counted.differences(connection) == []


def test_a_write_waits_for_the_parent_and_sees_what_it_became(postgresql_site):
    author = Author.objects.create(name="Ann", city="Ghent")
    post = Post.objects.create(author=author, title="t", body="b")

    def impatient() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
                comment_on(post)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            comment_on(post)
            with pytest.raises(OperationalError, match="lock timeout"):
                pool.submit(impatient).result(DEADLINE_SECONDS)
            transaction.set_rollback(True)
        pool.submit(impatient).result(DEADLINE_SECONDS)
    assert numbers(post.comments) == [1]
    assert counted.differences(connection) == []
