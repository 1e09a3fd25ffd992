"""Static files where no web server has them."""

from __future__ import annotations

from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware

# The list that Django's and WhiteNoise's storages write beside the files.
MANIFEST = "staticfiles.json"


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise without the manifest of collectstatic, which is not public; web servers refuse it too."""

    def add_file_to_dictionary(self, url: str, path: str, stat_cache: Any = None) -> None:
        if not url.startswith(f"{self.static_prefix}{MANIFEST}"):
            super().add_file_to_dictionary(url, path, stat_cache)
