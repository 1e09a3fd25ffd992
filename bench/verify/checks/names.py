"""Odd names in URLs: they break nothing, read no other file, and share no cache entry."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from functools import partial

from bench.verify.check import check as any_check
from bench.verify.checks.paths import located, no_file
from bench.verify.context import Context
from bench.verify.expect import no_header, no_server_error
from bench.verify.finding import Finding, Mismatch
from bench.verify.hits import paragraphs, require_probes
from bench.verify.wire import Answer, BadAnswer, Headers

check = partial(any_check, group="names")

# Names in place of a page's name; `x` and `y` are plain cacheable pages.
ODD = (
    "x",
    "y",
    "X",
    "x-",
    "x.",
    ".x",
    "x.html",
    "x/index.html",
    "index.html",
    "x/y",
    "x//y",
    "x/",
    "/x",
    "./x",
    "x/.",
    "y/../x",
    "y/..",
    "%2e/x",
    "y/%2e%2e/x",
    "y/.%2e/x",
    "y/%2e%2e",
    "y%2f..%2fx",
    "..%2fx",
    "y%5c..%5cx",
    "x%2fy",
    "x%2Fy",
    "x%5cy",
    "x%20y",
    "x%20",
    "%20x",
    "x+y",
    "x%2by",
    "x%2520y",
    "x%252fy",
    "x%3fa=1",
    "x%23a",
    "x%26a=1",
    "x;a=1",
    "x%3ba=1",
    "x:y",
    "x,y",
    "x|y",
    "x'y",
    "x%22y",
    "x%3cy%3e",
    "x%00",
    "x%00y",
    "%00x",
    "x%0a",
    "x%0d%0a",
    "x%0d%0aX-Injected:%20yes",
    "x%09y",
    "x%7f",
    "%78",
    "%C3%A9",
    "%c3%a9",
    "e%CC%81",
    "%E9",
    "%ff%fe",
    "%E4%BD%A0%E5%A5%BD",
    "%F0%9F%98%80",
    "%E2%80%AE",
)
# Bytes in the request line that a client must encode and some do not, each beside its encoded form.
RAW = (
    b"x",
    b"x y",
    b"x%20y",
    b"x ",
    b"x%20",
    b" x",
    b"%20x",
    b"x\ty",
    b"x%09y",
    "\u00e9".encode(),
    b"%C3%A9",
    "x\u00e9".encode(),
    b"x%C3%A9",
    b"\xe9",
    b"%E9",
    b"\xff\xfe",
    b"%FF%FE",
    "\u4f60\u597d".encode(),
    b"%E4%BD%A0%E5%A5%BD",
    b"x\x7f",
    b"x\x01",
)
RAW_ESCAPES = (
    b"/__probe__/page/ /../../../../../../../etc/passwd",
    b"/ /../../../../../../../etc/passwd",
    "/__probe__/page/\u00e9/../../../../../../../etc/passwd".encode(),
    b"/__probe__/page/\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/etc/passwd",
    b"/__probe__/page/..\xc0\xaf..\xc0\xaf..\xc0\xaf..\xc0\xafetc/passwd",
    b"{static} /../../manage.py",
)
LENGTHS = (199, 200, 201, 249, 250, 251, 255, 256, 300)
# Files of a layer that no URL may reach: those beside the pages, and a page under its file name.
OWN_FILES = (
    "/.generation",
    "/%2egeneration",
    "/index.html",
    "{section}index.html",
    "/.tmp-0/",
    "/purged",
    "/microcache/",
)
# Internal cache keys. They are no paths, so no browser requests them, but anybody can.
OWN_KEYS = (b"generation", b"pages:generation")
ESCAPES = (
    "/..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/__probe__/page/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/__probe__/page/../../../../../../../../etc/passwd",
    "/__probe__/page/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/__probe__/page/..\\..\\..\\..\\..\\etc\\passwd",
    "/__probe__/page/../../manage.py",
    "{section}%2e%2e/%2e%2e/manage.py",
)


@check("odd-names")
def odd_names(context: Context) -> Iterator[Finding]:
    """Each odd name gets the page of that very name, cached or not, in any order of requests; never a 500."""
    base = f"/__probe__/page/{secrets.token_hex(6)}"
    yield from _own_pages(context, [f"{base}/{name}/" for name in ODD] + [f"{base}/x", f"{base}/x/?", f"{base}/x/??a"])


@check("long-names")
def long_names(context: Context) -> Iterator[Finding]:
    """Names of up to 300 characters that differ only at their end, and of 255 bytes in UTF-8, share no entry."""
    base = f"/__probe__/page/{secrets.token_hex(4)}"
    # Of each length; a URL of 300 characters; many short names; a name that is 255 bytes long once decoded.
    names = ["a" * (length - 1) for length in LENGTHS]
    names += ["a" * (300 - len(base) - 3), "a/" * 120, "%C3%A9" * 127]
    yield from _own_pages(context, [f"{base}/{name}{end}/" for name in names for end in "bc"])


@check("raw-names")
def raw_names(context: Context) -> Iterator[Finding]:
    """A raw space or other byte that clients must encode is refused or gets the page of that very name; the encoded
    name has its own page, and no such path leads to another file."""
    base = f"/__probe__/page/{secrets.token_hex(6)}/".encode()
    yield from _own_pages(context, [base + name + b"/" for name in RAW])
    for path in (located(context, path) for path in RAW_ESCAPES):
        if answer := _answer(context, path):
            yield from context.judge(answer, no_file, no_server_error)


@check("other-files")
def other_files(context: Context) -> Iterator[Finding]:
    """No path leads to a file outside the pages, nor to what a layer stores beside them."""
    for path in ESCAPES:
        yield from context.ask(located(context, path.encode()).decode(), no_file, no_server_error)
    for path in OWN_FILES:
        answer = yield from context.ask(located(context, path.encode()).decode(), no_file, no_server_error)
        if context.site.has_404 and not (400 <= answer.status < 500 or answer.status in (301, 302)):
            yield answer.wrong("status 400 to 499", f"status {answer.status}, {len(answer.body)} bytes")
    # Servers treat such a request differently, with and without the layer.
    yield from _own_pages(context, OWN_KEYS)


def _own_pages(context: Context, paths: Sequence[str | bytes]) -> Iterator[Finding]:
    """What is wrong unless each path gets the answer it gets when it bypasses the layer, in both orders."""
    require_probes(context)
    right = {path: _summary(_answer(context, path, context.bypass)) for path in paths}
    for path in (*paths, *paths, *reversed(paths)):
        answer = _answer(context, path)
        if (got := _summary(answer)) != right[path]:
            yield Mismatch(f"GET {path!r:.80}: {right[path]}", got, answer.sent if answer else None)
        if answer:
            yield from context.judge(answer, no_header("X-Injected", "no header from the path"), no_server_error)


def _answer(context: Context, path: str | bytes, headers: Headers = ()) -> Answer | None:
    """The answer; None if the server closed without one, which is right for a malformed request."""
    try:
        return context.get(path, headers)
    except (BadAnswer, ConnectionError):
        if isinstance(path, str):
            raise
        return None


def _summary(answer: Answer | None) -> str:
    """The status and the path that the page shows."""
    if answer is None:
        return "no answer"
    return f"status {answer.status}, the page of {paragraphs(answer).get('path') if answer.status == 200 else None!r}"
