"""Django's security advisories since 2014 on its cache middleware, Vary and cache backends, a check for each.

Any layer can make the same mistake, so each asks the deployment's own layer. docs/cache-safety.md has the table of the
advisories.
"""

from __future__ import annotations

import secrets
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.verify.check import Check, CheckFunction, check
from bench.verify.checks.caching import own_cookies
from bench.verify.checks.names import own_pages
from bench.verify.context import Context
from bench.verify.expect import names, status
from bench.verify.finding import Finding, Mismatch, NotTried
from bench.verify.hits import answering, new_path, rendered_each_time, require_probes, require_tokens, shown, shows
from bench.verify.page_parser import TOKEN
from bench.verify.visitor import Visitor

OLD_BROWSER = {"User-Agent": "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)"}
AT_ONCE = 16
# How long a server may take to store a file once the client has its answer.
STORE_S = 0.3


def advisory(number: str) -> Callable[[CheckFunction], Check]:
    return check(f"cve-{number}", require_probes, group="advisories")


@check("cve-2014-0473", require_tokens, group="advisories")
def own_token(context: Context) -> Iterator[Finding]:
    """Cached anonymous pages could reveal CSRF tokens: each visitor of a page with a form gets their own token."""
    path = answering(does=["token"], bare=True)
    visitors = [Visitor(context.target) for _ in range(3)]
    tokens = [visitor.token(path) for visitor in visitors]
    cookies = {visitor.cookies.get(context.site.token_cookie) for visitor in visitors} - {None}
    if len(cookies) != len(visitors):
        yield Mismatch(f"GET {path} by {len(visitors)} visitors: a CSRF cookie each", f"{len(cookies)} cookies")
    for visitor, token in zip(visitors, tokens, strict=True):
        yield from context.judge(visitor.post(path, {TOKEN: token or ""}), status(200), when="with its own token")


@advisory("2014-1418")
def old_browsers(context: Context) -> Iterator[Finding]:
    """Caches could store private data: a page that depends on the cookie says so, to old browsers too."""
    download = ["Content-Disposition", 'attachment; filename="probe.html"']
    path = answering(shows=["session"], headers=[["Cache-Control", "private"], download])
    for visitor in ("alpha", "beta", "nobody"):
        cookie = {} if visitor == "nobody" else {"Cookie": f"{context.site.session_cookie}={visitor}"}
        right = (shows("session", visitor), names("Vary", "Cookie"), names("Cache-Control", "private"))
        yield from context.ask(path, *right, headers={**OLD_BROWSER, **cookie})


@advisory("2020-13254")
def malformed_keys(context: Context) -> Iterator[Finding]:
    """Malformed memcached keys could leak data: paths with spaces or line breaks, and long paths, share no answer."""
    name = secrets.token_hex(8)
    plain = f"/__probe__/page/{name}/"
    context.get(plain)
    odd = [f"%20{name}", f"%0d%0aget%20page:{plain}", "%09", "%00", "x" * 300, "%C3%A9"]
    yield from own_pages(context, [plain, *(f"/__probe__/page/{name}{end}/" for end in odd)])


@advisory("2020-24584")
def folder_modes(context: Context) -> Iterator[Finding]:
    """Others could write to directories of a file cache: they can write to no directory that a layer makes."""
    yield from _modes(context, Path.is_dir, count=1)


@advisory("2021-23336")
def separators(context: Context) -> Iterator[Finding]:
    """A `;` in a query string could poison a cache: no two query strings share an answer."""
    path = answering(bare=True)
    for query in ("?a=1;q=poison", "?a=1", "", "?a=1&q=other", "?a=1;q=poison", "?a=1", ""):
        yield from context.ask(path + query, shows("query", query.removeprefix("?")))


@advisory("2026-6907")
def vary_any(context: Context) -> Iterator[Finding]:
    """Answers with `Vary: *` were cached: each request for one is rendered."""
    yield from _uncached(context, "Vary", "*")


@advisory("2026-8404")
def capitals(context: Context) -> Iterator[Finding]:
    """Cache-Control was read in lower case only: `PRIVATE`, `NO-STORE` and `No-Cache` are obeyed."""
    yield from _uncached(context, "Cache-Control", "PRIVATE", "max-age=60, Private", "NO-STORE", "No-Cache")


@advisory("2026-25674")
def file_modes(context: Context) -> Iterator[Finding]:
    """Cache files made at the same time could get wrong permissions: others can write to none."""
    yield from _modes(context, Path.exists, count=AT_ONCE)


@advisory("2026-35192")
def own_sessions(context: Context) -> Iterator[Finding]:
    """A cached public page could give away a visitor's session: no two visitors get the same session cookie."""
    yield from own_cookies(context, answering(does=["set-session"], bare=True), {})


@advisory("2026-35193")
def authorized(context: Context) -> Iterator[Finding]:
    """Answers to requests with Authorization were cached for everybody: each visitor gets their own."""
    for order in (("alpha", None, "beta", None), (None, "alpha", None, "beta")):
        path = answering(shows=["Authorization"], bare=True)
        for who in order:
            right = shows("Authorization", f"[Basic {who}]" if who else "absent")
            yield from context.ask(path, right, headers={"Authorization": f"Basic {who}"} if who else {})


@advisory("2026-48587")
def spaced(context: Context) -> Iterator[Finding]:
    """Spaces hid the names in Vary: ` * ` still means anything, ` Cookie ` still means the cookie."""
    yield from _uncached(context, "Vary", "Accept-Encoding ,  *")
    yield from own_cookies(context, answering(does=["cookie"], headers=[["Vary", "Accept-Encoding ,  Cookie"]]), {})


@advisory("2026-48588")
def other_cookies(context: Context) -> Iterator[Finding]:
    """An answer that sets a cookie was cached if the request had another: no two visitors get the same cookie."""
    yield from own_cookies(context, answering(does=["cookie"]), {"Cookie": "theme=dark"})


@advisory("2026-113593")
def absent_and_empty(context: Context) -> Iterator[Finding]:
    """An absent header and an empty one shared a cached answer: each gets the site's answer to it."""
    path = answering(shows=["X-Probe"], headers=[["Vary", "X-Probe"]], bare=True)
    for value in (None, "", None, "a", "", "a"):
        headers = {} if value is None else {"X-Probe": value}
        # Servers differ in how they pass an empty header on; with a query string every cache is bypassed.
        right = shown(context.get(f"{path}?{secrets.token_hex(4)}", headers), "X-Probe")
        yield from context.ask(path, shows("X-Probe", right), headers=headers)


def _uncached(context: Context, header_name: str, *values: str) -> Iterator[Finding]:
    """Each request for an answer with such a header is rendered."""
    for value in values:
        yield from rendered_each_time(context, answering(headers=[[header_name, value]], bare=True))


def _modes(context: Context, kind: Callable[[Path], bool], count: int) -> Iterator[Finding]:
    """Others can write to no such file or directory of a layer, made by `count` requests at once."""
    store = context.own.store
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(context.get, [new_path() for _ in range(count)]))
    deadline = time.monotonic() + STORE_S
    while not (stored := [path for path in store.rglob("*") if kind(path)]) and time.monotonic() < deadline:
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
