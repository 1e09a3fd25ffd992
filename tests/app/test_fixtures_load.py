"""./manage.py loadfixtures on real databases: what it loads, what it refuses, and what it leaves when it is killed."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError
from django.db import connection

from benchapp import page_index
from benchapp.management import databases
from benchapp.models import Author, Comment, Post
from fixtures import load
from fixtures.rows import Rows
from tests.app.loading import generated, load_rows, start, stored, structure
from tests.managing import manage_on


def test_every_row_is_the_one_that_the_generator_makes(site_database):
    before = structure()
    lines = load_rows(3000, seed=4).splitlines()
    assert stored() == generated(3000, seed=4)
    assert structure() == before
    assert page_index.differences(connection) == []
    rows = Rows(4, 3000)
    assert sum(frame.rows for frame in rows.frames()) == 3000
    assert lines[-2].endswith(" has 3,000 rows of seed 4: 59 authors, 588 posts, 2,353 comments.")
    assert lines[-1] == f"checksum {rows.checksum}"


def test_a_file_that_is_renamed_once_it_is_filled_has_its_later_name(monkeypatch):
    unfinished = SimpleNamespace(vendor="sqlite", settings_dict={"NAME": "/var/site.sqlite3.partial"})
    monkeypatch.setattr(databases, "connection", unfinished)
    assert databases.name() == "SQLite database /var/site.sqlite3"


def test_new_rows_follow_the_last_ones(site_database):
    load_rows(3000)
    load_rows(1000, force=True)
    old = Post.objects.order_by("-comment_count").first()
    author = Author.objects.create(name="Ann", city="Ghent")
    post = Post.objects.create(author=author, title="On canals", body="Water.")
    comment = Comment.objects.create(post=old, name="Bob", body="Yes.", rating=5)
    assert [author.pk, post.pk, comment.pk] == [count + 1 for count in Rows(total=1000).counts.values()]
    assert Post.objects.get(pk=old.pk).comment_count == old.comment_count + 1
    assert page_index.differences(connection) == []


def test_the_planner_knows_the_tables(site_database):
    load_rows(1000)
    ours = "LIKE 'benchapp_%'"
    known = {
        "sqlite": "SELECT DISTINCT tbl FROM sqlite_stat1 WHERE tbl " + ours,
        "postgresql": f"SELECT relname FROM pg_class WHERE relname {ours} AND relkind = 'r' AND reltuples > 0",
    }
    with connection.cursor() as cursor:
        cursor.execute(known[connection.vendor])
        assert {name for (name,) in cursor.fetchall()} >= {"benchapp_author", "benchapp_post", "benchapp_comment"}


def test_force_replaces_all_rows_and_keeps_accounts(site_database):
    user = get_user_model().objects.create_user("reader", password="a quiet evening 7")
    load_rows(1000)
    Comment.objects.create(post=Post.objects.first(), user=user, name="reader", body="Yes.", rating=5)
    with pytest.raises(CommandError, match="authors, posts, comments already: add --force"):
        load_rows(1000)
    assert Comment.objects.count() == 785
    load_rows(1000, force=True, seed=2)
    assert stored() == generated(1000, seed=2)
    assert get_user_model().objects.get() == user


def test_the_caching_layers_get_one_invalidation(site_database, invalidated):
    load_rows(1000)
    assert [stale.covers("/posts/5/") for stale in invalidated] == [True]


def test_dry_run_says_what_it_would_do_and_changes_nothing(site_database):
    output = load_rows(1_020_000, dry_run=True)
    assert "20,000 authors, 200,000 posts, 800,000 comments, about 306 MB" in output
    load_rows(1000)
    lines = load_rows(1_020_000, dry_run=True).splitlines()
    assert [line.split()[1] for line in lines] == ["refuse:", "delete", "load"]
    assert len(load_rows(1_020_000, dry_run=True, force=True).splitlines()) == 2
    assert stored() == generated(1000)


def test_the_connection_is_left_as_it_was(sqlite_site):
    def settings() -> list[tuple]:
        with connection.cursor() as cursor:
            return [cursor.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "foreign_keys")]

    load_rows(1000)
    assert settings() == [("wal",), (1,)]


# --- Refused ------------------------------------------------------------------------------------


def refused(url: str, *arguments: object) -> str:
    """The command's message on failure: one line."""
    result = manage_on(url, "loadfixtures", *(arguments or ("--rows", 1000)))
    assert result.returncode != 0
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def test_a_database_that_is_not_the_sites_is_refused(tmp_path):
    missing, other, text = tmp_path / "missing", tmp_path / "other", tmp_path / "text"
    assert "run ./manage.py migrate first" in refused(f"sqlite:///{missing}")
    assert not missing.exists()
    with closing(sqlite3.connect(other)) as shop:
        shop.execute("CREATE TABLE shop (id integer)")
    assert "choose another with DATABASE_URL" in refused(f"sqlite:///{other}")
    text.write_text("no database" * 100)
    assert "is not an SQLite database" in refused(f"sqlite:///{text}")
    assert "see that it runs and that DATABASE_URL is right" in refused("postgresql://nobody:secret@127.0.0.1:9/x")


@pytest.mark.parametrize("arguments", [["--rows", "99"], ["--rows", "many"], ["--seed", "-1"], ["--colour"]])
def test_wrong_arguments_get_one_clear_line(sqlite_site, arguments):
    assert arguments[0].strip("-") in refused(sqlite_site, *arguments)


def test_missing_triggers_are_refused(site_database):
    page_index.drop_triggers(connection)
    with pytest.raises(CommandError, match=r"pageindex_benchapp_author_delete is missing: run ./manage.py recount"):
        load_rows(1000)


@pytest.mark.parametrize(
    ("pragma", "message"), [("max_page_count = 1", "the disk is full"), ("query_only = 1", "cannot be written to")]
)
def test_a_file_that_cannot_grow_or_be_written_keeps_its_rows(sqlite_site, pragma, message):
    load_rows(1000)
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
    with pytest.raises(CommandError, match=f"{message}.*; no row was changed"):
        load_rows(20_000, force=True)
    assert stored() == generated(1000)
    assert page_index.differences(connection) == []


def test_tables_in_use_are_waited_for_but_not_for_ever(site_database, monkeypatch):
    monkeypatch.setattr(load, "LOCK_TIMEOUT_S", 1)
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 1) if connection.vendor == "sqlite" else None
    connection.close()
    other = connection.copy()
    other.ensure_connection()
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("INSERT INTO benchapp_author (name, city, bio, joined) VALUES ('x', 'x', '', '2024-01-01')")
    try:
        with pytest.raises(CommandError, match=r"in use|is using it"):
            load_rows(1000)
    finally:
        other.close()


# --- Killed -------------------------------------------------------------------------------------


@pytest.mark.servers
@pytest.mark.parametrize(
    ("moment", "sent"),
    [
        ("loading posts", signal.SIGKILL),
        ("building indexes", signal.SIGKILL),
        ("committing", signal.SIGKILL),
        ("loading posts", signal.SIGINT),
    ],
)
def test_ended_at_any_moment_it_leaves_the_earlier_rows_or_the_new(site_database, moment, sent):
    load_rows(1000)
    before = structure()
    connection.close()
    process = start(site_database, "--rows", "60000", "--force")
    for line in process.stdout:
        if line.strip() == moment:
            process.send_signal(sent)
            break
    _, errors = process.communicate()
    # On a busy machine it may be ended too late.
    assert stored() in (generated(1000), generated(60_000))
    assert structure() == before
    assert page_index.differences(connection) == []
    if sent == signal.SIGINT and process.returncode:
        assert process.returncode == 130 and errors.count("\n") == 1, errors


@pytest.mark.servers
def test_two_at_once_do_not_mix(site_database):
    both = [start(site_database, "--rows", "30000", "--seed", str(seed)) for seed in (1, 2)]
    ended = [(*process.communicate(), process.returncode) for process in both]
    codes = [code for *_, code in ended]
    assert sorted(codes) == [0, 1], ended
    assert ended[codes.index(1)][1].count("\n") == 1
    assert stored() == generated(30_000, seed=1 + codes.index(0))


@pytest.mark.servers
def test_the_site_goes_on_reading_while_sqlite_loads(sqlite_site):
    load_rows(1000)
    connection.close()
    with closing(sqlite3.connect(Path(sqlite_site.removeprefix("sqlite:///")), isolation_level=None)) as other:
        process = start(sqlite_site, "--rows", "60000", "--force")
        for line in process.stdout:
            # The load may be over when the last lines are read.
            if line.startswith(("loading", "building")):
                assert other.execute("SELECT count(*) FROM benchapp_author").fetchone() in ((20,), (1176,))
        assert process.wait() == 0
        process.communicate()
        assert other.execute("SELECT count(*) FROM benchapp_author").fetchone() == (1176,)
