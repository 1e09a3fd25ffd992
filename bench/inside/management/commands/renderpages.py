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

from bench.inside.error_words import in_words
from bench.inside.reading import NoteNames, names_read

HOST = "127.0.0.1"
STREAM_S = 3
ENDLESS = f"its stream does not end within {STREAM_S} s"
LEFT_OUT = ("benchapp.caching.", "debug_toolbar.")
NOTES = f"{NoteNames.__module__}.{NoteNames.__qualname__}"


class Command(BaseCommand):
    """Prints the pages as one JSON object: path to status, content type, body, location of a redirect, error,
    `again`, the body of a second rendering, where it differs, and the names of headers and cookies that it `reads`."""

    help = "Render pages as an anonymous visitor gets them, caching layers off; prints one JSON object."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="path of a URL, with or without a query")

    def handle(self, *, paths: list[str], **options: Any) -> None:
        for path in paths:
            if not path.startswith("/"):
                raise CommandError(f"{path!r} is not a path: begin it with a slash")
        with override_settings(ALLOWED_HOSTS=[HOST], SECURE_SSL_REDIRECT=False, **self.settings()):
            self.stdout.write(json.dumps(self.found(paths)))

    def settings(self) -> dict[str, Any]:
        """Settings without caching layers, redirects to HTTPS and developer tools, with notes of what pages read."""
        dummy = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
        return {
            "CACHING_LAYERS": {},
            "CACHES": dict.fromkeys(settings.CACHES, dummy),
            "MIDDLEWARE": [NOTES, *(name for name in settings.MIDDLEWARE if not name.startswith(LEFT_OUT))],
        }

    def found(self, paths: list[str]) -> dict[str, Any]:
        """What is printed, by path; all are rendered before the first one is rendered again."""
        pages = {path: _render(path) for path in paths}
        for path, page in pages.items():
            if (again := _render(path)["body"]) != page["body"]:
                page["again"] = again
        return pages


def visitor() -> Client:
    """A visitor who comes for the first time."""
    return Client(raise_request_exception=False, SERVER_NAME=HOST)


def _pieces(response: Any) -> list[bytes | None]:
    """What it streams, and None in the end where that does not come within a few seconds: some streams never end."""
    end, found = time.monotonic() + STREAM_S, []
    for piece in response.streaming_content:
        if time.monotonic() > end:
            return [*found, None]
        found.append(piece)
    return found


def _render(path: str) -> dict[str, Any]:
    try:
        response = visitor().get(path)
    except Exception as error:
        # That of the site's page for errors itself.
        return {"status": 500, "content_type": "", "body": "", "error": in_words(error)}
    pieces = _pieces(response) if response.streaming else [response.content]
    body = b"".join(filter(None, pieces))
    page = {
        "status": response.status_code,
        "content_type": response.headers.get("Content-Type", ""),
        "body": body.decode(response.charset or "utf-8", errors="surrogateescape"),
    }
    raised = getattr(response, "exc_info", None)
    error = in_words(raised[1]) if raised else ENDLESS if None in pieces else None
    more = {"location": response.headers.get("Location"), "error": error, "reads": names_read(response)}
    return page | {name: value for name, value in more.items() if value}
