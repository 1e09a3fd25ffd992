"""Django's security advisories on its cache middleware, Vary and cache backends, from 2014 on: one check each.

A layer need not be Django's to make the same mistake, so each is made through whatever layer is there. What the
probes answer is in probes/advisories.py, the table of the advisories in docs/advisories.md.
"""

from __future__ import annotations

import html
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.verify import page
from bench.verify.browser import Browser
from bench.verify.outcome import Finding, Mismatch, NotAsked, NotTried
from bench.verify.rows import PROBES_OFF
from bench.verify.suite import Context
from bench.verify.suite import check as any_check
from bench.verify.wire import Answer

OLD_BROWSER = {"User-Agent": "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)"}
CSRF_COOKIE, SESSION_COOKIE = "csrftoken", "sessionid"
# How often a page that must not be kept is asked for: enough for a page that is kept at the second asking.
ASKED = 3
AT_ONCE = 16
KEPT_S = 0.3

check = partial(any_check, group="advisories")


@check("cve-2014-0473")
def csrf_token(context: Context) -> Iterator[Finding]:
    """Caching of anonymous pages could reveal CSRF tokens: each visitor of a page with a form has their own token."""
    path = _path("form")
    visitors = [Browser(context.target) for _ in range(ASKED)]
    tokens = [_token(visitor, path) for visitor in visitors]
    cookies = [visitor.cookies.get(CSRF_COOKIE) for visitor in visitors]
    if None in cookies or len(set(cookies)) != ASKED:
        yield Mismatch(f"GET {path} by {ASKED} visitors: a CSRF cookie each", f"{len(set(cookies) - {None})} cookies")
    for visitor, token in zip(visitors, tokens, strict=True):
        answer = visitor.post(path, {"csrfmiddlewaretoken": token or ""})
        if answer.status != 200:
            yield Mismatch(f"POST {path} with the token of the visitor's own page: status 200", f"{answer.status}")


@check("cve-2014-1418")
def old_browsers(context: Context) -> Iterator[Finding]:
    """Caches were allowed to keep private data: what varies with the cookie says so, also to old browsers."""
    path = _path("session")
    for visitor in ("alpha", "beta", "nobody"):
        cookie = {} if visitor == "nobody" else {"Cookie": f"{SESSION_COOKIE}={visitor}"}
        answer = _get(context, path, {**OLD_BROWSER, **cookie})
        if (got := _paragraph(answer, "session")) != visitor:
            yield Mismatch(f"GET {path} as {visitor}: a page for {visitor}", f"a page for {got}")
        for name, word in (("Vary", "cookie"), ("Cache-Control", "private")):
            if word not in (answer.header(name) or "").lower():
                yield Mismatch(f"GET {path} by an old browser: {name}: {word}", answer.header(name) or "none")


@check("cve-2020-13254")
def malformed_keys(context: Context) -> Iterator[Finding]:
    """Malformed memcached keys could leak data: a path with spaces, line ends or of great length shares no answer."""
    name = secrets.token_hex(8)
    plain = f"/probe/page/{name}/"
    odd = [
        f"/probe/page/{name}%20{name}/",
        f"/probe/page/{name}%0d%0aget%20page:{plain}/",
        f"/probe/page/{name}%09/",
        f"/probe/page/{name}%00/",
        f"/probe/page/{name}{'x' * 300}/",
        f"/probe/page/{name}%C3%A9/",
    ]
    _get(context, plain)
    for path in [*odd, plain, *odd, plain]:
        # Servers decode such a path differently, or refuse it; a query string keeps any cache out of their answer.
        expected, got = (_shown(context.get(path + query)) for query in (f"?{secrets.token_hex(4)}", ""))
        if got != expected:
            yield Mismatch(f"GET {path}: {expected}", got)


@check("cve-2020-24584")
def directories(context: Context) -> Iterator[Finding]:
    """Directories of a file cache could be writable by others: none that a layer makes is."""
    yield from _modes(context, Path.is_dir, [_name_path("page")])


@check("cve-2021-23336")
def separators(context: Context) -> Iterator[Finding]:
    """A cache could be poisoned through `;` in a query string: no two query strings share an answer."""
    path = _path("query")
    for query in ("?a=1;q=poison", "?a=1", "", "?a=1&q=other", "?a=1;q=poison", "?a=1", ""):
        got = _paragraph(_get(context, path + query), "query")
        if got != query.removeprefix("?"):
            yield Mismatch(f"GET {path}{query}: the answer to that query string", f"the answer to {got!r}")


@check("cve-2026-6907")
def vary_any(context: Context) -> Iterator[Finding]:
    """Answers with `Vary: *` were kept: they are rendered for each who asks."""
    yield from _not_kept(context, "vary-any")


@check("cve-2026-8404")
def letter_case(context: Context) -> Iterator[Finding]:
    """Directives of Cache-Control were read in lower case only: `PRIVATE`, `NO-STORE` and `No-Cache` are obeyed."""
    for kind in ("private-upper", "private-mixed", "no-store-upper", "no-cache-mixed"):
        yield from _not_kept(context, kind)


@check("cve-2026-25674")
def files_at_once(context: Context) -> Iterator[Finding]:
    """Files of a cache could get wrong permissions when several were made at once: none is writable by others."""
    yield from _modes(context, Path.exists, [_name_path("page") for _ in range(AT_ONCE)])


@check("cve-2026-35192")
def saved_session(context: Context) -> Iterator[Finding]:
    """The session of who visited a cached public page could be stolen: no two visitors get the same session cookie."""
    yield from _own_cookies(context, "saves-session", {})


@check("cve-2026-35193")
def authorization(context: Context) -> Iterator[Finding]:
    """Answers to requests with Authorization were kept for others: everybody gets their own."""
    for order in (("alpha", None, "beta", None), (None, "alpha", None, "beta")):
        path = _path("authorized")
        for who in order:
            headers = {"Authorization": f"Basic {who}"} if who else {}
            got = _paragraph(_get(context, path, headers), "authorization")
            if got != headers.get("Authorization", "nobody"):
                yield Mismatch(f"GET {path} authorized as {who or 'nobody'}: a page for them", f"a page for {got}")


@check("cve-2026-48587")
def whitespace(context: Context) -> Iterator[Finding]:
    """Spaces in Vary hid what it says: ` * ` is still anything, ` Cookie ` is still the cookie."""
    yield from _not_kept(context, "vary-any-spaced")
    yield from _own_cookies(context, "sets-cookie-spaced", {})


@check("cve-2026-48588")
def unrelated_cookies(context: Context) -> Iterator[Finding]:
    """An answer that sets a cookie was kept when the request had another one: no two visitors get the same cookie."""
    yield from _own_cookies(context, "sets-cookie", {"Cookie": "theme=dark"})


@check("cve-2026-113593")
def absent_and_empty(context: Context) -> Iterator[Finding]:
    """A header that is absent and one that is empty shared a kept answer: each gets what the site says to it."""
    path = _path("varies")
    for headers in ({}, {"X-Probe": ""}, {}, {"X-Probe": "a"}, {"X-Probe": ""}, {"X-Probe": "a"}):
        got = _paragraph(_get(context, path, headers), "x-probe")
        # What the site sees of an empty header is for the servers to say; a query string keeps any cache out.
        expected = _paragraph(_get(context, f"{path}?{secrets.token_hex(4)}", headers), "x-probe")
        if got != expected:
            yield Mismatch(f"GET {path} with X-Probe {headers or 'absent'}: {expected}", got)


def _path(kind: str) -> str:
    """A page of that kind that nobody has asked for."""
    return f"/probe/advisory/{kind}/{secrets.token_hex(8)}/"


def _name_path(kind: str) -> str:
    return f"/probe/{kind}/{secrets.token_hex(8)}/"


def _get(context: Context, path: str, headers: dict[str, str] | None = None) -> Answer:
    answer = context.get(path, headers or {})
    if answer.status == 404:
        raise NotAsked(PROBES_OFF)
    if answer.status != 200:
        raise ValueError(f"GET {path}: status {answer.status}, not 200")
    return answer


def _paragraph(answer: Answer, name: str) -> str:
    found = re.search(rf'<p id="{name}">([^<]*)</p>', answer.text)
    if not found:
        raise ValueError(f"a probe page without its paragraph {name}")
    return html.unescape(found[1])


def _shown(answer: Answer) -> str:
    return f"the page of {_paragraph(answer, 'path')}" if answer.status == 200 else f"status {answer.status}"


def _token(visitor: Browser, path: str) -> str | None:
    answer = visitor.get(path)
    if answer.status == 404:
        raise NotAsked(PROBES_OFF)
    form = page.read(answer.text, path).form_with("csrfmiddlewaretoken")
    return form.values["csrfmiddlewaretoken"] if form else None


def _not_kept(context: Context, kind: str) -> Iterator[Mismatch]:
    """What is wrong unless each asking is a rendering of its own."""
    path = _path(kind)
    renderings = {_paragraph(_get(context, path), "render-id") for _ in range(ASKED)}
    if len(renderings) != ASKED:
        yield Mismatch(f"GET {path} {ASKED} times: {ASKED} renderings", f"{len(renderings)}: it was kept")


def _own_cookies(context: Context, kind: str, headers: dict[str, str]) -> Iterator[Mismatch]:
    """What is wrong unless each visitor gets a Set-Cookie of their own."""
    path = _path(kind)
    lines = [_get(context, path, headers).header("Set-Cookie") for _ in range(ASKED)]
    if None in lines or len(set(lines)) != ASKED:
        yield Mismatch(f"GET {path} by {ASKED} visitors: a cookie each", f"{len(set(lines) - {None})} cookies")


def _modes(context: Context, kind: Callable[[Path], bool], paths: list[str]) -> Iterator[Finding]:
    """What others may write of what a layer keeps in files, once `paths` have been asked for at once."""
    if context.running is None:
        yield NotTried("it needs the files of a deployment of its own: verify a STACK instead of a --target")
        return
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(partial(_get, context), paths))
    store = context.running.store
    # A server may put what it keeps in its place when the client has the answer already.
    deadline = time.monotonic() + KEPT_S
    while not (kept := [path for path in store.rglob("*") if kind(path)]) and time.monotonic() < deadline:
        time.sleep(KEPT_S / 10)
    if not kept:
        yield NotTried("no layer here keeps files")
    for path in kept:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield Mismatch(f"{path.relative_to(store)}: not writable by others", f"mode {mode:o}")
