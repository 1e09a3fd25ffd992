"""Storage of static files: hashed names once collectstatic has run, plain names before."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class Storage(CompressedManifestStaticFilesStorage):
    """Hashed and compressed files; a file that collectstatic has not seen keeps its plain name.

    A fresh checkout and the tests thus render pages that work, instead of failing on a missing manifest.
    """

    def stored_name(self, name: str) -> str:
        return self.hashed_files.get(self.hash_key(name), name)
