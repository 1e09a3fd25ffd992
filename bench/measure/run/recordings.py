"""Requests of visitors, from a file of steps, a browser's HAR file or a web server's access log."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from bench.errors import BenchError
from bench.measure.run import log_formats, packed
from bench.measure.run.log_formats import LoggedRequest
from bench.measure.run.recorded_secrets import has_secret

# As many requests as a workload needs, from the beginning of a recording.
MAX_REQUESTS = 20_000
# Additional requests read, because a server writes a line when a request ends: a slow request comes after later ones.
LATE_REQUESTS = 1_000
MAX_LINE_BYTES = 64 * 1024
# Of a file that tells its kind.
MAX_BEGIN = 256
# Of a line that is shown.
MAX_SHOWN = 300
# Statuses of a successful page load; a browser's repeated request gets 304, the load tool's gets 200.
GOOD = (200, 304)
# The host of data: addresses and of those of browsers' extensions.
NO_SITE = "-"
# The beginning of a whole document of JSON: a list, an object over several lines, or one with a list of entries.
DOCUMENT = re.compile(rb'\s*(\[\s*\{|\{\s*\n|\{\s*"(%s)":\s*\[)' % "|".join(log_formats.LISTS).encode(), re.I)
# So Safari calls what it had.
CACHED = ("Memory Cache", "Disk Cache")
EXAMPLE = '{host} [{time}] "{request}" {} {status}'


@dataclass(frozen=True)
class Recording:
    """Requests in order.

    paths    with their queries
    times_s  seconds from the first request; empty if not recorded
    notes    left-out requests, with counts
    """

    paths: tuple[str, ...]
    times_s: tuple[float, ...]
    notes: tuple[str, ...]


def steps(path: Path) -> tuple[str, ...]:
    """The steps in a file, one a line; # begins a comment."""
    lines = []
    with packed.opened(path) as file:
        for line in file:
            step = line.decode("utf-8-sig", "replace").strip()
            if step and not step.startswith("#"):
                lines.append(step)
    return tuple(lines)


@dataclass(frozen=True)
class _Visit:
    """An entry of a HAR file.

    ended_s      until then, the same request is a retry and not a new one
    is_document  whether the entry is a page; from_cache: whether the browser had it cached
    """

    request: LoggedRequest
    begun_s: float
    ended_s: float
    is_document: bool
    from_cache: bool


def har(path: Path) -> Recording:
    """The requests of a HAR 1.2 file to the host of its first page.

    http://www.softwareishard.com/blog/har-12-spec/
    """
    with packed.opened(path) as file:
        content = file.read()
    try:
        entries = list(json.loads(content.decode(json.detect_encoding(content), "replace"))["log"]["entries"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise BenchError(f"{path}: no HAR file: {type(error).__name__}: {error}; save one in a browser") from None

    visits = list(filter(None, map(_visit, entries)))
    visits.sort(key=lambda visit: visit.begun_s)
    left_out = Counter({"entries that cannot be read": len(entries) - len(visits)})
    requests = []
    ends_s: dict[tuple[str, str], float] = {}
    for visit in visits:
        address = (visit.request.host, visit.request.path)
        if visit.from_cache:
            left_out["entries from the browser's cache"] += 1
        elif visit.begun_s < ends_s.get(address, 0) and address[0] != NO_SITE and not _problem(visit.request):
            left_out["requests that were tried again"] += 1
        else:
            requests.append(visit.request)
            ends_s[address] = visit.ended_s
    return _recording(path, _by_place(requests), left_out, ("", _first_host(visits)))


def _visit(entry: Any) -> _Visit | None:
    """An entry; None if incomplete or unreadable."""
    try:
        url = urlsplit(entry["request"]["url"])
        begun_s = datetime.fromisoformat(entry["startedDateTime"]).timestamp()
        method, status = entry["request"]["method"].upper(), int(entry["response"]["status"])
        if status <= 0:
            return None
        host, path = NO_SITE, "/"
        if url.scheme in ("http", "https"):
            host, path = log_formats.host_of(url), log_formats.path_of(url)
        content = entry["response"].get("content") or {}
        kind = entry.get("_resourceType") or content.get("mimeType") or ""
        # At least a millisecond, so that two of one moment are one.
        ended_s = begun_s + max(float(entry.get("time") or 0), 1) / 1000
        request = LoggedRequest(begun_s, method, host, path, status)
        is_document = kind == "document" or kind.startswith("text/html")
        from_cache = bool(entry.get("_fromCache")) or entry.get("_fetchType") in CACHED
        return _Visit(request, begun_s, ended_s, is_document, from_cache)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return None


def _first_host(visits: list[_Visit]) -> str:
    """The host of the first page; if no entry is marked as a page, the host of the first good response.

    The first page may redirect to a log-in elsewhere, and be of the site that shows the next ones.
    """
    good = [visit for visit in visits if visit.request.status in GOOD and visit.request.host != NO_SITE]
    hosts = {visit.request.host for visit in good if visit.is_document}
    for visit in visits:
        if visit.is_document and visit.request.host in hosts:
            return visit.request.host
    if good:
        return good[0].request.host
    return ""


def access_log(path: Path, fields: str = "") -> Recording:
    """The requests of an access log to the host with most of them; the file may be compressed, and large.

    fields  the format of the lines, if not a known one
    """
    try:
        log_formats.pattern_of(fields or EXAMPLE)
    except ValueError as error:
        raise BenchError(f"{path}: fields {fields!r}: {error}; correct them in [tool.benchapp.workloads]") from None
    left_out = Counter[str]()
    unread: list[str] = []

    def requests() -> Iterator[LoggedRequest]:
        for line, request in log_formats.requests(_lines(file), fields):
            if request:
                yield request
            else:
                left_out["lines of another format"] += 1
                unread[:] = unread or [line]

    with packed.opened(path) as file:
        by_place = _by_place(requests())
    if unread and not by_place.counts:
        # Letters beyond ASCII and what ends a line would not be one line.
        line = unread[0][:MAX_SHOWN].encode("ascii", "backslashreplace").decode()
        say = f"say what a line has, such as fields = '{EXAMPLE}', or name a HAR file as har"
        if fields:
            say = "correct fields"
        raise BenchError(f"{path}: its format is not known: {line}  {say}, in [tool.benchapp.workloads]")
    return _recording(path, by_place, left_out, by_place.busiest())


def _lines(file: BinaryIO) -> Iterator[str]:
    """The lines of a log. A document of JSON, and one with two bytes a character, are read whole."""
    begin: bytes = file.peek(MAX_BEGIN)  # type: ignore[attr-defined]
    text = ""
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = file.read().decode("utf-16", "replace")
    elif DOCUMENT.match(begin.removeprefix(codecs.BOM_UTF8)):
        text = file.read().decode("utf-8-sig", "replace")

    if text:
        for line in log_formats.lines_of_document(text) or text.splitlines():
            yield line.strip()
    for content in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
        yield content.decode("utf-8-sig", "surrogateescape").strip()


def _problem(request: LoggedRequest) -> str:
    """The reason why a load tool cannot repeat the request, or an empty string."""
    if request.method != "GET":
        return "requests that are no GET"
    if request.status not in GOOD:
        return "requests without status 200"
    if has_secret(request.path):
        return "requests that look like a secret"
    return ""


@dataclass
class _RequestsByPlace:
    """Requests by program and host: all requests seen, and the repeatable ones."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    repeatable: defaultdict[tuple[str, str], list[LoggedRequest]] = field(default_factory=lambda: defaultdict(list))
    problems: defaultdict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def busiest(self) -> tuple[str, str]:
        """The busiest program, and its busiest host: others logged the same requests, or other sites'."""
        programs = Counter[str]()
        for (program, _), count in self.counts.items():
            programs[program] += count
        if not programs:
            return "", ""
        (program, _), *_ = programs.most_common(1)
        hosts = [place for place in self.counts if place[0] == program and place[1] != NO_SITE]
        return max(hosts, key=self.counts.__getitem__, default=(program, NO_SITE))


def _by_place(requests: Iterable[LoggedRequest]) -> _RequestsByPlace:
    """The needed part of the requests, by program and host."""
    by_place = _RequestsByPlace()
    for request in requests:
        place = (request.program, request.host)
        by_place.counts[place] += 1
        if problem := _problem(request):
            by_place.problems[place][problem] += 1
            continue
        by_place.repeatable[place].append(request)
        if len(by_place.repeatable[place]) > MAX_REQUESTS + LATE_REQUESTS:
            break
    return by_place


def _recording(path: Path, requests: _RequestsByPlace, left_out: Counter[str], place: tuple[str, str]) -> Recording:
    """The requests of one program and host in order of time; `left_out` counts dropped ones."""
    repeatable = requests.repeatable[place]
    if not repeatable:
        raise BenchError(f"{path}: no GET with status 200: name another recording")
    times = [request.time_s for request in repeatable if request.time_s is not None]
    has_times = len(times) == len(repeatable)
    if has_times:
        repeatable.sort(key=lambda request: request.time_s or 0)

    of_program = sum(count for (program, _), count in requests.counts.items() if program == place[0])
    counts = left_out | {
        "requests that another program logged": requests.counts.total() - of_program,
        "requests to other hosts": of_program - requests.counts[place],
        **requests.problems[place],
    }
    notes = [f"{what} ({count:,})" for what, count in counts.items() if count]
    if len(repeatable) > MAX_REQUESTS:
        notes.append(f"all requests after the first {MAX_REQUESTS:,}")
        del repeatable[MAX_REQUESTS:]
    words: tuple[str, ...] = ()
    if notes:
        words = (f"left out of {path.name}: {', '.join(notes)}",)
    times_s: tuple[float, ...] = ()
    if has_times:
        times_s = tuple(_spread(sorted(times)[:MAX_REQUESTS]))
    return Recording(tuple(request.path for request in repeatable), times_s, words)


def _spread(times_s: list[float]) -> Iterator[float]:
    """Seconds from the first; most logs have whole seconds, so requests within a second are spread."""
    in_seconds = all(time_s.is_integer() for time_s in times_s)
    for time_s, alike in itertools.groupby(times_s):
        number, step = len(list(alike)), 0.0
        if in_seconds:
            step = 1 / number
        for i in range(number):
            yield time_s - times_s[0] + i * step
