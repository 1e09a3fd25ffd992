"""Malformed requests, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# What a request asks for that is not about its path.
PAGE = "/"
FORM = "/__probe__/form/malformed/"
HIDDEN = "/hidden/in/a/request/"
# One request of a browser has no more headers than the first; servers refuse the last.
HEADERS = (5, 60, 110, 200, 500)
LONG = (200, 2_000, 7_000, 20_000, 100_000)
# Names that a front sets and the site believes, in both spellings of a CGI variable.
TRUSTED = ("X-Forwarded-Proto", "X_Forwarded_Proto", "X-Forwarded-For", "X_Forwarded_For", "X-Forwarded-Host")
# Bytes that no part of a request may have: NUL, controls, DEL, and those above ASCII.
ODD = (b"\0", b"\1", b"\t", b"\v", b"\x1b", b"\x7f", b"\x80", b"\xff", b"\xc3\xa9", b"\r", b"\n")


@dataclass(frozen=True)
class Malformed:
    """One request, or a pair of them.

    kind   what is wrong with it, in a word
    waits  whether the server must wait for more: then the client ends its side, so that nobody waits
    """

    kind: str
    data: bytes
    waits: bool = False


Maker = Callable[[random.Random, bytes], Malformed]


def requests(seed: int, count: int, netloc: str) -> Iterator[Malformed]:
    """So many malformed requests to that host and port. The order of kinds and their content follow from the seed."""
    choice = random.Random(seed)
    host = b"Host: " + netloc.encode() + b"\r\n"
    for _ in range(count):
        yield choice.choice(MAKERS)(choice, host)


def _get(host: bytes, path: str = PAGE, more: bytes = b"") -> bytes:
    return b"GET " + path.encode() + b" HTTP/1.1\r\n" + host + more + b"\r\n"


def _post(host: bytes, more: bytes, body: bytes) -> bytes:
    kind = b"Content-Type: application/x-www-form-urlencoded\r\n"
    return b"POST " + FORM.encode() + b" HTTP/1.1\r\n" + host + kind + more + b"\r\n" + body


def _noise(choice: random.Random, most: int) -> bytes:
    return choice.randbytes(choice.randint(1, most))


def request_line(choice: random.Random, host: bytes) -> Malformed:
    """A request line with words missing, too many or of another protocol."""
    lines: Sequence[bytes] = (
        b"GET",
        b"GET /",
        b"GET  / HTTP/1.1",
        b"GET / HTTP/1.1 more",
        b"GET / HTTP/9.9",
        b"GET / http/1.1",
        b"GET / FTP/1.1",
        b"GET / HTTP/1.1x",
        b" GET / HTTP/1.1",
        b"get / HTTP/1.1",
        b"G\0T / HTTP/1.1",
        b"GET\t/\tHTTP/1.1",
        b"\xff\xfe / HTTP/1.1",
        b"GET HTTP/1.1",
        b"NOSUCH / HTTP/1.1",
        b"A" * 300 + b" / HTTP/1.1",
    )
    return Malformed("request line", choice.choice(lines) + b"\r\n" + host + b"\r\n")


def target(choice: random.Random, host: bytes) -> Malformed:
    """A path with broken escapes, odd bytes or dots, or no path."""
    odd = choice.choice(ODD[:-2])
    paths: Sequence[bytes] = (
        b"*",
        b"nopath",
        b"http://",
        b"http://other.example/",
        b"//other.example/",
        b"/%",
        b"/%zz/%0",
        b"/%00",
        b"/__probe__/page/%ff%fe/",
        b"/__probe__/page/" + b"9" * 400 + b"/",
        b"/../../../../etc/passwd",
        b"/static/..%2f..%2fmanage.py",
        b"/static/%2e%2e/manage.py",
        b"/__probe__/page/" + odd + b"/",
        b"/?" + odd * 50,
        b"/#fragment",
        b"\\page\\",
    )
    return Malformed("target", b"GET " + choice.choice(paths) + b" HTTP/1.1\r\n" + host + b"\r\n")


def header_soup(choice: random.Random, host: bytes) -> Malformed:
    """Headers without a colon or a name, folded, with odd bytes, or hosts too few or too many."""
    odd = choice.choice(ODD)
    soups: Sequence[bytes] = (
        b"no colon here\r\n",
        b": no name\r\n",
        b"X-A : a space before the colon\r\n",
        b" X-A: a line that is folded into none\r\n",
        b"X-A: folded\r\n\tonce more\r\n",
        b"X-A: bare\nX-B: line feeds\n",
        b"X-A: a" + odd + b"b\r\n",
        b"X" + odd + b"A: a\r\n",
        b"Host: other.example\r\n",
        b"Cookie: " + odd * 9 + b"\r\n",
        b'Cookie: sessionid="abcdefgh\\000"; csrftoken=' + odd + b"\r\n",
        b"Cookie: " + b"=;" * 200 + b"\r\n",
        choice.choice(TRUSTED).encode() + b": " + odd + b"\r\n",
        choice.choice(TRUSTED).encode() + b": " + b"https, " * 50 + b"\r\n",
        b"Accept-Encoding: " + odd + b", gzip;q=zero\r\n",
        b'If-Modified-Since: yesterday\r\nIf-None-Match: "\r\n',
        b"Range: bytes=9-1,-,0-0,0-" + b"9" * 40 + b"\r\n",
        b"Connection: " + b"close, " * 90 + b"\r\n",
        b"Expect: 200-maybe\r\n",
        b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAAA\r\n",
    )
    first = choice.choice((host, host, b"", b"Host: \r\n", b"Host: a b\r\n", b"Host: " + odd + b"\r\n"))
    return Malformed("header soup", _get(first, more=choice.choice(soups)))


def many_headers(choice: random.Random, host: bytes) -> Malformed:
    """More headers than a server has room for."""
    lines = b"".join(b"X-Soup-%d: %d\r\n" % (number, number) for number in range(choice.choice(HEADERS)))
    return Malformed("many headers", _get(host, more=lines))


def long_line(choice: random.Random, host: bytes) -> Malformed:
    """A path, a name or a value that is longer than a server's buffer."""
    length = choice.choice(LONG)
    forms: Sequence[bytes] = (
        _get(host, path="/" + "a" * length),
        _get(host, path="/?q=" + "%41" * (length // 3)),
        _get(host, more=b"X-Long: " + b"a" * length + b"\r\n"),
        _get(host, more=b"X-" + b"a" * length + b": long\r\n"),
        _get(host, more=b"Cookie: sessionid=" + b"a" * length + b"\r\n"),
        _get(b"Host: " + b"a" * length + b"\r\n"),
    )
    return Malformed("long line", choice.choice(forms))


def chunks(choice: random.Random, host: bytes) -> Malformed:
    """A chunked body with a broken size, end or order."""
    bodies: Sequence[tuple[bytes, bool]] = (
        (b"zz\r\na=1\r\n0\r\n\r\n", False),
        (b"-3\r\na=1\r\n0\r\n\r\n", False),
        (b"0x3\r\na=1\r\n0\r\n\r\n", False),
        (b"\r\na=1\r\n0\r\n\r\n", False),
        (b"3\na=1\n0\n\n", True),
        (b"3\r\na=12345\r\n0\r\n\r\n", False),
        (b"f" * 20 + b"\r\na=1\r\n", True),
        (b"7fffffff\r\na=1\r\n", True),
        (b"3;" + b"x" * 20_000 + b"\r\na=1\r\n0\r\n\r\n", False),
        (b"3\r\na=1\r\n0\r\nX-Trailer\0: a\r\n\r\n", False),
        (b"3\r\na=1\r\n", True),
        (b"3\0\r\na=1\r\n0\r\n\r\n", False),
    )
    body, waits = choice.choice(bodies)
    return Malformed("chunks", _post(host, b"Transfer-Encoding: chunked\r\n", body), waits)


def lengths(choice: random.Random, host: bytes) -> Malformed:
    """A body with a length that is none, several, or another than its own."""
    cases: Sequence[tuple[bytes, bytes, bool]] = (
        (b"Content-Length: -1\r\n", b"a=1", False),
        (b"Content-Length: +3\r\n", b"a=1", False),
        (b"Content-Length: 0x3\r\n", b"a=1", False),
        (b"Content-Length: three\r\n", b"a=1", False),
        (b"Content-Length: \r\n", b"a=1", False),
        (b"Content-Length: 3, 3\r\n", b"a=1", False),
        (b"Content-Length: 3\r\nContent-Length: 4\r\n", b"a=1", True),
        (b"Content-Length: 99999999999999999999999\r\n", b"a=1", True),
        (b"Content-Length: 300\r\n", b"a=1", True),
        (b"Content-Length: 1\r\n", b"a=1&b=2", False),
        (b"", b"a=1", False),
    )
    lines, body, waits = choice.choice(cases)
    return Malformed("wrong length", _post(host, lines, body), waits)


def smuggling(choice: random.Random, host: bytes) -> Malformed:
    """Two lengths for one body that hides a request, and an ordinary request after it."""
    hidden = _get(host, path=HIDDEN)
    coding = choice.choice(
        (
            b"Transfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: xchunked\r\n",
            b"Transfer-Encoding : chunked\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            b"Transfer-Encoding: gzip, chunked\r\n",
            b"Transfer-Encoding:\tchunked\r\n",
            b"Transfer-Encoding: \x0bchunked\r\n",
            b"X-A: a\nTransfer-Encoding: chunked\r\n",
            b"Transfer_Encoding: chunked\r\n",
        )
    )
    chunked = b"0\r\n\r\n" + hidden
    length = choice.choice((4, 5, len(chunked), len(chunked) + 40))
    order = choice.random() < 0.5
    lines = (coding, b"Content-Length: %d\r\n" % length)
    return Malformed(
        "smuggling pair", _post(host, b"".join(lines if order else lines[::-1]), chunked) + _get(host), True
    )


def no_request(choice: random.Random, host: bytes) -> Malformed:
    """Bytes of another protocol, or of none."""
    starts: Sequence[bytes] = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + _noise(choice, 500),
        b"\0" * choice.choice(LONG),
        b"\r\n" * choice.randint(1, 2_000),
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + _get(host),
        _noise(choice, 4_000),
        _noise(choice, 200) + b"\r\n\r\n",
    )
    return Malformed("no request", choice.choice(starts), True)


MAKERS: tuple[Maker, ...] = (
    *(request_line, target, header_soup, many_headers, long_line, chunks, lengths, smuggling),
    no_request,
)
