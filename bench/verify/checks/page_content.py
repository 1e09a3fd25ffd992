"""Pages: status, content, headers, and referenced files."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator

from bench.serve.project.health import UNKNOWN_PATH
from bench.verify import page_parser
from bench.verify.check import FIRST, check, excused, require_strict
from bench.verify.checks import cached_responses
from bench.verify.checks.bodies import next_request, next_response
from bench.verify.context import OWN_STATIC, Context, judge_static
from bench.verify.expect import (
    Expectation,
    header,
    header_words,
    lacks,
    no_header,
    same_header,
    status,
    varies_if_coded,
)
from bench.verify.hits import VOLATILE, caches_pages, obstacle_here, require_probes, stores_bodies, until_hit
from bench.verify.mismatch import Finding, Mismatch, NotTried
from bench.verify.page_parser import TOKEN
from bench.verify.site import BEYOND, SLASH_REDIRECT
from bench.verify.wire import Connection, PageResponse

# Headers that every copy of a page must have.
PAGE_HEADERS = (
    *("Content-Type", "Content-Security-Policy", "Cross-Origin-Opener-Policy", "Permissions-Policy"),
    *("Referrer-Policy", "Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options", "Vary"),
)
# A probe view that raises.
FAILURE = "/__probe__/failure"
OWN_PAGE = "the site's own page"
# Headers added by caches: source and age of the response.
ADDED = frozenset(["x-cache", "x-cache-hits", "cache-status", "server"])
# X-Cache of a page that no layer has rendered for one language, so that it is private if it varies by language.
NOT_BY_LANGUAGE = (None, "", "pass; vary")
CLOCK_S = 1.1
CONDITIONS = (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified"))


@check("status", stage=FIRST)
def page_status(context: Context) -> Iterator[Finding]:
    """Every kind of URL has the same status as in process."""
    context.prefetch(context.site.pages)
    for path, expected in context.site.pages.items():
        yield from context.judge(context.first(path), status(expected.status))


@check("content")
def content(context: Context) -> Iterator[Finding]:
    """Every page has the same decompressed body and content type as in process."""
    for path, expected in context.site.pages.items():
        response = context.first(path)
        if response.status == expected.status and not response.redirects:
            yield from context.judge(response, context.as_rendered(path))


@check("render-id", require_probes)
def render_id(context: Context) -> Iterator[Finding]:
    """Every rendered page has its own X-Render-Id."""
    known: dict[str, str] = {}
    for path, expected in context.site.pages.items():
        if not expected.is_html or expected.redirects:
            continue
        response = context.first(path)
        if not response.render_id and context.layers and path == context.site.description.health:
            # The page of the readiness test may be cached already, without its headers.
            continue
        if not response.render_id or response.render_id in known:
            yield response.wrong("a new X-Render-Id", known.get(response.render_id or "", "none"))
        known[response.render_id or ""] = f"that of {path}"


@check("no-cookies", require_strict("a project's pages may set cookies: see public-pages"))
def no_cookies(context: Context) -> Iterator[Finding]:
    """Anonymous pages without a form that writes set no cookie and hold no CSRF token, so they are cacheable."""
    for path in context.site.html_paths:
        if path != context.site.urls.get("login"):
            response = context.first(path)
            yield from context.judge(response, no_header("Set-Cookie", "no cookie"))
            if page_parser.ParsedPage(response.text, path).form_with(TOKEN):
                yield response.wrong("no CSRF token", f"a form with {TOKEN}")


@check("repeat")
def repeat(context: Context) -> Iterator[Finding]:
    """A second anonymous GET gets the same page: without a layer a new rendering, on a hit the very same bytes."""
    # Without a layer one code path makes all pages; a layer may cache each of them differently.
    paths = context.site.main_paths
    if context.layers:
        paths = context.site.html_paths
    for path in paths:
        first, second = context.first(path), context.get(path)
        if not first.render_id or second.render_id != first.render_id:
            yield from context.judge(second, context.as_rendered(path), when="again")
        elif not context.layers:
            yield second.wrong("a second rendering", f"X-Render-Id {first.render_id} twice")
        elif second.content != first.content:
            yield second.wrong("a hit with the same bytes", "other bytes with the same X-Render-Id")


@check("hit")
def hit(context: Context) -> Iterator[Finding]:
    """With a layer that caches pages, home, a list and a detail page are soon hits for anonymous visitors."""
    if caches_pages(context):
        yield from cached_responses.keeps_site.run(context)


@check("kept-headers")
def kept_headers(context: Context) -> Iterator[Finding]:
    """A cached page has the content type and the security headers of a newly rendered one."""
    if not context.layers:
        return
    for path in context.site.main_paths:
        stored = context.get(path)
        if caches_pages(context) and not obstacle_here(context, stored):
            stored = until_hit(context, path) or stored
        yield from different_headers(context, path, stored, PAGE_HEADERS)


def different_headers(
    context: Context, path: str, stored: PageResponse, names: Iterable[str] = ()
) -> Iterator[Mismatch]:
    """Differences between a stored page and a rendered one: in these headers, or in all headers about the page.

    A page with a query string is not cached and has the same headers, except for headers that differ between
    renderings, such as a policy with a nonce or a time.

    Unless the project is the kit's, a stored page may add Cookie to Vary, for a server that looks at the session cookie
    first. No name may be missing in Vary: caches in front would mix visitors.
    """
    rendered = _rendered(context, path)
    if rendered.status != stored.status:
        return
    both = stored.header_names | rendered.header_names
    compared = names or sorted(both - VOLATILE - ADDED)
    others = [name for name in compared if _is_other(context, name, stored, rendered)]
    others = [name for name in others if name.lower() not in context.site.expected(path).varying]
    if others:
        again = _rendered(context, path)
        others = [name for name in others if rendered.header(name) == again.header(name)]
    if others and not context.site.description.reads_environment:
        # A project's own header with a clock is another one in another second; a server's own would be a fault.
        time.sleep(CLOCK_S)
        later = _rendered(context, path)
        others = [name for name in others if rendered.header(name) == later.header(name)]
    for name in others:
        yield stored.wrong(
            f"as a rendered one has it, {header_words(rendered, name)}",
            header_words(stored, name),
            f"{stored.sent}, a hit",
        )


def _rendered(context: Context, path: str) -> PageResponse:
    """The page with a made-up query string, stored by no layer."""
    return context.get(f"{path}?rendered={secrets.token_hex(4)}")


def _is_other(context: Context, name: str, stored: PageResponse, rendered: PageResponse) -> bool:
    """True if a stored page and a rendered one differ in a header that matters."""
    if _plain(stored.header(name)) == _plain(rendered.header(name)):
        return False
    if name.lower() == "set-cookie" and stored.header(name) and rendered.header(name):
        # Each rendering sets a cookie with another time of expiry.
        return False
    exact = context.site.description.reads_environment
    by_language = "accept-language" in stored.names("Vary") and stored.header("X-Cache") not in NOT_BY_LANGUAGE
    if name.lower() == "cache-control" and by_language and not exact:
        # A layer has it rendered for each language, whether it stores it or not. A rendering past the layer has read
        # the visitor's own, and is private.
        return False
    adds_cookie = stored.names("Vary") == rendered.names("Vary") | {"cookie"}
    return not (name.lower() == "vary" and adds_cookie and not exact)


def _plain(value: str | None) -> str:
    """A header's value without letter case and spaces, which do not matter."""
    return "".join((value or "").lower().split())


@check("encodings")
def encodings(context: Context) -> Iterator[Finding]:
    """A client that accepts gzip gets the same page, and a compressed response has Vary: Accept-Encoding."""
    for path in context.site.main_paths:
        right = (context.as_rendered(path), varies_if_coded())
        yield from context.expect(path, *right, headers={"Accept-Encoding": "gzip"})


@check("not-found")
@excused({OWN_STATIC: "the project's own code responds below the static files"})
def not_found(context: Context) -> Iterator[Finding]:
    """An unknown path gets a 404 with the site's own page; an unknown static file gets a 404."""
    yield from judge_static(context, f"{context.site.static_url}no-such-file.css", status(404))
    if not context.site.has_404:
        raise NotTried(f"the project has a page for any path, such as {UNKNOWN_PATH}")
    yield from context.judge(context.first(UNKNOWN_PATH), status(404), context.as_rendered(UNKNOWN_PATH))


@check("out-of-range")
def out_of_range(context: Context) -> Iterator[Finding]:
    """A page beyond the last one, page 0 and an unknown id get a 404 with the site's own page."""
    beyond = context.site.paths_ending(BEYOND)
    if not beyond:
        raise NotTried("the project names no page beyond a last one")
    for path in beyond:
        yield from context.judge(context.first(path), status(404), context.as_rendered(path))


@check("server-error", require_probes)
@excused({"no HTML": ""})
def server_error(context: Context) -> Iterator[Finding]:
    """A failing view returns 500 with the site's own page, without a traceback, and the site goes on."""
    hidden = lacks("Traceback", "RuntimeError", what="a page for visitors")
    response = yield from context.expect(FAILURE, status(500), header("X-Render-Id", bool, OWN_PAGE), hidden)
    # An API of another project may send JSON.
    is_page = header("Content-Type", lambda value: "text/html" in value, OWN_PAGE)
    yield from context.judge(response, is_page, excuse="no HTML")
    yield from context.expect(context.site.url("home"), status(200), when="after an error")


@check("head")
@excused({"refused": "the project refuses HEAD of some pages", "differs": ""})
def head(context: Context) -> Iterator[Finding]:
    """HEAD gets the headers of GET and no body, and the next request on the connection gets its response."""
    for path in [*context.site.main_paths, UNKNOWN_PATH, *context.site.small_files]:
        full = context.get(path)
        with Connection(context.target) as connection:
            response = connection.exchange("HEAD", path)
            if response.status == 405:
                yield response.wrong(f"status {full.status}", excuse="refused")
                continue
            # Presence of the header may differ between renderings.
            omitted = set(context.site.expected(path).varying)
            if path not in context.site.small_files:
                # Django's ConditionalGetMiddleware computes an ETag for GET only (RFC 9110, section 9.3.2, allows
                # this), and only a store of bodies adds the cookie in its key to Vary.
                own = {"etag"}
                if stores_bodies(context):
                    own.add("vary")
                own -= omitted
                others = full.header_names | OF_BODY
                yield from context.judge(response, *_as_get(full, omitted | others - own), excuse="differs")
                omitted |= own
            if context.site.expected(path).varies:
                omitted.add("content-length")
            yield from context.judge(response, status(full.status), *_as_get(full, omitted))
            if not response.keeps_open:
                if extra := connection.rest():
                    yield response.wrong("no body", f"{len(extra)} bytes: {extra[:40]!r}")
                continue
            if connection.send_anyway(next_request(context)):
                yield from next_response(context, f"HEAD {path}", connection)


# Headers compared for every response to GET, present or not.
OF_BODY = {"content-type", "content-encoding", "content-length"}


def _as_get(full: PageResponse, omitted: set[str]) -> Iterator[Expectation]:
    """Expect the response to HEAD to match the response to GET."""
    theirs = full.header_names - VOLATILE - omitted

    def missing(response: PageResponse) -> str | None:
        lost = theirs - response.header_names
        if not lost:
            return None
        return f"without {', '.join(sorted(lost))}"

    yield Expectation("the headers of GET", missing)
    for name in ("Content-Type", "Content-Encoding", "Vary"):
        if name.lower() not in omitted:
            yield same_header(full, name)
    if "content-length" not in omitted:
        length = str(len(full.body))
        yield header("Content-Length", lambda value: value in ("", length), f"Content-Length {length} as GET, or none")


@check("conditional")
def conditional(context: Context) -> Iterator[Finding]:
    """A page with an ETag or Last-Modified returns 304 to this validator and 200 to another."""
    for path in context.site.main_paths:
        wrong = list(revalidation(context, path))
        if wrong and context.site.expected(path).varies:
            yield NotTried(f"{path} differs from one rendering to the next, and so do its validators")
        else:
            yield from wrong


def revalidation(context: Context, path: str, *, required: bool = False) -> Iterator[Finding]:
    """Expect right responses to each validator of `path`; validators may be missing unless `required`."""
    first = context.get(path)
    # A page with unique parts in each rendering, such as a token, has another validator each time.
    second = first
    if not required:
        second = context.get(path)
    same = {name: first.header(name) for _, name in CONDITIONS if first.header(name) == second.header(name)}
    if required and not any(same.values()):
        yield first.wrong("ETag or Last-Modified", "neither")
    for condition, validator in CONDITIONS:
        if value := same.get(validator):
            yield from context.expect(path, status(304), headers={condition: value})
    if same.get("ETag"):
        other = yield from context.expect(path, status(200), headers={"If-None-Match": '"another"'})
        if other.status == 200 and other.content != first.content:
            yield other.wrong("the body", f"{len(other.content)} other bytes")


@check("redirects")
def redirects(context: Context) -> Iterator[Finding]:
    """Redirects lead to the same path as in process, with the visitor's scheme, host and port."""
    for path, expected, location in redirecting(context):
        yield from context.judge(context.first(path), status(expected), leads_to(context, location))
    static = context.site.static_url
    for path, location in ((f"{static}css", f"{static}css/"), ("//other.example/", None)):
        response = context.get(path)
        if response.redirects:
            yield from context.judge(response, leads_to(context, location))


def redirecting(context: Context) -> list[tuple[str, int, str | None]]:
    """Paths of redirects, each with its status and target path."""
    site = context.site
    if not site.has_database:
        return [(path, 301, f"{path}/") for path in site.paths(SLASH_REDIRECT)]
    return [(path, page.status, page.location) for path, page in site.pages.items() if page.redirects]


def leads_to(context: Context, path: str | None) -> Expectation:
    """A redirect to `path` of this very site, any path when None."""

    def right(got: str) -> bool:
        own = got
        if got.startswith(f"{context.target.origin}/"):
            own = got.removeprefix(context.target.origin)
        return own.startswith("/") and not own.startswith(("//", "/\\")) and path in (None, own)

    return header("Location", right, f"Location {path or 'of this site'}")
