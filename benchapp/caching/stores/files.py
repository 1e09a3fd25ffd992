"""Finished pages as files, for a web server to serve without touching Python.

The page `/posts/page/2/` is stored in `ROOT/posts/page/2/index.html`, the page `/about` in `ROOT/about/.page`: files
have the names of pages (`names`), percent-encoded, and a server finds a file by the client's path. A file appears whole
or not at all: written under a temporary name and then renamed. The web server may serve a file to a visitor without a
session cookie whose URL has no query string, and passes all other requests on.

A purge removes stale files one by one, and whole directories by renaming them away first, so that a list of thousands
of pages disappears at once.

**A slow rendering cannot bring stale data back.** Each purge gives the root a new generation, a random word in the file
`.generation`. A rendering reads the generation before the first query, and its page is stored only if the generation is
still the same. Comparing and renaming happen under a lock of the file, which a purge takes too, across all processes
with the same root.

**No page outlives its time to live**, although no web server looks how old a file is. `manage.py expirepages` removes
old pages; if the command hangs or is gone, the workers notice by the file `.swept` and remove them. After a clock was
set back all pages go, because they look too young.

The room of the store, with folders and locks, has a limit that writers keep: a page without room is not stored, and a
sweep makes room for others.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse

from benchapp.caching import registry
from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import can_be_served
from benchapp.caching.pages import GetResponse, PageStore, middleware_of
from benchapp.caching.private_apis.django_backends import FileLocks
from benchapp.caching.render_lock import UNCACHEABLE_TTL_S
from benchapp.caching.resilience import later

INDEX = "index.html"
WITHOUT_SLASH = ".page"
GENERATION = ".generation"
GENERATION_BYTES = 32
# Its time is that of the last sweep.
SWEPT = ".swept"
# Temporary files and directories on their way out; no URL maps to a name with a leading dot.
TEMPORARY_PREFIX = ".tmp-"
LOCKS = ".locks"  # the directory of the render locks
BLOCK_BYTES = 512  # the unit of st_blocks
# What a file or a folder takes on most file systems, at least.
CLUSTER_BYTES = 4096
# A root without pages: its folder, that of locks, and two files.
EMPTY_BYTES = 4 * CLUSTER_BYTES
# A sweep that makes room makes some more, so that the next page does not need another one.
ROOM_SHARE = 0.9
# Seconds between two sweeps at most; a tenth of the time to live else.
MAX_INTERVAL_S = 30
# By more than this many seconds a clock is not corrected, but set back.
CLOCK_SLACK_S = 0.5

logger = logging.getLogger(__name__)


@dataclass(frozen=True, order=True)
class Stored:
    """A file below the root; files sort in the order in which they are removed if room is short.

    is_page   False for a lock
    was_read  whether a server has sent the file since the last write, as far as the file system notes that
    changed   the modification time
    size      bytes on the disk, with the folder if no other file shares the folder
    """

    is_page: bool
    was_read: bool
    changed: float
    size: int
    file: Path


class FileStore(PageStore):
    """The pages as files below one root, in so many bytes at most."""

    def __init__(self, root: Path, max_bytes: int | None = None) -> None:
        self.root = root
        self.max_bytes = max_bytes

    @cached_property
    def locks(self) -> FileLocks:
        return PageLocks(self)

    def file_of(self, name: str) -> Path | None:
        """The file of a page, or None for a name that no page here has.

        No two pages share a file. No file is outside of the root or has a name that this module uses.
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
        if (file := self.file_of(name)) is None or not self.take_room(len(body)):
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
        files = list(filter(None, map(self.file_of, stale.paths)))
        below = list(filter(None, map(self.file_of, stale.prefixes)))
        with self._locked() as lock:
            _renew(lock)
            for file in files:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    file.unlink()
            moved: list[Path] = []
            for file in below:
                moved.extend(self._move_away(file.parent))
        # Outside the lock: it takes long for many files, and no server sees them any more.
        for directory in moved:
            shutil.rmtree(directory, ignore_errors=True)

    def expire(self, seconds: float) -> tuple[int, int]:
        """Remove pages that are older than so many seconds or from the future, and leftovers of killed writers.

        Expired locks go too: each made-up path leaves one. Above the limit of the room locks go first, then pages that
        no server has sent since the last write, then all others, the oldest first. Returns the numbers of removed and
        remaining pages.
        """
        now = time.time()
        files, total = self._files()
        room = None
        if self.max_bytes is not None and total > self.max_bytes * ROOM_SHARE:
            room = self.max_bytes * ROOM_SHARE
        removed = stay = 0
        for stored in sorted(files):
            limit = seconds if stored.is_page else UNCACHEABLE_TTL_S
            is_one = stored.file.name in (INDEX, WITHOUT_SLASH)
            if 0 <= now - stored.changed < limit and (room is None or total <= room):
                stay += is_one
                continue
            total -= stored.size
            with contextlib.suppress(FileNotFoundError):
                stored.file.unlink()
                removed += is_one
        for folder, _, _ in os.walk(self.root, topdown=False):
            if Path(folder) != self.root:
                with contextlib.suppress(OSError):  # not empty
                    Path(folder).rmdir()
        with self._locked() as lock:
            _write_taken(lock, total)
        (self.root / SWEPT).touch()
        return removed, stay

    def _files(self) -> tuple[list[Stored], int]:
        """The files below the root, and the room of files and folders on the disk."""
        files, total = [], 0
        for folder, folders, names in os.walk(self.root):
            with contextlib.suppress(FileNotFoundError):
                own = _disk_bytes(Path(folder).stat())
                total += own
                for name in {*names} - {GENERATION, SWEPT, FileLocks.LOCK}:
                    with contextlib.suppress(FileNotFoundError):
                        status = (file := Path(folder, name)).stat()
                        size = _disk_bytes(status)
                        total += size
                        if not folders and len(names) == 1:
                            size += own
                        is_page, was_read = file.parent.name != LOCKS, status.st_atime > status.st_mtime
                        files.append(Stored(is_page, was_read, status.st_mtime, size, file))
        return files, total

    def take_room(self, size: int) -> bool:
        """True if a file of so many bytes and its folder have room, which is counted from now on; else begin to make
        room.
        """
        if self.max_bytes is None:
            return True
        needed = CLUSTER_BYTES + -(-size // CLUSTER_BYTES) * CLUSTER_BYTES
        with self._locked() as lock:
            taken = _taken(lock) + needed
            if taken <= self.max_bytes:
                _write_taken(lock, taken)
                return True
        _make_room(self)
        return False

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


class PageLocks(FileLocks):
    """The render locks of a store, which take room like its pages."""

    def __init__(self, pages: FileStore) -> None:
        super().__init__(str(pages.root / LOCKS), {})
        self._pages = pages

    def add(self, *arguments: Any, **options: Any) -> bool:
        is_new = super().add(*arguments, **options)
        if is_new:
            self._pages.take_room(0)
        return is_new


def active_store() -> FileStore:
    """The store of the layer `staticgenerator`."""
    options = registry.options("staticgenerator")
    return FileStore(options["root"], options.get("max_mb", 0) * 1_048_576 or None)


class Sweeper:
    """Removes pages before the end of their time to live.

    Sweeps may be twice the interval apart: a worker takes that long to see that `expirepages` has stopped.
    """

    def __init__(self, pages: FileStore, seconds: int) -> None:
        self.pages = pages
        self.interval_s = min(seconds / 10, MAX_INTERVAL_S)
        self._limit_s = seconds - 2 * self.interval_s
        self._ahead_s = _clock_ahead_s()

    def sweep(self) -> None:
        """Remove all pages that the next sweep would find too old; every page if the clock was set back since the last
        sweep.
        """
        before, self._ahead_s = self._ahead_s, _clock_ahead_s()
        was_set_back = self._ahead_s < before - CLOCK_SLACK_S
        try:
            self.pages.expire(0 if was_set_back else self._limit_s)
        except OSError as error:
            logger.warning("old pages cannot be removed: %s", error)

    def sweep_if_nobody_does(self) -> None:
        """Sweep if the last sweep is overdue."""
        since_s = self._seconds_since_swept()
        if since_s is None or since_s > 1.5 * self.interval_s:
            self.sweep()

    def _seconds_since_swept(self) -> float | None:
        """Seconds since the last sweep of any process; None without a sweep, or after one in the future."""
        try:
            since = time.time() - (self.pages.root / SWEPT).stat().st_mtime
        except OSError:
            return None
        return since if since >= 0 else None


def middleware(get_response: GetResponse) -> GetResponse:
    """Pages as files; from the first request on the worker looks whether somebody removes the old ones."""
    response = middleware_of(active_store)(get_response)

    def watching(request: HttpRequest) -> HttpResponse:
        if _watches_in != os.getpid():
            _begin_to_watch()
        return response(request)

    return watching


# The process whose thread watches; a forked one has none.
_watches_in = 0


def _begin_to_watch() -> None:
    global _watches_in
    _watches_in = os.getpid()
    sweeper = Sweeper(active_store(), app_settings.CACHING_SECONDS)

    def watch() -> None:
        while True:
            time.sleep(sweeper.interval_s / 2)
            sweeper.sweep_if_nobody_does()

    threading.Thread(target=watch, name="old-pages", daemon=True).start()


# Held by the thread of this process that makes room.
_making_room = threading.Lock()


def _make_room(pages: FileStore) -> None:
    """Sweep in a thread, unless one does already."""

    def sweep() -> None:
        try:
            pages.expire(app_settings.CACHING_SECONDS)
        except OSError as error:
            logger.warning("no room for pages can be made: %s", error)
        finally:
            _making_room.release()

    if _making_room.acquire(blocking=False):
        later(0, sweep)


def purge(stale: StalePages) -> None:
    """For the layer `staticgenerator`: remove the files of stale pages."""
    active_store().purge(stale)


def _clock_ahead_s() -> float:
    """The seconds by which the clock is ahead of one that nobody sets."""
    return time.time() - time.monotonic()


def _disk_bytes(status: os.stat_result) -> int:
    return status.st_blocks * BLOCK_BYTES


def _read(lock: int) -> str:
    return os.pread(lock, GENERATION_BYTES, 0).decode("ascii", errors="replace")


def _renew(lock: int) -> str:
    """Replace the generation by one of the same length, so that no byte of the old one is left."""
    generation = secrets.token_hex(GENERATION_BYTES // 2)
    os.pwrite(lock, generation.encode("ascii"), 0)
    return generation


def _taken(lock: int) -> int:
    """The bytes of pages on the disk, as counted at the last sweep and by writers since."""
    text = os.pread(lock, GENERATION_BYTES, GENERATION_BYTES).decode("ascii", errors="replace").strip()
    return int(text) if text.isdecimal() else EMPTY_BYTES


def _write_taken(lock: int, size: int) -> None:
    """The number follows the generation, which exists before any page."""
    if _read(lock):
        os.pwrite(lock, str(size).rjust(GENERATION_BYTES).encode("ascii"), GENERATION_BYTES)
