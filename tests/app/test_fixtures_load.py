"""./manage.py loadfixtures on real databases: what it loads, what it refuses, and what it leaves when it is killed."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from io import StringIO
from pathlib import Path

import psutil
import psycopg2
import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from rich.console import Console

from benchapp import page_index, pagination
from benchapp.management import databases
from benchapp.models import Author, Comment, Post
from fixtures import load, postgresql, sqlite
from fixtures.generator import Rows
from fixtures.progress import Progress
from fixtures.stream import PROJECT, Stream

LIMIT_MIB = 200


def load_rows(rows: int = 1000, **options: object) -> str:
    """Run the command in this process; returns what it says."""
    output = StringIO()
    call_command("loadfixtures", rows=rows, stdout=output, **options)
    return output.getvalue()


def start(url: str, *arguments: str, **options: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "manage.py", "loadfixtures", *arguments],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": url, "PYTHONUNBUFFERED": "1"},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options,
    )


def run(url: str, *arguments: str) -> tuple[int, str, str]:
    """Run the command as a user does: exit code, standard output, standard error."""
    process = start(url, *arguments)
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def stored_checksum() -> str:
    """Computed from what the database holds, in a connection of its own."""
    connection.close()
    connection.ensure_connection()
    with closing(connection.connection.cursor()) as cursor:
        return load.checksum(cursor, connection.vendor)


def expected_checksum(rows: int, seed: int = 1) -> str:
    with Stream(Rows(seed, rows)) as stream:
        for _ in stream:
            pass
    return stream.checksum


def structure() -> list[tuple]:
    """Every table, index, constraint and trigger."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2")
            return cursor.fetchall()
        cursor.execute(
            "SELECT 'constraint', conname, conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace"
            " UNION ALL SELECT 'index', indexname, tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            " UNION ALL SELECT 'trigger', tgname, tgrelid::regclass::text, tgenabled::text || pg_get_triggerdef(oid)"
            " FROM pg_trigger WHERE NOT tgisinternal"
            " UNION ALL SELECT 'identity', attname, attrelid::regclass::text, attidentity::text FROM pg_attribute"
            " WHERE attidentity <> '' ORDER BY 1, 2, 3"
        )
        return cursor.fetchall()


def assert_refused(message: str, **options: object) -> None:
    with pytest.raises(CommandError) as caught:
        load_rows(**options)
    assert str(caught.value) == f"{databases.name()}: {message}"


@pytest.fixture
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """URL of a database without any table."""

    def url(vendor: str) -> str:
        if vendor == "postgresql":
            return request.getfixturevalue("postgresql_database")
        path = tmp_path / "empty.sqlite3"
        sqlite3.connect(path).close()
        path.touch()
        return f"sqlite:///{path}"

    return url


# --- What it loads ------------------------------------------------------------------------------


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
    code, output, errors = run(site_database, "--rows", "1000")
    assert (code, errors) == (0, "")
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


def test_the_caching_layers_are_told(site_database):
    told = []

    def hear(sender: object, stale: object, **kwargs: object) -> None:
        told.append(stale)

    from benchapp.caching.invalidation import pages_invalidated

    pages_invalidated.connect(hear)
    try:
        load_rows(1000)
    finally:
        pages_invalidated.disconnect(hear)
    assert [stale.covers("/posts/5/") for stale in told] == [True]


# --- What it would do, and whether it was done --------------------------------------------------


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


def test_dry_run_leaves_every_byte_of_the_file(sqlite_site):
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


# --- What it refuses ----------------------------------------------------------------------------


def test_rows_that_are_there_stay_without_force(site_database):
    author = Author.objects.create(name="Ann", city="Ghent")
    assert_refused("it has authors already: add --force to replace all of them")
    assert list(Author.objects.all()) == [author]


@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
def test_a_database_that_was_not_migrated_is_refused(empty_database, vendor):
    url = empty_database(vendor)
    code, output, errors = run(url)
    assert (code, output) == (1, "")
    assert re.fullmatch(
        r"CommandError: \w+ database \S+( at \S+)?: there is no table benchapp_author: run ./manage.py migrate first\n",
        errors,
    )


def test_a_missing_file_is_not_created(tmp_path):
    path = tmp_path / "none.sqlite3"
    code, output, errors = run(f"sqlite:///{path}")
    assert (code, output) == (1, "")
    assert errors == f"CommandError: SQLite database {path}: there is no such file: run ./manage.py migrate first\n"
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("Not a database, but rather long for a note. " * 50)
    code, output, errors = run(f"sqlite:///{path}")
    assert (code, output) == (1, "")
    assert errors == (
        f"CommandError: SQLite database {path}: the file is not an SQLite database:"
        " choose another with DATABASE_URL; nothing was changed\n"
    )


def test_a_server_that_does_not_answer_is_named():
    code, output, errors = run("postgresql://someone:secret@127.0.0.1:1/site")
    assert (code, output) == (1, "")
    assert re.fullmatch(
        r"CommandError: PostgreSQL database site at 127\.0\.0\.1:1: .*refused.*; nothing was changed\n", errors
    )
    assert "secret" not in errors


def test_other_columns_are_refused(site_database):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE benchapp_post RENAME COLUMN views TO seen")
    assert_refused(
        "its table benchapp_post is not this site's or not up to date (columns that differ: seen, views):"
        " run ./manage.py migrate, or choose another database with DATABASE_URL",
        force=True,
    )


def test_a_foreign_file_is_not_touched(tmp_path):
    """Not even its journal mode, which every connection of the site sets."""
    path = tmp_path / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE benchapp_author (id integer PRIMARY KEY, iban text)")
        other.execute("INSERT INTO benchapp_author VALUES (1, 'x')")
        other.commit()
    before = path.read_bytes()
    code, _, errors = run(f"sqlite:///{path}", "--force")
    assert code == 1
    assert "its table benchapp_author is not this site's or not up to date" in errors
    assert path.read_bytes() == before


def test_tables_that_refer_to_the_rows_are_respected(site_database):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bookmark (post_id bigint REFERENCES benchapp_post (id))")
    assert_refused("the table bookmark refers to this site's rows, which could not be replaced then", force=True)


def test_missing_triggers_are_refused(site_database):
    with connection.cursor() as cursor:
        page_index.drop_triggers(cursor, connection.vendor)
    assert_refused(
        "the trigger benchapp_author_insert is missing: run ./manage.py migrate first,"
        " or ./manage.py recount if that has nothing to do"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "99"], "the number of rows must be from 100 to 100,000,000, not 99"),
        (["--rows", "many"], "argument --rows: invalid int value: 'many'"),
        (["--rows", "1e6"], "argument --rows: invalid int value: '1e6'"),
        (["--seed", "-1"], "the seed must be a whole number from 0 to 9223372036854775807, not -1"),
        (["--seeds", "1"], "unrecognized arguments: --seeds 1"),
        (["all"], "unrecognized arguments: all"),
        (["--dry-run", "--verify"], "argument --verify: not allowed with argument --dry-run"),
    ],
)
def test_wrong_arguments_get_one_clear_line(tmp_path, arguments, message):
    code, output, errors = run(f"sqlite:///{tmp_path / 'none.sqlite3'}", *arguments)
    assert code != 0
    assert output == ""
    assert errors.count("\n") == 1
    assert message in errors
    assert "Traceback" not in errors


def test_a_database_of_something_else_is_not_to_be_migrated_first(tmp_path):
    path = tmp_path / "music.sqlite3"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE track (id integer)")
    code, _, errors = run(f"sqlite:///{path}")
    assert code == 1
    assert errors == (
        f"CommandError: SQLite database {path}: it has tables of something else, such as track, and no table"
        " benchapp_author: choose another database with DATABASE_URL, or run ./manage.py migrate if this site shall"
        " move in\n"
    )


# --- Trouble on the way -------------------------------------------------------------------------


@pytest.fixture
def old_rows(site_database: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """A site with 1,000 rows: its URL, and a check that these are still there and nothing else has changed."""
    load_rows(1000)
    before = structure()
    old = expected_checksum(1000)
    connection.close()

    def unchanged() -> None:
        assert stored_checksum() == old
        assert structure() == before
        assert page_index.differences(connection) == []

    yield site_database, unchanged


@pytest.mark.parametrize("moment", ["loading authors", "loading posts", "indexing comments", "building page index"])
def test_killed_at_any_moment_it_leaves_the_earlier_rows(old_rows, moment):
    url, unchanged = old_rows
    process = start(url, "--rows", "60000", "--force")
    children = []
    for line in process.stdout:
        if line.strip() == moment:
            children = psutil.Process(process.pid).children()
            process.kill()
            break
    process.communicate()
    unchanged()
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert load_rows(1000, force=True).endswith(f"checksum {expected_checksum(1000)}\n")


def test_killed_while_it_commits_it_leaves_the_earlier_rows_or_the_new(site_database):
    load_rows(1000)
    connection.close()
    before = structure()
    connection.close()
    process = start(site_database, "--rows", "60000", "--force")
    for line in process.stdout:
        if line.strip() == "committing":
            process.kill()
            break
    process.communicate()
    assert stored_checksum() in (expected_checksum(1000), expected_checksum(60_000))
    assert structure() == before
    assert page_index.differences(connection) == []


def test_an_interrupt_is_one_line(old_rows):
    url, unchanged = old_rows
    process = start(url, "--rows", "400000", "--force")
    for line in process.stdout:
        if line.strip() == "loading posts":
            process.send_signal(signal.SIGINT)
            break
    _, errors = process.communicate()
    assert errors == f"CommandError: {databases.name()}: interrupted; nothing was changed\n"
    assert process.returncode == 130
    unchanged()


def test_when_the_process_that_makes_the_rows_dies_nothing_changes(old_rows):
    url, unchanged = old_rows
    process = start(url, "--rows", "400000", "--force")
    for line in process.stdout:
        if line.strip() == "loading posts":
            psutil.Process(process.pid).children()[0].kill()
            break
    _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == (
        f"CommandError: {databases.name()}: the process that makes the rows ended too early,"
        " with exit code -9; nothing was changed\n"
    )
    unchanged()


@pytest.mark.parametrize(
    ("pragma", "message"),
    [
        ("max_page_count = 300", "the disk is full: make room, or load fewer --rows; nothing was changed"),
        (
            "query_only = 1",
            "it cannot be written to: check the permissions of the file and its directory; nothing was changed",
        ),
    ],
)
def test_a_file_that_cannot_grow_or_be_written_keeps_its_rows(sqlite_site, pragma, message):
    load_rows(1000)
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
    assert_refused(message, rows=5000, force=True)
    assert stored_checksum() == expected_checksum(1000)
    assert page_index.differences(connection) == []


def test_a_disk_that_is_too_small_is_noticed_before(sqlite_site, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**12, 10**12, 20_000_000))
    assert_refused(
        "about 260 MB are needed and 20 MB are free: make room, or load fewer --rows", rows=1_000_000, dry_run=True
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("53100", "the server's disk is full: make room, or load fewer --rows"),
        ("42501", "its user may not do this, but has to own the tables"),
        ("XX000", "something else"),
    ],
)
def test_what_a_server_complains_of_is_said_in_one_line(code, message):
    class Complaint(psycopg2.Error):
        pgcode = code

    assert databases.reason(Complaint("something else\nDETAIL: of which nobody knows")) == message


def test_only_one_at_a_time(postgresql_site):
    with closing(psycopg2.connect(postgresql_site)) as other, other.cursor() as cursor:
        postgresql.begin(cursor, ["benchapp_author"])
        assert_refused("another loadfixtures is at work in it; nothing was changed", force=True)


def test_tables_in_use_are_waited_for_but_not_for_ever(postgresql_site, monkeypatch):
    monkeypatch.setattr(postgresql, "_LOCK_TIMEOUT_S", 1)
    with closing(psycopg2.connect(postgresql_site)) as other, other.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM benchapp_post")
        assert_refused("its tables are in use: stop the site, or wait, and try again; nothing was changed", force=True)


def test_a_file_that_another_writes_to_is_waited_for_but_not_for_ever(sqlite_site, monkeypatch):
    monkeypatch.setattr(sqlite, "_BUSY_TIMEOUT_S", 0.2)
    with another_connection(sqlite_site) as other:
        other.execute("BEGIN IMMEDIATE")
        assert_refused(
            "another program is using it: stop that, or wait, and try again; nothing was changed", force=True
        )


def test_two_at_once_do_not_mix(site_database):
    both = [start(site_database, "--rows", "30000", "--seed", str(seed)) for seed in (1, 2)]
    ended = [(*process.communicate(), process.returncode) for process in both]
    codes = [code for *_, code in ended]
    assert sorted(codes) == [0, 1]
    loser = ended[codes.index(1)][1]
    assert re.search(r"(add --force|at work in it|in use|is using it)", loser), loser
    assert loser.count("\n") == 1
    assert stored_checksum() == expected_checksum(30_000, seed=1 + codes.index(0))


def test_the_site_goes_on_reading_while_sqlite_loads(sqlite_site):
    load_rows(1000)
    connection.close()
    with another_connection(sqlite_site) as other:
        assert other.execute("SELECT count(*) FROM benchapp_author").fetchone() == (20,)
        process = start(sqlite_site, "--rows", "60000", "--force")
        for line in process.stdout:
            if line.strip() == "building page index":
                assert other.execute("SELECT count(*) FROM benchapp_author").fetchone() == (20,)
        assert process.wait() == 0
        process.communicate()
        assert other.execute("SELECT count(*) FROM benchapp_author").fetchone() == (1176,)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert stored_checksum() == expected_checksum(60_000)


def test_the_connection_is_left_as_it_was(sqlite_site):
    names = ("journal_mode", "foreign_keys", "cache_size", "busy_timeout", "synchronous")

    def settings() -> list[tuple]:
        with connection.cursor() as cursor:
            return [cursor.execute(f"PRAGMA {name}").fetchone() for name in names]

    before = settings()
    assert before[0] == ("wal",)
    load_rows(1000)
    assert settings() == before


@contextmanager
def another_connection(url: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("SELECT count(*) FROM benchapp_author").fetchone()
        yield other


# --- What it says meanwhile, and what it takes --------------------------------------------------


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_sees_a_bar_with_rate_and_time_left():
    screen, clock = io.StringIO(), Clock()
    terminal = Console(file=screen, force_terminal=True, color_system=None, width=80)
    progress = Progress(1_020_000, lambda text: None, terminal, clock)
    progress.task("loading posts")
    for _ in range(4):
        clock.now += 1
        progress.advance(127_500)
    progress.clear()
    last = [line for line in screen.getvalue().splitlines() if "loading posts" in line][-1]
    assert re.search(r"loading posts +\S+ +50% 127,500 rows/s 0:00:04", last)


def test_a_log_gets_a_line_now_and_then():
    written, clock = [], Clock()
    progress = Progress(1000, written.append, clock=clock)
    progress.task("loading posts")
    for _ in range(4):
        clock.now += 10
        progress.advance(100)
    progress.clear()
    assert written == ["loading posts\n", "loading posts: 30%, 300 of 1,000 rows, 10 rows/s, 70 s left\n"]


def test_the_bar_is_drawn_on_a_real_terminal(sqlite_site):
    connection.close()
    ours, theirs = pty.openpty()
    process = start(sqlite_site, "--rows", "60000", stdout=theirs, stderr=theirs, text=False)
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        seen += data
    os.close(ours)
    assert process.wait() == 0
    text = seen.decode()
    assert re.search(r"loading \w+", text) and re.search(r"\d+%", text)
    assert re.search(r"SQLite database \S+ has 60,000 rows of seed 1: .*\r\nchecksum [0-9a-f]{64}\r\n$", text)


def test_memory_stays_within_its_bound(site_database):
    """The sum over both processes. It does not depend on the number of rows, so a quarter of a million will do."""
    connection.close()
    process = start(site_database, "--rows", "250000", stdout=subprocess.DEVNULL)
    root, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        with suppress(psutil.Error):
            peak = max(peak, sum(one.memory_full_info().pss for one in [root, *root.children(recursive=True)]))
        time.sleep(0.05)
    process.communicate()
    assert process.returncode == 0
    assert 20 < peak / 2**20 < LIMIT_MIB
