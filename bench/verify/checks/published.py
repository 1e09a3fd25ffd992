"""Inputs of published holes of servers and caches, tried on every stack; advisories.py has the numbers of the holes."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from bench.serve.machine import http
from bench.serve.machine.http import BadResponse
from bench.verify import hits
from bench.verify.check import AFTER, LAYER, check, excused
from bench.verify.checks.bodies import BOUNDARY, CHUNKED, MARK, UNREAD, URLENCODED, next_request, next_response
from bench.verify.checks.client import FOREIGN
from bench.verify.checks.client_connections import HANDSHAKE
from bench.verify.context import Context
from bench.verify.expect import REFUSED, Expectation, no_server_error, refused, status, status_in
from bench.verify.mismatch import Finding, Mismatch, NotTried
from bench.verify.site import INSIDE
from bench.verify.visitor import Visitor
from bench.verify.wire import Connection, PageResponse

# Request targets with a host (RFC 9112, section 3.2.2), some without a path.
TARGETS = (
    "http://{own}{path}",
    "https://{own}{path}",
    "http://{foreign}{path}",
    "https://{foreign}{path}",
    "ftp://{foreign}{path}",
    "http://{own}@{foreign}{path}",
    "http://{foreign}@{own}{path}",
    "//{foreign}{path}",
    "http:{path}",
    "http://{own}",
    "http://{foreign}",
    "https://{foreign}",
    "https://{foreign}?a=1",
    "{foreign}:80",
    "*",
)
# Headers of a WebSocket's handshake. A character from "\udc80" to "\udcff" is one byte: see http.build.
HANDSHAKES = (
    ("Sec-WebSocket-Protocol", "\udcff"),
    ("Sec-WebSocket-Protocol", ""),
    ("Sec-WebSocket-Protocol", ",,"),
    ("Sec-WebSocket-Protocol", "a\x0bX-Smuggled: 1"),
    ("Sec-WebSocket-Protocol", "a\udc85X-Smuggled: 1"),
    ("Sec-WebSocket-Extensions", "\udcff"),
    ("Sec-WebSocket-Extensions", "permessage-deflate; server_max_window_bits=x"),
    ("Sec-WebSocket-Key", "\udcff"),
    ("Sec-WebSocket-Key", ""),
    ("Sec-WebSocket-Version", "\udcff"),
    ("Origin", "\udcff"),
    ("Cookie", "\udcff"),
)
# Lines that a view puts into its response head past Django, and lines allowed by Django.
SPLIT = "X-Split"
LINES = (
    ("X-Odd", f"a\r\n{SPLIT}: 1"),
    ("X-Odd", f"a\n{SPLIT}: 1"),
    ("X-Odd", f"a\r{SPLIT}: 1"),
    ("X-Odd", f"a\r\n\r\nHTTP/1.1 200 OK\r\n{SPLIT}: 1\r\nContent-Length: 0\r\n\r\n"),
    ("X-Odd", f"a\r\n {SPLIT}"),
    ("X-Odd", "a\u4f60"),
    (f"X\r\n{SPLIT}", "1"),
    ("X Odd", "1"),
    ("X\0Odd", "1"),
)
HEADERS = (("X-Odd", "a\0b"), ("X-Odd", "a\1b"), ("X-Odd", "a\x7fb"), ("X-Odd", "a\x1b[2Jb"))
_ODD = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
# Framing headers of a body without a usable length (RFC 9112, section 6).
HIDDEN = b"GET /hidden/in/a/body/ HTTP/1.1\r\nHost: hidden\r\n\r\n"
MISSPELT = (
    ("Content-Length", f"+{len(HIDDEN)}"),
    ("Content-Length", "-1"),
    ("Content-Length", f"{len(HIDDEN):#x}"),
    ("Content-Length", f"{len(HIDDEN)}_0"),
    ("Content-Length", f"\x0b{len(HIDDEN)}"),
    ("Content-Length", f"0, {len(HIDDEN)}"),
    ("Transfer-Encoding", "\x0bchunked"),
    ("Transfer-Encoding", "xchunked"),
)
# A server may treat an unknown coding as its own fault (RFC 9112, section 6.1).
read_or_refused = status_in((200, *REFUSED, 501), "status 200, 400 to 499, or 501")
# So many copies of one header; the fault `copied-headers` has 100,000.
COPIES = (100, 2000, 10_000)
# A chunked upload: a field shown by the page, and a file of unlimited length for Django.
UPLOAD = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
FIELDS = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="username"\r\n\r\n{MARK}\r\n'
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="photo"; filename="photo.jpg"\r\n\r\n'
).encode()
PIECE_BYTES = 65536
PIECE = b"%x\r\n%s\r\n" % (PIECE_BYTES, b"a" * PIECE_BYTES)
# Made-up names, as long as a name of a host and its label may be in practice.
SERVER_NAMES = tuple(f"shop-{number}-{'a' * 40}.example.org" for number in range(100))
# Suffixes that make a cache mistake a page for a static file.
DISGUISES = (
    *("/x.css", "/x.js", "/static/x.css", ".css", ";x.css", ";.js", "%2ex.css", "%2Ecss", "%3bx.css", "%3fx.css"),
    *(
        "%23x.css",
        "%00x.css",
        "%0ax.css",
        "%2fx.css",
        "/%2e%2e/static/x.css",
        "%2f%2e%2e%2fstatic%2fx.css",
        "/x.css?a=1",
    ),
)
# Headers by which one client gets an error or another response for a page.
LONG = {f"X-Oversize-{number}": "a" * 900 for number in range(40)}
METHOD_OVERRIDES = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")
PROVOKING: tuple[dict[str, str], ...] = (
    LONG,
    {"X-Oversize": "a" * 7000},
    {"X-Oversize": "a" * 70_000},
    {"Cookie": f"a={'a' * 9000}"},
    {"Referer": f"http://{FOREIGN}/{'a' * 9000}"},
    *({"X-Meta": f"a{odd}b"} for odd in ("\1", "\7", "\t", "\r", "\n", "\x7f", "\udcff")),
    *({name: method} for name, method in product(METHOD_OVERRIDES, ("POST", "DELETE"))),
    {"X-Forwarded-Host": f"{FOREIGN}:1"},
    {"X-Forwarded-Port": "1"},
    {"X-Forwarded-Scheme": "http"},
    {"X-Forwarded-Proto": "nothttp"},
    {"X-Forwarded-For": "a, b"},
    {"X-Original-URL": "/no/such/page/", "X-Rewrite-URL": "/no/such/page/"},
    {"Range": "bytes=cow"},
    {"Range": "bytes=9999999-"},
    {"If-Match": '"no-such-tag"'},
    {"If-Unmodified-Since": "Sat, 01 Jan 2000 00:00:00 GMT"},
    {"Expect": "200-maybe"},
    {"Transfer-Encoding": "xchunked"},
    {"Content-Length": "x"},
    {"Upgrade": "HTTP/9.9", "Connection": "Upgrade"},
    {"Accept": "text/no-such-type"},
    {"Accept-Encoding": "identity;q=0, *;q=0"},
    {"Authorization": "Basic \udcff"},
    {"Max-Forwards": "0"},
)
# Query strings of which a cache may read another parameter than the site.
CLOAKED = (
    *(
        "page=2",
        "page=3",
        "page=2&page=3",
        "page=3&page=2",
        "PAGE=2",
        "p%61ge=2",
        "page%00=2",
        "page=",
        "page",
        "+page=2",
    ),
    *(
        "page=2;utm_source=x",
        "utm_source=x;page=2",
        "utm_source=x&page=2",
        "utm_source=x%26page=3",
        "utm_source=x%3bpage=3",
    ),
    *("utm_source=x%00&page=2", "utm_source[]=x&page[]=2", "utm_content=1&utm_content=2;page=3&page=4"),
    *(
        "_method=POST",
        "_method=DELETE&page=2",
        "callback=x&page=2",
        "?page=2",
        "&page=2",
        "page=2#",
        "page=2%23",
        "page=%32",
    ),
    *(
        "utm_source=x&utm_source=y&page=2",
        "utm%5fsource=x&page=2",
        "utm_source%3dx%26page=2",
        "_charset_=utf-16&page=2",
    ),
)


def _tried(context: Context, path: str | bytes, headers: http.Headers = (), **how: Any) -> PageResponse | None:
    """The response to an odd request; None if the server closes the connection without one."""
    with contextlib.suppress(http.ConnectionClosed, ConnectionError):
        return context.get(path, headers, **how)
    return None


def _own_host() -> Expectation:
    """Expect no foreign host in the page's addresses."""

    def wrong(response: PageResponse) -> str | None:
        given = FOREIGN in response.text or FOREIGN in (response.header("Location") or "")
        if given and response.status < 400:
            return f"status {response.status} with {FOREIGN}"
        return None

    return Expectation(f"no page with {FOREIGN}", wrong)


@check("absolute-target", thorough=True, leak=True)
def absolute_target(context: Context) -> Iterator[Finding]:
    """A request target with a host gets a page of the site's own host or a 4xx, and changes no page of others."""
    own = context.target.netloc
    home = context.site.url("home")
    pages = [(home, context.as_rendered(home))]
    with contextlib.suppress(NotTried):
        hits.require_probes(context)
        pages.append((hits.path_with_response(shows=["Host"]), hits.has_paragraph("Host", f"[{own}]")))
    for path, right in pages:
        for form in TARGETS:
            target = form.format(own=own, foreign=FOREIGN, path=path)
            for host in ("", FOREIGN):
                if response := _tried(context, target, host=host):
                    yield from context.judge(response, no_server_error, _own_host())
        for _ in range(hits.TIMES):
            yield from context.expect(path, status(200), right, when="after targets with a host")


@check("odd-websockets", stage=AFTER, thorough=True)
def odd_websockets(context: Context) -> Iterator[Finding]:
    """A WebSocket handshake with invalid bytes or words is refused, without a traceback or a 5xx."""
    home = context.site.url("home")
    before = _tracebacks(context)
    for header in HANDSHAKES:
        if response := _tried(context, home, {**HANDSHAKE, **dict([header])}):
            yield from context.judge(response, no_server_error)
    if tracebacks := _tracebacks(context) - before:
        yield Mismatch(f"{len(HANDSHAKES)} odd handshakes: no traceback in the log", f"{tracebacks} of them")
    for _ in range(hits.TIMES):
        yield from context.expect(home, status(200), when="after odd handshakes of WebSockets")


def _tracebacks(context: Context) -> int:
    """Number of tracebacks in the logs; 0 for a --target."""
    if context.running is None:
        return 0
    logs = filter(Path.is_file, context.running.logs.rglob("*"))
    return sum(path.read_bytes().count(b"Traceback") for path in logs)


@check("odd-lines", hits.require_probes, thorough=True, leak=True)
def odd_lines(context: Context) -> Iterator[Finding]:
    """A response header with a line break, a control character or text outside of Latin-1 becomes a 500 or is left out:
    it is never another header, another response, or part of a cached page."""
    paths = [hits.path_with_response(lines=[line]) for line in LINES]
    paths += [hits.path_with_response(headers=[line]) for line in HEADERS]
    for path in [*paths, *paths]:
        with Connection(context.target) as connection:
            response = connection.exchange("GET", path)
            yield from context.judge(response, status(200, 500), _sound())
            if response.keeps_open and connection.send_anyway(next_request(context)):
                yield from next_response(context, f"{path}, whose header is odd,", connection)


def _sound() -> Expectation:
    """Expect headers without the smuggled lines of a view."""

    def wrong(response: PageResponse) -> str | None:
        for name, value in response.headers:
            if name.lower() == SPLIT.lower() or _ODD.search(value):
                return f"status {response.status} with {name}: {value!r}"
        return None

    return Expectation("no odd header, and none that was in another", wrong)


@check("odd-framing", hits.require_probes, stage=AFTER, thorough=True)
def odd_framing(context: Context) -> Iterator[Finding]:
    """A body with a misspelt length is refused, or its response is the last on the connection: no byte of the body is
    read as another request."""
    yield from framed(context, (*MISSPELT, ("Transfer-Encoding", "identity")))


def framed(context: Context, headers: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Expect right responses to a body with each of these headers, and to the request after it."""
    for header in headers:
        what = f"a body with {': '.join(header)!r}"
        request = http.build(context.target, "POST", hits.new_path("form"), [*URLENCODED.items(), header], HIDDEN)
        with Connection(context.target) as connection, contextlib.suppress(http.ConnectionClosed, ConnectionError):
            connection.send_anyway(request + next_request(context))
            response = connection.read("POST")
            yield from context.judge(response, read_or_refused, when=what)
            if response.keeps_open:
                yield from next_response(context, what, connection)


@check("copied-header", thorough=True)
def copied_header(context: Context) -> Iterator[Finding]:
    """A request with up to 10,000 copies of a header gets its page, or is refused with a 4xx, and others are served."""
    home = context.site.url("home")
    for count in COPIES:
        response = _tried(context, home, [("X-Copied", "1")] * count)
        if response and response.status != 200:
            yield from context.judge(response, refused, when=f"GET {home} with {count} copies of a header")
    yield from context.expect(home, status(200), when="after copies of a header")


@check("chunked-limit", hits.require_probes, stage=AFTER, thorough=True)
@excused(UNREAD)
def chunked_limit(context: Context) -> Iterator[Finding]:
    """A chunked body above the limit of bodies (max_body_mb) is refused with a 4xx or cut off; others are served."""
    for response in above_limit(context):
        excuse = {200: "unread"}.get(response.status, "")
        yield from context.judge(response, refused, when="POST of a chunked body above the limit", excuse=excuse)
    yield from context.expect(context.site.url("home"), status(200), when="after a chunked body above the limit")


def above_limit(context: Context) -> Iterator[PageResponse]:
    """Responses to chunked uploads above the limit, from a view that reads the body and from one that does not."""
    pieces = int(context.own.case.settings["max_body_mb"] * 1048576 / PIECE_BYTES) + 16
    for path in (hits.new_path("form"), hits.new_path()):
        request = http.build(context.target, "POST", path, {**UPLOAD, **CHUNKED}, b"")
        with Connection(context.target) as connection, contextlib.suppress(http.ConnectionClosed, ConnectionError):
            connection.send_anyway(request + piece(FIELDS))
            if all(connection.send_anyway(PIECE) for _ in range(pieces)):
                connection.send_anyway(piece(f"\r\n--{BOUNDARY}--\r\n".encode()) + b"0\r\n\r\n")
            yield connection.read("POST")


def piece(data: bytes) -> bytes:
    """One chunk of a body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@check("server-names", thorough=True)
def server_names(context: Context) -> Iterator[Finding]:
    """With 100 long names more, the servers start, respond to each spelling of the right name, and refuse others."""
    own = str(context.own.case.settings["server_names"])
    named = context.clone({"server_names": f"{' '.join(SERVER_NAMES)} {own}"})
    home = context.site.url("home")
    for host in ("", f"{named.target.host.upper()}:{named.target.port}", f"LocalHost:{named.target.port}"):
        yield from named.expect(home, status(200), host=host, when="of 101 names")
    for host in (FOREIGN, FOREIGN.upper(), f"x{SERVER_NAMES[0]}", f"{SERVER_NAMES[0]}.{FOREIGN}"):
        yield from named.expect(home, status(400), host=host, when="with 101 more names")


@check("cache-deception", group="privacy", stage=LAYER, thorough=True)
def cache_deception(context: Context) -> Iterator[Finding]:
    """An account's page at the address of a seeming static file (/x.css, ;.js, %2ex.css, %0a, %23) is never given to
    another visitor."""
    account = context.member_visitor(0)
    paths = [path.rstrip("/") for path in context.site.proof_paths[:1]]
    if context.first(INSIDE).status == 200:
        paths.append(hits.new_path().rstrip("/"))
    for path in paths:
        for disguise in DISGUISES:
            # A page with a name may need a slash at the end, and caches treat such paths differently.
            for address in (f"{path}{disguise}", f"{path}{disguise}/"):
                address = address.replace("x.css", f"{secrets.token_hex(4)}.css")
                account.get(address)
                other = Visitor(context.target)
                response = other.get(address)
                if account.proof in response.text or account.secrets & other.secrets:
                    yield response.wrong(
                        "no page of the account that came before", f"status {response.status}, its page"
                    )


@check("stored-errors", hits.require_probes, group="caching", thorough=True)
def stored_errors(context: Context) -> Iterator[Finding]:
    """An error provoked by one client's headers (too long, with control characters, another method, a condition) is
    never stored: others get the page."""
    for headers in PROVOKING:
        path = hits.new_path()
        shown = ", ".join(f"{name}: {value[:20]!r}" for name, value in headers.items())
        for _ in range(2):
            with contextlib.suppress(BadResponse):
                _tried(context, path, headers)
        right = (hits.complete_page(), hits.has_paragraph("path", path), hits.has_paragraph("method", "GET"))
        for _ in range(2):
            yield from context.expect(path, *right, when=f"after a client with {shown[:60]}")


@check("parameter-cloaking", hits.require_probes, group="web", thorough=True, leak=True)
def parameter_cloaking(context: Context) -> Iterator[Finding]:
    """No query string gets the page of another, however its parameters are spelt, doubled, separated or hidden: the
    site and the cache read the same ones."""
    shown = "parameter page"
    path = hits.path_with_response(shows=[shown])
    queries = [*CLOAKED, ""]
    right = {}
    for query in queries:
        address = hits.with_query(path, query)
        response = context.get(address, context.bypass)
        right[address] = status(response.status)
        if response.status == 200:
            right[address] = hits.has_paragraph(shown, hits.paragraph(response, shown))
    for address in [*right, *reversed(right)]:
        yield from context.expect(address, right[address])
    # As the first for a page: its query string may count for nothing.
    for query in CLOAKED:
        cold = hits.path_with_response(shows=[shown])
        hits.repeat(context, f"{cold}?{query}", 2)
        yield from context.expect(
            cold, hits.has_paragraph(shown, "none"), hits.has_paragraph("method", "GET"), when=f"after ?{query}"
        )
