"""Request bodies: with a length, chunked and large, and the request after them on the same connection."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import urlencode

from bench.serve.machine import http
from bench.serve.machine.http import BadResponse
from bench.verify.check import AFTER, check, excused
from bench.verify.context import Context
from bench.verify.expect import REFUSED, refused, status
from bench.verify.hits import new_path, require_probes
from bench.verify.mismatch import Finding, Mismatch
from bench.verify.wire import Connection, PageResponse

MARK = "arrived-whole"
URLENCODED = {"Content-Type": "application/x-www-form-urlencoded"}
FORM = urlencode({"username": MARK, "password": ""}).encode()
UPLOAD_BYTES = 1_000_000
PHOTO_BYTES, BOUNDARY = 3_000_000, "of-a-form"
# The response to an unread upload can get lost in a race, so the check tries several times.
UPLOADS = 4
# A chunk without a size, and more.
BROKEN = b"zz\r\na=1\r\n0\r\n\r\n"
CHUNKED = {"Transfer-Encoding": "chunked"}
TWO_LENGTHS = {**CHUNKED, "Content-Length": "4"}
# Time for a server to close a connection without having announced the close.
CLOSING_S = 0.1
# The kit's servers read or refuse such a body, or declare a known limitation; the response of a live site may get lost.
UNREAD = {
    "unread": "a chunked body is lost here: Django's WSGI handler reads none without a Content-Length; put a web "
    "server in front that reads requests whole, or serve over ASGI"
}
UNFINISHED = {
    "unfinished": "a refused upload is a 502 here: the application server closes the connection while the body comes, "
    "since the project reads none of it"
}


def form(context: Context, body: bytes = FORM, headers: http.Headers = ()) -> bytes:
    """The bytes of a request with a form, for a probe that shows the received name."""
    return http.build(context.target, "POST", new_path("form"), [*URLENCODED.items(), *http.pairs(headers)], body)


@check("length-body", require_probes, stage=AFTER)
@excused(UNREAD)
def length_body(context: Context) -> Iterator[Finding]:
    """A body with a Content-Length arrives, and the next request on the connection gets the right response."""
    yield from _both_ways(context, "a body with Content-Length", form(context), refusable=False)


@check("chunked-body", require_probes, stage=AFTER)
@excused(UNREAD)
def chunked_body(context: Context) -> Iterator[Finding]:
    """A chunked body arrives whole or gets a 4xx; the next request on the connection gets the right response."""
    yield from _both_ways(context, "a chunked body", form(context, http.chunked(FORM), CHUNKED))


@check("chunked-in-pieces", require_probes, stage=AFTER)
@excused(UNREAD)
def chunked_in_pieces(context: Context) -> Iterator[Finding]:
    """A chunked body sent piece by piece arrives whole or gets a 4xx."""
    with Connection(context.target) as connection:
        connection.send(form(context, b"", CHUNKED))
        for piece in http.chunked(FORM).splitlines(keepends=True):
            # Like many clients, stop sending when a response comes early.
            if not connection.quiet_for(0.005) or not connection.send_anyway(piece):
                break
        yield from _lost("a chunked body in pieces", connection.read("POST"))


@check("chunked-smuggling", require_probes, stage=AFTER)
@excused(UNREAD)
def chunked_smuggling(context: Context) -> Iterator[Finding]:
    """Bytes in a chunked body, or in a body with a length as well, are never read as another request."""
    body = http.chunked(FORM + b"&more=" + http.build(context.target, "GET", "/hidden/in/a/body/"), size=4096)
    for what, headers in (
        ("a request inside a chunked body", CHUNKED),
        ("a chunked body with a length too", TWO_LENGTHS),
    ):
        with Connection(context.target) as connection:
            connection.send_anyway(form(context, body, headers) + next_request(context))
            first = connection.read("POST")
            yield from _lost(what, first)
            if first.keeps_open:
                yield from next_response(context, what, connection)


@check("two-lengths", require_probes, stage=AFTER)
def two_lengths(context: Context) -> Iterator[Finding]:
    """A request with Content-Length and Transfer-Encoding is refused, or its response is the last on the connection."""
    with Connection(context.target) as connection:
        connection.send(form(context, http.chunked(FORM), TWO_LENGTHS))
        response = connection.read("POST")
        if response.status not in REFUSED and response.keeps_open and connection.quiet_for(CLOSING_S):
            got = f"status {response.status}, open"
            yield Mismatch("two lengths: status 400 to 499, or the connection is closed", got)


@check("broken-chunk", require_probes, stage=AFTER)
@excused(UNREAD)
def broken_chunk(context: Context) -> Iterator[Finding]:
    """A chunk without a size is the client's fault: status 400 to 499, or no response."""
    with Connection(context.target) as connection, contextlib.suppress(http.ConnectionClosed, ConnectionResetError):
        connection.send_anyway(form(context, BROKEN, CHUNKED))
        response = connection.read("POST")
        excuse = {200: "unread"}.get(response.status, "")
        yield from context.judge(response, refused, when="a chunk without a size", excuse=excuse)


@check("upload", require_probes, stage=AFTER)
@excused(UNFINISHED)
def upload(context: Context) -> Iterator[Finding]:
    """An upload of 1 MB refused by a view gets a complete 4xx, even if the view does not read the body."""
    path = new_path()
    for kind in (URLENCODED["Content-Type"], "application/octet-stream") * UPLOADS:
        what = f"POST {path} with 1 MB of {kind}"
        request = http.build(context.target, "POST", path, {"Content-Type": kind}, b"x" * UPLOAD_BYTES)
        with Connection(context.target) as connection:
            connection.send_anyway(request)
            try:
                response = connection.read("POST")
            except (BadResponse, OSError) as error:
                yield Mismatch(f"{what}: status 400 to 499", str(error) or type(error).__name__)
                continue
            if response.status == 502:
                yield response.wrong("status 400 to 499", None, what, "unfinished")
                return
            if response.status not in REFUSED:
                yield response.wrong("status 400 to 499", what=what)
            elif response.keeps_open and connection.send_anyway(next_request(context)):
                yield from next_response(context, what, connection)


@check("large-upload", require_probes, stage=AFTER)
def large_upload(context: Context) -> Iterator[Finding]:
    """An upload of 3 MB, such as a photo, to a view that reads the body gets a 200."""
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="photo"; filename="photo.jpg"\r\n\r\n'
    body = part.encode() + b"x" * PHOTO_BYTES + f"\r\n--{BOUNDARY}--\r\n".encode()
    yield from context.expect(new_path("form"), status(200), headers=kind, method="POST", body=body)


def _both_ways(context: Context, what: str, request: bytes, *, refusable: bool = True) -> Iterator[Finding]:
    """Send the request and another on the same connection: first after the response, then both at once."""
    another = next_request(context)
    for at_once in (b"", another):
        with Connection(context.target) as connection:
            connection.send_anyway(request + at_once)
            response = connection.read("POST")
            yield from _lost(what, response, refusable=refusable)
            if response.keeps_open and (at_once or connection.send_anyway(another)):
                yield from next_response(context, what, connection)


def next_request(context: Context) -> bytes:
    """The next request on a connection."""
    return http.build(context.target, "GET", context.site.url("static_small", "health"))


def _lost(what: str, response: PageResponse, *, refusable: bool = True) -> Iterator[Finding]:
    """A finding unless the body arrived, or was refused if that is allowed."""
    if response.status == 200 and MARK in response.text:
        return
    expected, got, excuse = "arrived whole", f"status {response.status}", ""
    if refusable:
        if response.status in REFUSED:
            return
        expected += ", or refused with a 4xx"
    if response.status == 200:
        got += " for an empty form: the body is lost"
        if refusable:
            excuse = "unread"
    yield response.wrong(expected, got, what, excuse)


def next_response(context: Context, what: str, connection: Connection) -> Iterator[Finding]:
    """Expect a right response to the next request; a server may close the connection instead."""
    try:
        response = connection.read()
    except (http.ConnectionClosed, ConnectionResetError):
        return
    except BadResponse as error:
        yield Mismatch(f"the request after {what}: a response", str(error))
        return
    path = context.site.url("static_small", "health")
    right = context.first(path)
    same = response.body == right.body or path not in context.site.small_files
    if response.status != right.status or response.content_type != right.content_type or not same:
        got = f"status {response.status}, {len(response.body)} bytes"
        yield response.wrong("its own response", got, f"GET {path} after {what}")
