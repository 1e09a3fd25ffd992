"""./manage.py recount: proves the page index right, or makes it so; and the migration that installs it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import NotSupportedError, connection

from benchapp import counted
from benchapp.models import Author, Comment, Post, RangeCount

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"


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


def manage(url: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, MANAGE, *arguments],
        env=os.environ | {"DATABASE_URL": url, "DEBUG": "0"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_right_index_is_said_to_be_right(site):
    assert recount("--check") == "The page index is right.\n"
    assert recount() == "The page index is right.\n"


def test_check_says_what_differs_and_changes_nothing(site):
    sql("UPDATE benchapp_rangecount SET rows = 599 WHERE tree = 3 AND level = 2")
    sql("DELETE FROM benchapp_rangecount WHERE tree = 5 AND bucket = 1")
    sql("INSERT INTO benchapp_rangecount (tree, scope, level, bucket, rows) VALUES (1, 0, 1, 77, 3)")
    sql("INSERT INTO benchapp_rangecount (tree, scope, level, bucket, rows) VALUES (9, 0, 1, 77, 3)")
    post = Comment.objects.first().post_id
    expected = [
        "authors, level 1, bucket 77: 3 stored, 0 counted",
        "comments, level 2, bucket 0: 599 stored, 600 counted",
        f"comments on a post {post}, level 1, bucket 1: 0 stored, 256 counted",
        "benchapp_rangecount: 1 rows of no tree",
    ]
    before = list(RangeCount.objects.order_by("pk").values())
    result = manage(site, "recount", "--check")
    assert result.returncode == 1
    assert result.stdout.splitlines() == expected
    assert result.stderr == "CommandError: The page index differs in 4 places; ./manage.py recount rebuilds it.\n"
    assert list(RangeCount.objects.order_by("pk").values()) == before
    result = manage(site, "recount")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [*expected, "The page index differed in 4 places and was rebuilt."]
    assert recount("--check") == "The page index is right.\n"


def test_rows_written_without_triggers_are_found_and_counted(site):
    with connection.cursor() as cursor:
        counted.drop_triggers(cursor, connection.vendor)
    post = Post.objects.get(comment_count=600)
    Comment.objects.bulk_create([Comment(post=post, name="n", body="b", rating=3) for n in range(2)])
    Author.objects.update(post_count=8)
    wrong = counted.differences(connection)
    triggers = [line for line in wrong if line.startswith("trigger ")]
    assert "trigger benchapp_comment_" in triggers[-1]
    assert wrong[len(triggers) :] == [
        "comments, level 3, bucket 0: 600 stored, 602 counted",
        "comments, level 2, bucket 0: 600 stored, 602 counted",
        "comments, level 1, bucket 2: 89 stored, 91 counted",
        f"benchapp_author {post.author_id}, post_count: 8 stored, 3 counted",
        f"benchapp_post {post.pk}, comment_count: 600 stored, 602 counted",
        "comments on a post: 2 without a number",
    ]
    assert f"differed in {len(wrong)} places and was rebuilt" in recount()
    assert recount("--check") == "The page index is right.\n"
    assert list(post.comments.order_by("-id").values_list("number", flat=True)[:3]) == [602, 601, 600]
    Comment.objects.create(post=post, name="n", body="b", rating=3)
    assert recount("--check") == "The page index is right.\n"


def test_a_long_list_of_differences_is_cut(site):
    sql("DELETE FROM benchapp_rangecount")
    sql(
        "INSERT INTO benchapp_rangecount (tree, scope, level, bucket, rows) SELECT 2, 0, 1, id, 1 FROM benchapp_comment"
    )
    with pytest.raises(CommandError, match=r"differs in \d+ places"):
        recount("--check")
    lines = recount().splitlines()
    assert len(lines) == 22
    assert lines[20].startswith("and ")


def test_a_disabled_trigger_is_missing(postgresql_site):
    sql("ALTER TABLE benchapp_post DISABLE TRIGGER benchapp_post_inserted")
    assert counted.differences(connection) == ["trigger benchapp_post_inserted is missing"]
    recount()
    assert counted.differences(connection) == []


def test_a_database_without_the_tables(tmp_path):
    result = manage(f"sqlite:///{tmp_path / 'empty.sqlite3'}", "recount", "--check")
    assert result.returncode == 1
    assert result.stderr.startswith("CommandError: database default: no such table: benchapp_")
    assert result.stderr.endswith("; is it migrated (./manage.py migrate)?\n")
    assert "Traceback" not in result.stderr


def test_the_migration_counts_what_is_there_and_can_be_undone(site):
    before = list(RangeCount.objects.order_by("pk").values())
    call_command("migrate", "benchapp", "0001", verbosity=0)
    with connection.cursor() as cursor:
        missing = counted.missing_triggers(cursor, connection.vendor)
    assert len(missing) == len(set(missing)) > 10
    Author.objects.bulk_create([Author(name="x", city="x") for _ in range(300)])
    assert list(RangeCount.objects.order_by("pk").values()) == before
    call_command("migrate", "benchapp", verbosity=0)
    assert counted.differences(connection) == []


def test_other_databases_are_refused():
    with pytest.raises(NotSupportedError, match="DATABASE_URL: the page index needs SQLite or PostgreSQL, not mysql"):
        counted.create_triggers(None, "mysql")
