"""./manage.py loadfixtures on real databases: what it loads, what it refuses, and what it leaves when it is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from benchapp import page_index, pagination
from benchapp.management import databases
from benchapp.models import Author, Comment, Post
from fixtures import load
from fixtures.generator import Rows
from tests.app.loading import assert_refused, expected_checksum, load_rows, start, stored_checksum, structure


def test_every_row_is_the_one_that_the_generator_makes(site_database):
    said = load_rows(3000, seed=4)
    assert stored_checksum() == expected_checksum(3000, seed=4)
    assert said.splitlines()[-2:] == [
        f"{databases.name()} has 3,000 rows of seed 4: 59 authors, 588 posts, 2,353 comments.",
        f"checksum {expected_checksum(3000, seed=4)}",
    ]


def test_the_page_index_is_right(site_database):
    load_rows(60_000)
    assert Post.objects.order_by("-comment_count").first().comment_count > 256
    assert page_index.differences(connection) == []
    assert pagination.total_comments() == Comment.objects.count()


@pytest.mark.parametrize("last", [255, 256, 257, 65_535, 65_536, 70_000])
def test_blocks_of_ids_without_gaps_are_known_without_counting(sqlite_site, last):
    with connection.cursor() as cursor:
        page_index.fill_without_gaps(cursor, {"benchapp_post": last})
        for bits in (8, 16):
            cursor.execute("SELECT block, rows FROM benchapp_pageblock WHERE bits = %s", [bits])
            assert dict(cursor.fetchall()) == Counter(key >> bits for key in range(1, last + 1))


def test_new_rows_follow_the_last_ones(site_database):
    load_rows(1000)
    counts = Rows(total=1000).counts
    author = Author.objects.create(name="Ann", city="Ghent")
    post = Post.objects.create(author=author, title="On canals", body="Water.")
    old = Post.objects.order_by("-comment_count").first()
    comments = old.comment_count
    comment = Comment.objects.create(post=old, name="Bob", body="Yes.", rating=5)
    assert [author.pk, post.pk, comment.pk] == [count + 1 for count in counts.values()]
    old.refresh_from_db()
    assert old.comment_count == comments + 1
    assert page_index.differences(connection) == []


def test_indexes_constraints_and_triggers_are_as_before(site_database):
    before = structure()
    assert any(kind == "trigger" for kind, *_ in before)
    load_rows(1000)
    after = structure()
    assert [one for one in after if not one[1].startswith("sqlite_stat")] == before


def test_the_planner_knows_the_tables(site_database):
    load_rows(1000)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT DISTINCT tbl FROM sqlite_stat1 WHERE tbl LIKE 'benchapp_%' ORDER BY 1")
        else:
            cursor.execute(
                "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND relkind = 'r'"
                # The page index is not loaded as if its rows had always been there.
                " AND reltuples > 0 AND (relallvisible = relpages OR relname = %s) ORDER BY 1",
                [list(load.SITE), load.PAGE_INDEX],
            )
        assert [name for (name,) in cursor.fetchall()] == sorted(load.SITE)


def test_accounts_and_sessions_are_left_alone(site_database):
    user = get_user_model().objects.create_user("reader", password="a quiet evening 7")
    load_rows(1000)
    load_rows(2000, force=True)
    assert get_user_model().objects.get() == user


def test_force_replaces_all_rows(site_database):
    load_rows(3000)
    Author.objects.create(name="Ann", city="Ghent")
    load_rows(1000, force=True, seed=2)
    assert stored_checksum() == expected_checksum(1000, seed=2)
    assert page_index.differences(connection) == []


def test_the_command_as_a_user_runs_it(site_database):
    process = start(site_database, "--rows", "1000")
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines() == [
        "loading authors",
        "indexing authors",
        "loading posts",
        "indexing posts",
        "loading comments",
        "indexing comments",
        "building page index",
        "committing",
        "gathering statistics",
        f"{databases.name()} has 1,000 rows of seed 1: 20 authors, 196 posts, 784 comments.",
        f"checksum {expected_checksum(1000)}",
    ]


def test_quiet_says_nothing(site_database):
    assert load_rows(1000, verbosity=0) == ""


@pytest.mark.django_db
def test_it_works_within_the_transaction_of_a_test():
    load_rows(1000)
    assert page_index.differences(connection) == []


def test_the_caching_layers_get_one_invalidation(site_database):
    sent = []

    def hear(sender: object, stale: object, **kwargs: object) -> None:
        sent.append(stale)

    from benchapp.caching.invalidation import pages_invalidated

    pages_invalidated.connect(hear)
    try:
        load_rows(1000)
    finally:
        pages_invalidated.disconnect(hear)
    assert [stale.covers("/posts/5/") for stale in sent] == [True]


def test_dry_run_says_what_it_would_do(site_database):
    megabytes = {"sqlite": "265", "postgresql": "337"}[connection.vendor]
    assert load_rows(1_020_000, dry_run=True) == (
        f"Would load 1,020,000 rows of seed 1 into {databases.name()}:"
        f" 20,000 authors, 200,000 posts, 800,000 comments, about {megabytes} MB with their indexes.\n"
    )
    load_rows(1000)
    said = load_rows(1_020_000, dry_run=True, force=True)
    assert said.splitlines()[0] == f"Would delete all authors, posts, comments in {databases.name()}."
    assert stored_checksum() == expected_checksum(1000)


def test_dry_run_says_that_rows_would_be_in_the_way(site_database):
    load_rows(1000)
    said = load_rows(1000, dry_run=True).splitlines()
    assert said[0] == f"Would refuse: {databases.name()} has authors, posts, comments already. With --force:"
    assert said[1:] == load_rows(1000, dry_run=True, force=True).splitlines()
    assert stored_checksum() == expected_checksum(1000)


def test_dry_run_leaves_every_byte_of_the_file(sqlite_site, run):
    load_rows(1000)
    connection.close()
    path = Path(sqlite_site.removeprefix("sqlite:///"))
    before = path.read_bytes()
    code, _, errors = run(sqlite_site, "--dry-run", "--force")
    assert (code, errors) == (0, "")
    assert path.read_bytes() == before


def test_verify_compares_the_rows(site_database):
    load_rows(1000)
    assert load_rows(1000, verify=True) == (
        f"{databases.name()} has exactly the 1,000 rows of seed 1.\nchecksum {expected_checksum(1000)}\n"
    )
    Post.objects.filter(pk=7).update(title="A tab\t, a break\n and a \\")
    wrong = stored_checksum()
    assert_refused(
        f"its rows are not the 1,000 of seed 1: their checksum is {wrong}, not {expected_checksum(1000)}", verify=True
    )


def test_the_connection_is_left_as_it_was(sqlite_site):
    names = ("journal_mode", "foreign_keys", "cache_size", "busy_timeout", "synchronous")

    def settings() -> list[tuple]:
        with connection.cursor() as cursor:
            return [cursor.execute(f"PRAGMA {name}").fetchone() for name in names]

    before = settings()
    assert before[0] == ("wal",)
    load_rows(1000)
    assert settings() == before
