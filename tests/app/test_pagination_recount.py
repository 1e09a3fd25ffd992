"""./manage.py recount: proves the page index right, or makes it so; and the migration that installs it."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import NotSupportedError, connection

from benchapp import page_index
from benchapp.models import Author, Comment, Post
from tests.managing import manage_on


@pytest.fixture
def site(site_database: str) -> str:
    author = Author.objects.create(name="Ann", city="Ghent")
    posts = [Post.objects.create(author=author, title="t", body="b") for _ in range(3)]
    Comment.objects.bulk_create([Comment(post=posts[0], name="n", body="b", rating=3) for n in range(600)])
    return site_database


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def recount(*arguments: str) -> str:
    output = io.StringIO()
    call_command("recount", *arguments, stdout=output)
    return output.getvalue()


def test_a_right_index_is_reported_right(site):
    assert recount("--check") == "The page index is right.\n"
    assert recount() == "The page index is right.\n"


def blocks() -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT list, bits, block, rows FROM benchapp_pageblock ORDER BY 1, 2, 3, 4")
        return cursor.fetchall()


def test_check_says_what_differs_and_changes_nothing(site):
    sql("UPDATE benchapp_pageblock SET rows = 599 WHERE list = 'benchapp_comment' AND bits = 16")
    sql("DELETE FROM benchapp_pageblock WHERE list = 'benchapp_comment' AND bits = 8 AND block = 1")
    sql("INSERT INTO benchapp_pageblock (list, bits, block, rows) VALUES ('benchapp_author', 8, 77, 3)")
    sql("INSERT INTO benchapp_pageblock (list, bits, block, rows) VALUES ('shop', 8, 77, 3)")
    expected = [
        "benchapp_author, ids from 19712: 3 stored, 0 counted",
        "benchapp_comment, ids from 0: 599 stored, 600 counted",
        "benchapp_comment, ids from 256: 0 stored, 256 counted",
        "benchapp_pageblock: 1 rows of no list",
    ]
    before = blocks()
    result = manage_on(site, "recount", "--check")
    assert result.returncode == 1
    assert result.stdout.splitlines() == expected
    assert result.stderr == "CommandError: The page index differs in 4 places; ./manage.py recount rebuilds it.\n"
    assert blocks() == before
    result = manage_on(site, "recount")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [*expected, "The page index differed in 4 places and was rebuilt."]
    assert recount("--check") == "The page index is right.\n"


def test_rows_written_without_triggers_are_found_and_counted(site):
    with connection.cursor() as cursor:
        page_index.drop_triggers(cursor, connection.vendor)
    post = Post.objects.get(comment_count=600)
    Comment.objects.bulk_create([Comment(post=post, name="n", body="b", rating=3) for n in range(2)])
    Author.objects.update(post_count=8)
    wrong = page_index.differences(connection)
    triggers = [line for line in wrong if line.startswith("trigger ")]
    assert wrong[len(triggers) :] == [
        "benchapp_comment, ids from 0: 600 stored, 602 counted",
        "benchapp_comment, ids from 512: 89 stored, 91 counted",
        f"benchapp_author {post.author_id}, post_count: 8 stored, 3 counted",
        f"benchapp_post {post.pk}, comment_count: 600 stored, 602 counted",
    ]
    assert f"differed in {len(wrong)} places and was rebuilt" in recount()
    assert recount("--check") == "The page index is right.\n"
    Comment.objects.create(post=post, name="n", body="b", rating=3)
    assert recount("--check") == "The page index is right.\n"


def test_a_long_list_of_differences_is_cut(site):
    sql(
        "INSERT INTO benchapp_pageblock (list, bits, block, rows)"
        " SELECT 'benchapp_post', 8, id + 9, 1 FROM benchapp_comment"
    )
    with pytest.raises(CommandError, match=r"differs in \d+ places"):
        recount("--check")
    lines = recount().splitlines()
    assert len(lines) == 22
    assert lines[20].startswith("and ")


def test_a_disabled_trigger_is_missing(postgresql_site):
    sql("ALTER TABLE benchapp_post DISABLE TRIGGER benchapp_post_insert")
    assert page_index.differences(connection) == ["trigger benchapp_post_insert is missing"]
    recount()
    assert page_index.differences(connection) == []


def test_a_database_without_the_tables(tmp_path):
    result = manage_on(f"sqlite:///{tmp_path / 'empty.sqlite3'}", "recount", "--check")
    assert result.returncode == 1
    assert result.stderr.startswith("CommandError: database default: no such table: benchapp_")
    assert result.stderr.endswith("; is it migrated (./manage.py migrate)?\n")
    assert "Traceback" not in result.stderr


def test_the_migration_counts_what_is_there_and_can_be_undone(site):
    call_command("migrate", "benchapp", "0001", verbosity=0)
    assert "benchapp_pageblock" not in connection.introspection.table_names()
    with connection.cursor() as cursor:
        missing = page_index.missing_triggers(cursor, connection.vendor)
    assert len(missing) == len(set(missing)) > 10
    Author.objects.bulk_create([Author(name="x", city="x") for _ in range(300)])
    call_command("migrate", "benchapp", verbosity=0)
    assert page_index.differences(connection) == []


def test_other_databases_are_refused():
    with pytest.raises(NotSupportedError, match="DATABASE_URL: the page index needs SQLite or PostgreSQL, not mysql"):
        page_index.create_triggers(None, "mysql")
