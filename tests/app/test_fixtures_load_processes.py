"""./manage.py loadfixtures in processes of its own: killed, interrupted, two at once, with little memory."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import pytest
from django.db import connection

from benchapp import page_index
from benchapp.management import databases
from tests.app.loading import another_connection, expected_checksum, load_rows, start, stored_checksum, structure

pytestmark = pytest.mark.servers


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
    children, later = killed_at(moment, url)
    while "committing" in later:
        # On a busy machine it was killed too late, so that it proves nothing. The old rows again:
        load_rows(1000, force=True)
        connection.close()
        children, later = killed_at(moment, url)
    unchanged()
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert load_rows(1000, force=True).endswith(f"checksum {expected_checksum(1000)}\n")


def killed_at(moment: str, url: str) -> tuple[list[psutil.Process], str]:
    """The children of a load that is killed when it says so, and what it said after that."""
    process = start(url, "--rows", "60000", "--force")
    children = []
    for line in process.stdout:
        if line.strip() == moment:
            children = psutil.Process(process.pid).children()
            process.kill()
            break
    later, _ = process.communicate()
    return children, later


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


def test_two_at_once_do_not_mix(site_database):
    both = [start(site_database, "--rows", "30000", "--seed", str(seed)) for seed in (1, 2)]
    ended = [(*process.communicate(), process.returncode) for process in both]
    codes = [code for *_, code in ended]
    assert sorted(codes) == [0, 1]
    loser = ended[codes.index(1)][1]
    assert re.search(r"(add --force|running in it|in use|is using it)", loser), loser
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


LIMIT_MIB = 200
