"""The page index stays right whatever is written, and however; `recount` proves it right, or makes it so."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.backends.dummy.base import DatabaseWrapper

from benchapp import page_index
from benchapp.models import Author, Comment, Post
from tests.managing import manage, manage_on

from .pages import every_page, keys_of, stock_page, table_page

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


def assert_right() -> None:
    """The index agrees with the rows, and the pages with Django's paginator."""
    assert page_index.differences(connection) == []
    for pages, expected in every_page():
        assert pages == expected


def test_a_count_is_read_and_never_written(site_database):
    ann = author(post_count=77)
    stale = Author.objects.get(pk=ann.pk)
    written = post(ann, comment_count=5)
    Comment.objects.bulk_create(comments(written, 3))
    stale.name = "Anna"
    stale.save()
    Author.objects.update(city="Lund")
    assert list(Author.objects.values_list("name", "city", "post_count")) == [("Anna", "Lund", 1)]
    assert Post.objects.get().comment_count == 3
    assert_right()


def test_a_save_of_any_kind_keeps_the_stored_count(site_database):
    written = post(author())
    stale, deferred = Post.objects.get(), Post.objects.only("title").get()
    Comment.objects.bulk_create(comments(written, 3))
    stale.save(update_fields=["title", "comment_count"])
    deferred.save()
    stale.views = 8
    Post.objects.bulk_update([stale], ["views", "title"])
    Post.objects.update_or_create(pk=stale.pk, defaults={"title": "Other"})
    Post.objects.bulk_create([stale], update_conflicts=True, update_fields=["title"], unique_fields=["id"])
    assert Post.objects.get().comment_count == 3
    copy = Post.objects.get()
    copy.pk, copy._state.adding = None, True
    copy.save()
    assert Post.objects.get(pk=copy.pk).comment_count == copy.comment_count == 0
    assert_right()


def test_an_instance_shows_a_number_after_any_save(site_database):
    created = author(post_count=77)
    bulk = Author.objects.bulk_create([Author(name="Bob", city="Ghent", post_count=77)])[0]
    assert (created.post_count, bulk.post_count) == (0, 0)
    post(created)
    created.refresh_from_db()
    created.save()
    created.save(update_fields=["post_count"])
    assert created.post_count == 1


def test_rows_that_are_moved_or_rolled_back_are_counted(site_database):
    ann, bob = author(), author("Bob")
    one, other = post(ann), post(ann)
    Comment.objects.bulk_create(comments(one, 700))
    Post.objects.filter(pk=one.pk).update(author=bob)
    rows = list(Comment.objects.all()[:300])
    for row in rows:
        row.post = other
    Comment.objects.bulk_update(rows, ["post"])
    assert_right()
    with transaction.atomic():
        Comment.objects.bulk_create(comments(other, 300))
        one.delete()
        transaction.set_rollback(True)
    assert_right()
    ann.delete()
    assert_right()


RAW_COMMENT = "benchapp_comment (id, post_id, name, body, created, rating) VALUES (%s, %s, 'n', 'b', '2024-01-01', 5)"


def test_raw_writes_are_counted(site_database):
    written, other = post(author()), post(author())
    keys = (1, 255, 256, 65_536, FAR, FAR * 2, -3)
    for key in keys:
        sql(f"INSERT INTO {RAW_COMMENT}", key, written.pk)
    assert keys_of(table_page(Comment, 1)) == sorted(keys, reverse=True)
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO NOTHING", 1, other.pk)
    sql(f"INSERT INTO {RAW_COMMENT} ON CONFLICT (id) DO UPDATE SET post_id = excluded.post_id", 1, other.pk)
    Comment.objects.bulk_create([Comment(id=255, post=other, name="n", body="b", rating=1)], ignore_conflicts=True)
    sql("DELETE FROM benchapp_comment WHERE id > 1000")
    assert_right()


def test_a_dump_can_be_loaded_into_an_emptied_site(site_database, tmp_path):
    written = post(author())
    Comment.objects.bulk_create(comments(written, 300))
    written.comments.filter(id__lt=5).delete()
    dump = str(tmp_path / "dump.json")
    call_command("dumpdata", "benchapp", output=dump, verbosity=0)
    before = list(Comment.objects.values("id", "post_id", "body"))
    Author.objects.all().delete()
    assert_right()
    for _ in range(2):
        call_command("loaddata", dump, verbosity=0)
    assert list(Comment.objects.values("id", "post_id", "body")) == before
    assert_right()


@pytest.mark.parametrize("order", [["author", "post", "comment"], ["comment", "post", "author"]])
def test_a_fixture_may_have_counts_and_any_order(site_database, tmp_path, order: list[str]):
    times = {"author": {"joined": "2024-01-01"}, "post": {"published": "2024-01-01T00:00:00Z"}}
    fields = {
        "author": {"name": "Ann", "city": "Ghent", "post_count": 5},
        "post": {"author": 1, "title": "t", "body": "b", "comment_count": 5},
        "comment": {"post": 1, "name": "n", "body": "b", "rating": 1, "created": "2024-01-01T00:00:00Z"},
    }
    rows = [{"model": f"benchapp.{name}", "pk": 1, "fields": fields[name] | times.get(name, {})} for name in order]
    dump = tmp_path / "rows.json"
    dump.write_text(json.dumps(rows))
    for _ in range(2):
        call_command("loaddata", str(dump), verbosity=0)
        assert (Author.objects.get().post_count, Post.objects.get().comment_count) == (1, 1)
        assert_right()


def test_a_dump_has_no_counts_and_is_right_beside_other_rows(site_database, tmp_path):
    written = post(author())
    Comment.objects.bulk_create(comments(written, 300))
    dump = tmp_path / "dump.json"
    call_command("dumpdata", "benchapp", output=str(dump), verbosity=0)
    assert "count" not in dump.read_text() and "pageblock" not in dump.read_text()
    Comment.objects.bulk_create(comments(written, 300))
    call_command("loaddata", str(dump), verbosity=0)
    assert Post.objects.get().comment_count == 600
    assert_right()


def test_copied_rows_are_counted(postgresql_site):
    written = post(author())
    lines = "".join(f"{key}\t{written.pk}\tn\tb\t2024-01-01\t5\n" for key in range(1, 401))
    with connection.cursor() as cursor:
        columns = "(id, post_id, name, body, created, rating)"
        cursor.copy_expert(f"COPY benchapp_comment {columns} FROM STDIN", io.StringIO(lines))
    assert Post.objects.get().comment_count == 400
    assert_right()


def shifted() -> None:
    sql("UPDATE benchapp_comment SET id = id + 100000")


def deleted_without_triggers() -> None:
    page_index.drop_triggers(connection)
    Comment.objects.filter(id__lt=560).delete()


def deleted_while_disabled() -> None:
    if connection.vendor == "postgresql":
        sql("ALTER TABLE benchapp_comment DISABLE TRIGGER USER")
    else:
        sql("DROP TRIGGER pageindex_benchapp_comment_delete")
    Comment.objects.filter(id__lt=560).delete()


def set_by_hand() -> None:
    Post.objects.update(comment_count=77)


@transaction.atomic
def born_before_their_parent() -> None:
    sql(f"INSERT INTO {RAW_COMMENT}", FAR, 2)
    columns = "(id, author_id, title, body, published, views, comment_count)"
    sql(f"INSERT INTO benchapp_post {columns} VALUES (2, 1, 't', 'b', '2024-01-01', 0, 0)")


UNCOUNTED = [shifted, deleted_without_triggers, deleted_while_disabled, set_by_hand, born_before_their_parent]


@pytest.mark.parametrize("write", UNCOUNTED)
def test_what_is_not_counted_leads_to_right_pages_and_recount_repairs_it(site_database, write: Callable):
    Comment.objects.bulk_create(comments(post(author()), 600))
    write()
    assert page_index.differences(connection) != []
    rows = Comment.objects.order_by("-id")
    for number in range(1, stock_page(rows, 1).paginator.num_pages + 1):
        assert keys_of(table_page(Comment, number)) == keys_of(stock_page(rows, number))
    call_command("recount", stdout=io.StringIO())
    assert_right()
    Comment.objects.bulk_create(comments(Post.objects.get(pk=1), 60))
    assert_right()


def test_a_replaced_row_is_counted_twice_until_recount(sqlite_site):
    Comment.objects.bulk_create(comments(post(author()), 600))
    sql(f"INSERT OR REPLACE INTO {RAW_COMMENT}", 600, 1)
    assert Post.objects.get().comment_count == 601
    call_command("recount", stdout=io.StringIO())
    assert_right()


def test_rows_written_without_triggers_are_on_no_page_until_recount(site_database):
    for number in range(30):
        author(str(number))
    page_index.drop_triggers(connection)
    unseen = author("unseen", id=FAR).pk
    assert unseen not in keys_of(table_page(Author, 1)) + keys_of(table_page(Author, 2))
    call_command("recount", stdout=io.StringIO())
    assert keys_of(table_page(Author, 1))[0] == unseen


def test_a_list_that_was_never_counted_begins_all_the_same(site_database):
    Comment.objects.bulk_create(comments(post(author()), 60))
    sql("DELETE FROM benchapp_pageblock")
    page = table_page(Comment, 1)
    assert (len(keys_of(page)), page.paginator.count) == (25, 60)


# --- recount ------------------------------------------------------------------------------------


def test_recount_says_what_differs_and_check_changes_nothing(site_database):
    Comment.objects.bulk_create(comments(post(author()), 600))
    sql("UPDATE benchapp_pageblock SET rows = 599 WHERE list = 'benchapp_comment' AND bits = 14")
    sql("DELETE FROM benchapp_pageblock WHERE list = 'benchapp_comment' AND bits = 8 AND block = 1")
    sql("UPDATE benchapp_post SET comment_count = 8")
    expected = [
        "benchapp_comment, ids from 256: 0 stored, 256 counted",
        "benchapp_comment, ids from 0: 599 stored, 600 counted",
        "benchapp_post 1, comment_count: 8 stored, 600 counted",
    ]
    for _ in range(2):
        checked = manage_on(site_database, "recount", "--check")
        assert checked.returncode == 1
        assert checked.stdout.splitlines() == expected
        assert checked.stderr.count("\n") == 1 and "recount" in checked.stderr
    assert manage_on(site_database, "recount").returncode == 0
    assert manage_on(site_database, "recount", "--check").returncode == 0


def test_a_disabled_trigger_is_missing(postgresql_site):
    sql("ALTER TABLE benchapp_post DISABLE TRIGGER pageindex_benchapp_post_insert")
    assert page_index.differences(connection) == ["trigger pageindex_benchapp_post_insert is missing"]
    call_command("recount", stdout=io.StringIO())
    assert page_index.differences(connection) == []


def test_a_trigger_of_somebody_else_stays(sqlite_site):
    sql("CREATE TRIGGER audit AFTER DELETE ON benchapp_post BEGIN SELECT 1; END")
    sql("DROP TRIGGER pageindex_benchapp_post_insert")
    call_command("recount", stdout=io.StringIO())
    assert page_index.differences(connection) == []
    sql("DROP TRIGGER audit")


OTHER_KIND = """
from config.settings import *

DATABASES["other"] = {"ENGINE": "django.db.backends.dummy"}
"""


def test_a_database_of_another_kind_has_no_page_index(tmp_path):
    """`check` and `recount` say no more of it than what Django says."""
    (tmp_path / "other_kind.py").write_text(OTHER_KIND)
    names = {"DJANGO_SETTINGS_MODULE": "other_kind", "PYTHONPATH": str(tmp_path), "DATABASE_URL": "sqlite:///:memory:"}
    checked = manage("check", "--database", "other", **names)
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stderr
    recounted = manage("recount", "--database", "other", **names)
    assert (recounted.returncode, recounted.stderr.count("\n")) == (1, 1)
    assert "database other" in recounted.stderr


def test_migrations_in_a_database_of_another_kind_touch_no_triggers(monkeypatch):
    other = DatabaseWrapper({"ENGINE": "django.db.backends.dummy"}, "other")
    monkeypatch.setattr(page_index, "connections", {"other": other})
    plan = [(SimpleNamespace(app_label="benchapp"), False)]
    page_index.before_migrations("other", plan)
    page_index.after_migrations("other", plan)
    assert page_index.missing_triggers(other) == []


def test_a_database_without_the_tables_is_one_line(tmp_path):
    result = manage_on(f"sqlite:///{tmp_path / 'empty.sqlite3'}", "recount", "--check")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "migrate" in result.stderr
