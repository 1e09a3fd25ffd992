"""The page index stays right whatever is written, and however."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import IntegrityError, NotSupportedError, connection, transaction
from django.db.models import F

from benchapp import page_index, pagination
from benchapp.models import Author, Comment, Post

from .pages import every_page, keys_of

FAR = 1 << 40


def author(name: str = "Ann", **fields: object) -> Author:
    return Author.objects.create(name=name, city="Ghent", bio="Writes.", **fields)


def post(author: Author, **fields: object) -> Post:
    return Post.objects.create(author=author, title="On canals", body="Water.", **fields)


def comments(post: Post, rows: int, **fields: object) -> list[Comment]:
    return [Comment(post=post, name="Bob", body="Yes.", rating=5, **fields) for _ in range(rows)]


def sql(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def set_sequences() -> None:
    """After rows with ids of their own, go on from the highest."""
    for statement in connection.ops.sequence_reset_sql(no_style(), [Author, Post, Comment]):
        sql(statement)


def blocks() -> int:
    """Rows that the blocks hold together, 0 also when nothing is left of them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(sum(abs(rows)), 0) FROM benchapp_pageblock")
        return cursor.fetchone()[0]


def assert_right() -> None:
    """The index agrees with the rows, and the pages with stock pagination."""
    assert page_index.differences(connection) == []
    for pages, expected in every_page():
        assert pages == expected


def test_deleted_parents_leave_nothing_in_the_index(sqlite_site):
    ann = author()
    Comment.objects.bulk_create(comments(post(ann), 600))
    post(ann).delete()
    ann.delete()
    assert blocks() == 0


def test_counts_given_by_a_writer_are_replaced(site_database):
    ann = author(post_count=77)
    post(ann, comment_count=5)
    ann.refresh_from_db()
    assert (ann.post_count, ann.posts.get().comment_count) == (1, 0)
    assert_right()


def test_children_may_be_written_before_their_parents(site_database):
    with transaction.atomic():
        Post.objects.bulk_create([Post(id=5, author_id=9, title="t", body="b") for _ in range(1)])
        Author.objects.create(id=9, name="Late", city="x")
        post(Author.objects.get(pk=9))
    assert Author.objects.get(pk=9).post_count == 2
    assert_right()


def test_saving_a_row_again_overwrites_no_count(site_database):
    ann = author()
    stale = Author.objects.get(pk=ann.pk)
    written = post(ann)
    Comment.objects.bulk_create(comments(written, 3))
    stale.name = "Anna"
    stale.save()
    written.title = "On dikes"
    written.save()
    written.refresh_from_db()
    ann.refresh_from_db()
    assert (ann.name, ann.post_count) == ("Anna", 1)
    assert (written.title, written.comment_count) == ("On dikes", 3)
    assert_right()


def test_counts_cannot_be_set_by_hand(site_database):
    ann = author()
    post(ann)
    Author.objects.update(post_count=50)
    Post.objects.update(comment_count=F("comment_count") + 1, views=7)
    sql("UPDATE benchapp_author SET post_count = 9, city = 'Lund'")
    ann.refresh_from_db()
    assert (ann.post_count, ann.city) == (1, "Lund")
    assert (ann.posts.get().comment_count, ann.posts.get().views) == (0, 7)
    assert_right()


def test_an_id_cannot_be_changed(site_database):
    Comment.objects.bulk_create(comments(post(author()), 1))
    for model in (Author, Post, Comment):
        table = model._meta.db_table
        with pytest.raises(IntegrityError, match=f"{table}: an id cannot be changed; insert a new row and"):
            model.objects.update(id=F("id") + 1)
    assert_right()


def moved_by_save(rows: object, parent: Post) -> None:
    for row in rows:
        row.post = parent
        row.save()


def moved_by_update(rows: object, parent: Post) -> None:
    rows.update(post=parent)


def moved_by_bulk_update(rows: object, parent: Post) -> None:
    rows = list(rows)
    for row in rows:
        row.post = parent
    Comment.objects.bulk_update(rows, ["post"])


@pytest.mark.parametrize("move", [moved_by_save, moved_by_update, moved_by_bulk_update])
def test_moved_rows_are_counted_by_their_new_parent(site_database, move: Callable):
    ann = author()
    source, target = post(ann), post(ann)
    Comment.objects.bulk_create(comments(source, 600) + comments(target, 300))
    moving = list(source.comments.order_by("-id").values_list("pk", flat=True)[:310])
    move(Comment.objects.filter(pk__in=moving), target)
    source.refresh_from_db()
    target.refresh_from_db()
    assert (source.comment_count, target.comment_count) == (290, 610)
    assert_right()


def test_a_moved_post_takes_its_comments_along(site_database):
    ann, bea = author("Ann"), author("Bea")
    moving = post(ann)
    Comment.objects.bulk_create(comments(moving, 300))
    post(bea)
    Post.objects.filter(pk=moving.pk).update(author=bea)
    moving.refresh_from_db()
    assert (moving.comment_count, moving.author) == (300, bea)
    assert_right()


def test_rows_exchanged_by_one_statement(site_database):
    ann, bea = author("Ann"), author("Bea")
    for writer in (ann, ann, bea):
        post(writer)
    sql(f"UPDATE benchapp_post SET author_id = {ann.pk + bea.pk} - author_id")
    assert list(Author.objects.order_by("id").values_list("post_count", flat=True)) == [1, 2]
    assert_right()


RAW_COMMENT = "benchapp_comment (id, post_id, name, body, created, rating) VALUES (%s, %s, 'n', 'b', '2024-01-01', 5)"


def test_raw_inserts_and_deletes(site_database):
    written = post(author())
    for key in (1, 255, 256, 65_536, FAR, FAR * 2, -3):
        sql(f"INSERT INTO {RAW_COMMENT}", key, written.pk)
    assert_right()
    assert keys_of(pagination.page_of_comments(1)) == [FAR * 2, FAR, 65_536, 256, 255, 1, -3]
    sql("DELETE FROM benchapp_comment WHERE id > 1000")
    assert_right()


def test_inserts_that_meet_a_row_of_the_same_key(site_database):
    written, other = post(author()), post(author())
    sql(f"INSERT INTO {RAW_COMMENT}", 7, written.pk)
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO NOTHING", 7, other.pk)
    assert_right()
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO UPDATE SET body = 'changed'", 7, written.pk)
    assert_right()
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO UPDATE SET post_id = excluded.post_id", 7, other.pk)
    assert (written.comments.count(), other.comments.count()) == (0, 1)
    assert_right()
    same = Comment(id=7, post=other, name="n", body="again", rating=1)
    Comment.objects.bulk_create([same], update_conflicts=True, unique_fields=["id"], update_fields=["body"])
    Comment.objects.bulk_create([same], ignore_conflicts=True)
    assert Comment.objects.get().body == "again"
    assert_right()


@pytest.mark.parametrize("policy", ["OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT"])
def test_sqlite_conflict_policies(sqlite_site, policy: str):
    written, other = post(author()), post(author())
    Comment.objects.bulk_create(comments(written, 300))
    for key, parent in ((4, written), (5, other), (1_000_000, written)):
        try:
            sql(f"INSERT {policy} INTO {RAW_COMMENT}", key, parent.pk)
        except IntegrityError:
            assert policy in ("OR FAIL", "OR ABORT")
        assert_right()
    sql(f"UPDATE {policy} benchapp_comment SET post_id = %s WHERE id = 10", other.pk)
    assert_right()


def test_copy_and_truncate(postgresql_site):
    import io

    ann = author()
    written = post(ann)
    post(ann)
    with connection.cursor() as cursor:
        cursor.copy_expert(
            "COPY benchapp_comment (post_id, name, body, created, rating) FROM STDIN",
            io.StringIO(f"{written.pk}\tn\tb\t2024-01-01\t5\n" * 700),
        )
    written.refresh_from_db()
    assert written.comment_count == 700
    assert_right()
    sql("TRUNCATE benchapp_comment")
    assert_right()
    Comment.objects.bulk_create(comments(written, 2))
    sql("TRUNCATE benchapp_post CASCADE")
    assert_right()
    assert Author.objects.get().post_count == 0
    sql("TRUNCATE benchapp_author CASCADE")
    assert blocks() == 0
    with pytest.raises(NotSupportedError, match="TRUNCATE needs a transaction in READ COMMITTED"), transaction.atomic():
        sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        sql("TRUNCATE benchapp_comment")


def test_flush_empties_the_index_and_leaves_it_working(site_database):
    Comment.objects.bulk_create(comments(post(author()), 600))
    call_command("flush", interactive=False, verbosity=0)
    assert blocks() == 0
    Comment.objects.bulk_create(comments(post(author()), 600))
    assert_right()


def test_a_dump_can_be_loaded(site_database, tmp_path):
    written = post(author())
    Comment.objects.bulk_create(comments(written, 300))
    written.comments.filter(id__lt=5).delete()
    dump = tmp_path / "dump.json"
    models = ["benchapp.author", "benchapp.post", "benchapp.comment"]
    call_command("dumpdata", *models, output=str(dump), verbosity=0)
    columns = ("id", "post_id", "body")
    before = list(Comment.objects.values(*columns))
    call_command("flush", interactive=False, verbosity=0)
    call_command("loaddata", str(dump), verbosity=0)
    assert list(Comment.objects.values(*columns)) == before
    call_command("loaddata", str(dump), verbosity=0)
    assert_right()


def test_a_rolled_back_write_leaves_no_trace(site_database):
    written = post(author())
    with pytest.raises(RuntimeError), transaction.atomic():
        Comment.objects.bulk_create(comments(written, 300))
        written.delete()
        raise RuntimeError
    assert_right()
    assert Post.objects.get().comment_count == 0
