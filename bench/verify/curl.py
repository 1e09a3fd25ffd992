"""The last request of a check as a curl command, so that a reader can repeat it against `up --port 8000`."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass

# Where `up --port 8000` serves.
ORIGIN = "127.0.0.1:8000"
# Cookies of accounts and tokens are long and random; they mean nothing once the accounts are removed.
LONGEST_COOKIE = 24


@dataclass(frozen=True)
class Sent:
    """One request as it was built."""

    scheme: str
    method: str
    path: str | bytes
    headers: tuple[tuple[str, str], ...]
    has_body: bool
    host: str | None


_last = threading.local()


def note(sent: Sent) -> None:
    """Remember the last request of this thread."""
    _last.sent = sent


def forget() -> None:
    """Forget it, before another check."""
    _last.sent = None


def command() -> str | None:
    """The last request of this thread as a curl command; None without one, or when curl cannot send its bytes."""
    sent: Sent | None = getattr(_last, "sent", None)
    return as_command(sent) if sent else None


def as_command(sent: Sent) -> str | None:
    """A request as a curl command; None when curl cannot send its bytes."""
    path = sent.path.decode("latin-1") if isinstance(sent.path, bytes) else sent.path
    headers = [(name, _shown(name, value)) for name, value in sent.headers]
    if sent.host is not None and sent.host:
        headers.insert(0, ("Host", sent.host))
    if not all(text.isascii() and text.isprintable() for text in (path, *(value for _, value in headers))):
        return None
    words = ["curl", "-i", "--path-as-is", *(["-k"] if sent.scheme == "https" else [])]
    words += ["--head"] if sent.method == "HEAD" else ["-X", sent.method] if sent.method != "GET" else []
    for name, value in headers:
        words += ["-H", f"{name}: {value}" if value else f"{name};"]
    words += ["--data", "..."] if sent.has_body else []
    return shlex.join([*words, f"{sent.scheme}://{ORIGIN}{path}"])


def _shown(name: str, value: str) -> str:
    """A header's value without secrets."""
    if name.lower() in ("authorization", "x-csrftoken"):
        return "..."
    if name.lower() != "cookie":
        return value
    return re.sub(rf"=[^;]{{{LONGEST_COOKIE},}}", "=...", value)


def pairs(headers: Mapping[str, str] | object) -> tuple[tuple[str, str], ...]:
    """Headers as pairs; those of an iterator cannot be read twice and are left out."""
    if isinstance(headers, Mapping):
        return tuple((str(name), str(value)) for name, value in headers.items())
    return tuple(headers) if isinstance(headers, (list, tuple)) else ()
