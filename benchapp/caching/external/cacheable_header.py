"""The header X-Cacheable, without which a cache of another program stores no response.

The rule is the one of all layers (`cacheability`), so no server's configuration repeats the rule.

**A slow rendering cannot bring stale data back**: each purge writes a new random word into a file that all workers
share. A rendering reads the word before the first query; if the word has changed by the end, the response is not
marked. Apache reads the file itself, as a part of its keys.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control

from benchapp.caching import registry
from benchapp.caching.cacheability import reason_not_to_store, reason_to_pass, reason_to_render
from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages
from benchapp.caching.outcome import passed, report
from benchapp.caching.pages import GetResponse, normalized_coding

MARK = "X-Cacheable"
# Enough room for the pages that are on their way to Nginx's disk at the same time, each with its directories.
MIN_FREE_BYTES, MIN_FREE_FILES = 2_000_000, 100

logger = logging.getLogger(__name__)


class MarkCacheable:
    """Middleware that marks each page that may be stored, and tells Nginx for how long.

    For the first half of the time to live a page is fresh. In the second half Nginx may serve the stale page during a
    refresh, or after a refresh failed. The limit matters: a deleted page gives no response that could replace the
    cached page. Nginx breaks off a response that cannot be written to its cache, so on a nearly full disk Nginx gets
    nothing to cache.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        # Layers that are joined may share a file.
        layers = app_settings.CACHING_LAYERS.values()
        self.files = sorted({options["generation_file"] for options in layers if "generation_file" in options})
        stale = app_settings.CACHING_SECONDS // 2
        fresh = app_settings.CACHING_SECONDS - stale
        self.lifetime = {"s_maxage": fresh, "stale_while_revalidate": stale, "stale_if_error": stale}
        nginx = registry.is_active("nginx-microcache")
        self.directory = registry.options("nginx-microcache")["directory"] if nginx else None

    def __call__(self, request: HttpRequest) -> HttpResponse:
        reason = "query" if request.META.get("QUERY_STRING") else reason_to_pass(request) or reason_to_render(request)
        if reason:
            report(request, passed(reason))
            return self.get_response(request)
        # The server in front compresses; it stores one coding of a page.
        normalized_coding(request, identity_only=True)
        before = self._generations()
        response = self.get_response(request)
        if reason := reason_not_to_store(request, response):
            report(request, passed(reason))
        elif self.directory and "max-age" in response.get("Cache-Control", "").lower().replace("s-maxage", ""):
            # Nginx sends no Age with a hit: a browser would keep the page for its whole lifetime once more.
            report(request, passed("lifetime"))
        elif not self._has_room() or self._generations() != before:
            report(request, passed("store"))
        else:
            self._mark(response)
        return response

    def _has_room(self) -> bool:
        return self.directory is None or has_room_for_pages(self.directory)

    def _mark(self, response: HttpResponse) -> None:
        response.headers[MARK] = "1"
        # Of a response without a length a part looks like the whole.
        response.headers.setdefault("Content-Length", str(len(response.content)))
        if self.directory:
            patch_cache_control(response, **self.lifetime)

    def _generations(self) -> list[bytes]:
        return list(map(_generation, self.files))


def own_cookies(get_response: GetResponse) -> GetResponse:
    """Middleware of the layer `apache-cache`, whose Apache has the generation of its keys in the header Cookie.

    The visitor's cookies arrive in FrontCookie, and the middleware removes that header from all requests.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if cookies := request.META.get("HTTP_FRONTCOOKIE"):
            request.META["HTTP_COOKIE"] = cookies
        return get_response(request)

    return middleware


def has_room_for_pages(directory: Path) -> bool:
    """True if the disk of this directory has room for more pages. A missing directory has room."""
    try:
        disk = os.statvfs(directory)
    except FileNotFoundError:
        return True
    # Some file systems have no limit of files and count none.
    has_names = disk.f_files == 0 or disk.f_favail >= MIN_FREE_FILES
    return has_names and disk.f_bavail * disk.f_frsize >= MIN_FREE_BYTES


def purge(stale: StalePages) -> None:
    """For the layer `apache-cache`: a new generation changes the keys of all pages."""
    renew_generation("apache-cache")


def renew_generation(layer: str) -> None:
    """Put a new word into the generation file of a layer."""
    _renew(registry.options(layer)["generation_file"])


def _renew(file: Path) -> None:
    """Put a new word in place of the old word.

    A word of the same length fits on a full disk; even half of a new word differs from the old word. If the file cannot
    be written, it is removed: a missing word is another word as well.
    """
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.write(opened, secrets.token_hex(16).encode("ascii"))
        finally:
            os.close(opened)
    except OSError as error:
        logger.error("%s cannot be written: %s", file, error)
        with contextlib.suppress(OSError):
            file.unlink()


def _generation(file: Path) -> bytes:
    """The word in the file, the first if the file is empty; a word that marks nothing if no word fits."""
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            if word := file.read_bytes():
                return word
        _renew(file)
    return secrets.token_bytes(16)
