"""What visitors requested, from a file of steps, a browser's HAR file or a web server's access log."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import itertools
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from bench.errors import BenchError
from bench.measure.run.recorded_secrets import has_secret

# As many requests as a workload needs, from the beginning of a recording.
MAX_REQUESTS = 20_000
# So many more are read, for a server writes a line when a request ends: a slow one comes after those that began later.
LATE_REQUESTS = 1_000
MAX_LINE_BYTES = 64 * 1024
# Of the epoch: in the year 5138.
FAR_AHEAD_S = 1e11
# Answers that a page load may have; a browser that asks again gets 304 for what the load tool gets 200.
GOOD = (200, 304)
# What stays as it is in the path and the query of an address; a percent sign begins an escape.
SAFE = "!$%&'()*+,/:;=?@[]~"
# The host of data: addresses and of those of browsers' extensions.
NO_SITE = "-"
GZIP = b"\x1f\x8b"
# Of a line only the time, the request and its status matter, whatever stands between and behind them: most servers'
# formats have that in common, and some have the status before the request.
_TIME = re.compile(r"(\d\d/\w{3}/\d{4})[: ](\d\d:\d\d:\d\d)(\.\d+)?(?: ([+-]\d{4}))?")
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_REQUEST = re.compile(
    r'"(?P<method>[A-Z]+) (?P<target>(?:[^"\\]|\\.)*?)(?: (?:HTTP/)?\d(?:\.\d)?)?"(?: (?P<status>\d{3})\b)?'
)
# A format that quotes nothing: `[Thu Nov 26 12:00:01 2026] GET / => generated 512 bytes ... (HTTP/1.1 200)`.
_CTIME = re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}")
_BARE_REQUEST = re.compile(r"\] (?P<method>[A-Z]+) (?P<target>.*?) => generated .*? \(\S+ (?P<status>\d{3})\)")
_STATUS_BEFORE = re.compile(r" (\d{3}) ")
# `www.example.com:443 192.0.2.1 - - [...]`, as logs of several sites begin, or `192.0.2.1 www.example.com - [...]`.
_VIRTUAL_HOST = re.compile(
    r"(?:^|\s)(?=[^\s:]*[a-z])([a-z0-9.-]+)(?::\d+)? [\da-f]*[.:][\da-f.:]+ "
    r"|^[\da-f]*[.:][\da-f.:]+ ((?=[^\s:]*[a-z])[a-z0-9-]+\.[a-z0-9.-]+)(?::\d+)? ",
    re.I,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")
# What lines of JSON call a value, in small letters, by several servers and what collects their logs.
_NAMES = {
    "time": ("ts", "time_iso8601", "time_local", "msec", "startutc", "time", "timestamp", "@timestamp"),
    "method": ("method", "request_method", "requestmethod"),
    "target": ("request_uri", "uri", "requestpath", "path", "url"),
    "query": ("args", "query_string"),
    "host": ("host", "http_host", "requesthost", "server_name"),
    "status": ("status", "downstreamstatus", "status_code"),
}
# Where a container's log has the line that the server wrote.
_WRAPPED = ("log", "message")


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
    """One that was recorded; `host` is empty where the recording does not say it."""

    time_s: float
    method: str
    host: str
    path: str
    status: int

    @property
    def problem(self) -> str:
        """Why a load tool cannot repeat it, or an empty string when it can."""
        if self.method != "GET":
            return "requests that are no GET"
        if self.status not in GOOD:
            return "requests without status 200"
        return "requests that look like a secret" if has_secret(self.path) else ""


def steps(path: Path) -> tuple[str, ...]:
    """The steps in a file, one a line; # begins a comment."""
    with _opened(path) as file:
        lines = [line.decode("utf-8-sig", "replace").strip() for line in file]
    return tuple(line for line in lines if line and not line.startswith("#"))


def har(path: Path) -> Recording:
    """The requests of a HAR 1.2 file to the host with most entries.

    http://www.softwareishard.com/blog/har-12-spec/
    """
    with _opened(path) as file:
        content = file.read()
    try:
        entries = list(json.loads(content.decode(json.detect_encoding(content), "replace"))["log"]["entries"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise BenchError(f"{path}: no HAR file: {type(error).__name__}: {error}; save one in a browser") from None
    return _recording(path, map(_of_har, entries), "entries that cannot be read")


def _of_har(entry: Any) -> _Request | None:
    """The request of an entry; None where it lacks something, or has what cannot be read."""
    try:
        url = urlsplit(entry["request"]["url"])
        begun = datetime.fromisoformat(entry["startedDateTime"]).timestamp()
        method, status = entry["request"]["method"].upper(), int(entry["response"]["status"])
        if status <= 0:
            return None
        if url.scheme not in ("http", "https"):
            return _Request(begun, method, NO_SITE, "/", status)
        return _Request(begun, method, _host(url), _path(url), status)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return None


def access_log(path: Path) -> Recording:
    """The requests of a web server's access log, which may be compressed with gzip, and large."""
    with _opened(path) as file:
        lines = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
        texts = (line.decode("utf-8-sig", "surrogateescape").strip() for line in lines)
        return _recording(path, (_of_line(line) for line in texts if line), "lines of another format")


def _of_line(line: str) -> _Request | None:
    """The request of a line; None where it cannot be read."""
    try:
        return _of_json(json.loads(line)) if line.startswith("{") else _of_text(line)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _of_json(entry: dict[str, Any]) -> _Request | None:
    wrapped = next((entry[name] for name in _WRAPPED if isinstance(entry.get(name), str)), "")
    if found_there := _of_line(wrapped.strip()):
        return found_there
    asked = entry.get("request")
    values = {**entry, **(asked if isinstance(asked, dict) else {})}
    values = {name.lower(): value for name, value in values.items()}
    found = {what: next((str(values[it]) for it in names if it in values), "") for what, names in _NAMES.items()}
    target = found["target"]
    if isinstance(asked, str) and " " in asked:
        found["method"], target = asked.split(" ")[:2]
    elif found["query"].strip("-") and "?" not in target:
        target += f"?{found['query']}"
    host, path = found["host"].partition(":")[0].lower(), _path(_target(target))
    return _Request(_time(found["time"]), found["method"], host, path, int(found["status"]))


# Busy servers write many lines in a second.
@functools.lru_cache
def _time(text: str) -> float:
    """The seconds of a time in one of the usual forms, or a number of them."""
    if time := _TIME.search(text):
        begun = datetime.strptime(f"{time[1]} {time[2]} {time[4] or '+0000'}", "%d/%b/%Y %H:%M:%S %z")
        return begun.timestamp() + float(time[3] or 0)
    if _CTIME.match(text):
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").timestamp()
    if _ISO_TIME.match(text):
        return datetime.fromisoformat(text).timestamp()
    # Some loggers count milliseconds.
    return float(text) / (1000 if float(text) > FAR_AHEAD_S else 1)


def _of_text(line: str) -> _Request | None:
    time = _TIME.search(line) or _CTIME.search(line) or _ISO_TIME.search(line)
    if not time:
        return None
    request = _REQUEST.search(line, time.end()) or _BARE_REQUEST.search(line, time.end())
    if not request:
        return None
    status = request["status"]
    if not status:
        before = _STATUS_BEFORE.search(line, time.end(), request.start())
        if not before:
            return None
        status = before[1]
    begun = _time(time[0])
    url = _target(_unescaped(request["target"]))
    named = _VIRTUAL_HOST.search(line, 0, time.start())
    host = _host(url) or (str(named[1] or named[2]).lower() if named else "")
    return _Request(begun, request["method"], host, _path(url), int(status))


def _target(text: str) -> SplitResult:
    """What a request line names: a path, which may begin with two slashes, or a whole address."""
    if not text.startswith("/"):
        return urlsplit(text)
    path, _, query = text.partition("?")
    return SplitResult("", "", path, query, "")


def _unescaped(text: str) -> str:
    r"""What servers write as `\x22` or `\"`; a byte that is no ASCII stays one (surrogateescape)."""
    return _ESCAPE.sub(
        lambda found: bytes.fromhex(found[1]).decode("ascii", "surrogateescape") if found[1] else found[2], text
    )


def _host(url: SplitResult) -> str:
    """The host of an address, with a port that is not the usual one."""
    usual = {"http": 80, "https": 443}.get(url.scheme)
    return (url.hostname or "") + (f":{url.port}" if url.port not in (None, usual) else "")


def _path(url: SplitResult) -> str:
    """The path of an address with its query, percent-encoded as a browser sends it."""
    found = (url.path or "/") + (f"?{url.query}" if url.query else "")
    if not found.startswith("/"):
        raise ValueError(found)
    return quote(found, SAFE, errors="surrogateescape")


def _recording(path: Path, requests: Iterable[_Request | None], odd: str) -> Recording:
    """Those of the host with most requests that a load tool can repeat; `odd` says what could not be read."""
    seen, left_out = Counter[str](), defaultdict[str, Counter[str]](Counter)
    kept = defaultdict[str, list[_Request]](list)
    unread = 0
    for each in requests:
        if each is None:
            unread += 1
            continue
        seen[each.host] += 1
        if problem := each.problem:
            left_out[each.host][problem] += 1
        else:
            kept[each.host].append(each)
            if len(kept[each.host]) > MAX_REQUESTS + LATE_REQUESTS:
                break
    if unread and not seen:
        raise BenchError(f"{path}: {unread} {odd} and none that can be read; name a HAR file as har, a log as log")
    host = max((name for name in seen if name != NO_SITE), key=seen.__getitem__, default="")
    found = sorted(kept[host], key=lambda each: each.time_s)
    if not found:
        raise BenchError(f"{path}: no GET that was answered with 200: name another recording")
    counts = {odd: unread, "requests to other hosts": sum(seen.values()) - seen[host], **left_out[host]}
    notes = [f"{what} ({count:,})" for what, count in counts.items() if count]
    if len(found) > MAX_REQUESTS:
        notes.append(f"all requests after the first {MAX_REQUESTS:,}")
        del found[MAX_REQUESTS:]
    words = (f"left out of {path.name}: {', '.join(notes)}",) if notes else ()
    return Recording(tuple(each.path for each in found), tuple(_spread([each.time_s for each in found])), words)


def _spread(times_s: list[float]) -> Iterator[float]:
    """Seconds from the first; most logs have whole seconds, whose requests were not made all at once."""
    whole = all(time_s.is_integer() for time_s in times_s)
    for time_s, alike in itertools.groupby(times_s):
        number = len(list(alike))
        step = 1 / number if whole else 0
        yield from (time_s - times_s[0] + i * step for i in range(number))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """The file's bytes, unpacked where gzip has packed them. Raises BenchError when it cannot be read."""
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            yield gzip.GzipFile(fileobj=file) if packed else file
    except (OSError, EOFError, zlib.error) as error:
        if reason := getattr(error, "strerror", None):
            remedy = "correct its name or rights in [tool.benchapp.workloads]"
        else:
            reason, remedy = str(error), "it is damaged or not yet whole: copy it again, or unpack what there is"
        raise BenchError(f"{path}: {reason}; {remedy}") from None
