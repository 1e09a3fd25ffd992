"""Pages: their status, content, headers and what they refer to."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from bench.verify import page, wire
from bench.verify.probes import must_have_probes
from bench.verify.site import BEYOND_PATHS, UNKNOWN_PATH
from bench.verify.suite import Context, Mismatch, check
from bench.verify.wire import Answer, BadAnswer, Connection

# Layers that keep parts of pages or nothing at all: the page itself is rendered for every request.
KEEPS_NO_PAGES = frozenset({"fragments"})
# With as many processes as this, each with a cache of its own, one of them is asked a second time at the latest now.
TRIES_FOR_HIT = 33
# What may differ between two right answers for the same page.
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
# What a page says to browsers about itself, whoever sends it.
KEPT_HEADERS = (
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
# A view that raises, of the site's probes.
FAILURE = "/probe/failure"


@check("status")
def status(context: Context) -> Iterator[Mismatch]:
    """Every kind of URL answers with the status it has in process."""
    context.fetch_ahead(context.site.pages)
    for path, expected in context.site.pages.items():
        got = context.first(path).status
        if got != expected.status:
            yield Mismatch(f"GET {path}: status {expected.status}", f"status {got}")


@check("content")
def content(context: Context) -> Iterator[Mismatch]:
    """Every page's decompressed body and content type equal those rendered in process."""
    for path, expected in context.site.pages.items():
        answer = context.first(path)
        if answer.status == expected.status and not 300 <= answer.status < 400:
            yield from differences(context, path, answer)


@check("render-id")
def render_id(context: Context) -> Iterator[Mismatch]:
    """Every rendered page carries an X-Render-Id, no two pages the same one."""
    known: dict[str, str] = {}
    for path, expected in context.site.pages.items():
        if not expected.is_html or 300 <= expected.status < 400:
            continue
        got = context.first(path).render_id
        if not got:
            yield Mismatch(f"GET {path}: an X-Render-Id", "none")
        elif got in known:
            yield Mismatch(f"GET {path}: an X-Render-Id of its own", f"that of {known[got]}")
        else:
            known[got] = path


@check("no-cookies")
def no_cookies(context: Context) -> Iterator[Mismatch]:
    """Anonymous pages without a form that writes set no cookie and hold no CSRF token, so that they can be kept."""
    for path in context.site.html_paths:
        answer = context.first(path)
        holds_token = page.read(answer.text, path).form_with("csrfmiddlewaretoken")
        if path == context.site.urls.get("login"):
            continue
        if answer.all("Set-Cookie"):
            yield Mismatch(f"GET {path}: no cookie", f"Set-Cookie: {answer.header('Set-Cookie')}")
        if holds_token:
            yield Mismatch(f"GET {path}: no CSRF token", "a form with csrfmiddlewaretoken")


@check("references")
def references(context: Context) -> Iterator[Mismatch]:
    """Every page refers to one CSS, one JavaScript and one image file, which exist with the right type."""
    kinds: dict[str, str] = {}
    for path in context.site.html_paths:
        found = page.read(context.first(path).text, path)
        for what, urls in (("CSS", found.styles), ("JavaScript", found.scripts), ("image", found.images)):
            own = {url for url in urls if url.startswith("/static/")}
            if len(own) != 1:
                yield Mismatch(f"GET {path}: one {what} file under /static/", f"{sorted(own) or 'none'}")
            kinds.update(dict.fromkeys(own, what))
    types = {"CSS": ("text/css",), "JavaScript": ("text/javascript", "application/javascript"), "image": ("image/",)}
    for url, what in kinds.items():
        answer = context.first(url)
        if answer.status != 200 or not answer.body:
            yield Mismatch(f"GET {url}: status 200 and a body", f"status {answer.status}, {len(answer.body)} bytes")
        elif not answer.content_type.startswith(types[what]):
            yield Mismatch(f"GET {url}: Content-Type {types[what][0]}", f"{answer.header('Content-Type')}")


@check("repeat")
def repeat(context: Context) -> Iterator[Mismatch]:
    """A second anonymous GET is the same page: rendered anew without a layer, byte for byte the first on a HIT."""
    # Without a layer every page comes from the same code; what a layer keeps of each is another matter.
    for path in context.site.html_paths if context.layers else main_paths(context):
        first, second = context.first(path), context.get(path)
        if first.render_id and second.render_id == first.render_id:
            if not context.layers:
                yield Mismatch(f"GET {path} twice: two renderings", f"X-Render-Id {first.render_id} twice")
            elif second.content != first.content:
                yield Mismatch(f"GET {path} twice, a HIT: the same bytes", "other bytes with the same X-Render-Id")
        else:
            yield from differences(context, path, second)


@check("hit")
def hit(context: Context) -> Iterator[Mismatch]:
    """A layer that keeps pages does so: home, a list and a detail page are soon a HIT for anonymous visitors."""
    if not set(context.layers) - KEEPS_NO_PAGES:
        return
    for path in main_paths(context):
        answers = [context.first(path)]
        while len(answers) < TRIES_FOR_HIT and not is_hit(answers[-1], answers[:-1]):
            answers.append(context.get(path))
        if not is_hit(answers[-1], answers[:-1]):
            yield Mismatch(
                f"GET {path}: an X-Render-Id a second time", f"{len(answers)} renderings for {len(answers)} requests"
            )


def is_hit(answer: Answer, earlier: list[Answer]) -> bool:
    """Whether an answer was kept: it has the X-Render-Id of an earlier one, or none, unlike a rendering."""
    if answer.render_id is None:
        return answer.status == 200
    return any(answer.render_id == item.render_id for item in earlier)


@check("kept-headers")
def kept_headers(context: Context) -> Iterator[Mismatch]:
    """A page that a layer kept has the type and the security headers of one that is rendered now."""
    if not context.layers:
        return
    for path in main_paths(context):
        kept = context.get(path)
        rendered = context.get(f"{path}?rendered={secrets.token_hex(4)}")
        for name in KEPT_HEADERS:
            if kept.header(name) != rendered.header(name):
                yield Mismatch(f"GET {path}, kept: {name}: {rendered.header(name)}", f"{kept.header(name)}")


@check("encodings")
def encodings(context: Context) -> Iterator[Mismatch]:
    """A visitor who accepts gzip gets the same page, and a coded answer says that it varies."""
    for path in main_paths(context):
        answer = context.get(path, {"Accept-Encoding": "gzip"})
        yield from differences(context, path, answer)
        if answer.header("Content-Encoding") and "accept-encoding" not in (answer.header("Vary") or "").lower():
            yield Mismatch(f"GET {path} with gzip: Vary: Accept-Encoding", f"Vary: {answer.header('Vary')}")


@check("not-found")
def not_found(context: Context) -> Iterator[Mismatch]:
    """An unknown path answers 404 with the site's own page; an unknown static file answers 404."""
    answer = context.first(UNKNOWN_PATH)
    if answer.status != 404:
        yield Mismatch(f"GET {UNKNOWN_PATH}: status 404", f"status {answer.status}")
    yield from differences(context, UNKNOWN_PATH, answer)
    unknown = "/static/no-such-file.css"
    if (got := context.get(unknown).status) != 404:
        yield Mismatch(f"GET {unknown}: status 404", f"status {got}")


@check("out-of-range")
def out_of_range(context: Context) -> Iterator[Mismatch]:
    """A page beyond the last, page 0 and an id that is not there answer 404 with the site's own page."""
    for path in BEYOND_PATHS:
        answer = context.first(path)
        if answer.status != 404:
            yield Mismatch(f"GET {path}: status 404", f"status {answer.status}")
        else:
            yield from differences(context, path, answer)


@check("server-error")
def server_error(context: Context) -> Iterator[Mismatch]:
    """A view that fails answers 500 with the site's own page, which tells nothing of the inside; the site goes on."""
    must_have_probes(context)
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
def head(context: Context) -> Iterator[Mismatch]:
    """HEAD answers the headers of GET and no body, and the next request on the connection is answered."""
    for path in [*main_paths(context), UNKNOWN_PATH, "/static/small.txt"]:
        whole = context.get(path)
        with Connection(context.target) as connection:
            answer = connection.exchange("HEAD", path)
            yield from _head_differences(path, answer, whole)
            if not answer.keeps_open:
                if extra := connection.rest():
                    yield Mismatch(f"HEAD {path}: no body", f"{len(extra)} bytes: {extra[:40]!r}")
                continue
            try:
                following = connection.exchange("GET", "/static/small.txt")
            except wire.Closed:
                continue
            except BadAnswer as error:
                yield Mismatch(f"HEAD {path}: no body, then an answer to the next request", str(error))
                continue
            if following.status != 200 or following.content_type != context.first("/static/small.txt").content_type:
                yield Mismatch(f"HEAD {path}: then GET /static/small.txt 200", f"status {following.status}")


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
    """A page that gives an ETag or Last-Modified answers 304 without a body when asked by it, 200 by another."""
    for path in main_paths(context):
        yield from revalidation(context, path)


@check("redirects")
def redirects(context: Context) -> Iterator[Mismatch]:
    """Redirects lead to the right path, and name no other scheme, host or port than the visitor's."""
    posts = context.site.url("posts")
    for path, expected, location in (
        (f"{posts}page/1/", 301, posts),
        (posts.rstrip("/"), 301, posts),
        (f"{posts}jump/?page=2", 302, f"{posts}page/2/"),
        ("/static/css", None, "/static/css/"),
        ("//other.example/", None, None),
    ):
        answer = context.get(path)
        if expected is not None and answer.status != expected:
            yield Mismatch(f"GET {path}: status {expected}", f"status {answer.status}")
        if 300 <= answer.status < 400:
            yield from wrong_location(context, f"GET {path}", answer, location)


def wrong_location(context: Context, what: str, answer: Answer, path: str | None) -> Iterator[Mismatch]:
    """What is wrong with the Location of a redirect to `path` of this very site (any path when None)."""
    got = answer.header("Location") or ""
    own = got.removeprefix(context.target.origin) if got.startswith(context.target.origin + "/") else got
    local = own.startswith("/") and not own.startswith(("//", "/\\"))
    if not local or (path is not None and own != path):
        yield Mismatch(f"{what}: Location {path or 'of this site'}", got or "none")


def main_paths(context: Context) -> list[str]:
    """Home, a list and a detail page."""
    site = context.site
    return [site.url("home"), site.url("posts_page", "posts"), site.url("post_with_comments", "post")]


def revalidation(context: Context, path: str, *, required: bool = False) -> Iterator[Mismatch]:
    """What is wrong when `path` is asked for again by each validator it gave; none is wrong only when `required`."""
    first = context.get(path)
    by = [
        (condition, first.header(validator))
        for condition, validator in (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified"))
        if first.header(validator)
    ]
    if required and not by:
        yield Mismatch(f"GET {path}: ETag or Last-Modified", "neither")
    for condition, value in by:
        again = context.get(path, {condition: value or ""})
        if again.status != 304:
            yield Mismatch(f"GET {path} with {condition}: {value}: status 304", f"status {again.status}")
    if first.header("ETag"):
        other = context.get(path, {"If-None-Match": '"another"'})
        if other.status != 200 or other.content != first.content:
            yield Mismatch(f"GET {path} with another ETag: status 200 and the body", f"status {other.status}")


def differences(context: Context, path: str, answer: Answer) -> Iterator[Mismatch]:
    """Where an answer differs from the page rendered in process."""
    expected = context.site.pages[path]
    if answer.content_type != expected.content_type:
        yield Mismatch(f"GET {path}: Content-Type {expected.content_type}", answer.header("Content-Type") or "none")
    right, got = page.normalised(expected.body), page.normalised(answer.text)
    if got != right:
        yield Mismatch(*_first_difference(f"GET {path}", right, got))


def _first_difference(what: str, right: str, got: str) -> tuple[str, str]:
    at = next((n for n, (a, b) in enumerate(zip(right, got, strict=False)) if a != b), min(len(right), len(got)))
    start = max(0, at - 20)
    return (
        f"{what}: {len(right)} characters, from {start} on {right[start : at + 60]!r}",
        f"{len(got)} characters, from {start} on {got[start : at + 60]!r}",
    )
