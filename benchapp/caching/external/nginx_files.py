"""Purging Nginx's own cache: the files of stale pages are removed, and Nginx fetches the pages again.

A page's file is named after the MD5 of its key, the path (`deploy/layers/nginx-microcache`), so one page is found
directly. For all pages below a prefix the second line of each file is read, `KEY: /posts/5/`; there are as many files
as pages requested within half the time to live.

Files are removed twice: a response that had left the application before the write may become a file after the first
removal.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from benchapp.caching import registry
from benchapp.caching.external.cacheable_header import renew_generation
from benchapp.caching.invalidation import StalePages
from benchapp.caching.names import digest
from benchapp.caching.resilience import later

KEY_LINE = b"\nKEY: "
# Nginx writes a header of some hundred bytes before the key.
HEAD_BYTES = 2048
SECOND_PURGE_S = 0.5

logger = logging.getLogger(__name__)


def purge(stale: StalePages) -> None:
    """For the layer `nginx-microcache`: remove stale pages now and once more a moment later."""
    renew_generation("nginx-microcache")
    root = registry.options("nginx-microcache")["directory"]
    remove_files(root, stale)
    later(SECOND_PURGE_S, remove_files, root, stale)


def remove_files(root: Path, stale: StalePages) -> None:
    """Remove the files of stale pages below Nginx's cache directory."""
    try:
        for path in stale.paths | stale.prefixes:
            _file(root, path).unlink(missing_ok=True)
        if stale.prefixes:
            for file, path in _files(root):
                if stale.covers(path):
                    file.unlink(missing_ok=True)
    except OSError as error:
        logger.error("%s: %s not purged: %s", root, stale, error)


def _file(root: Path, path: str) -> Path:
    """The file of a page, in a directory named after the end of its name (`levels=1`)."""
    name = digest(path)
    return root / name[-1] / name


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    """The present files, each with the path of its page."""
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder, name)
            # Nginx may remove it at any moment.
            with contextlib.suppress(FileNotFoundError), file.open("rb", buffering=0) as opened:
                _, separator, rest = opened.read(HEAD_BYTES).partition(KEY_LINE)
                if separator:
                    yield file, rest.partition(b"\n")[0].decode("utf-8", "replace")
