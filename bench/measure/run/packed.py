"""Files that may be compressed: with gzip, bzip2, xz or zstd, or as a zip archive of one file."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import re
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from bench.errors import BenchError

# Magic number of each format, and its reader.
READERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
ZIP = b"PK\x03\x04"
ZSTD = b"\x28\xb5\x2f\xfd"
LONGEST = 6
# Folders, and files that macOS adds.
IN_ARCHIVES = re.compile(r"/$|^__MACOSX/|(^|/)\.")
HAR = ".har"
DAMAGED = "it is damaged or not yet whole: copy it again, or unpack what there is"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked. Raises BenchError if unreadable."""
    try:
        with path.open("rb") as file:
            begin = file.read(LONGEST)
            file.seek(0)
            with _unpacked(path, file, begin) as unpacked:
                yield unpacked
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None)
        if reason:
            raise BenchError(f"{path}: {reason}; correct its name or rights in [tool.benchapp.workloads]") from None
        raise BenchError(f"{path}: {error}; {DAMAGED}") from None


def _unpacked(path: Path, file: BinaryIO, begin: bytes) -> contextlib.AbstractContextManager[BinaryIO]:
    if begin.startswith(ZIP):
        return _only_file(path, file)
    if begin.startswith(ZSTD):
        return _by_zstd(path)
    reader = next((reader for magic, reader in READERS.items() if begin.startswith(magic)), contextlib.nullcontext)
    unpacked: contextlib.AbstractContextManager[BinaryIO] = reader(file)
    return unpacked


@contextlib.contextmanager
def _only_file(path: Path, file: BinaryIO) -> Iterator[BinaryIO]:
    """The only file of a zip archive, or its only HAR file, beside which Playwright puts the bodies of responses.

    Folders, and metadata files of some systems, do not count.
    """
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if not IN_ARCHIVES.search(name)]
        names = [name for name in names if name.endswith(HAR)] or names
        if len(names) != 1:
            raise BenchError(f"{path}: an archive of {len(names)} files; unpack it, and name one of them")
        try:
            member = archive.open(names[0])
        except (RuntimeError, NotImplementedError) as error:
            raise BenchError(f"{path}: {error}; unpack it, and name the file that is in it") from None
        with member:
            yield cast(BinaryIO, io.BufferedReader(cast(Any, member)))


@contextlib.contextmanager
def _by_zstd(path: Path) -> Iterator[BinaryIO]:
    """The file decompressed by zstd, not necessarily to its end."""
    program = shutil.which("zstd")
    if program is None:
        raise BenchError(f"{path}: compressed with zstd: install the package zstd")
    command = [program, "--decompress", "--stdout", "--quiet", "--", str(path)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as process:
        output = cast(BinaryIO, process.stdout)
        try:
            yield output
            if not output.read(1) and process.wait():
                raise EOFError("zstd cannot unpack it")
        finally:
            process.kill()
