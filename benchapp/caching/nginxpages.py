"""Telling Nginx's own cache of pages: the files of stale ones are removed, and Nginx asks the application anew.

A page's file is named after the MD5 of its key, which is its path (`deploy/layers/nginx-microcache`), so that one
page is found without a look. For all pages below a prefix each file's second line is read, `KEY: /posts/5/`; there
are as many files as pages asked for within half the time to live.

**A slow rendering cannot bring old data back**: what is rendered across a purge is marked (`purge.MarkOutdated`) and
not kept. What had left the application before, and was not yet a file, is looked for once more a moment later.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path

from django.conf import settings

from benchapp.caching.later import later
from benchapp.caching.staleness import Stale, pages_stale

KEY_LINE = b"\nKEY: "
# Nginx writes a header of some hundred bytes before the key.
HEAD_BYTES = 2048
LOOK_AGAIN_S = 0.5

logger = logging.getLogger(__name__)


def connect() -> None:
    """Purge on every write, if the layer is on; called once, when the application is ready."""
    pages_stale.connect(_purge, dispatch_uid="nginxpages")


def purge(root: Path, stale: Stale) -> None:
    """Remove the files of stale pages below Nginx's cache directory."""
    try:
        for path in stale.paths | stale.prefixes:
            _file(root, path).unlink(missing_ok=True)
        if stale.prefixes:
            for file, path in _files(root):
                if stale.covers(path):
                    file.unlink(missing_ok=True)
    except OSError as error:
        logger.error("%s not purged of %s: %s", root, stale, error)


def _purge(stale: Stale, **kwargs: object) -> None:
    if settings.BENCHAPP_NGINX_PAGES:
        root = Path(settings.BENCHAPP_NGINX_PAGES)
        purge(root, stale)
        later(LOOK_AGAIN_S, purge, root, stale)


def _file(root: Path, path: str) -> Path:
    """The file of a page, in directories named after the end of its name (`levels=1:2`)."""
    name = md5(path.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return root / name[-1] / name[-3:-1] / name


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    """The files there are now, each with the path of its page."""
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder, name)
            # Nginx may remove it at any moment.
            with contextlib.suppress(FileNotFoundError), file.open("rb", buffering=0) as opened:
                _, found, rest = opened.read(HEAD_BYTES).partition(KEY_LINE)
                if found:
                    yield file, rest.partition(b"\n")[0].decode("utf-8", "replace")
