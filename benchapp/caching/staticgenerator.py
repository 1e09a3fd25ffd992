"""Finished pages as files, for a web server to serve without touching Python.

The page of `/posts/page/2/` is kept in `ROOT/posts/page/2/index.html`. A file appears whole or not at all:
it is written beside its place under a temporary name and then renamed. The web server may serve a file to a
visitor without a session cookie whose URL has no query string, and passes everything else on.

**A write purges** what it makes stale, files one by one and whole directories by renaming them away first,
so that a list of thousands of pages disappears at once.

**A slow rendering cannot bring old data back.** Each purge gives the root a new generation, a random word in
the file `.generation`. A rendering notes the generation before it reads anything from the database, and its
page is kept only if the generation is still the same. Comparing and renaming happen under a lock of that
file, which a purge takes too, across all processes that share the root.

Files older than BENCHAPP_CACHE_SECONDS are removed by `manage.py expirepages`, and the oldest of what is more than
BENCHAPP_STATICGENERATOR_MB.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed

from benchapp.caching.finishedpages import KeepFinishedPages, Store
from benchapp.caching.staleness import Stale, pages_stale

INDEX = "index.html"
GENERATION = ".generation"
# Temporary files and directories on their way out; no URL maps to a name with a leading dot.
TEMPORARY_PREFIX = ".tmp-"
MARKS = ".turns"  # the directory of who renders what
LONGEST_NAME = 200  # bytes of one segment; file systems take 255
LONGEST_PATH = 1000  # bytes of a whole path

logger = logging.getLogger(__name__)


class StaticGenerator(KeepFinishedPages):
    """Middleware that keeps each page that may be shared as a file below the root."""

    def open_store(self) -> Store:
        if not settings.BENCHAPP_STATICGENERATOR_ROOT:
            raise MiddlewareNotUsed("BENCHAPP_STATICGENERATOR_ROOT is empty")
        return FilePages(Pages(Path(settings.BENCHAPP_STATICGENERATOR_ROOT)))

    def has_key(self, path: str) -> bool:
        return self.store.pages.file_of(path) is not None


class FilePages:
    """The files as a store: a full disk or a root that cannot be written keeps no visitor from the page."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.marks = FileMarks(pages.root / MARKS)

    def generation(self) -> str | None:
        try:
            return self.pages.generation()
        except OSError as error:
            logger.error("pages cannot be kept in %s: %s", self.pages.root, error)
            return None

    def get(self, path: str) -> bytes | None:
        try:
            return self.pages.file_of(path).read_bytes()
        except OSError:
            return None

    def put(self, path: str, body: bytes, generation: str) -> bool:
        try:
            return self.pages.store(self.pages.file_of(path), body, generation)
        except OSError as error:
            logger.error("page %s not kept: %s", path, error)
            return False

    def purge(self, stale: Stale) -> None:
        self.pages.purge(stale)


class FileMarks:
    """The marks of who renders what, a small file each: its time of change says until when it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, key: str, value: str, seconds: int) -> bool:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            new = self._written(key, value, seconds)
            try:
                os.link(new, self._file(key))  # whole, and not if it is there
                return True
            except FileExistsError:
                if self.get(key) is None:
                    self.delete(key)  # out of date: the next to try has it
                return False
            finally:
                new.unlink(missing_ok=True)
        except OSError:
            return False

    def get(self, key: str) -> str | None:
        try:
            file = self._file(key)
            return file.read_text("ascii") if file.stat().st_mtime > time.time() else None
        except OSError:
            return None

    def set(self, key: str, value: str, seconds: int) -> None:
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._written(key, value, seconds).replace(self._file(key))

    def delete(self, key: str) -> None:
        with contextlib.suppress(OSError):
            self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self.folder / key.replace(":", "-")

    def _written(self, key: str, value: str, seconds: int) -> Path:
        new = self.folder / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        new.write_text(value, "ascii")
        until = time.time() + seconds
        os.utime(new, (until, until))
        return new


class Pages:
    """The files below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def file_of(self, path: str) -> Path | None:
        """The file of a URL path (decoded, beginning and ending with a slash), or None if it can have none.

        No two paths share a file, and no path leads outside the root or to a name of this module's own.
        """
        if not (path.startswith("/") and path.endswith("/")):
            return None
        segments = path.split("/")[1:-1]
        if len(path.encode(errors="replace")) > LONGEST_PATH or not all(map(_is_safe, segments)):
            return None
        return self.root.joinpath(*segments, INDEX)

    def generation(self) -> str:
        """The current generation. OSError if the root cannot be used."""
        with self._locked(fcntl.LOCK_SH) as lock:
            current = _read(lock)
        return current or self._renew()

    def store(self, file: Path, body: bytes, generation: str) -> bool:
        """Put a page in place, unless something was purged since `generation`; True if it was put.

        A directory that is purged or expires meanwhile takes the page with it, which is as good as a purge.
        """
        temporary = file.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(body)
            with self._locked(fcntl.LOCK_EX) as lock:
                if _read(lock) != generation:
                    return False
                temporary.replace(file)
                return True
        except (FileNotFoundError, FileExistsError):  # mkdir raises the latter when it sees a directory vanish
            return False
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def purge(self, stale: Stale) -> None:
        """Remove the files of stale pages and refuse those that are being rendered at this moment."""
        doomed = [self._directory(prefix) for prefix in stale.prefixes]
        files = [self.file_of(path) for path in stale.paths | stale.prefixes]
        with self._locked(fcntl.LOCK_EX) as lock:
            _write(lock, secrets.token_hex(16))
            for file in filter(None, files):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    file.unlink()
            moved = [way_out for directory in filter(None, doomed) for way_out in self._move_away(directory)]
        # Outside the lock, since it takes as long as there are files; nobody can see them any more.
        for directory in moved:
            shutil.rmtree(directory, ignore_errors=True)

    def expire(self, seconds: float, most_bytes: int | None = None) -> tuple[int, int]:
        """Remove pages older than so many seconds, leftovers of killed writers, and directories left empty.

        When all that stays has more than `most_bytes`, the oldest of it goes too. Returns how many pages were removed
        and how many stay.
        """
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        oldest = time.time() - seconds
        removed = kept = 0
        for changed, size, file in files:
            if changed > oldest and (most_bytes is None or total <= most_bytes):
                kept += file.name == INDEX
                continue
            total -= size
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
                removed += file.name == INDEX
        for folder, _, _ in os.walk(self.root, topdown=False):
            if Path(folder) != self.root:
                with contextlib.suppress(OSError):  # not empty
                    Path(folder).rmdir()
        return removed, kept

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each file below the root was written, its size, and the file."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                if name != GENERATION:
                    with contextlib.suppress(FileNotFoundError):
                        found = (file := Path(folder, name)).stat()
                        yield found.st_mtime, found.st_size, file

    def _renew(self) -> str:
        """Begin the first generation of a root, or the next one after it was emptied by hand."""
        with self._locked(fcntl.LOCK_EX) as lock:
            current = _read(lock) or secrets.token_hex(16)
            _write(lock, current)
            return current

    def _directory(self, prefix: str) -> Path | None:
        file = self.file_of(prefix)
        return file.parent if file else None

    def _move_away(self, directory: Path) -> Iterator[Path]:
        """Rename a directory out of sight, the root's content piece by piece; yields what is to be deleted."""
        everything = directory == self.root
        for source in list(self.root.glob("[!.]*")) if everything else [directory]:
            way_out = self.root / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                source.rename(way_out)
                yield way_out

    @contextlib.contextmanager
    def _locked(self, mode: int) -> Iterator[int]:
        """Hold the lock of the root, shared or exclusive; gives the open file of the generation."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.root / GENERATION, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, mode)
            yield lock
        finally:
            os.close(lock)


def connect() -> None:
    """Purge on every write, if the layer is on; called once, when the application is ready."""
    pages_stale.connect(_purge, dispatch_uid="staticgenerator")


def _purge(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_STATICGENERATOR_ROOT:
        Pages(Path(settings.BENCHAPP_STATICGENERATOR_ROOT)).purge(stale)


def _is_safe(segment: str) -> bool:
    """Whether a path segment can be a directory's name: not hidden, not special, not too long, printable."""
    return (
        segment != ""
        and not segment.startswith(".")
        and segment != INDEX
        and "\\" not in segment
        and segment.isprintable()
        and len(segment.encode()) <= LONGEST_NAME
    )


def _read(lock: int) -> str:
    return os.pread(lock, 64, 0).decode("ascii", errors="replace")


def _write(lock: int, generation: str) -> None:
    """Replace the generation; always 32 characters, so that nothing of the old one is left."""
    os.pwrite(lock, generation.encode("ascii"), 0)
