"""Finished pages as files, for a web server to serve without touching Python.

The page `/posts/page/2/` is stored in `ROOT/posts/page/2/index.html`, the page `/about` in `ROOT/about/.page`: files
have the names of pages (`names`), percent-encoded, and a server finds them by what the client wrote. A file appears
whole or not at all: it is written under a temporary name and then renamed. The web server may serve a file to a visitor
without a session cookie whose URL has no query string, and passes all other requests on.

A purge removes stale files one by one, and whole directories by renaming them away first, so that a list of thousands
of pages disappears at once.

**A slow rendering cannot bring stale data back.** Each purge gives the root a new generation, a random word in the file
`.generation`. A rendering reads the generation before it reads anything from the database, and its page is stored only
if the generation is still the same. Comparing and renaming happen under a lock of that file, which a purge takes too,
across all processes that share the root.

`manage.py expirepages` removes files older than the time to live, and the oldest files above the limit of the room.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from benchapp.caching import registry
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import can_be_served
from benchapp.caching.pages import PageStore, middleware_of
from benchapp.caching.private_apis.django_backends import FileLocks
from benchapp.caching.render_lock import UNCACHEABLE_TTL_S

INDEX = "index.html"
WITHOUT_SLASH = ".page"
GENERATION = ".generation"
# Temporary files and directories on their way out; no URL maps to a name with a leading dot.
TEMPORARY_PREFIX = ".tmp-"
LOCKS = ".locks"  # the directory of the render locks
BLOCK_BYTES = 512  # the unit of st_blocks


class FileStore(PageStore):
    """The pages as files below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def locks(self) -> FileLocks:
        return FileLocks(str(self.root / LOCKS), {})

    def file_of(self, name: str) -> Path | None:
        """The file of a page, or None for a name that no page here has.

        No two pages share a file, and none is outside of the root or has a name that this module uses.
        """
        if not can_be_served(name) or INDEX in name.split("/"):
            return None
        return self.root / name[1:] / (INDEX if name.endswith("/") else WITHOUT_SLASH)

    def generation(self) -> str:
        with self._locked() as lock:
            # The first one of a root, or a new one after the root was emptied.
            return _read(lock) or _renew(lock)

    def read(self, name: str) -> bytes | None:
        try:
            return file.read_bytes() if (file := self.file_of(name)) else None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, body: bytes, generation: str) -> bool:
        if (file := self.file_of(name)) is None:
            return False
        temporary = file.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(body)
            with self._locked() as lock:
                if _read(lock) != generation:
                    return False
                temporary.replace(file)
                return True
        except (FileNotFoundError, FileExistsError, NotADirectoryError):
            # A directory that was purged or expired took the page with it; mkdir raises FileExistsError then.
            return False
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def purge(self, stale: StalePages) -> None:
        files, below = (list(filter(None, map(self.file_of, names))) for names in (stale.paths, stale.prefixes))
        with self._locked() as lock:
            _renew(lock)
            for file in files:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    file.unlink()
            moved = [hidden for file in below for hidden in self._move_away(file.parent)]
        # Outside the lock: it takes long for many files, and no server sees them any more.
        for directory in moved:
            shutil.rmtree(directory, ignore_errors=True)

    def expire(self, seconds: float, max_bytes: int | None = None) -> tuple[int, int]:
        """Remove pages older than so many seconds, temporary files of killed writers, and empty directories.

        Locks that have expired go too: each made-up path leaves one. Above `max_bytes` on the disk in total the oldest
        pages go, after the locks. Returns how many pages were removed and how many stay.
        """
        now = time.time()
        files = sorted(self._files())
        total = sum(size for *_, size, _ in files)
        removed = stay = 0
        for is_page, changed, size, file in files:
            limit = seconds if is_page else UNCACHEABLE_TTL_S
            if now - changed < limit and (max_bytes is None or total <= max_bytes):
                stay += file.name in (INDEX, WITHOUT_SLASH)
                continue
            total -= size
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
                removed += file.name in (INDEX, WITHOUT_SLASH)
        for folder, _, _ in os.walk(self.root, topdown=False):
            if Path(folder) != self.root:
                with contextlib.suppress(OSError):  # not empty
                    Path(folder).rmdir()
        return removed, stay

    def _files(self) -> Iterator[tuple[bool, float, int, Path]]:
        """Each file below the root: whether it is no lock, its modification time, its bytes on the disk, its path."""
        for folder, _, names in os.walk(self.root):
            for name in {*names} - {GENERATION, FileLocks.LOCK}:
                with contextlib.suppress(FileNotFoundError):
                    found = (file := Path(folder, name)).stat()
                    yield file.parent.name != LOCKS, found.st_mtime, found.st_blocks * BLOCK_BYTES, file

    def _move_away(self, directory: Path) -> Iterator[Path]:
        """Rename a directory out of sight, the root's content piece by piece; yields the paths to delete."""
        whole_site = directory == self.root
        for source in list(self.root.glob("[!.]*")) if whole_site else [directory]:
            hidden = self.root / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                source.rename(hidden)
                yield hidden

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock of the root; gives the file descriptor of the generation."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.root / GENERATION, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)


def active_store() -> FileStore:
    """The store of the layer `staticgenerator`."""
    return FileStore(registry.options("staticgenerator")["root"])


middleware = middleware_of(active_store)


def purge(stale: StalePages) -> None:
    """For the layer `staticgenerator`: remove the files of stale pages."""
    active_store().purge(stale)


def _read(lock: int) -> str:
    return os.pread(lock, 64, 0).decode("ascii", errors="replace")


def _renew(lock: int) -> str:
    """Replace the generation; always 32 characters, so that nothing of the old one is left."""
    generation = secrets.token_hex(16)
    os.pwrite(lock, generation.encode("ascii"), 0)
    return generation
