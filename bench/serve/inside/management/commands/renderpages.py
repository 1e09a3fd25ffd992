"""Render pages in this process, without a server: the responses that every stack and layer must give."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.test import Client
from django.test.utils import override_settings

from bench.serve.inside.error_words import in_words
from bench.serve.inside.reading import NoteNames, names_read
from bench.serve.inside.time_limit import NoResponse, leave_threads, time_limit

HOST = "127.0.0.1"
# A port at which some pages are rendered, as a deployment has any; no page names it by itself.
PORT = "50827"
# Headers of every request that `verify` sends; bench/serve/machine/http.py.
USUAL = {"HTTP_USER_AGENT": "verify", "HTTP_ACCEPT": "*/*", "HTTP_ACCEPT_ENCODING": "identity"}
STREAM_S = 3
ENDLESS = f"its stream does not end within {STREAM_S} s"
LEFT_OUT = ("benchapp.caching.", "debug_toolbar.")
DUMMY = "django.core.cache.backends.dummy.DummyCache"
IN_MEMORY = "django.core.cache.backends.locmem.LocMemCache"
CACHED_SESSIONS = (".cache", ".cached_db")
# How often pages are rendered after the first time: at least, and as often as that is cheap or matters.
LEAST, OFTEN = 2, 8
CHEAP_S = 0.2
# A clock shows another second after each pause: the first difference, and one that confirms it.
PAUSES = (LEAST, 5)
PAUSE_S = 1.1
# Headers that differ by their nature; the length is that of the body.
NEW_EACH_TIME = {"x-render-id", "date", "content-length"}


NOTES = f"{NoteNames.__module__}.{NoteNames.__qualname__}"


class Command(BaseCommand):
    """Prints the pages as one JSON object.

    For each path: status, content type, body, location of a redirect, error, whether it `hung` or `streams`, and the
    names of headers and cookies under `reads`. If renderings differ: `again`, the other bodies, and `varying`, the
    names of headers. Bytes outside of UTF-8 are lone surrogates.
    """

    help = "Render pages as an anonymous visitor gets them, caching layers off; prints one JSON object."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="path of a URL, with or without a query")
        parser.add_argument("--often", action="store_true", help="render them more often, over two seconds")
        limit = "give up a page after so many seconds, as an error; 0 is never"
        parser.add_argument("--timeout", type=float, default=0, metavar="SECONDS", help=limit)

    def handle(self, *, paths: list[str], often: bool = False, timeout: float = 0, **options: Any) -> None:
        for path in paths:
            if not path.startswith("/"):
                raise CommandError(f"{path!r} is not a path: begin it with a slash")
        with override_settings(ALLOWED_HOSTS=[HOST], SECURE_SSL_REDIRECT=False, **self.settings()):
            self.stdout.write(json.dumps(self.results(paths, often, timeout)))
        if timeout:
            leave_threads()

    def settings(self) -> dict[str, Any]:
        """Settings without caching layers, redirects to HTTPS and developer tools, with notes of the pages' reads."""
        caches = caches_of(DUMMY)
        if settings.SESSION_ENGINE.endswith(CACHED_SESSIONS):
            # A page may read what it has just written to a session.
            caches[settings.SESSION_CACHE_ALIAS] |= {"BACKEND": IN_MEMORY, "LOCATION": "rendered-sessions"}
        return {
            "CACHING_LAYERS": {},
            "CACHES": caches,
            "MIDDLEWARE": [NOTES, *(name for name in settings.MIDDLEWARE if not name.startswith(LEFT_OUT))],
        }

    def results(self, paths: list[str], often: bool, timeout_s: float) -> dict[str, Any]:
        """The output by path; each path is rendered once before the first path is rendered again."""
        begun = time.monotonic()
        # Middleware is made once: that of static files looks at each file.
        handler = Client().handler
        renderings = {path: [_render(handler, path, timeout_s=timeout_s)] for path in paths}
        paths = [path for path in paths if not renderings[path][0].get("hung")]
        # The project's own cache is empty, and then it has what the first rendering stored.
        with override_settings(CACHES=caches_of(IN_MEMORY)):
            handler = Client().handler
            for number in range(OFTEN):
                if number >= LEAST and not often and time.monotonic() - begun > CHEAP_S:
                    break
                if often and number in PAUSES:
                    time.sleep(PAUSE_S)
                port = PORT if number % 2 else ""
                for path in paths:
                    renderings[path].append(_render(handler, path, port))
        return {path: _compared(*outputs) for path, outputs in renderings.items()}


def caches_of(backend: str) -> dict[str, Any]:
    """The caches of the settings with another backend; all other values that the project's code reads stay."""
    caches = settings.CACHES.items()
    return {alias: {**cache, "BACKEND": backend, "LOCATION": f"rendered-{alias}"} for alias, cache in caches}


def visitor() -> Client:
    """A first-time visitor, with the headers of a request to a server."""
    return Client(raise_request_exception=False, SERVER_NAME=HOST, HTTP_HOST=HOST, **USUAL)


def _pieces(response: Any) -> list[bytes | None]:
    """Yield the pieces of a stream, then None if the stream does not end within a few seconds."""
    end, pieces = time.monotonic() + STREAM_S, []
    for piece in response.streaming_content:
        if time.monotonic() > end:
            return [*pieces, None]
        pieces.append(piece)
    return pieces


def _render(handler: Any, path: str, port: str = "", timeout_s: float = 0) -> dict[str, Any]:
    """A page by the handler of a Client, and its headers, without a port after the host in either."""
    client = visitor()
    client.handler = handler
    host = {}
    if port:
        host = {"HTTP_HOST": f"{HOST}:{port}", "SERVER_PORT": port}
    try:
        with time_limit(timeout_s):
            response = client.get(path, **host)
    except (Exception, NoResponse) as error:
        # That of the site's page for errors itself, or the page hangs.
        page = {"status": 500, "content_type": "", "body": "", "error": in_words(error), "headers": {}}
        if isinstance(error, NoResponse):
            return page | {"hung": True}
        return page
    pieces: list[bytes | None] = []
    if response.streaming:
        pieces = _pieces(response)
    else:
        pieces.append(response.content)
    body = b"".join(filter(None, pieces)).decode("utf-8", errors="surrogateescape")
    headers = {name.lower(): _without_port(value) for name, value in response.headers.items()}
    raised = getattr(response, "exc_info", None)
    error = None
    if raised:
        error = in_words(raised[1])
    elif None in pieces:
        error = ENDLESS
    page = {
        "status": response.status_code,
        "content_type": response.headers.get("Content-Type", ""),
        "body": _without_port(body),
        "headers": headers,
    }
    more = {
        "location": headers.get("location"),
        "error": error,
        "streams": response.streaming,
        "reads": names_read(response),
    }
    return page | {name: value for name, value in more.items() if value}


def _without_port(text: str) -> str:
    return text.replace(f"{HOST}:{PORT}", HOST)


def _compared(page: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """The first rendering, and the differences of the others with the same status."""
    headers = page.pop("headers")
    others = [other for other in others if other["status"] == page["status"]]
    again: dict[str, None] = {}
    varying: set[str] = set()
    for other in others:
        if other["body"] != page["body"]:
            again[other["body"]] = None
        varying |= {name for name, _ in other["headers"].items() ^ headers.items()}
    more = {"again": list(again), "varying": sorted(varying - NEW_EACH_TIME)}
    return page | {name: value for name, value in more.items() if value}
