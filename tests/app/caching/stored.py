"""Look at the pages that the layer `staticgenerator` stored."""

from __future__ import annotations

from pathlib import Path

from django.test import override_settings

from benchapp.caching.stores.files import GENERATION, LOCKS, SWEPT, FileStore

HTML = "<!doctype html><p>page</p>"


def files(root: Path) -> list[str]:
    """The stored pages and all other files below the root except the generation and the locks."""
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if str(path) not in (GENERATION, SWEPT) and path.parts[0] != LOCKS)


def put(pages: FileStore, *paths: str, body: bytes = b"page") -> None:
    for path in paths:
        assert pages.write(path, body, pages.generation())


def layer_settings(root: Path) -> override_settings:
    return override_settings(CACHING_LAYERS={"staticgenerator": {"root": root}})
