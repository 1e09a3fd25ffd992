"""Malformed requests, the same for the same seed, and their sender.

A form is the bytes of a request with words in angle brackets, such as `<odd>`: each stands for one of its CHOICES,
drawn again at each place.
"""

from __future__ import annotations

import contextlib
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial
from itertools import chain

from bench.measure.faults.fault_threads import in_threads
from bench.serve.machine import http
from bench.serve.machine.http import BadResponse, Target
from bench.verify.wire import Connection

THREADS, POLL_S = 16, 0.1
# A refusal takes milliseconds; on a busy machine it may be delayed.
PATIENCE_S = 2.0
# Results without a status: closed without a response, no response in time, a connection that cannot be opened.
CLOSED, SILENT, UNOPENED = "closed", "silent", "unopened"

FORM = "/__probe__/form/malformed/"
HIDDEN = b"GET /hidden/in/a/request/ HTTP/1.1\r\n<host>\r\n"
POST = b"POST /__probe__/form/malformed/ HTTP/1.1\r\n<host>Content-Type: application/x-www-form-urlencoded\r\n"
# Mark at the end of an unfinished request: the client closes its side, so that nobody waits.
CUT = b"<cut>"
# Longer than a server's buffer, or not.
LONG = (200, 2_000, 7_000, 20_000, 100_000)
# Bytes invalid in any part of a request: NUL, controls, DEL, and bytes above ASCII.
ODD = (b"\0", b"\1", b"\t", b"\v", b"\x1b", b"\x7f", b"\x80", b"\xff", b"\xc3\xa9")


def _headers(count: int) -> bytes:
    return b"".join(b"X-Soup-%d: %d\r\n" % (number, number) for number in range(count))


CHOICES: dict[bytes, tuple[bytes, ...]] = {
    b"odd": ODD,
    b"odd or end of line": (*ODD, b"\r", b"\n"),
    # Names that a front sets and the site believes, in both spellings of a CGI variable.
    b"trusted": tuple(b"X-Forwarded-Proto X_Forwarded_Proto X-Forwarded-For X_Forwarded_For X-Forwarded-Host".split()),
    b"long": tuple(b"a" * length for length in LONG),
    b"long escapes": tuple(b"%41" * (length // 3) for length in LONG),
    b"zeros": tuple(b"\0" * length for length in LONG),
    b"empty lines": tuple(b"\r\n" * count for count in (1, 10, 100, 1_000, 2_000)),
    # One request of a browser has no more headers than the first; servers refuse the last.
    b"headers": tuple(map(_headers, (5, 60, 110, 200, 500))),
    b"a host": (b"<host>", b"<host>", b"", b"Host: \r\n", b"Host: a b\r\n", b"Host: <odd or end of line>\r\n"),
    b"coding": (
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding:\tchunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b"X-A: a\nTransfer-Encoding: chunked\r\n",
        b"Transfer_Encoding: chunked\r\n",
    ),
}

# Kind of malformed request -> text around each form, and the forms.
KINDS: dict[str, tuple[bytes, tuple[bytes, ...]]] = {
    # Words missing, too many or of another protocol.
    "request line": (
        b"<form>\r\n<host>\r\n",
        (
            *(b"GET", b"GET /", b"GET  / HTTP/1.1", b"GET / HTTP/1.1 more", b"GET / HTTP/9.9", b"GET / http/1.1"),
            *(b"GET / FTP/1.1", b"GET / HTTP/1.1x", b" GET / HTTP/1.1", b"get / HTTP/1.1", b"G\0T / HTTP/1.1"),
            *(b"GET\t/\tHTTP/1.1", b"\xff\xfe / HTTP/1.1", b"GET HTTP/1.1", b"NOSUCH / HTTP/1.1"),
            b"A" * 300 + b" / HTTP/1.1",
        ),
    ),
    # A path with broken escapes, odd bytes or dots, or no path.
    "target": (
        b"GET <form> HTTP/1.1\r\n<host>\r\n",
        (
            *(b"*", b"nopath", b"http://", b"http://other.example/", b"//other.example/", b"/%", b"/%zz/%0", b"/%00"),
            *(b"/__probe__/page/%ff%fe/", b"/__probe__/page/" + b"9" * 400 + b"/", b"/__probe__/page/<odd>/"),
            *(b"/../../../../etc/passwd", b"/static/..%2f..%2fmanage.py", b"/static/%2e%2e/manage.py"),
            *(b"/?" + b"<odd>" * 50, b"/#fragment", b"\\page\\"),
        ),
    ),
    # Headers without a colon or a name, folded, with odd bytes, or hosts too few or too many.
    "header soup": (
        b"GET / HTTP/1.1\r\n<a host><form>\r\n\r\n",
        (
            b"no colon here",
            b": no name",
            b"X-A : a space before the colon",
            b" X-A: a line that is folded into none",
            *(b"X-A: folded\r\n\tonce more", b"X-A: bare\nX-B: line feeds", b"X-A: a<odd or end of line>b"),
            *(b"X<odd or end of line>A: a", b"Host: other.example", b"Cookie: " + b"<odd or end of line>" * 9),
            b'Cookie: sessionid="abcdefgh\\000"; csrftoken=<odd or end of line>',
            b"Cookie: " + b"=;" * 200,
            b"<trusted>: <odd or end of line>",
            b"<trusted>: " + b"https, " * 50,
            b"Accept-Encoding: <odd or end of line>, gzip;q=zero",
            b'If-Modified-Since: yesterday\r\nIf-None-Match: "',
            b"Range: bytes=9-1,-,0-0,0-" + b"9" * 40,
            b"Connection: " + b"close, " * 90,
            b"Expect: 200-maybe",
            b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAAA",
        ),
    ),
    "many headers": (b"GET / HTTP/1.1\r\n<host><form>\r\n", (b"<headers>",)),
    "long line": (
        b"GET <form>\r\n\r\n",
        (
            b"/<long> HTTP/1.1\r\n<host>",
            b"/?q=<long escapes> HTTP/1.1\r\n<host>",
            b"/ HTTP/1.1\r\n<host>X-Long: <long>",
            b"/ HTTP/1.1\r\n<host>X-<long>: long",
            b"/ HTTP/1.1\r\n<host>Cookie: sessionid=<long>",
            b"/ HTTP/1.1\r\nHost: <long>",
        ),
    ),
    # A chunked body with a broken size, end or order.
    "chunks": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n<form>",
        (
            b"zz\r\na=1\r\n0\r\n\r\n",
            b"-3\r\na=1\r\n0\r\n\r\n",
            b"0x3\r\na=1\r\n0\r\n\r\n",
            b"\r\na=1\r\n0\r\n\r\n",
            *(b"3\na=1\n0\n\n" + CUT, b"3\r\na=12345\r\n0\r\n\r\n", b"f" * 20 + b"\r\na=1\r\n" + CUT),
            *(b"7fffffff\r\na=1\r\n" + CUT, b"3;" + b"x" * 20_000 + b"\r\na=1\r\n0\r\n\r\n"),
            *(b"3\r\na=1\r\n0\r\nX-Trailer\0: a\r\n\r\n", b"3\r\na=1\r\n" + CUT, b"3\0\r\na=1\r\n0\r\n\r\n"),
        ),
    ),
    # A body with an invalid length, several lengths, or a wrong one.
    "wrong length": (
        POST + b"<form>",
        (
            *(b"Content-Length: -1\r\n\r\na=1", b"Content-Length: +3\r\n\r\na=1", b"Content-Length: 0x3\r\n\r\na=1"),
            *(b"Content-Length: three\r\n\r\na=1", b"Content-Length: \r\n\r\na=1", b"Content-Length: 3, 3\r\n\r\na=1"),
            b"Content-Length: 3\r\nContent-Length: 4\r\n\r\na=1" + CUT,
            b"Content-Length: 99999999999999999999999\r\n\r\na=1" + CUT,
            b"Content-Length: 300\r\n\r\na=1" + CUT,
            b"Content-Length: 1\r\n\r\na=1&b=2",
            b"\r\na=1",
        ),
    ),
    # Two lengths for one body with a hidden request, and an ordinary request afterwards.
    "smuggling pair": (
        POST + b"<form>\r\n0\r\n\r\n" + HIDDEN + b"GET / HTTP/1.1\r\n<host>\r\n" + CUT,
        (b"<coding>Content-Length: <length>\r\n", b"Content-Length: <length>\r\n<coding>"),
    ),
    # Bytes of another protocol, or of none.
    "no request": (
        b"<form>" + CUT,
        (
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9,
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03<noise>",
            b"<zeros>",
            b"<empty lines>",
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\n<host>\r\n",
            b"<noise>",
            b"<noise>\r\n\r\n",
        ),
    ),
}


@dataclass(frozen=True)
class Malformed:
    """One request, or a pair of them.

    kind   the defect, in words
    waits  whether the server must wait for more: then the client closes its side, so that nobody waits
    """

    kind: str
    data: bytes
    waits: bool = False


def requests(seed: int, count: int, netloc: str) -> Iterator[Malformed]:
    """Generate malformed requests to this host and port. The seed determines the order of kinds and their content."""
    choice = random.Random(seed)
    host = b"Host: " + netloc.encode() + b"\r\n"
    # Length of the body of a smuggling pair, of its beginning, and one beyond its end.
    body_length = len(b"0\r\n\r\n" + HIDDEN.replace(b"<host>", host))
    lengths = tuple(b"%d" % length for length in (4, 5, body_length, body_length + 40))
    choices = CHOICES | {b"host": (host,), b"length": lengths}

    def word(match: re.Match[bytes]) -> bytes:
        if match[1] == b"noise":
            return choice.randbytes(choice.randint(1, 2_000))
        return filled(choice.choice(choices[match[1]]))

    def filled(form: bytes) -> bytes:
        return re.sub(rb"<([a-z ]+)>", word, form)

    for _ in range(count):
        kind, (around, forms) = choice.choice(list(KINDS.items()))
        form = around.replace(b"<form>", choice.choice(forms))
        yield Malformed(kind, filled(form.removesuffix(CUT)), form.endswith(CUT))


def send(target: Target, request: Malformed) -> int | str:
    """Send one request on a new connection; returns the status, or CLOSED, SILENT or UNOPENED."""
    try:
        with Connection(target, timeout_s=PATIENCE_S) as connection:
            connection.send_anyway(request.data)
            if request.waits and target.scheme != "https":
                with contextlib.suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_WR)
            return connection.read().status
    except ConnectionRefusedError:
        return UNOPENED
    except http.ConnectionClosed:
        return CLOSED
    except (BadResponse, TimeoutError):
        return SILENT
    except OSError:
        return CLOSED


def send_all(
    target: Target,
    requests: Iterable[Malformed],
    per_second: float,
    limit_s: float,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[tuple[str, int | str]]:
    """Send the requests no faster than `per_second`, for `limit_s` at most; returns the kind and result of each.

    meanwhile  called again and again until all are sent, in the thread of the caller
    """
    every, begun = list(requests), time.monotonic()

    def work(first: int, over: threading.Event) -> list[tuple[str, int | str]]:
        """Send every THREADS-th request at its due time."""
        responses = []
        for number in range(first, len(every), THREADS):
            due, now = begun + number / per_second, time.monotonic()
            if max(due, now) > begun + limit_s or over.wait(max(0.0, due - now)):
                break
            responses.append((every[number].kind, send(target, every[number])))
        return responses

    with in_threads([partial(work, first) for first in range(THREADS)]) as working:
        while wait(working, POLL_S).not_done:
            meanwhile()
    return list(chain.from_iterable(each.result() for each in working))
