"""Pages: their status, content, headers, and the files they refer to."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from bench.verify import page_parser, wire
from bench.verify.cacheability import different_headers
from bench.verify.check import check
from bench.verify.collected import source
from bench.verify.context import Context
from bench.verify.expected import as_in_process
from bench.verify.finding import Finding, Mismatch, NotTried
from bench.verify.hits import MAX_TRIES, is_hit, require_probes
from bench.verify.layer_facts import obstacle_here, require_visible_hits
from bench.verify.site import BEYOND, SLASH_REDIRECT, UNKNOWN_PATH
from bench.verify.wire import Answer, BadAnswer, Connection

# Layers that cache no whole pages: every request renders its page.
PARTS_ONLY = frozenset({"fragments"})
# Headers that may differ between two right answers for the same page.
VOLATILE = frozenset(
    [
        "date",
        "x-render-id",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "age",
        "via",
        "accept-ranges",
    ]
)
# Headers that every copy of a page must have.
PAGE_HEADERS = (
    "Content-Type",
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Permissions-Policy",
    "Referrer-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "Vary",
)
# A probe view that raises.
FAILURE = "/__probe__/failure"


@check("status")
def status(context: Context) -> Iterator[Mismatch]:
    """Every kind of URL answers with the status that it has when rendered in process."""
    context.prefetch(context.site.pages)
    for path, expected in context.site.pages.items():
        got = context.first(path).status
        if got != expected.status:
            yield Mismatch(f"GET {path}: status {expected.status}", f"status {got}")


@check("content")
def content(context: Context) -> Iterator[Mismatch]:
    """Every page has the decompressed body and the content type that were rendered in process."""
    for path, expected in context.site.pages.items():
        answer = context.first(path)
        if answer.status == expected.status and not 300 <= answer.status < 400:
            yield from differences(context, path, answer)


@check("render-id")
def render_id(context: Context) -> Iterator[Mismatch]:
    """Every rendered page carries an X-Render-Id of its own."""
    known: dict[str, str] = {}
    for path, expected in context.site.pages.items():
        if not expected.is_html or 300 <= expected.status < 400:
            continue
        got = context.first(path).render_id
        if not got and context.layers and path == context.site.description.health:
            # The page that said whether the project serves may be cached already, without its headers.
            continue
        if not got:
            yield Mismatch(f"GET {path}: an X-Render-Id", "none")
        elif got in known:
            yield Mismatch(f"GET {path}: an X-Render-Id of its own", f"that of {known[got]}")
        else:
            known[got] = path


@check("no-cookies")
def no_cookies(context: Context) -> Iterator[Mismatch]:
    """Anonymous pages without a form that writes set no cookie and hold no CSRF token, so they are cacheable."""
    if not context.strict:
        raise NotTried("a project's pages may set cookies: see public-pages")
    for path in context.site.html_paths:
        answer = context.first(path)
        holds_token = page_parser.parse(answer.text, path).form_with("csrfmiddlewaretoken")
        if path == context.site.urls.get("login"):
            continue
        if answer.all("Set-Cookie"):
            yield Mismatch(f"GET {path}: no cookie", f"Set-Cookie: {answer.header('Set-Cookie')}")
        if holds_token:
            yield Mismatch(f"GET {path}: no CSRF token", "a form with csrfmiddlewaretoken")


@check("references")
def references(context: Context) -> Iterator[Mismatch]:
    """The CSS, JavaScript and image files that pages refer to exist with the right type."""
    kinds: dict[str, str] = {}
    for path in context.site.html_paths:
        found = page_parser.parse(context.first(path).text, path)
        for what, urls in (("CSS", found.styles), ("JavaScript", found.scripts), ("image", found.images)):
            kinds.update({url: what for url in urls if url.startswith(context.site.static_url)})
    types = {"CSS": ("text/css",), "JavaScript": ("text/javascript", "application/javascript"), "image": ("image/",)}
    for url, what in kinds.items():
        answer = context.first(url)
        empty = not answer.body and source(context.site, url) != b""
        if answer.status != 200 or empty:
            yield Mismatch(f"GET {url}: status 200 and a body", f"status {answer.status}, {len(answer.body)} bytes")
        elif not answer.content_type.startswith(types[what]):
            yield Mismatch(f"GET {url}: Content-Type {types[what][0]}", f"{answer.header('Content-Type')}")


@check("repeat")
def repeat(context: Context) -> Iterator[Mismatch]:
    """A second anonymous GET gets the same page: without a layer a new rendering, on a hit the very same bytes."""
    # Without a layer one code path makes all pages; a layer may cache each of them differently.
    for path in context.site.html_paths if context.layers else context.site.main_paths:
        first, second = context.first(path), context.get(path)
        if first.render_id and second.render_id == first.render_id:
            if not context.layers:
                yield Mismatch(f"GET {path} twice: two renderings", f"X-Render-Id {first.render_id} twice")
            elif second.content != first.content:
                yield Mismatch(f"GET {path} twice, a hit: the same bytes", "other bytes with the same X-Render-Id")
        else:
            yield from differences(context, path, second)


@check("hit")
def hit(context: Context) -> Iterator[Finding]:
    """With a layer that caches pages, home, a list and a detail page are soon hits for anonymous visitors."""
    if not {layer.name for layer in context.layers} - PARTS_ONLY:
        return
    require_visible_hits(context)
    for path in context.site.main_paths:
        answers = [context.first(path)]
        while len(answers) < MAX_TRIES and not is_hit(answers[-1], answers[:-1]):
            if why := obstacle_here(context, answers[-1]):
                yield NotTried(f"{path} is not cached: {why}")
                break
            answers.append(context.get(path))
        else:
            if not is_hit(answers[-1], answers[:-1]):
                got = f"{len(answers)} renderings for {len(answers)} requests"
                yield Mismatch(f"GET {path}: an X-Render-Id a second time", got)


@check("kept-headers")
def kept_headers(context: Context) -> Iterator[Mismatch]:
    """A cached page has the content type and the security headers of a newly rendered one."""
    if not context.layers:
        return
    for path in context.site.main_paths:
        cached = context.get(path)
        rendered = context.get(f"{path}?rendered={secrets.token_hex(4)}")
        if rendered.status != cached.status:
            continue
        yield from different_headers(
            f"GET {path}, a hit", cached, rendered, PAGE_HEADERS, context.site.description.reads_environment
        )


@check("encodings")
def encodings(context: Context) -> Iterator[Mismatch]:
    """A client that accepts gzip gets the same page, and a compressed answer has Vary: Accept-Encoding."""
    for path in context.site.main_paths:
        answer = context.get(path, {"Accept-Encoding": "gzip"})
        yield from differences(context, path, answer)
        if answer.header("Content-Encoding") and "accept-encoding" not in (answer.header("Vary") or "").lower():
            yield Mismatch(f"GET {path} with gzip: Vary: Accept-Encoding", f"Vary: {answer.header('Vary')}")


@check("not-found")
def not_found(context: Context) -> Iterator[Finding]:
    """An unknown path gets a 404 with the site's own page; an unknown static file gets a 404."""
    unknown = f"{context.site.static_url}no-such-file.css"
    if (got := context.get(unknown).status) != 404:
        yield Mismatch(f"GET {unknown}: status 404", f"status {got}")
    if not context.site.has_404:
        raise NotTried(f"the project has a page for any path, such as {UNKNOWN_PATH}")
    answer = context.first(UNKNOWN_PATH)
    if answer.status != 404:
        yield Mismatch(f"GET {UNKNOWN_PATH}: status 404", f"status {answer.status}")
    yield from differences(context, UNKNOWN_PATH, answer)


@check("out-of-range")
def out_of_range(context: Context) -> Iterator[Finding]:
    """A page beyond the last one, page 0 and an unknown id get a 404 with the site's own page."""
    beyond = [path for kind, path in context.site.urls.items() if kind.endswith(BEYOND)]
    if not beyond:
        raise NotTried("the project names no page beyond a last one")
    for path in beyond:
        answer = context.first(path)
        if answer.status != 404:
            yield Mismatch(f"GET {path}: status 404", f"status {answer.status}")
        else:
            yield from differences(context, path, answer)


@check("server-error")
def server_error(context: Context) -> Iterator[Mismatch]:
    """A failing view answers 500 with the site's own page, without a traceback, and the site goes on."""
    require_probes(context)
    answer = context.get(FAILURE)
    if answer.status != 500:
        yield Mismatch(f"GET {FAILURE}: status 500", f"status {answer.status}")
        return
    if not answer.content_type.startswith("text/html") or not answer.render_id:
        yield Mismatch(f"GET {FAILURE}: the site's own page", answer.header("Content-Type") or "no type")
    if "Traceback" in answer.text or "RuntimeError" in answer.text:
        yield Mismatch(f"GET {FAILURE}: a page for visitors", "the traceback")
    home = context.site.url("home")
    if (got := context.get(home).status) != 200:
        yield Mismatch(f"GET {home} after it: status 200", f"status {got}")


@check("head")
def head(context: Context) -> Iterator[Finding]:
    """HEAD gets the headers of GET and no body, and the next request on the connection is answered."""
    following = context.site.url("static_small", "health")
    for path in [*context.site.main_paths, UNKNOWN_PATH, *context.site.small_files]:
        whole = context.get(path)
        with Connection(context.target) as connection:
            answer = connection.exchange("HEAD", path)
            if answer.status == 405 and not context.strict:
                yield NotTried(f"{path} refuses HEAD")
                continue
            yield from _head_differences(path, answer, whole)
            if not answer.keeps_open:
                if extra := connection.rest():
                    yield Mismatch(f"HEAD {path}: no body", f"{len(extra)} bytes: {extra[:40]!r}")
                continue
            try:
                got = connection.exchange("GET", following)
            except wire.Closed:
                continue
            except BadAnswer as error:
                yield Mismatch(f"HEAD {path}: no body, then an answer to the next request", str(error))
                continue
            if got.status != 200 or got.content_type != context.first(following).content_type:
                yield Mismatch(f"HEAD {path}: then GET {following} 200", f"status {got.status}")


def _head_differences(path: str, answer: Answer, whole: Answer) -> Iterator[Mismatch]:
    if answer.status != whole.status:
        yield Mismatch(f"HEAD {path}: status {whole.status}", f"status {answer.status}")
        return
    ours, theirs = ({name.lower() for name, _ in item.headers} - VOLATILE for item in (answer, whole))
    if missing := theirs - ours:
        yield Mismatch(f"HEAD {path}: the headers of GET", f"without {', '.join(sorted(missing))}")
    for name in ("Content-Type", "Content-Encoding", "Vary"):
        if answer.header(name) != whole.header(name):
            yield Mismatch(f"HEAD {path}: {name}: {whole.header(name)}", f"{answer.header(name)}")
    length = answer.header("Content-Length")
    if length is not None and length != str(len(whole.body)):
        yield Mismatch(f"HEAD {path}: Content-Length {len(whole.body)} as GET, or none", length)


@check("conditional")
def conditional(context: Context) -> Iterator[Mismatch]:
    """A page with an ETag or Last-Modified answers 304 to that validator and 200 to another."""
    for path in context.site.main_paths:
        yield from revalidation(context, path)


@check("redirects")
def redirects(context: Context) -> Iterator[Mismatch]:
    """Redirects lead where they lead in process, with no other scheme, host or port than the visitor's."""
    for path, expected, location in redirecting(context):
        answer = context.first(path)
        if answer.status != expected:
            yield Mismatch(f"GET {path}: status {expected}", f"status {answer.status}")
        if 300 <= answer.status < 400:
            yield from wrong_location(context, f"GET {path}", answer, location)
    static = context.site.static_url
    for path, location in ((f"{static}css", f"{static}css/"), ("//other.example/", None)):
        answer = context.get(path)
        if 300 <= answer.status < 400:
            yield from wrong_location(context, f"GET {path}", answer, location)


def redirecting(context: Context) -> list[tuple[str, int, str | None]]:
    """The paths that lead to another, each with its status and the path that it leads to."""
    site = context.site
    if not site.has_database:
        return [(path, 301, f"{path}/") for kind, path in site.urls.items() if kind == SLASH_REDIRECT]
    return [(path, page.status, page.location) for path, page in site.pages.items() if page.redirects]


def wrong_location(context: Context, what: str, answer: Answer, path: str | None) -> Iterator[Mismatch]:
    """What is wrong with the Location of a redirect to `path` of this very site (any path when None)."""
    got = answer.header("Location") or ""
    own = got.removeprefix(context.target.origin) if got.startswith(context.target.origin + "/") else got
    local = own.startswith("/") and not own.startswith(("//", "/\\"))
    if not local or (path is not None and own != path):
        yield Mismatch(f"{what}: Location {path or 'of this site'}", got or "none")


def revalidation(context: Context, path: str, *, required: bool = False) -> Iterator[Mismatch]:
    """What is wrong with the answers to each validator of `path`; having none is wrong only if `required`."""
    first = context.get(path)
    # A page with something of its own in each rendering, such as a token, has another validator each time.
    second = first if required else context.get(path)
    by = [
        (condition, first.header(validator))
        for condition, validator in (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified"))
        if first.header(validator) and second.header(validator) == first.header(validator)
    ]
    if required and not by:
        yield Mismatch(f"GET {path}: ETag or Last-Modified", "neither")
    for condition, value in by:
        again = context.get(path, {condition: value or ""})
        if again.status != 304:
            yield Mismatch(f"GET {path} with {condition}: {value}: status 304", f"status {again.status}")
    if first.header("ETag") and second.header("ETag") == first.header("ETag"):
        other = context.get(path, {"If-None-Match": '"another"'})
        if other.status != 200 or other.content != first.content:
            yield Mismatch(f"GET {path} with another ETag: status 200 and the body", f"status {other.status}")


def differences(context: Context, path: str, answer: Answer) -> Iterator[Mismatch]:
    """The differences between an answer and the page rendered in process."""
    expected = context.site.pages[path]
    if answer.content_type != expected.content_type:
        yield Mismatch(f"GET {path}: Content-Type {expected.content_type}", answer.header("Content-Type") or "none")
    if wrong := expected.difference(as_in_process(answer.text, context.target)):
        yield Mismatch(f"GET {path}: {wrong[0]}", wrong[1])
