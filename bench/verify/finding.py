"""Findings of a check: wrong responses with their requests, figures, and reasons for skipping."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

# Reasons to skip a check on a --target: without --database, or without the probe views.
NEEDS_DATABASE = "it needs the site's database: give --database as the URL that the running site uses"
NEEDS_PROBES = "it needs the probe views: start the site with the app `bench.serve.inside`, see docs/cache-safety.md"
NEEDS_OWN = "it needs a separate deployment: verify a STACK instead of a --target"
NEEDS_ROWS = "the project has no rows that a probe may write"
# Port of the command that serves a deployment again: the verified one is gone when its results are read.
UP_PORT = 8000
# Cookies of accounts and tokens are long and random; they mean nothing once the accounts are removed.
LONGEST_COOKIE = 24
LONGEST_PATH = 100
LONGEST_BODY = 200
# Headers sent with each form.
USUAL = ("Content-Type", "Origin", "Referer")
SECRET = ("authorization", "x-csrftoken")
SECRET_FIELDS = ("token", "password")


@dataclass(frozen=True)
class Sent:
    """One request as built; `origin` is the target, such as http://127.0.0.1:8000.

    A curl command lets a reader repeat the failure.
    """

    origin: str
    method: str
    path: str | bytes
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    host: str | None = ""
    version: str = "1.1"

    def __str__(self) -> str:
        """The request in words, such as `GET /about/ with Accept-Encoding: gzip`."""
        path = self.path if isinstance(self.path, str) else self.path.decode("ascii", "backslashreplace")
        if len(path) > LONGEST_PATH:
            path = f"{path[:40]}...{path[-40:]} ({len(path)} characters)"
        unusual = [pair for pair in self.headers if pair[0] not in USUAL]
        given = [f"{name}: {_shown(name, value)[:60]}" for name, value in unusual]
        if self.host is None:
            given.insert(0, "no Host")
        elif self.host:
            given.insert(0, f"Host: {self.host[:40]}")
        said = ", ".join(given).encode("ascii", "backslashreplace").decode()
        return f"{self.method} {path}" + (f" with {said}" if said else "")

    @property
    def command(self) -> str:
        """The curl command for bash, with the bytes of the path unchanged."""
        path = self.path.decode("utf-8", "surrogateescape") if isinstance(self.path, bytes) else self.path
        headers = [(name, _shown(name, value)) for name, value in self.headers]
        if self.host != "":
            headers.insert(0, ("Host", self.host or ""))
        words = ["curl", "-i", "--path-as-is", *(["-k"] if self.origin.startswith("https:") else [])]
        words += ["--http1.0"] if self.version == "1.0" else []
        if self.method == "HEAD":
            words += ["--head"]
        elif self.method != "GET":
            words += ["-X", self.method]
        for name, value in headers:
            # curl leaves a header out that ends with a colon, and sends an empty one for a semicolon.
            empty = ":" if name == "Host" and self.host is None else ";"
            words += ["-H", f"{name}: {value}" if value else f"{name}{empty}"]
        # In an address curl would refuse some bytes, and take others for a pattern or a fragment.
        plain = path.startswith("/") and re.fullmatch(r"[!-~]*", path) and not re.search(r"[][{}#]", path)
        address = [f"{self.origin}{path}"] if plain else ["--request-target", path, f"{self.origin}/"]
        return " ".join([*map(_quoted, words), *self._data(), *map(_quoted, address)])

    def _data(self) -> list[str]:
        """Arguments for the body: a short body without secrets, otherwise one of the same length."""
        if self.body is None:
            return []
        text = self.body.decode("utf-8", "surrogateescape")
        if any(word in text.lower() for word in SECRET_FIELDS):
            return ["--data", "..."]
        if len(text) > LONGEST_BODY:
            return ["--data-binary", f"@<(head -c {len(self.body)} /dev/zero)"]
        return ["--data-raw", _quoted(text)]


def _quoted(word: str) -> str:
    """Quote a word for bash, with unprintable bytes escaped."""
    if word.isascii() and word.isprintable():
        return shlex.quote(word)
    raw = word.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(it) if 32 <= it < 127 and it not in b"'\\" else f"\\x{it:02x}" for it in raw) + "'"


def _shown(name: str, value: str) -> str:
    """A header's value without secrets."""
    if name.lower() in SECRET:
        return "..."
    return re.sub(rf"=[^;]{{{LONGEST_COOKIE},}}", "=...", value) if name.lower() == "cookie" else value


@dataclass(frozen=True)
class Mismatch:
    """One wrong response: expected, got, and the request, if a request is to blame.

    excuse  the name of an excuse declared by the check; empty: no project is excused
    """

    expected: str
    got: str
    sent: Sent | None = None
    excuse: str = ""


@dataclass(frozen=True)
class Figure:
    """A measurement that is neither right nor wrong; the unit is in its name."""

    name: str
    value: float | int | None


class NotTried(Exception):
    """The check cannot run here, and why. A check yields NotTried to go on, or raises NotTried to end."""


Finding = Mismatch | Figure | NotTried
