"""Static files: hashed names once collectstatic has run, plain names before; WhiteNoise where no web server is."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from whitenoise.compress import Compressor
from whitenoise.responders import NotARegularFileError
from whitenoise.storage import CompressedManifestStaticFilesStorage

from benchapp.serving import static_files

# How often, and seconds apart, the files are looked for while collectstatic replaces some.
ATTEMPTS, RETRY_S = 10, 0.5
# Times of files that differ by less are equal: not every file system has them to the nanosecond.
SAME_S = 0.001
# The names that collectstatic makes: a hash before the ending.
HASHED = re.compile(r"\.[0-9a-f]{12}\.\w+\Z")


class ChangedFiles(Compressor):
    """Leaves alone what it has compressed before: to compress all files anew takes each release seconds."""

    def compress(self, path: str) -> list[str]:
        made, changed = [f"{path}{ending}" for ending in (".br", ".gz")], Path(path).stat().st_mtime
        with contextlib.suppress(FileNotFoundError):
            # It gives them the time of the file.
            if all(abs(Path(name).stat().st_mtime - changed) < SAME_S for name in made):
                return made
        return super().compress(path)


class Storage(CompressedManifestStaticFilesStorage):
    """Hashed and compressed files; a file that collectstatic has not seen keeps its plain name.

    A fresh checkout and the tests thus render pages that work, instead of failing on a missing manifest.
    """

    def stored_name(self, name: str) -> str:
        return self.hashed_files.get(self.hash_key(name), name)

    def create_compressor(self, **options: object) -> Compressor:
        return ChangedFiles(**options)


class StaticFiles(static_files.StaticFiles):
    """WhiteNoise without the manifest of collectstatic.

    It also has the files that collectstatic adds later: while workers are replaced, those of the new release name files
    for which the old ones are asked.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        url = request.path_info
        if url.startswith(self.static_prefix) and url not in self.files:
            self._add_later(url)
        return super().__call__(request)

    def add_files(self, root: str, prefix: str | None = None) -> None:
        """The files of a folder; there need not be one before collectstatic, which may replace some meanwhile."""
        for attempt in range(ATTEMPTS):
            try:
                if Path(root).is_dir():
                    super().add_files(root, prefix)
                break
            except FileNotFoundError:
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(RETRY_S)

    def _add_later(self, url: str) -> None:
        """Add a file with a hash in its name, if there is one by now; any other is the same until a restart."""
        path = str(Path(self.static_root, url.removeprefix(self.static_prefix)))
        if self.url_is_canonical(url) and HASHED.search(url):
            with contextlib.suppress(NotARegularFileError, OSError, ValueError):
                self.add_file_to_dictionary(url, path)

    def immutable_file_test(self, path: str, url: str) -> bool:
        return bool(super().immutable_file_test(path, url) or HASHED.search(url))
