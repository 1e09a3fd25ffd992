"""Static files: hashed names once collectstatic has run, plain names before; WhiteNoise where no web server is."""

from __future__ import annotations

from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class Storage(CompressedManifestStaticFilesStorage):
    """Hashed and compressed files; a file that collectstatic has not seen keeps its plain name.

    A fresh checkout and the tests thus render pages that work, instead of failing on a missing manifest.
    """

    def stored_name(self, name: str) -> str:
        return self.hashed_files.get(self.hash_key(name), name)


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise without the manifest of collectstatic, which is not public; web servers refuse it too."""

    def add_file_to_dictionary(self, url: str, path: str, stat_cache: Any = None) -> None:
        if not url.startswith(f"{self.static_prefix}{Storage.manifest_name}"):
            super().add_file_to_dictionary(url, path, stat_cache)
