"""Uploaded files as links to the project's files, copied before the first write."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage

WRITES = frozenset("wax+")


class CopiedWhenWritten(FileSystemStorage):
    """Copy-on-write FileSystemStorage: a write replaces a symlink instead of following it."""

    def _open(self, name: str, mode: str = "rb") -> File:
        if WRITES & set(mode):
            self._copy(name)
        return super()._open(name, mode)

    def _save(self, name: str, content: Any) -> str:
        self._copy(name)
        return super()._save(name, content)

    def _copy(self, name: str) -> None:
        path = Path(self.path(name))
        if path.is_symlink() and path.is_file():
            source = path.resolve()
            path.unlink()
            shutil.copyfile(source, path)
