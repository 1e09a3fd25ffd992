"""What visitors requested, from a file of steps, a browser's HAR file or a web server's access log."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from apachelogs import COMBINED, InvalidEntryError, LogParser

from bench.errors import BenchError

# As many requests as a workload needs, from the beginning of a log.
MAX_REQUESTS = 20_000
# Answers that a page load may have; a browser that asks again gets 304 for what the load tool gets 200.
GOOD = (200, 304)
# A query with a name that holds one of these is a secret, and goes into no result.
SECRETS = (
    "token",
    "passw",
    "pwd",
    "secret",
    "sess",
    "signature",
    "apikey",
    "accesskey",
    "credential",
    "auth",
    "code",
    "email",
)
# Or is one of these.
SECRET_NAMES = ("key", "sig", "sid", "state", "jwt", "otp", "pass", "hash", "ticket")


@dataclass(frozen=True)
class Recording:
    """Requests in their order.

    paths    with their queries
    times_s  when each was made, in seconds from the first
    notes    what was left out, with counts
    """

    paths: tuple[str, ...]
    times_s: tuple[float, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Request:
    time_s: float
    method: str
    path: str
    status: int


def steps(path: Path) -> tuple[str, ...]:
    """The steps in a file, one a line; # begins a comment."""
    lines = (line.strip() for line in _text(path).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def har(path: Path) -> Recording:
    """The requests of a HAR 1.2 file to the host of its first one.

    http://www.softwareishard.com/blog/har-12-spec/
    """
    try:
        entries = json.loads(_text(path))["log"]["entries"]
        found = [(urlsplit(entry["request"]["url"]), entry) for entry in entries]
        host = found[0][0].netloc if found else ""
        own = [_of_har(url.path or "/", url.query, entry) for url, entry in found if url.netloc == host]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BenchError(f"{path}: no HAR file: {type(error).__name__}: {error}; save one in a browser") from None
    other = len(found) - len(own)
    return _recording(path, own, [f"{other} requests to other hosts"] if other else [])


def _of_har(path: str, query: str, entry: dict[str, Any]) -> _Request:
    begun = datetime.fromisoformat(entry["startedDateTime"]).timestamp()
    where = f"{path}?{query}" if query else path
    return _Request(begun, entry["request"]["method"], where, int(entry["response"]["status"]))


def access_log(path: Path) -> Recording:
    """The requests of an access log in the combined log format."""
    odd = Counter[str]()
    found = list(_of_log(_text(path).splitlines(), odd))
    if odd["lines"] and not found:
        raise BenchError(f"{path}: no line in the combined format: write the log with it, or name another log")
    return _recording(path, found, [f"{odd['lines']} lines of another format"] if odd["lines"] else [])


def _of_log(lines: Iterable[str], odd: Counter[str]) -> Iterator[_Request]:
    parser = LogParser(COMBINED)
    for line in lines:
        if not line.strip():
            continue
        try:
            entry = parser.parse(line)
            method, path, _ = (entry.request_line or "").split(" ")
        except (InvalidEntryError, ValueError):
            odd["lines"] += 1
            continue
        yield _Request(entry.request_time.timestamp(), method, path, int(entry.final_status))


def _recording(path: Path, found: list[_Request], notes: list[str]) -> Recording:
    """The GETs among the requests that a load tool can repeat."""
    gets = [each for each in found if each.method == "GET"]
    good = [each for each in gets if each.status in GOOD and each.path.startswith("/") and each.path.isascii()]
    public = [each for each in good if not _has_secret(each.path)]
    if not public:
        raise BenchError(f"{path}: no GET that was answered with 200: name another recording")
    # A server writes a line when a request ends: in the file a slow one comes after those that began later.
    kept = sorted(public, key=lambda each: each.time_s)[:MAX_REQUESTS]
    first = kept[0].time_s
    for count, what in (
        (len(found) - len(gets), "requests that are no GET"),
        (len(gets) - len(good), "requests without status 200, or whose path is not percent-encoded"),
        (len(good) - len(public), "requests whose query looks like a secret"),
        (len(public) - len(kept), f"requests after the first {MAX_REQUESTS:,}"),
    ):
        notes += [f"{count} {what}"] if count else []
    left_out = (f"left out of {path.name}: {', '.join(notes)}",) if notes else ()
    return Recording(tuple(each.path for each in kept), tuple(each.time_s - first for each in kept), left_out)


def _has_secret(path: str) -> bool:
    names = [
        re.sub(r"[^a-z0-9]", "", name.lower()) for name, _ in parse_qsl(urlsplit(path).query, keep_blank_values=True)
    ]
    return any(name in SECRET_NAMES or any(word in name for word in SECRETS) for name in names)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig", errors="replace")
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}; correct its name in [tool.benchapp.workloads]") from None
