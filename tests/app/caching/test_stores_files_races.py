"""Finished pages as files under concurrent writers, readers, purges and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from benchapp.caching.invalidation import StalePages
from benchapp.caching.stores.files import GENERATION, FileStore
from tests.app.caching.stored import files, put
from tests.waiting import until

WRITER = """
import sys
from pathlib import Path
import django
django.setup()
from benchapp.caching.stores.files import FileStore
pages = FileStore(Path(sys.argv[1]))
print("writing", flush=True)
while True:
    for number in range(1, 50):
        pages.write(f"/posts/{number}/", b"x" * 300_000, pages.generation())
"""


@pytest.mark.servers
def test_a_killed_writer_leaves_whole_pages_only(root: Path, pages: FileStore):
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, str(root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=settings.BASE_DIR) as writer:
            assert writer.stdout.readline() == b"writing\n"
            until((root / "posts" / "9" / "index.html").exists, "nine pages")
            writer.send_signal(signal.SIGKILL)
        index_files = list(root.rglob("index.html"))
        assert index_files
        assert {file.stat().st_size for file in index_files} == {300_000}
        # The lock died with its holder.
        pages.purge(StalePages(prefixes=frozenset({"/"})))
    # What a killed writer left half done goes with time.
    pages.expire(seconds=-1)
    assert files(root) == []


def test_a_root_emptied_by_hand_is_a_new_generation(pages: FileStore, root: Path):
    generation = pages.generation()
    (root / GENERATION).unlink()
    assert not pages.write("/posts/", b"old", generation)
    assert pages.generation() != generation
    assert files(root) == []


def test_a_directory_purged_under_a_writer_takes_the_page_with_it(pages: FileStore, root: Path, monkeypatch):
    put(pages, "/posts/page/2/")
    generation, write_bytes = pages.generation(), Path.write_bytes

    def write_and_lose(self: Path, data: bytes) -> int:
        written = write_bytes(self, data)
        pages.purge(StalePages(prefixes=frozenset({"/posts/"})))
        return written

    monkeypatch.setattr(Path, "write_bytes", write_and_lose)
    assert not pages.write("/posts/page/3/", b"old", generation)
    assert files(root) == []
