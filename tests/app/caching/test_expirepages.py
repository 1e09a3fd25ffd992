"""`./manage.py expirepages`: old pages go, and the oldest above the limit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from benchapp.caching import stores
from benchapp.caching.resilience import finish_pending
from benchapp.caching.stores.files import GENERATION, LOCKS, ROOM_SHARE, SWEPT, FileStore, Sweeper
from tests import clock
from tests.app.caching.stored import files, put
from tests.app.conftest import Rows
from tests.waiting import until


def make_old(file: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(file, (moment, moment))


def test_old_pages_temporary_files_and_empty_directories_expire(pages: FileStore, root: Path):
    put(pages, "/", "/posts/", "/posts/page/2/", "/comments/page/9/")
    (root / "posts" / ".tmp-1").write_bytes(b"half")
    for name in ["posts/page/2/index.html", "comments/page/9/index.html", "posts/.tmp-1", GENERATION]:
        make_old(root / name, 61)
    generation = pages.generation()
    assert pages.expire(60) == (2, 2)
    assert files(root) == ["index.html", "posts/index.html"]
    assert not (root / "comments").exists()
    assert pages.generation() == generation


def test_expirepages_once(staticgenerator: None, rows: Rows, client: Client, root: Path, capsys):
    client.get("/posts/")
    client.get("/comments/")
    make_old(root / "posts" / "index.html", 61)
    call_command("expirepages", "--once")
    assert capsys.readouterr().out == f"1 removed, 1 stay in {root}\n"


def test_expirepages_without_the_layer_says_what_to_set(db: None):
    with pytest.raises(CommandError, match="the layer is off: set CACHING_STATICGENERATOR_ROOT"):
        call_command("expirepages", "--once")


def test_expirepages_removes_old_pages_until_sigterm(root: Path, pages: FileStore):
    put(pages, "/posts/")
    environment = os.environ | {"CACHING_STATICGENERATOR_ROOT": str(root), "BENCHAPP_CACHE_SECONDS": "1"}
    command = [sys.executable, "manage.py", "expirepages"]
    with subprocess.Popen(command, env=environment, cwd=settings.BASE_DIR, stderr=subprocess.PIPE) as process:
        until(lambda: files(root) == [], "the old pages are gone")
        assert process.poll() is None
        process.terminate()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""


def page_bytes(root: Path) -> int:
    """The size of a small page on the disk: its file and its folder, a block of the file system each."""
    return sum(path.stat().st_blocks * 512 for path in (root / "a", root / "a" / "index.html"))


def test_above_the_limit_pages_that_nobody_got_go_first_and_then_the_oldest(pages: FileStore, root: Path):
    put(pages, *(f"/{name}/" for name in "abcd"))
    now = time.time()
    for number, name in enumerate("abcd"):
        written = now - 30 + number
        # A server has sent /a/, the oldest, and /d/.
        os.utime(root / name / "index.html", (now if name in "ad" else written, written))
    files_and_root = 4 * page_bytes(root) + root.stat().st_blocks * 512
    pages.max_bytes = int((files_and_root - 3 * page_bytes(root)) / ROOM_SHARE) + 1
    assert pages.expire(60) == (3, 1)
    assert files(root) == ["d/index.html"]


def test_pages_folders_and_locks_never_take_more_than_the_limit(pages: FileStore, root: Path):
    """Neither between two sweeps: writers keep it, and make room for later pages."""
    pages.max_bytes = 400_000
    stored = 0
    for number in range(400):
        name = f"/made-up-{number}/"
        pages.locks.add(name, "rendering", 3)
        stored += pages.write(name, b"x" * 3000, pages.generation())
        finish_pending()
        assert taken(root) <= pages.max_bytes
    # More than fit at a time.
    assert 100 < stored < 400


def taken(root: Path) -> int:
    """The bytes on the disk of all files and folders below the root."""
    return sum(path.stat().st_blocks * 512 for path in [root, *root.rglob("*")])


def test_a_page_from_the_future_goes(pages: FileStore, root: Path):
    put(pages, "/a/", "/b/")
    make_old(root / "a" / "index.html", -3600)
    assert pages.expire(60) == (1, 1)


def test_all_pages_go_when_the_clock_was_set_back(pages: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    sweeper, now = Sweeper(pages, 60), time.time()
    put(pages, "/a/")
    make_old(root / "a" / "index.html", 40)
    sweeper.sweep()
    assert files(root) == ["a/index.html"]
    # The page was ten seconds ago made.
    clock.change(monkeypatch, stores.files, time=lambda: now - 30)
    sweeper.sweep()
    assert files(root) == []


def test_a_worker_removes_old_pages_while_nobody_else_does(pages: FileStore, root: Path):
    sweeper = Sweeper(pages, 60)
    put(pages, "/a/")
    make_old(root / "a" / "index.html", 61)
    (root / SWEPT).touch()
    sweeper.sweep_if_nobody_does()
    assert files(root) == ["a/index.html"]
    for wrong_age_s in (10, -3600):
        put(pages, "/a/")
        make_old(root / "a" / "index.html", 61)
        make_old(root / SWEPT, wrong_age_s)
        sweeper.sweep_if_nobody_does()
        assert files(root) == []


def test_a_worker_watches_from_its_first_request_on(tmp_path: Path):
    """In a separate process, without the command."""
    environment = os.environ | {"CACHING_STATICGENERATOR_ROOT": str(tmp_path), "BENCHAPP_CACHE_SECONDS": "1"}
    environment |= {"DJANGO_SETTINGS_MODULE": "config.settings", "BENCHAPP_PROBES": "1", "ALLOWED_HOSTS": "testserver"}
    program = """
import time, pathlib, sys, django; django.setup()
from django.test import Client
assert Client().get("/__probe__/page/a/").status_code == 200
page = pathlib.Path(sys.argv[1], "__probe__/page/a/index.html")
assert page.exists()
end = time.monotonic() + 30
while page.exists() and time.monotonic() < end:
    time.sleep(0.1)
print(page.exists())
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=settings.BASE_DIR, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_locks_are_removed_when_they_have_expired_and_count(pages: FileStore, root: Path):
    put(pages, "/a/")
    for number in range(20):
        pages.locks.set(f"made-up-{number}", "uncacheable", 10)
    make_old(next((root / LOCKS).iterdir()), 11)
    assert pages.expire(3600) == (0, 1)
    assert len(list((root / LOCKS).iterdir())) == 19
    # They take more room than the page, and go before it.
    folders = (root / LOCKS).stat().st_blocks * 512 + root.stat().st_blocks * 512
    pages.max_bytes = int((page_bytes(root) + folders) / ROOM_SHARE) + 1
    assert pages.expire(3600) == (0, 1)
    assert not (root / LOCKS).exists()
