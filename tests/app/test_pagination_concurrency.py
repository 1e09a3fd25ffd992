"""Several writers at once, each with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import psycopg2
import pytest
from django.db import connection

from benchapp import page_index, pagination
from benchapp.models import Author, Comment, Post

from .pages import every_page

WRITERS = 6
DEADLINE_SECONDS = 60
COMMENT = (
    "INSERT INTO benchapp_comment (post_id, name, body, created, rating)"
    " VALUES (%s, 'n', 'b', '2024-01-01', 4) RETURNING id"
)


@pytest.fixture
def posts(site_database: str) -> list[Post]:
    return make_posts()


@pytest.fixture
def postgresql_posts(postgresql_site: str) -> list[Post]:
    return make_posts()


def make_posts() -> list[Post]:
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


def comments(*posts: Post, each: int = 1) -> list[Comment]:
    return [Comment(post=post, name="n", body="b", rating=4) for _ in range(each) for post in posts]


def comment_on(post: Post) -> int:
    return Comment.objects.create(post=post, name="n", body="b", rating=4).pk


def assert_right() -> None:
    assert page_index.differences(connection) == []
    for pages, expected in every_page():
        assert pages == expected


# --- Many short writes --------------------------------------------------------------------------


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
    assert Comment.objects.count() == WRITERS * 15
    assert Author.objects.get().post_count == 3 + WRITERS * 5
    assert_right()


def test_statements_on_many_parents_do_not_deadlock(posts):
    """Inserts, moves and deletes that meet the same posts in other orders."""

    def work(index: int) -> None:
        some = posts[index % 3 :] + posts[: index % 3]
        for _ in range(6):
            made = Comment.objects.bulk_create(comments(*some, each=30))
            mine = Comment.objects.filter(pk__in=[comment.pk for comment in made])
            mine.update(post=some[0])
            mine.order_by().filter(rating=4)._raw_delete("default")
            Comment.objects.bulk_create(comments(*reversed(some)))

    at_once(work)
    assert Comment.objects.count() == WRITERS * 6 * 3
    assert_right()


def test_pages_can_be_read_while_rows_come_and_go(posts):
    Comment.objects.bulk_create(comments(posts[0], each=1000))

    def work(index: int) -> None:
        for turn in range(30):
            if index < 2:
                key = comment_on(posts[0])
                Comment.objects.filter(pk__in=(key, key - 500)).delete()
            else:
                page = pagination.page_of_comments(turn + 1)
                assert len(page.object_list) == 25
                assert len({row.pk for row in page.object_list}) == 25

    at_once(work, 4)
    assert_right()


# --- Open transactions in PostgreSQL ------------------------------------------------------------


class Session:
    """A transaction of its own. It gives up soon if it has to wait, unless it runs in the `background`."""

    def __init__(self, url: str, isolation: str = "READ COMMITTED") -> None:
        self.connection = psycopg2.connect(url)
        self.connection.set_session(isolation_level=isolation)
        self.cursor = self.connection.cursor()
        self.run("SET lock_timeout = '2s'")

    def run(self, statement: str, *values: object) -> list[tuple]:
        self.cursor.execute(statement, values)
        return self.cursor.fetchall() if self.cursor.description else []

    def commit(self) -> None:
        self.connection.commit()

    def write(self, statement: str, *values: object) -> None:
        """A transaction of one statement."""
        self.run(statement, *values)
        self.commit()


@contextmanager
def sessions(url: str, *isolations: str) -> Iterator[list[Session]]:
    with ExitStack() as stack:
        opened = [Session(url, isolation) for isolation in isolations]
        for session in opened:
            stack.enter_context(closing(session.connection))
        yield opened


@contextmanager
def background(task: Callable, *arguments: object) -> Iterator[Future]:
    """A task that waits for a lock, under way when this begins."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(task, *arguments)
        with pytest.raises(TimeoutError):
            future.result(0.3)
        yield future
        future.result(DEADLINE_SECONDS)


ISOLATIONS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


@pytest.mark.parametrize("isolation", ISOLATIONS[:2])
def test_writers_on_two_posts_do_not_wait_for_each_other(postgresql_site, postgresql_posts, isolation):
    old = [comment_on(post) for post in postgresql_posts]
    with sessions(postgresql_site, *[isolation] * 3) as (one, two, three):
        one.run(COMMENT, postgresql_posts[0].pk)
        two.run(COMMENT, postgresql_posts[1].pk)
        two.run("DELETE FROM benchapp_comment WHERE id = %s", old[1])
        three.run("DELETE FROM benchapp_comment WHERE id = %s", old[2])
        one.run(COMMENT, postgresql_posts[0].pk)
        assert pagination.total_comments() == 3
        three.commit()
        two.commit()
        assert pagination.total_comments() == 2
        one.commit()
    assert pagination.total_comments() == 4
    assert_right()


def test_writers_on_one_post_wait_for_its_row_alone(postgresql_site, postgresql_posts):
    with sessions(postgresql_site, "READ COMMITTED", "READ COMMITTED") as (one, two):
        one.run(COMMENT, postgresql_posts[0].pk)
        with background(two.run, COMMENT, postgresql_posts[0].pk):
            one.commit()
        two.commit()
    assert Post.objects.get(pk=postgresql_posts[0].pk).comment_count == 2
    assert_right()


def test_ids_that_are_committed_out_of_order_or_never(postgresql_site, postgresql_posts):
    """Among open transactions blocks fill up, other writers fold the log, and one is rolled back."""
    first, second, third = (post.pk for post in postgresql_posts)
    with sessions(postgresql_site, *["READ COMMITTED"] * 3) as (early, late, lost):
        early.run(COMMENT, first)
        lost.run(COMMENT, second)
        for _ in range(2):
            late.run(
                "INSERT INTO benchapp_comment (post_id, name, body, created, rating)"
                " SELECT %s, 'n', 'b', '2024-01-01', 4 FROM generate_series(1, 500)",
                third,
            )
            late.run("SELECT benchapp_fold_blocks('benchapp_comment')")
            late.commit()
        lost.run("SELECT benchapp_fold_blocks('benchapp_comment')")
        lost.connection.rollback()
        late.run("DELETE FROM benchapp_comment WHERE id %% 3 = 0 AND id < 700")
        early.run("SELECT benchapp_fold_blocks('benchapp_comment')")
        late.run("SELECT benchapp_fold_blocks('benchapp_comment')")
        late.commit()
        early.commit()
    assert_right()
    with connection.cursor() as cursor:
        cursor.execute("SELECT benchapp_fold_blocks('benchapp_comment')")
        cursor.execute(
            "SELECT count(*), count(DISTINCT (bits, block)) FROM benchapp_pageblock WHERE list = 'benchapp_comment'"
        )
        entries, blocks = cursor.fetchone()
    assert entries == blocks
    assert_right()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_snapshot_sees_the_count_of_its_own_rows(postgresql_site, postgresql_posts, isolation):
    comment_on(postgresql_posts[0])
    total = (
        "SELECT (SELECT total FROM benchapp_find_block('benchapp_comment', 0)), (SELECT count(*) FROM benchapp_comment)"
    )
    with sessions(postgresql_site, isolation) as (reader,):
        assert reader.run(total) == [(1, 1)]
        Comment.objects.bulk_create(comments(*postgresql_posts, each=300))
        with connection.cursor() as cursor:
            cursor.execute("SELECT benchapp_fold_blocks('benchapp_comment')")
        assert reader.run(total) == [(901, 901) if isolation == "READ COMMITTED" else (1, 1)]


def test_a_child_written_before_its_parent_elsewhere_is_counted(postgresql_site, postgresql_posts):
    post = "INSERT INTO benchapp_post (id, author_id, title, body, published) VALUES (99, %s, 't', 'b', '2024-01-01')"
    author = postgresql_posts[0].author_id
    with sessions(postgresql_site, "READ COMMITTED", "READ COMMITTED") as (child, parent):
        parent.run(post, author)
        with background(child.run, COMMENT, 99):
            parent.commit()
        child.commit()
    assert Post.objects.get(pk=99).comment_count == 1
    with sessions(postgresql_site, "READ COMMITTED", "READ COMMITTED") as (child, parent):
        parent.run("DELETE FROM benchapp_comment WHERE post_id = 99")
        parent.run("DELETE FROM benchapp_post WHERE id = 99")
        parent.commit()
        child.run(COMMENT, 99)
        with background(parent.run, post, author), pytest.raises(psycopg2.IntegrityError):
            child.commit()
        parent.commit()
    assert Post.objects.get(pk=99).comment_count == 0
    assert_right()


def test_a_parent_that_is_replaced_while_its_children_change_is_counted(postgresql_site, postgresql_posts):
    post, keys = postgresql_posts[0].pk, [comment_on(postgresql_posts[0]) for _ in range(3)]
    with sessions(postgresql_site, "READ COMMITTED", "READ COMMITTED", "READ COMMITTED") as (parent, writer, other):
        parent.run("CREATE TEMPORARY TABLE saved AS SELECT * FROM benchapp_post WHERE id = %s", post)
        parent.run("DELETE FROM benchapp_post WHERE id = %s", post)
        parent.run("INSERT INTO benchapp_post SELECT * FROM saved")
        with (
            background(writer.write, "DELETE FROM benchapp_comment WHERE id = %s", keys[0]),
            background(other.write, COMMENT, post),
        ):
            parent.commit()
    assert Post.objects.get(pk=post).comment_count == 3
    assert_right()


def test_rebuilding_waits_for_writers_and_readers_go_on(postgresql_site, postgresql_posts):
    def rebuild() -> None:
        try:
            page_index.rebuild(connection)
        finally:
            connection.close()

    with sessions(postgresql_site, "READ COMMITTED") as (writer,):
        writer.run(COMMENT, postgresql_posts[0].pk)
        with background(rebuild):
            assert pagination.page_of_comments(1).count == 0
            writer.commit()
    assert pagination.page_of_comments(1).count == 1
    assert_right()
