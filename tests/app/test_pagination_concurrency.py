"""Several writers at once, each with a separate connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg2
import pytest
from django.db import connection, transaction

from benchapp import page_index
from benchapp.models import Author, Comment, Post

from .pages import constant, every_page, keys_of

WRITERS = 6
DEADLINE_S = 60


@pytest.fixture
def posts(site_database: str) -> list[Post]:
    author = Author.objects.create(name="Ann", city="Ghent")
    return [Post.objects.create(author=author, title="t", body="b") for _ in range(3)]


def at_once(task: Callable[[int], object], count: int = WRITERS) -> None:
    """Run the task for 0 to count - 1, all begun together, each in a thread with its own connection."""
    start = threading.Barrier(count, timeout=DEADLINE_S)

    def run(index: int) -> None:
        try:
            start.wait()
            task(index)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(run, range(count), timeout=DEADLINE_S))


def assert_right() -> None:
    assert page_index.differences(connection) == []
    for pages, expected in every_page():
        assert pages == expected


def test_writes_on_few_parents_do_not_deadlock_and_pages_can_be_read_meanwhile(posts):
    Comment.objects.bulk_create(Comment(post=posts[0], name="n", body="b", rating=4) for _ in range(1000))

    def work(index: int) -> None:
        for turn in range(10):
            some = [posts[(index + turn + n) % 3] for n in range(3)]
            Comment.objects.bulk_create(
                Comment(post=post, name="n", body="b", rating=4) for post in some for _ in range(10)
            )
            mine = Comment.objects.create(post=some[0], name=f"{index}", body="b", rating=4)
            if turn % 3 == 0:
                Comment.objects.filter(pk=mine.pk).update(post=some[1])
            elif turn % 3 == 1:
                Comment.objects.filter(pk__in=[mine.pk - 3, mine.pk]).delete()
            else:
                Post.objects.create(author_id=some[0].author_id, title="more", body="b")
            assert len(keys_of(constant(Comment, index + turn + 1))) == 25

    at_once(work)
    assert Author.objects.get().post_count == 3 + WRITERS * 3
    assert_right()


def test_writers_of_one_list_take_turns(postgresql_site):
    def write() -> None:
        try:
            Author.objects.create(name="Bob", city="Ghent")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Author.objects.create(name="Ann", city="Ghent")
            written = pool.submit(write)
            with pytest.raises(TimeoutError):
                written.result(0.3)
        written.result(DEADLINE_S)
    assert_right()


def test_recount_waits_for_writers_and_readers_go_on(postgresql_site):
    author = Author.objects.create(name="Ann", city="Ghent")

    def rebuild() -> None:
        try:
            page_index.rebuild(connection)
        finally:
            connection.close()

    with closing(psycopg2.connect(postgresql_site)) as writer, ThreadPoolExecutor(1) as pool:
        writer.cursor().execute("INSERT INTO benchapp_author (name, city, bio, joined) VALUES ('x', '', '', now())")
        rebuilt = pool.submit(rebuild)
        with pytest.raises(TimeoutError):
            rebuilt.result(0.3)
        assert keys_of(constant(Author, 1)) == [author.pk]
        writer.commit()
        rebuilt.result(DEADLINE_S)
    assert len(keys_of(constant(Author, 1))) == 2
    assert_right()


def test_readers_go_on_while_recount_counts(postgresql_site):
    Author.objects.create(name="Ann", city="Ghent")
    with closing(psycopg2.connect(postgresql_site, options="-c lock_timeout=1s")) as reader, transaction.atomic():
        page_index.rebuild(connection)
        with reader.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM benchapp_author")
            assert cursor.fetchone() == (1,)
