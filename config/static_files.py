"""Static files: hashed names once collectstatic has run, plain names before; WhiteNoise if no web server is."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

from benchapp.serving import static_files

# Times of files that differ by less are equal: not every file system has them to the nanosecond.
SAME_S = 0.001


class ChangedFiles(Compressor):
    """Skips compressed files, and compresses equal files once: most have a plain and a hashed name.

    Compressing all files takes each release seconds.
    """

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._brotli: dict[bytes, bytes] = {}
        self._gzip: dict[bytes, bytes] = {}

    def compress(self, path: str) -> list[str]:
        names, changed = [f"{path}{ending}" for ending in (".br", ".gz")], Path(path).stat().st_mtime
        with contextlib.suppress(FileNotFoundError):
            # It gives them the time of the file.
            if all(abs(Path(name).stat().st_mtime - changed) < SAME_S for name in names):
                return names
        return super().compress(path)

    def compress_brotli(self, data: bytes) -> bytes:
        return _once(super().compress_brotli, data, self._brotli)

    def compress_gzip(self, data: bytes) -> bytes:
        return _once(super().compress_gzip, data, self._gzip)


def _once(compress: Callable[[bytes], bytes], data: bytes, compressed: dict[bytes, bytes]) -> bytes:
    """The compressed content; `compressed` has each by the digest of its content, because contents take more memory."""
    digest = hashlib.sha256(data).digest()
    if digest not in compressed:
        compressed[digest] = compress(data)
    return compressed[digest]


class Storage(CompressedManifestStaticFilesStorage):
    """Hashed and compressed files; a file that collectstatic has not seen keeps its plain name.

    So pages of a fresh checkout and of tests work. Django's `manifest_strict = False` would still raise an error for a
    file outside of STATIC_ROOT.
    """

    def stored_name(self, name: str) -> str:
        return self.hashed_files.get(self.hash_key(name), name)

    def create_compressor(self, **options: object) -> Compressor:
        return ChangedFiles(**options)


class StaticFiles(static_files.StaticFiles):
    """WhiteNoise that also serves files of a later collectstatic.

    While workers are replaced, pages of the new release name files that old workers get requests for.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.collected = _collected()
        super().__init__(*args, **options)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(self.static_prefix) and not self.autorefresh:
            self._add_later()
        return super().__call__(request)

    def _add_later(self) -> None:
        """Add all files again after collectstatic, which writes its manifest last."""
        collected = _collected()
        # A file that is gone meanwhile is of the next collectstatic, after which they are added again.
        with contextlib.suppress(FileNotFoundError):
            if collected != self.collected:
                self.add_files(self.static_root, prefix=self.static_prefix)
                self.collected = collected


def _collected() -> int:
    """The time when collectstatic last wrote its manifest, in nanoseconds since 1970; 0 before."""
    try:
        return Path(settings.STATIC_ROOT, static_files.MANIFEST).stat().st_mtime_ns
    except FileNotFoundError:
        return 0
