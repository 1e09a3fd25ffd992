"""Django's security advisories since 2014 on its caches and Vary, and advisories of 2026 on servers with a visible
effect.

Any layer and any server can make the same mistake, so each deployment is tested; other checks prove most of them.
docs/cache-safety.md links each advisory.
"""

from __future__ import annotations

import secrets
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from bench.paths import entries_below
from bench.serve.machine.http import BadResponse
from bench.verify import hits
from bench.verify.check import LAYER, Check, CheckFunction, check
from bench.verify.checks.bodies import MARK
from bench.verify.checks.client_connections import HANDSHAKE
from bench.verify.checks.published import MISSPELT, above_limit, framed
from bench.verify.context import Context
from bench.verify.expect import names, refused, status
from bench.verify.mismatch import Finding, Mismatch, NotTried

GROUP = "advisories"
OLD_BROWSER = {"User-Agent": "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)"}
AT_ONCE = 16
# More than any stack has workers.
HANDSHAKES = 8
# Time for a server to store a file once the client has the response.
STORE_S = 0.3


def advisory(number: str, *, thorough: bool = False) -> Callable[[CheckFunction], Check]:
    return check(f"cve-{number}", hits.require_probes, group=GROUP, thorough=thorough)


def proved(number: str, title: str, *proved_by: str, thorough: bool = False) -> Check:
    """An advisory proved by other checks; `thorough` as they are."""
    return Check(f"cve-{number}", lambda context: (), title, GROUP, LAYER, thorough=thorough, proved_by=proved_by)


own_token = proved(
    "2014-0473",
    "Cached anonymous pages could reveal CSRF tokens: each visitor of a page with a form gets their own token.",
    "personal-at-once",
)


@advisory("2014-1418")
def old_browsers(context: Context) -> Iterator[Finding]:
    """Caches could store private data: a page that depends on the cookie declares `Vary: Cookie`, to old browsers
    too."""
    download = ["Content-Disposition", 'attachment; filename="probe.html"']
    path = hits.path_with_response(shows=["session"], headers=[["Cache-Control", "private"], download])
    for visitor in ("alpha", "beta", "nobody"):
        cookie = {"Cookie": f"{context.site.session_cookie}={visitor}"}
        if visitor == "nobody":
            cookie = {}
        right = (hits.has_paragraph("session", visitor), names("Vary", "Cookie"), names("Cache-Control", "private"))
        yield from context.expect(path, *right, headers={**OLD_BROWSER, **cookie})


malformed_keys = proved(
    "2020-13254",
    "Malformed memcached keys could leak data: paths with spaces or line breaks, and long paths, share no response.",
    *("odd-names", "long-names"),
)


@advisory("2020-24584")
def folder_modes(context: Context) -> Iterator[Finding]:
    """Others could write to directories of a file cache: only their owner can write to a layer's directories."""
    yield from _modes(context, Path.is_dir, count=1)


separators = proved(
    "2021-23336", "A `;` in a query string could poison a cache: no two query strings share a response.", "parameters"
)
vary_any = proved("2026-6907", "Responses with `Vary: *` were cached: each request gets a new rendering.", "vary")
capitals = proved(
    "2026-8404",
    "Cache-Control was read in lower case only: `PRIVATE`, `NO-STORE` and `No-Cache` are obeyed.",
    "cache-control",
)


@advisory("2026-25674")
def file_modes(context: Context) -> Iterator[Finding]:
    """Cache files made at the same time could get wrong permissions: others can write to none."""
    yield from _modes(context, Path.exists, count=AT_ONCE)


sessions = proved(
    "2026-35192",
    "A cached public page could give away a visitor's session: no two visitors get the same session cookie.",
    "set-cookie",
)
authorized = proved(
    "2026-35193",
    "Responses to requests with Authorization were cached for everybody: each visitor gets their own.",
    "authorization",
)
spaced = proved(
    "2026-48587",
    "Spaces hid the names in Vary: ` * ` still means anything, ` Cookie ` still means the cookie.",
    *("vary", "set-cookie"),
)
other_cookies = proved(
    "2026-48588",
    "A response that sets a cookie was cached if the request had another: no two visitors get the same cookie.",
    "set-cookie",
)


@advisory("2026-113593")
def absent_and_empty(context: Context) -> Iterator[Finding]:
    """An absent header and an empty one shared a cached response: each gets its own."""
    path = hits.path_with_response(shows=["X-Probe"], headers=[["Vary", "X-Probe"]], bare=True)
    absent: dict[str, str] = {}
    empty, other = {"X-Probe": ""}, {"X-Probe": "a"}
    for headers in (absent, empty, absent, other, empty, other):
        # Servers differ in how they pass an empty header on; with a query string every cache is bypassed.
        right = hits.paragraph(context.get(f"{path}?{secrets.token_hex(4)}", headers), "X-Probe")
        yield from context.expect(path, hits.has_paragraph("X-Probe", right), headers=headers)


# --------------------------------------------------------------------------------------------- servers


absolute_form = proved(
    "2026-34475",
    "A cache took a target with a host and no path as it came (VSV00018): it changes no page of others.",
    "absolute-target",
    thorough=True,
)
many_names = proved(
    "2026-27588",
    "Capitals counted on a server with more than 100 host names: each spelling gets a response or a refusal.",
    "server-names",
    thorough=True,
)
header_lines = proved(
    "2026-42545",
    "A header of the application's that cannot be sent ended a worker: it is an error, and no more.",
    "odd-lines",
    thorough=True,
)
copies = proved(
    "2025-14550",
    "Copies of a header took Django time by their square: thousands are refused, or treated as one.",
    "copied-header",
    thorough=True,
)
underscored = proved(
    "2026-3902",
    "Over ASGI a header name with underscores stood for one with dashes: it has no effect on the site.",
    "underscores",
)


@advisory("2026-42544", thorough=True)
def handshake_bytes(context: Context) -> Iterator[Finding]:
    """A byte above 0x7f in Sec-WebSocket-Protocol ended a worker: later requests still get their pages."""
    home = context.site.url("home")
    for _ in range(HANDSHAKES):
        with suppress(BadResponse, ConnectionError):
            context.get(home, {**HANDSHAKE, "Sec-WebSocket-Protocol": "\udcff"})
        yield from context.expect(home, status(200), when="after such a handshake")


@advisory("2026-134820", thorough=True)
def padded_framing(context: Context) -> Iterator[Finding]:
    """Whitespace and signs in Content-Length or Transfer-Encoding hid a request from a front: none is read."""
    yield from framed(context, MISSPELT)


@advisory("2026-33034", thorough=True)
def unlimited_bodies(context: Context) -> Iterator[Finding]:
    """A body without a length passed Django's limits over ASGI, as in CVE-2026-5766: the servers' limit applies."""
    for response in above_limit(context):
        if response.status == 200 and MARK not in response.text:
            raise NotTried("this server passes no chunked body on")
        yield from context.judge(response, refused, when="POST of a chunked body above the limit")


def _modes(context: Context, kind: Callable[[Path], bool], count: int) -> Iterator[Finding]:
    """Expect that others can write to no such file or directory of a layer, made by `count` requests at once."""
    store = context.own.store
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(context.get, [hits.new_path() for _ in range(count)]))
    deadline = time.monotonic() + STORE_S
    while not (stored := [path for path in entries_below(store) if kind(path)]) and time.monotonic() < deadline:
        time.sleep(STORE_S / 10)
    if not stored:
        yield NotTried("no layer here stores files")
    for path in stored:
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:  # a server's temporary file, renamed since
            continue
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield Mismatch(f"{path.relative_to(store)}: not writable by others", f"mode {mode:o}")
