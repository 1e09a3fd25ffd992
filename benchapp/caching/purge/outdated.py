"""The generation file: how a cache of another program learns that a response is outdated.

**A slow rendering cannot bring stale data back**: each purge writes a new random word into a file that all workers
share. A rendering reads it before it reads anything from the database. If the word has changed by the end, the response
is marked `X-Outdated`, and the cache does not store it. Apache reads the file itself, as a part of its keys.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from benchapp.caching import registry
from benchapp.caching.cacheability import expires_early
from benchapp.caching.invalidation import StalePages

logger = logging.getLogger(__name__)


class MarkOutdated:
    """Middleware that marks what no cache of another program may store.

    It marks a response rendered across a purge; a page that is stale sooner than a cached copy, of which all have one
    time to live; and every streaming response: a server that buffers a stream gives it a length, so if the rendering
    fails half way, the half looks whole.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        # Layers that are joined may share a file.
        layers = settings.CACHING_LAYERS.values()
        self.files = sorted({options["generation_file"] for options in layers if "generation_file" in options})

    def __call__(self, request: HttpRequest) -> HttpResponse:
        before = self._generations()
        response = self.get_response(request)
        # `AllowSharedCaching` may have given it a lifetime for one cache, which is not the page's own.
        early = expires_early(response) and not getattr(response, "has_shared_lifetime", False)
        if response.streaming or early or self._generations() != before:
            response.headers["X-Outdated"] = "1"
        return response

    def _generations(self) -> list[bytes]:
        return list(map(_generation, self.files))


def purge(stale: StalePages, **kwargs: object) -> None:
    """Receiver of the layer `apache-cache`: a new generation changes the keys of all pages."""
    renew_generation("apache-cache")


def renew_generation(layer: str) -> None:
    """Write a new word into the generation file of a layer, whole or not at all.

    On a full disk the old word is overwritten where it is, which takes no room: a half of each word is a new one too.
    """
    file = registry.options(layer)["generation_file"]
    word = secrets.token_hex(16).encode("ascii")
    new = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        try:
            new.write_bytes(word)
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        logger.error("%s cannot be replaced: %s", file, error)
        _overwrite(file, word)


def _overwrite(file: Path, word: bytes) -> None:
    """Put the word in place of the old one, of the same length; remove the file if that fails, too."""
    try:
        with file.open("r+b", buffering=0) as opened:
            opened.write(word)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.error("%s cannot be overwritten: %s", file, error)
        with contextlib.suppress(OSError):
            file.unlink()


def _generation(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
