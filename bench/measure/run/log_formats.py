"""Lines of access logs, as written by servers, load balancers, frameworks and log collectors.

A line is text, pairs `name=value`, an object of JSON, or a row below a head: `#Fields:`, or names between commas. One
table has the formats of text, one the names of values; any other format is given by its fields.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

# Patterns of a request's values, by the names in `fields`. `{any}` stands for irrelevant text; an unknown or empty name
# for the text up to the next character.
FIELDS = {
    "time": r"\d\d/\w{3}/\d{4}[: ]\d\d:\d\d:\d\d(?:\.\d+)?(?: [+-]\d{4})?"
    r"|\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
    r"|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}"
    r"|\w{3} [ \d]\d \d\d:\d\d:\d\d",
    "epoch": r"\d{10}(?:\.\d+)?",
    "request": r'[A-Z]+ (?:[^"\\]|\\.)*?(?: (?:HTTP/)?\d(?:\.\d)?)?',
    "method": r"[A-Z]+",
    "target": r'(?:[^"\s\\]|\\.)*',
    "query": r'(?:[^"\s\\]|\\.)*',
    "host": r"(?=[^\s:]*[A-Za-z])[\w.-]+(?::\d+)?",
    "status": r"[1-5]\d\d(?![\w.:/-])",
    # Patterns that tell formats apart.
    "before": r"^.*",
    "site": r"(?<!\S)(?=[^\s:]*[A-Za-z])[\w.-]+(?::\d+)?",
    "address": r"(?<!\S)[\da-fA-F]*[.:][\da-fA-F.:]+",
    "domain": r"(?=[^\s:]*[a-z])[a-z0-9-]+\.[a-z0-9.-]+(?::\d+)?",
}
# Text between fields: any text, or any text without quotes.
FILLERS = {"any": ".*?", "plain": '[^"]*?'}
# Formats of text; the first one found in a line counts. Text before and behind is ignored.
TEXTS = {
    "nothing quoted": "{time}] {method} {target} => generated {any}({} {status})",
    "Envoy, Istio": '[{time}] "{request}" {status} {any}"{}" "{}" "{}" "{host}"',
    "status before the request": '{before}{time}{plain} {status} {plain}"{request}"',
    "site first": '{site} {address} {any}{time}{any}"{request}" {status}',
    "site second": '{address} {domain} {any}{time}{any}"{request}" {status}',
    "common, combined": '{before}{time}{any}"{request}" {status}',
    "time behind": '"{request}" {status} {any}{time}',
    "time as a number": '{epoch} {any}"{request}" {status}',
    "Squid": "{epoch} {any}/{status} {} {method} {target} ",
    "no time": '"{request}" {status}',
}
# Names of values in lines of JSON, of pairs and of rows, in lower case, by servers, services and loggers; the first
# name found in a line counts. A name also stands for itself with the prefix of enclosing objects.
NAMES = {
    "time": (
        *("ts", "time_iso8601", "time_local", "msec", "startutc", "start_time", "edgestarttimestamp"),
        *("requesttime", "reqtimesec", "asctime", "@timestamp", "timestamp", "time", "realtime_timestamp", "date", "t"),
        "time_micros",
    ),
    "method": (
        *("method", "request_method", "requestmethod", "httpmethod", "http_method", "clientrequestmethod"),
        *("reqmethod", "csmethod", "cs-method", "cs_method", "request_verb"),
    ),
    "target": (
        *("originalrequesturiwithargs", "request_uri", "requesturi", "requesturl", "request_url", "clientrequesturi"),
        *("url.original", "uri", "requestpath", "request_path", "url.path", "path", "csuristem", "cs-uri-stem"),
        *("http.target", "http_path", "full_path", "reqpath", "cs_uri", "url", "request"),
    ),
    "query": (
        *("args", "query_string", "querystring", "request_querystring", "requestquery", "url.query", "query"),
        *("querystr", "csuriquery", "cs-uri-query", "request_query"),
    ),
    "host": (
        *("x-host-header", "clientrequesthost", "requesthost", "originalhost", "http_host", "authority", "url.domain"),
        *("reqhost", "cshost", "cs(host)", "cs-host", "cs_host", "host", "vhost", "server_name", "domain_name"),
    ),
    "status": (
        *("downstreamstatus", "edgeresponsestatus", "status", "status_code", "statuscode", "response_code"),
        *("responsecode", "httpstatus", "httpstatuscode", "http_status", "scstatus", "sc-status", "response.status"),
        *("response_status", "sc_status", "elb_status_code", "code", "s"),
    ),
}
# A whole request line.
LINES = ("request", "request_line", "requestline", "r")
# Keys under which log collectors keep a program's line.
WRAPPED = ("log", "message", "short_message", "msg", "line", "textpayload", "logentry")
# Keys under which services that export logs keep the list of entries.
LISTS = ("records", "events", "entries", "items", "value", "data", "results")
# Keys under which log collectors keep the program's name.
PROGRAMS = ("systemd_unit", "syslog_identifier", "container_name")
# The same in front of a line: Heroku, syslog and journalctl, Compose.
PROGRAM = re.compile(
    r"\S+ (?P<heroku>\w+\[[a-z]+)[\w.]*\]: "
    r"|(?:<\d+>)?\w{3} [ \d]\d [\d:]{8} \S+ (?P<syslog>[\w.-]+)(?:\[\d+\])?: "
    r"|(?P<compose>[\w.-]+?)(?:[-_]\d+)? +\| "
)
# Prefix of lines by Kubernetes: https://github.com/kubernetes/design-proposals-archive, logs of the CRI.
OF_CONTAINER = re.compile(r"(?P<time>\S+T\S+) std(?:out|err) [FP] ")
PAIR = re.compile(r'(?<![\w.@-])([\w.@-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))')
# The version of HTTP at the end of a request line.
VERSION = re.compile(r" (?:HTTP/)?\d(?:\.\d)?$")
# Numbers of this many digits before the point are seconds, milliseconds, microseconds and nanoseconds of the epoch.
EPOCHS = {13: 1e3, 16: 1e6, 19: 1e9}
# In place of the year, which syslog leaves out: one with a 29 February.
SOME_YEAR = 2024
ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")
# The same of a byte, in JSON of a server that was not told to escape for JSON.
BYTE_IN_JSON = re.compile(r"(?<!\\)\\x([0-9A-Fa-f]{2})")
# Colours and other styles, as on a terminal.
STYLE = re.compile(r"\x1b\[[\d;]*m")
# Characters left unchanged in the path and the query of an address; a percent sign begins an escape.
SAFE = "!$%&'()*+,/:;=?@[]~"
HEAD = "#Fields:"
# Of a line of text so much is looked at; servers take no longer request.
MAX_TEXT = 8192


@dataclass(frozen=True)
class LoggedRequest:
    """One recorded request.

    time_s   seconds of the epoch; None if unknown
    host     empty if unknown
    program  the program that wrote the line; empty if unknown
    """

    time_s: float | None
    method: str
    host: str
    path: str
    status: int
    program: str = ""


def requests(lines: Iterable[str], fields: str = "") -> Iterator[tuple[str, LoggedRequest | None]]:
    """Each line with its request, or None if unreadable; heads of rows and empty lines are skipped.

    fields  the format of the lines, as in `TEXTS`
    """
    named: list[re.Pattern[str]] = []
    if fields:
        named.append(pattern_of(fields))
    head: list[str] = []
    is_first, divide = True, _divided_row
    for line in lines:
        if line.startswith(HEAD):
            head = line.removeprefix(HEAD).lower().split()
        elif is_first and not named and (names := _names_of_columns(line)):
            head, divide = names, _divided_by_commas
        elif line and not line.startswith("#"):
            text = STYLE.sub("", line)
            if head:
                yield line, _read(_of_row, divide(text), head)
            else:
                yield line, _read(_of_line, text, named)
        is_first = False


def lines_of_document(text: str) -> list[str] | None:
    """The entries of a whole document of JSON as lines: of a list, of an object with one, or of several objects.

    None if it is no such document.
    """
    entries: list[Any] = []
    decoder, position = json.JSONDecoder(), 0
    text = text.strip()
    try:
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            entries += _entries_of(value)
            position = len(text) - len(text[end:].lstrip())
    except (ValueError, RecursionError):
        return None
    return [json.dumps(entry) for entry in entries]


def _entries_of(document: Any) -> list[Any]:
    """The entries in a value of JSON."""
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        for name, value in document.items():
            if name.lower() in LISTS and isinstance(value, list):
                return value
    return [document]


def _divided_row(line: str) -> list[str]:
    if "\t" in line:
        return line.split("\t")
    return line.split()


def _divided_by_commas(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _names_of_columns(line: str) -> list[str]:
    """The names of columns in the first line of a table, in lower case; empty if it is an entry itself."""
    names = [name.strip().lower() for name in _divided_by_commas(line)]
    if {*NAMES["target"], *LINES}.isdisjoint(names) or set(NAMES["status"]).isdisjoint(names):
        return []
    return names


def pattern_of(fields: str) -> re.Pattern[str]:
    """The regular expression of a format. Raises ValueError without a request and a status."""
    parts = re.split(r"\{(\w*)\}", fields)
    names = parts[1::2]
    if "status" not in names or not {"request", "target"} & set(names):
        raise ValueError("name {request} or {target}, and {status}")
    if twice := [name for name in FIELDS if names.count(name) > 1]:
        raise ValueError(f"{{{twice[0]}}} is named twice")
    expressions = [re.escape(parts[0])]
    for name, text in zip(names, parts[2::2], strict=True):
        # Otherwise up to the next character: a pattern with a longer look-ahead takes minutes for a long log.
        other = ".*?"
        if text:
            other = f"[^{re.escape(text[0])}]*"
        if text.startswith('"'):
            other = r'(?:[^"\\]|\\.)*'
        expressions += [_group(name, other), re.escape(text)]
    return re.compile("".join(expressions))


def _group(name: str, other: str) -> str:
    """The regular expression of a field, a named group; `other` if the field is unknown."""
    if name in FILLERS:
        return FILLERS[name]
    if name in FIELDS:
        return f"(?P<{name}>{FIELDS[name]})"
    return other


_TEXTS = [pattern_of(text) for text in TEXTS.values()]


def _read(read: Callable[..., LoggedRequest | None], *of: Any) -> LoggedRequest | None:
    """The result of `read`; None if the line is unreadable."""
    try:
        return read(*of)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _of_row(row: list[str], head: list[str]) -> LoggedRequest | None:
    """The request of a row of values, with names from `head`; https://www.w3.org/TR/WD-logfile"""
    values = dict(zip(head, row, strict=True))
    if "date" in values and "time" in values:
        values["time"] = f"{values.pop('date')} {values['time']}"
    return _of_values(values)


def _of_line(line: str, named: list[re.Pattern[str]]) -> LoggedRequest | None:
    program, time_s = "", None
    if match := PROGRAM.match(line):
        program = next(filter(None, match.groups()), "")
    elif match := OF_CONTAINER.match(line):
        time_s = seconds(match["time"])
        line = line[match.end() :]

    begin = line.find("{")
    request = None
    if not named and begin >= 0 and line.endswith("}"):
        request = _read(_of_json, line[begin:])
        if request and request.time_s is None and (match := _TIME.search(line[:begin])):
            request = replace(request, time_s=seconds(match[0]))
    if request is None and not named:
        request = _read(_of_pairs, line)
    if request is None:
        request = _of_text(line[:MAX_TEXT], named or _TEXTS)

    if request is None:
        return None
    if request.time_s is not None:
        time_s = request.time_s
    return replace(request, time_s=time_s, program=request.program or program)


def _of_json(text: str) -> LoggedRequest | None:
    values = dict(_flat(json.loads(BYTE_IN_JSON.sub(r"\\u00\1", text))))
    program = next((str(values[name]) for name in _of(values, PROGRAMS)), "")
    for name in _of(values, WRAPPED):
        text = values[name]
        # The journal has bytes that are no text as a list of numbers.
        if isinstance(text, list):
            text = bytes(text).decode("utf-8", "surrogateescape")
        inner = None
        if isinstance(text, str):
            inner = _of_line(text.strip(), [])
        if inner:
            time_s = inner.time_s
            if time_s is None:
                time_s = _first(values, "time", seconds)
            return replace(inner, time_s=time_s, program=inner.program or program)
    request = _of_values(values)
    if not request:
        return None
    return replace(request, program=program)


def _flat(entry: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of an object; names in nested objects become `request.method`, without leading underscores."""
    for name, value in entry.items():
        known = prefix + name.lower().lstrip("_")
        if isinstance(value, dict):
            yield from _flat(value, f"{known}.")
        else:
            yield known, value


def _of_pairs(line: str) -> LoggedRequest | None:
    values = {name.lower(): quoted or plain for name, quoted, plain in PAIR.findall(line)}
    if _first(values, "status", _status) is None:
        return None
    if not list(_of(values, NAMES["time"])) and (match := _TIME.search(line)):
        values["time"] = match[0]
    return _of_values(values)


_TIME = re.compile(FIELDS["time"])


def _of_values(values: Mapping[str, Any]) -> LoggedRequest | None:
    """The request of named values; None if they are no request."""
    status = _first(values, "status", _status)
    request_line = next((values[name] for name in _of(values, LINES) if _REQUEST.match(str(values[name]))), None)
    if status is None:
        return None
    if request_line:
        method, target = _divided(request_line)
    else:
        method, target = _first(values, "method", str), _first(values, "target", _target)
        query = (_first(values, "query", str) or "").strip("-").removeprefix("?")
        if target and query and "?" not in target:
            target += f"?{query}"
    if not method or not target:
        return None
    host = _first(values, "host", str) or ""
    return _logged(_first(values, "time", seconds), method, target, host, status)


_REQUEST = re.compile(r"[A-Z]+ \S")


def _of(values: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """The keys with one of these names, in order."""
    return iter(_keys(tuple(values), tuple(names)))


@functools.lru_cache
def _keys(keys: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    matches = []
    for name in names:
        alike = [key for key in keys if key == name or key.endswith(f".{name}")]
        matches += sorted(alike, key=len)
    return matches


def _first(values: Mapping[str, Any], what: str, read: Callable[[Any], Any]) -> Any:
    """The first readable value of one of the names, or None."""
    for key in _of(values, NAMES[what]):
        if values[key] not in (None, "", "-"):
            with contextlib.suppress(ValueError):
                return read(values[key])
    return None


def _status(value: object) -> int:
    match = re.match(r"[1-5]\d\d(?![\d.])", str(value))
    if not match:
        raise ValueError(value)
    return int(match[0])


def _target(value: object) -> str:
    if not re.match(r"/|https?://", str(value)):
        raise ValueError(value)
    return str(value)


def _of_text(line: str, patterns: Iterable[re.Pattern[str]]) -> LoggedRequest | None:
    for pattern in patterns:
        if match := pattern.search(line):
            fields = match.groupdict()
            method, target = fields.get("method") or "GET", fields.get("target") or ""
            if "request" in fields:
                method, target = _divided(fields["request"])
            if query := (fields.get("query") or "").strip("-").removeprefix("?"):
                target += f"?{query}"
            time_s = None
            if time := fields.get("time") or fields.get("epoch"):
                time_s = seconds(time)
            host = fields.get("host") or fields.get("site") or fields.get("domain") or ""
            return _logged(time_s, method, _unescaped(target), host, int(fields["status"]))
    return None


def _divided(request: str) -> tuple[str, str]:
    """The method and the target of a request line."""
    method, _, target = VERSION.sub("", request).partition(" ")
    return method, target


def _logged(time_s: float | None, method: str, target: str, host: str, status: int) -> LoggedRequest:
    url = as_url(target)
    return LoggedRequest(time_s, method.upper(), host_of(url) or _without_usual_port(host), path_of(url), status)


def _without_usual_port(host: str) -> str:
    name, _, port = host.lower().partition(":")
    if port in ("", "80", "443"):
        return name
    return host.lower()


# Busy servers write many lines in a second.
@functools.lru_cache
def seconds(text: str | float) -> float:
    """Parse a time in one of the usual forms, or a number of seconds; raises ValueError."""
    text = str(text)
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text) / EPOCHS.get(len(text.partition(".")[0]), 1)
    if match := re.search(r"(\d\d/\w{3}/\d{4})[: ](\d\d:\d\d:\d\d)(\.\d+)?(?: ([+-]\d{4}))?", text):
        begun = datetime.strptime(f"{match[1]} {match[2]} {match[4] or '+0000'}", "%d/%b/%Y %H:%M:%S %z")
        return begun.timestamp() + float(match[3] or 0)
    for form, shown in (("%a %b %d %H:%M:%S %Y", text), ("%Y %b %d %H:%M:%S", f"{SOME_YEAR} {text}")):
        with contextlib.suppress(ValueError):
            return datetime.strptime(shown, form).timestamp()
    return datetime.fromisoformat(re.sub(r" (?=Z|[+-]\d\d)", "", text).replace("/", "-")).timestamp()


def as_url(text: str) -> SplitResult:
    """The target of a request line: a path, which may begin with two slashes, or a whole address."""
    if not text.startswith("/"):
        return urlsplit(text)
    path, _, query = text.partition("?")
    return SplitResult("", "", path, query, "")


def _unescaped(text: str) -> str:
    r"""Decode escapes such as `\x22` or `\"`; a byte outside of ASCII is kept (surrogateescape)."""

    def character(found: re.Match[str]) -> str:
        if found[1]:
            return bytes.fromhex(found[1]).decode("ascii", "surrogateescape")
        return found[2]

    return ESCAPE.sub(character, text)


def host_of(url: SplitResult) -> str:
    """The host of an address, with an unusual port."""
    usual = {"http": 80, "https": 443}.get(url.scheme)
    if url.port in (None, usual):
        return url.hostname or ""
    return f"{url.hostname or ''}:{url.port}"


def path_of(url: SplitResult) -> str:
    """The path of an address with its query, percent-encoded as a browser sends it."""
    path = url.path or "/"
    if url.query:
        path += f"?{url.query}"
    if not path.startswith("/"):
        raise ValueError(path)
    return quote(path, SAFE, errors="surrogateescape")
