"""One check for each of Django's security advisories since 2014 on its cache middleware, Vary and cache backends.

Any layer can make the same mistake, so each check asks the deployment's own layer. bench/inside/advisories.py has the
probes' answers, docs/advisories.md the table of the advisories.
"""

from __future__ import annotations

import secrets
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.project.inspection import CSRF_COOKIE
from bench.verify import page_parser
from bench.verify.browser import Browser
from bench.verify.check import check as any_check
from bench.verify.context import Context
from bench.verify.finding import NEEDS_PROBES, Finding, Mismatch, NotTried
from bench.verify.hits import paragraph
from bench.verify.wire import Answer

OLD_BROWSER = {"User-Agent": "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)"}
# How often an uncacheable page is requested: enough for a layer that stores a page at the second request.
REQUESTS = 3
AT_ONCE = 16
# How long a server may take to store a file once the client has its answer.
STORE_S = 0.3

check = partial(any_check, group="advisories")


@check("cve-2014-0473")
def csrf_token(context: Context) -> Iterator[Finding]:
    """Cached anonymous pages could reveal CSRF tokens: each visitor of a page with a form gets their own token."""
    path = _path("form")
    visitors = [Browser(context.target) for _ in range(REQUESTS)]
    tokens = [_token(visitor, path) for visitor in visitors]
    cookies = [visitor.cookies.get(CSRF_COOKIE) for visitor in visitors]
    if None in cookies or len(set(cookies)) != REQUESTS:
        yield Mismatch(
            f"GET {path} by {REQUESTS} visitors: a CSRF cookie each", f"{len(set(cookies) - {None})} cookies"
        )
    for visitor, token in zip(visitors, tokens, strict=True):
        answer = visitor.post(path, {"csrfmiddlewaretoken": token or ""})
        if answer.status != 200:
            yield Mismatch(f"POST {path} with the visitor's own token: status 200", f"{answer.status}")


@check("cve-2014-1418")
def old_browsers(context: Context) -> Iterator[Finding]:
    """Caches could store private data: a page that depends on the cookie says so, to old browsers too."""
    path = _path("session")
    for visitor in ("alpha", "beta", "nobody"):
        cookie = {} if visitor == "nobody" else {"Cookie": f"{context.site.session_cookie}={visitor}"}
        answer = _get(context, path, {**OLD_BROWSER, **cookie})
        if (got := paragraph(answer, "session")) != visitor:
            yield Mismatch(f"GET {path} as {visitor}: a page for {visitor}", f"a page for {got}")
        for name, word in (("Vary", "cookie"), ("Cache-Control", "private")):
            if word not in (answer.header(name) or "").lower():
                yield Mismatch(f"GET {path} by an old browser: {name}: {word}", answer.header(name) or "none")


@check("cve-2020-13254")
def malformed_keys(context: Context) -> Iterator[Finding]:
    """Malformed memcached keys could leak data: paths with spaces or line breaks, and long paths, share no answer."""
    name = secrets.token_hex(8)
    plain = f"/__probe__/page/{name}/"
    odd = [
        f"/__probe__/page/{name}%20{name}/",
        f"/__probe__/page/{name}%0d%0aget%20page:{plain}/",
        f"/__probe__/page/{name}%09/",
        f"/__probe__/page/{name}%00/",
        f"/__probe__/page/{name}{'x' * 300}/",
        f"/__probe__/page/{name}%C3%A9/",
    ]
    _get(context, plain)
    for path in [*odd, plain, *odd, plain]:
        # Servers decode such a path differently, or refuse it; with a query string every cache is bypassed.
        expected, got = (_shown(context.get(path + query)) for query in (f"?{secrets.token_hex(4)}", ""))
        if got != expected:
            yield Mismatch(f"GET {path}: {expected}", got)


@check("cve-2020-24584")
def directories(context: Context) -> Iterator[Finding]:
    """Others could write to directories of a file cache: they can write to no directory that a layer makes."""
    yield from _modes(context, Path.is_dir, [_name_path("page")])


@check("cve-2021-23336")
def separators(context: Context) -> Iterator[Finding]:
    """A `;` in a query string could poison a cache: no two query strings share an answer."""
    path = _path("query")
    for query in ("?a=1;q=poison", "?a=1", "", "?a=1&q=other", "?a=1;q=poison", "?a=1", ""):
        got = paragraph(_get(context, path + query), "query")
        if got != query.removeprefix("?"):
            yield Mismatch(f"GET {path}{query}: the answer to that query string", f"the answer to {got!r}")


@check("cve-2026-6907")
def vary_any(context: Context) -> Iterator[Finding]:
    """Answers with `Vary: *` were cached: each request for one is rendered."""
    yield from _uncached(context, "vary-any")


@check("cve-2026-8404")
def letter_case(context: Context) -> Iterator[Finding]:
    """Cache-Control was read in lower case only: `PRIVATE`, `NO-STORE` and `No-Cache` are obeyed."""
    for kind in ("private-upper", "private-mixed", "no-store-upper", "no-cache-mixed"):
        yield from _uncached(context, kind)


@check("cve-2026-25674")
def files_at_once(context: Context) -> Iterator[Finding]:
    """Cache files made at the same time could get wrong permissions: others can write to none."""
    yield from _modes(context, Path.exists, [_name_path("page") for _ in range(AT_ONCE)])


@check("cve-2026-35192")
def saved_session(context: Context) -> Iterator[Finding]:
    """A cached public page could give away a visitor's session: no two visitors get the same session cookie."""
    yield from _own_cookies(context, "saves-session", {})


@check("cve-2026-35193")
def authorization(context: Context) -> Iterator[Finding]:
    """Answers to requests with Authorization were cached for everybody: each visitor gets their own."""
    for order in (("alpha", None, "beta", None), (None, "alpha", None, "beta")):
        path = _path("authorized")
        for who in order:
            headers = {"Authorization": f"Basic {who}"} if who else {}
            got = paragraph(_get(context, path, headers), "authorization")
            if got != headers.get("Authorization", "nobody"):
                yield Mismatch(f"GET {path} authorized as {who or 'nobody'}: a page for them", f"a page for {got}")


@check("cve-2026-48587")
def whitespace(context: Context) -> Iterator[Finding]:
    """Spaces hid the names in Vary: ` * ` still means anything, ` Cookie ` still means the cookie."""
    yield from _uncached(context, "vary-any-spaced")
    yield from _own_cookies(context, "sets-cookie-spaced", {})


@check("cve-2026-48588")
def unrelated_cookies(context: Context) -> Iterator[Finding]:
    """An answer that sets a cookie was cached if the request had another: no two visitors get the same cookie."""
    yield from _own_cookies(context, "sets-cookie", {"Cookie": "theme=dark"})


@check("cve-2026-113593")
def absent_and_empty(context: Context) -> Iterator[Finding]:
    """An absent header and an empty one shared a cached answer: each gets the site's answer to it."""
    path = _path("varies")
    for headers in ({}, {"X-Probe": ""}, {}, {"X-Probe": "a"}, {"X-Probe": ""}, {"X-Probe": "a"}):
        got = paragraph(_get(context, path, headers), "x-probe")
        # Servers differ in how they pass an empty header on; with a query string every cache is bypassed.
        expected = paragraph(_get(context, f"{path}?{secrets.token_hex(4)}", headers), "x-probe")
        if got != expected:
            yield Mismatch(f"GET {path} with X-Probe {headers or 'absent'}: {expected}", got)


def _path(kind: str) -> str:
    """The path of a page of that kind that nobody has requested."""
    return f"/__probe__/advisory/{kind}/{secrets.token_hex(8)}/"


def _name_path(kind: str) -> str:
    return f"/__probe__/{kind}/{secrets.token_hex(8)}/"


def _get(context: Context, path: str, headers: dict[str, str] | None = None) -> Answer:
    answer = context.get(path, headers or {})
    if answer.status == 404:
        raise NotTried(NEEDS_PROBES)
    if answer.status != 200:
        raise ValueError(f"GET {path}: status {answer.status}, not 200")
    return answer


def _shown(answer: Answer) -> str:
    return f"the page of {paragraph(answer, 'path')}" if answer.status == 200 else f"status {answer.status}"


def _token(visitor: Browser, path: str) -> str | None:
    answer = visitor.get(path)
    if answer.status == 404:
        raise NotTried(NEEDS_PROBES)
    form = page_parser.parse(answer.text, path).form_with("csrfmiddlewaretoken")
    return form.values["csrfmiddlewaretoken"] if form else None


def _uncached(context: Context, kind: str) -> Iterator[Mismatch]:
    """What is wrong unless each request gets its own rendering."""
    path = _path(kind)
    renderings = {paragraph(_get(context, path), "render-id") for _ in range(REQUESTS)}
    if len(renderings) != REQUESTS:
        yield Mismatch(f"GET {path} {REQUESTS} times: {REQUESTS} renderings", f"{len(renderings)}: it was cached")


def _own_cookies(context: Context, kind: str, headers: dict[str, str]) -> Iterator[Mismatch]:
    """What is wrong unless each visitor gets their own Set-Cookie."""
    path = _path(kind)
    lines = [_get(context, path, headers).header("Set-Cookie") for _ in range(REQUESTS)]
    if None in lines or len(set(lines)) != REQUESTS:
        yield Mismatch(f"GET {path} by {REQUESTS} visitors: a cookie each", f"{len(set(lines) - {None})} cookies")


def _modes(context: Context, kind: Callable[[Path], bool], paths: list[str]) -> Iterator[Finding]:
    """The files and directories of a layer that others may write to, after simultaneous requests for `paths`."""
    if context.running is None:
        yield NotTried("it needs the files of a deployment of its own: verify a STACK instead of a --target")
        return
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(partial(_get, context), paths))
    store = context.running.store
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
