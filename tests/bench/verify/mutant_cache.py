"""A right cache of whole pages in front of the real site; a mutation replaces one of its RULES."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FORBIDDEN = {"private", "no-store", "no-cache", "max-age=0", "s-maxage=0", "must-revalidate", "max-age=1", "max-age=-5"}
NEVER_CACHED = ("/static/", "/login/", "/healthz", "/__probe__/inside", "/__probe__/entries", "/__probe__/connections")
WRITES = ("/__probe__/rows/", "/__probe__/purge/", "/posts/")
PROBE_RESPONSE = "/__probe__/answer/"
SILENT = ("/look/", "/roll-back/", "-silently/")
HTML = "text/html"


@dataclass(frozen=True)
class Request:
    """A request with its path as sent, its port, and the address of its client."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = b""
    port: int = 80
    client: str = "127.0.0.1"

    def header(self, name: str) -> str:
        return self.headers.get(name.lower(), "")


@dataclass(frozen=True)
class Response:
    """A response; `streamed` if received in pieces."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    streamed: bool = False

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name.lower())

    def names(self, name: str) -> set[str]:
        return {word.partition('="')[0] for word in "".join(self.header(name).lower().split()).split(",")} - {""}

    def without(self, *names: str) -> Response:
        return replace(self, headers=tuple(pair for pair in self.headers if pair[0].lower() not in names))

    def having(self, **headers: str) -> Response:
        """Replace these headers, spelt with underscores."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        bare = self.without(*(name.lower() for name in given))
        return replace(bare, headers=(*bare.headers, *given.items()))


OTHER_KINDS = ("host", "cookie", "x-forwarded-for")
# Properties that a page may depend on, by kind of check.
VISITORS: dict[str, Callable[[Request], str]] = {
    "address": lambda request: request.client + request.header("x-forwarded-for"),
    "host": lambda request: request.header("host"),
    "cookies": lambda request: request.header("cookie"),
    "headers": lambda request: str([pair for pair in sorted(request.headers.items()) if pair[0] not in OTHER_KINDS]),
}


def key_without(*kinds: str) -> Callable[[Request], str]:
    """The path, and a visitor's properties without these kinds."""

    def key(request: Request) -> str:
        coding = request.header("accept-encoding") if "/coded/" in request.path else ""
        parts = [read(request) for kind, read in VISITORS.items() if kind not in kinds] if _shows(request) else []
        return "|".join([request.path, coding, *parts]) if coding or parts else request.path

    return key


def _shows(request: Request) -> bool:
    """True if a probe page shows something of its visitor."""
    if not request.path.startswith(PROBE_RESPONSE):
        return False
    spelt = request.path.removeprefix(PROBE_RESPONSE).partition("/")[0]
    try:
        decoded = json.loads(base64.urlsafe_b64decode(spelt + "=" * (-len(spelt) % 4)))
    except ValueError:
        return False
    return bool(decoded.get("shows"))


Rule = Callable[..., Any]
# By what one kind of cache is told not to store a page.
OF_OTHERS = ("cdn-cache-control", "surrogate-control", "x-accel-expires", "clear-site-data")
# Conditions for a cached response, and for storing a response.
SERVED: dict[str, Rule] = {
    "host": lambda request: request.header("host").partition(":")[0] in ("127.0.0.1", "localhost"),
    "method": lambda request: request.method in ("GET", "HEAD"),
    "query": lambda request: not request.query,
    "authorization": lambda request: not request.header("authorization"),
    "script": lambda request: not (request.header("hx-request") or request.header("x-requested-with")),
    "origin": lambda request: not request.header("origin"),
    "session": lambda request: "sessionid" not in request.header("cookie"),
    # As of a site whose public pages are those below /__probe__/.
    "public": lambda request: not request.path.startswith("/__probe__aside/"),
}
STORED: dict[str, Rule] = {
    "stored-method": lambda request, response: request.method == "GET",
    "stored-body": lambda request, response: not request.body,
    "stored-port": lambda request, response: request.header("host").endswith(f":{request.port}"),
    "stored-authorization": lambda request, response: not request.header("authorization"),
    "stored-script": lambda request, response: not request.header("hx-target"),
    "stored-session": lambda request, response: "sessionid" not in request.header("cookie"),
    "status": lambda request, response: response.status == 200,
    "kind": lambda request, response: response.header("content-type").startswith((HTML, "text/plain")),
    "cookies": lambda request, response: not response.header("set-cookie"),
    "vary": lambda request, response: response.names("vary") <= {"cookie", "accept-encoding"},
    "control": lambda request, response: not response.names("cache-control") & FORBIDDEN,
    "control-of-others": lambda request, response: not any(response.header(name) for name in OF_OTHERS),
    "lifetime": lambda request, response: not response.header("expires") and not response.header("age"),
    # Its hits say no Age.
    "max-age": lambda request, response: not response.header("cache-control").startswith("max-age="),
    "nonce": lambda request, response: (
        b"'nonce-" not in response.body
        and "'nonce-" not in response.header("content-security-policy")
        and not response.header("content-security-policy-report-only")
    ),
    "whole": lambda request, response: not response.streamed,
}
# All rules, with those of names, times and files. A mutation replaces one.
RULES: dict[str, Rule] = {
    **SERVED,
    **STORED,
    "key": key_without(),
    "stored": lambda request, response: response,
    "hit": lambda response: response,
    "late": lambda before, now: before == now,
    "coalesces": lambda request: True,
    "fresh": lambda age_s, ttl_s: age_s <= ttl_s,
    "gone": lambda response, stored: response,
    "invalidates": lambda request: not request.path.endswith(SILENT),
    "old": lambda age_s: True,
    "early": lambda request: False,
    "stale": lambda key: True,
    "file-name": lambda key: f"{abs(hash(key))}",
    "temporary": lambda body: body,
    "file-mode": lambda: 0o644,
    "folder-mode": lambda: 0o755,
}


class Cache:
    """The pages in memory, and a file for each, as in layers with files."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.rules = dict(RULES)
        self.ttl_s = 60.0
        self.pages: dict[str, tuple[Response, float]] = {}
        self.purged: dict[str, tuple[Response, float]] = {}
        self.generation = 0
        # Whether the service responds, and has room.
        self.works = self.has_room = True
        self.locks: defaultdict[tuple[str, int], threading.Lock] = defaultdict(threading.Lock)
        self.files_lock = threading.Lock()

    def respond(self, request: Request, render: Callable[[], Response]) -> Response:
        """The cached page, or a rendered one, stored if allowed."""
        if not all(self.rules[name](request) for name in SERVED) or request.path.startswith(NEVER_CACHED):
            is_invalidating = (
                request.method == "POST" and request.path.startswith(WRITES) and self.rules["invalidates"](request)
            )
            if early := is_invalidating and self.rules["early"](request):
                self.purge()
            response = render()
            if is_invalidating and not early:
                self.purge()
            return response
        key = self.rules["key"](request)
        if stored := self._stored(key):
            return self.rules["hit"](stored)
        with self.locks[key, self.generation if self.rules["coalesces"](request) else secrets.randbits(64)]:
            if stored := self._stored(key):
                return self.rules["hit"](stored)
            before = self.generation
            response = render()
            storable = all(self.rules[name](request, response) for name in STORED)
            if storable and self.rules["late"](before, self.generation):
                self.store(key, self.rules["stored"](request, response))
            return self.rules["gone"](response, self.pages.get(key, (response, 0))[0])

    def _stored(self, key: str) -> Response | None:
        response, at = self.pages.get(key, (None, 0.0))
        return response if self.works and self.rules["fresh"](time.monotonic() - at, self.ttl_s) else None

    def store(self, key: str, response: Response) -> None:
        if not self.works or not self.has_room:
            return
        self.pages[key] = response, time.monotonic()
        # One at a time: of many temporary files at once the store would be too large.
        with self.files_lock:
            pages = self.folder / "pages"
            pages.mkdir(exist_ok=True)
            pages.chmod(self.rules["folder-mode"]())
            path, new = pages / self.rules["file-name"](key), pages / f".{secrets.token_hex(8)}"
            new.write_bytes(self.rules["temporary"](response.body))
            new.chmod(self.rules["file-mode"]())
            new.replace(path)
        if self.rules["file-name"] is RULES["file-name"]:
            timer = threading.Timer(self.ttl_s, lambda: path.unlink(missing_ok=True))
            timer.daemon = True
            timer.start()

    def empty(self) -> None:
        self.pages = {}
        shutil.rmtree(self.folder / "pages", ignore_errors=True)

    def purge(self) -> None:
        """Remove the stale pages after a write: all of them."""
        self.generation += 1
        now = time.monotonic()
        stale = {key for key, (_, at) in self.pages.items() if self.rules["stale"](key) and self.rules["old"](now - at)}
        self.purged |= {key: self.pages[key] for key in stale}
        self.pages = {key: page for key, page in self.pages.items() if key not in stale}


def rows_left(remove: bool = False) -> int:
    """Number of probes' rows; `remove` removes the rows, and comments of the checks' accounts."""
    from benchapp.models import Author, Comment

    rows = Author.objects.filter(name__startswith="probe-")
    if remove:
        rows.delete()
        Comment.objects.filter(name__startswith="verify-").delete()
    return rows.count()
