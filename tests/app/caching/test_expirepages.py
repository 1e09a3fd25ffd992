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

from benchapp.caching.stores.files import GENERATION, LOCKS, FileStore
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


def test_the_oldest_pages_above_the_limit_are_removed(pages: FileStore, root: Path):
    put(pages, "/a/", "/b/", "/c/", body=b"x" * 1000)
    for number, name in enumerate("abc"):
        os.utime(root / name / "index.html", (time.time() - 30 + number,) * 2)
    # On the disk a small file takes a whole block of the file system.
    block = (root / "a" / "index.html").stat().st_blocks * 512
    assert pages.expire(60, max_bytes=2 * block) == (1, 2)
    assert files(root) == ["b/index.html", "c/index.html"]


def test_locks_are_removed_when_they_have_expired_and_count(pages: FileStore, root: Path):
    put(pages, "/a/")
    for number in range(20):
        pages.locks.set(f"made-up-{number}", "uncacheable", 10)
    make_old(next((root / LOCKS).iterdir()), 11)
    assert pages.expire(3600) == (0, 1)
    assert len(list((root / LOCKS).iterdir())) == 19
    # They take more room than the page, and go before it.
    block = (root / "a" / "index.html").stat().st_blocks * 512
    assert pages.expire(3600, max_bytes=block) == (0, 1)
    assert not (root / LOCKS).exists()
