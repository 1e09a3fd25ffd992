"""Responses that a layer caches, and responses that a layer must not cache."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat

from bench.serve.machine.http import BadResponse
from bench.verify import hits, wire
from bench.verify.check import check as any_check
from bench.verify.check import excused
from bench.verify.context import Context
from bench.verify.expect import status
from bench.verify.mismatch import Finding, Mismatch, NotTried
from bench.verify.rows import expected_pages, new_rows, soon_right, warm
from bench.verify.visitor import secret_cookies
from bench.verify.wire import PageResponse

LIFETIME = "public, max-age=600"
CONTROLS = (
    *("private", "PRIVATE", "max-age=600,Private", "max-age=600 ,  private", "max-age=600,\tprivate"),
    *('private="Set-Cookie"', "no-store", "No-Store", f"{LIFETIME}, NO-STORE", "no-cache", "public,No-Cache"),
    *("max-age=0", "MAX-AGE=0", f"{LIFETIME}, s-maxage=0"),
)
# Headers by which a page tells one kind of cache not to store it.
CONTROLS_OF_OTHERS = (
    {"CDN-Cache-Control": "no-store"},
    {"Surrogate-Control": "no-store"},
    {"X-Accel-Expires": "0"},
    {"Clear-Site-Data": '"cache"'},
)
# Lifetimes declared by pages, each shorter than the time to live of a cached copy.
LIFETIMES = (
    {"Expires": "Sat, 01 Nov 2025 10:00:00 GMT"},
    {"Expires": "0"},
    {"Age": "3000", "Cache-Control": "max-age=3005"},
    {"Cache-Control": "max-age=-5"},
    {"Cache-Control": "must-revalidate"},
    {"Cache-Control": "max-age=600, Must-Revalidate"},
)
# After so many seconds a page with max-age=1 is over, in caches that count whole seconds, too.
EXPIRED_S = 2.5
# Status -> headers of responses with this status.
STATUSES = dict.fromkeys((201, 203, 403, 404, 410, 500, 503), ()) | dict.fromkeys((301, 302, 307), ("Location",))
VARIES = ("*", "Cookie, *", "Accept-Encoding ,\t* ", "Accept-Encoding ,  *")
VALUES = ("one", "two", "three")

check = partial(any_check, group="caching")
TWO_LINES = {
    "two lines": "a server here reads only the first of two Vary lines; Django's own responses have one",
}


@check("keeps-pages", hits.require_cacheable)
def keeps_pages(context: Context) -> Iterator[Finding]:
    """A page requested repeatedly is soon a hit, byte for byte as rendered."""
    yield from _hit_as_rendered(context, hits.new_path(), hits.is_complete)


@check("keeps-site", hits.require_probes, hits.require_visible_hits)
def keeps_site(context: Context) -> Iterator[Finding]:
    """Home, a list and a detail page are soon hits, with the same bytes for everybody."""
    for path in context.site.main_paths:
        response = context.get(path)
        if why := hits.obstacle_here(context, response):
            yield NotTried(f"{path} is not cached: {why}")
        else:
            yield from _hit_as_rendered(context, path, partial(_ends, context, path), response)


def _hit_as_rendered(
    context: Context, path: str, is_right: Callable[[PageResponse], bool], *before: PageResponse
) -> Iterator[Finding]:
    """Expect a hit with the bytes of its rendering, possibly a rendering in `before`.

    Hits without an id belong to an unknown rendering, so all of them must have the same bytes.
    """
    known: dict[str | None, bytes] = {}
    tries = map(context.get, repeat(path, hits.MAX_TRIES))
    for response in chain(before, tries):
        if not is_right(response):
            yield response.wrong("status 200, a whole page", f"status {response.status}, {len(response.content)} bytes")
            return
        name = hits.render_id(response)
        if name in known:
            if known[name] != response.content:
                yield response.wrong("a hit with the bytes as rendered", f"{len(response.content)} other bytes")
            return
        known[name] = response.content
    yield response.wrong(f"a hit within {hits.MAX_TRIES} requests", f"{len(known)} renderings")


def _ends(context: Context, path: str, response: PageResponse) -> bool:
    """True if a page has its end, or is a page of the project without a mark at the end."""
    site = context.site
    without = site.has_database and path in site.pages and not site.pages[path].body.rstrip().endswith("</html>")
    return response.status == 200 and (without or response.text.rstrip().endswith("</html>"))


@check("other-statuses", hits.require_probes)
def other_statuses(context: Context) -> Iterator[Finding]:
    """Responses with a status other than 200 are not cached, and come with their status."""
    for number, names in STATUSES.items():
        path = hits.path_with_response(status=number, headers=[[name, "/"] for name in names])
        yield from hits.rendered_each_time(context, path, number)


@check("cache-control", hits.require_probes, leak=True)
def cache_control(context: Context) -> Iterator[Finding]:
    """Responses with private, no-store, no-cache or max-age=0, in any spelling and position, are not cached, and nor
    are those that say so to another kind of cache."""
    for control in CONTROLS:
        yield from hits.rendered_each_time(context, hits.with_headers(Cache_Control=control))
    for headers in CONTROLS_OF_OTHERS:
        yield from hits.rendered_each_time(context, hits.with_headers(**headers))


@check("own-lifetime", hits.require_probes)
def own_lifetime(context: Context) -> Iterator[Finding]:
    """Pages that are stale (Expires, Age) or must be revalidated are not cached, max-age=1 ends after a second, and a
    hit of a page with a longer one says its Age: a browser would keep the page for too long."""
    for headers in LIFETIMES:
        yield from hits.rendered_each_time(context, hits.with_headers(**headers))
    path = hits.with_headers(Cache_Control="max-age=1")
    first = context.get(path)
    longer = hits.with_headers(Cache_Control="max-age=600")
    warm = hits.repeat(context, longer)
    time.sleep(EXPIRED_S)
    response = context.get(longer)
    if hits.is_hit(response, warm) and int(response.header("Age") or 0) < 1:
        yield response.wrong("an Age of a second at least", f"Age {response.header('Age') or 'none'}")
    if hits.is_hit(again := context.get(path), [first]):
        yield again.wrong(f"another rendering after {EXPIRED_S:g} s, for Cache-Control says max-age=1", "the same one")


@check("set-cookie", hits.require_probes, leak=True)
def set_cookie(context: Context) -> Iterator[Finding]:
    """Responses that set a cookie, begin a session or hold a CSRF token are not cached; nobody gets another visitor's
    cookie."""
    acts = ["cookie"]
    if context.site.token_cookie:
        acts.append("token")
    # A session is a row of the database.
    if context.site.may_write and context.site.has_sessions:
        acts.append("session")
    for act in acts:
        path = hits.path_with_response(does=[act])
        yield from own_cookies(context, path, {})
        yield from hits.rendered_each_time(context, path)
    # Of published faults: no Vary, spaces in it, and a visitor who has another cookie.
    spaced = [["Vary", "Accept-Encoding ,  Cookie"]]
    for path, headers in (
        (hits.path_with_response(does=["set-session"], bare=True), {}),
        (hits.path_with_response(does=["cookie"], headers=spaced, bare=True), {}),
        (hits.path_with_response(does=["cookie"]), {"Cookie": "theme=dark"}),
    ):
        yield from own_cookies(context, path, headers)


def own_cookies(context: Context, path: str, headers: dict[str, str]) -> Iterator[Finding]:
    """Expect each visitor to get their own Set-Cookie."""
    responses = hits.repeat(context, path, hits.TIMES, headers)
    cookies: list[str | None] = []
    for response in responses:
        cookies += secret_cookies(response.all("Set-Cookie"))
    missing = hits.TIMES - len(cookies)
    yield from hits.distinct(responses, "cookies", [*cookies, *[None] * missing])


@check("vary", hits.require_probes, leak=True)
@excused(TWO_LINES)
def vary(context: Context) -> Iterator[Finding]:
    """Responses with `Vary: *`, in a second Vary line too, are not cached; a page that varies with a header serves only
    requests with that value."""
    for value in VARIES:
        # Sent unchanged: Django in the probe would tidy `Vary: Cookie`.
        yield from hits.rendered_each_time(context, hits.path_with_response(headers=[["Vary", value]], bare=True))
    two_lines = hits.path_with_response(does=["two-vary"], headers=[["Cache-Control", LIFETIME]])
    for finding in hits.rendered_each_time(context, two_lines):
        if isinstance(finding, Mismatch):
            finding = replace(finding, excuse="two lines")
        yield finding
    for name in ("Accept-Language", "User-Agent"):
        path = hits.with_headers(Vary=name)
        responses = [context.get(path, {name: value}) for value in VALUES]
        yield from hits.distinct(responses, f"renderings for values of {name}")


@check("authorization", hits.require_probes, leak=True)
def authorization(context: Context) -> Iterator[Finding]:
    """A request with an Authorization header gets its own rendering, and no other request gets this rendering."""
    yield from hits.distinct(
        hits.repeat(context, hits.new_path(), hits.TIMES, {"Authorization": "Basic alpha"}), "renderings"
    )
    for order in (("alpha", None, "beta", None), (*[None] * hits.TIMES, "alpha", None, "beta")):
        for path in (hits.new_path(), hits.path_with_response(shows=["Authorization"], bare=True)):
            for who in order:
                headers, shown = {}, "absent"
                if who:
                    headers, shown = {"Authorization": f"Basic {who}"}, f"[Basic {who}]"
                yield from context.expect(path, hits.has_paragraph("Authorization", shown), headers=headers)


@check("nonce", hits.require_probes, leak=True)
def nonce(context: Context) -> Iterator[Finding]:
    """A page with a nonce of a Content-Security-Policy is not cached, whatever lifetime the page names: each visitor
    gets a new nonce."""
    for name in ("Content-Security-Policy", "Content-Security-Policy-Report-Only"):
        path = hits.with_headers(**{name: "script-src 'nonce-c2VjcmV0'"})
        yield from hits.rendered_each_time(context, path)
    in_a_tag = hits.path_with_response(does=["nonce"])
    # A server that looks only for a lifetime finds one.
    with_lifetime = hits.path_with_response(does=["nonce"], headers=[["Cache-Control", "s-maxage=600"]])
    for path in (in_a_tag, with_lifetime):
        yield from hits.rendered_each_time(context, path)


@check("partial-requests", hits.require_probes, leak=True)
def partial_requests(context: Context) -> Iterator[Finding]:
    """A response to a script (htmx, XMLHttpRequest, CORS) is not cached as the page, nor the page as the response.

    A page that shows a header of htmx is not cached either: anybody can send the header without HX-Request.
    """
    scripts = {"HX-Request": "true", "X-Requested-With": "XMLHttpRequest", "Origin": "https://other.example"}
    for name, value in scripts.items():
        path = hits.path_with_response(shows=[name])
        for _ in range(hits.TIMES):
            yield from context.expect(path, hits.has_paragraph(name, f"[{value}]"), headers={name: value})
        for _ in range(hits.TIMES):
            yield from context.expect(path, hits.has_paragraph(name, "absent"), when="after a script's requests")
        yield from context.expect(
            path, hits.has_paragraph(name, f"[{value}]"), headers={name: value}, when="after a page's requests"
        )
    path = hits.path_with_response(shows=["HX-Target"])
    hits.repeat(context, path, hits.TIMES, {"HX-Target": "made-up"})
    for _ in range(hits.TIMES):
        yield from context.expect(
            path, hits.has_paragraph("HX-Target", "absent"), when="after requests with a made-up HX-Target"
        )


@check("read-cookies", hits.require_probes, leak=True)
def read_cookies(context: Context) -> Iterator[Finding]:
    """A page that reads a visitor's cookie or header (a theme) is for this visitor only."""
    for themes in (("dark", "light", None, "dark"), (None, "dark", None, "light")):
        of_cookie = hits.path_with_response(shows=["cookie theme"])
        of_header = hits.path_with_response(shows=["X-Theme"])
        for theme in themes:
            cookie, header, shown = {}, {}, "absent"
            if theme:
                cookie, header, shown = {"Cookie": f"theme={theme}"}, {"X-Theme": theme}, f"[{theme}]"
            yield from context.expect(of_cookie, hits.has_paragraph("cookie theme", theme or "none"), headers=cookie)
            yield from context.expect(of_header, hits.has_paragraph("X-Theme", shown), headers=header)


@check("other-methods", hits.require_probes, leak=True)
def other_methods(context: Context) -> Iterator[Finding]:
    """Each POST, PUT and DELETE reaches the application and shares no cached response with GET; a GET with a body
    stores no page for others."""
    for method in ("POST", "PUT", "DELETE"):
        path = hits.new_path("form")
        sent = hits.repeat(context, path, method=method, body=b"a=1")
        read = hits.repeat(context, path)
        sent += hits.repeat(context, path, method=method, body=b"a=1")
        yield from hits.distinct(sent, "renderings")
        for expected, responses in ((method, sent), ("GET", read)):
            for response in responses:
                yield from context.judge(response, hits.has_paragraph("method", expected))
    path = hits.path_with_response(shows=["body"])
    for _ in range(hits.TIMES):
        # A server may refuse a GET with a body.
        yield from context.expect(path, status(200, 400), method="GET", body=b"of another", when="with a body")
        yield from context.expect(path, hits.has_paragraph("body", ""), when="after one with a body")


@check("streaming", hits.require_probes)
def streaming(context: Context) -> Iterator[Finding]:
    """A streamed page arrives whole and is not cached: a half-sent page does not show that the rest failed."""
    responses = hits.repeat(context, hits.path_with_response(does=["stream"]))
    yield from hits.distinct(responses, "renderings")
    for response in responses:
        yield from context.judge(response, hits.complete_page())


@check("broken-off", hits.require_probes)
def broken_off(context: Context) -> Iterator[Finding]:
    """A page whose rendering fails halfway is not cached, however complete the first half looks."""
    path, responses = hits.path_with_response(does=["break"]), []
    for _ in range(hits.TIMES):
        # Servers may break off too, or send their own error page.
        with contextlib.suppress(BadResponse, OSError):
            responses.append(wire.fetch(context.target, path))
    right = [response for response in responses if response.status == 200]
    yield from hits.distinct(right, "renderings")


@check("shared-cache", thorough=True)
def shared_cache(context: Context) -> Iterator[Finding]:
    """Two web servers share one cache: a page stored by one is a hit of the other, and a write at one reaches both."""
    if not context.own.case.services:
        raise NotTried("its layers use no caching service that two web servers could share")
    if not hits.caches_pages(context):
        raise NotTried("it caches parts of pages, and no response shows the source of its parts")
    if own := [layer.name for layer in context.layers if layer.caches == hits.PAGES and not layer.services]:
        raise NotTried(f"each web server has its own {' and '.join(own)}, which responds first")
    hits.require_cacheable(context)
    with context.own.beside() as second:
        other = context.beside(second)
        yield from served_by(context, other)
        if context.site.has_rows and not hits.without_invalidation(context):
            with new_rows(context) as (writer, (row,)):
                warm(other, expected_pages(other, row, None))
                row, old = writer.write(row, "edit"), row
                yield from soon_right(other, row, old, "an edit at the first server")


def served_by(context: Context, other: Context) -> Iterator[Finding]:
    """Expect a page stored by one server to be a hit at the other, for visitors of the same host."""
    path = hits.new_path()
    stored = hits.until_hit(context, path)
    if stored is None:
        yield context.get(path).wrong("a hit in the end, at the first server", "rendered each time")
        return
    response = other.get(path, host=context.target.netloc)
    if not hits.is_hit(response, [stored]) or response.content != stored.content:
        yield response.wrong("at the second server, the page that the first stored", "it is rendered again")
