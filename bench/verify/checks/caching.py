"""Which answers a layer caches, and which it must not cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from bench.verify import wire
from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.finding import Finding, Mismatch, NotTried
from bench.verify.hits import (
    MAX_TRIES,
    new_path,
    paragraphs,
    render_id,
    repeat,
    require_cacheable,
    require_probes,
    until_hit,
)
from bench.verify.layer_facts import obstacle_here, require_visible_hits
from bench.verify.wire import Answer, BadAnswer

# How often an uncacheable page is requested.
TIMES = 3
CONTROLS = (
    "private",
    "private-upper",
    "private-mixed",
    "private-spaced",
    "private-tabbed",
    "private-fields",
    "no-store",
    "no-store-mixed",
    "no-store-last",
    "no-cache",
    "no-cache-mixed",
    "max-age-0",
    "max-age-0-upper",
    "s-maxage-0",
)
LIFETIMES = (
    "expires-past",
    "expires-zero",
    "aged",
    "max-age-5",
    "max-age-negative",
    "must-revalidate",
    "must-revalidate-later",
)
STATUSES = (201, 203, 301, 302, 307, 403, 404, 410, 500, 503)
COOKIES = ("set-cookie", "session", "token")
BASIC = "Basic dmVyaWZ5OnZlcmlmeQ=="


@check("keeps-pages", group="caching")
def keeps_pages(context: Context) -> Iterator[Finding]:
    """A page that visitors request again is soon a hit, byte for byte as it was rendered."""
    require_cacheable(context)
    yield from _hit_as_rendered(context, new_path())


@check("keeps-site", group="caching")
def keeps_site(context: Context) -> Iterator[Finding]:
    """Home, a list and a detail page are soon hits, with the same bytes for everybody."""
    require_visible_hits(context)
    for path in context.site.main_paths:
        if why := obstacle_here(context, context.get(path)):
            yield NotTried(f"{path} is not cached: {why}")
        else:
            yield from _hit_as_rendered(context, path)


def _hit_as_rendered(context: Context, path: str) -> Iterator[Mismatch]:
    """What is wrong unless some answer is a hit with the bytes of its rendering.

    Answers without an id are hits of an unknown rendering, so all of them must have the same bytes.
    """
    known: dict[str | None, bytes] = {}
    for _ in range(MAX_TRIES):
        answer = context.get(path)
        if answer.status != 200 or not _is_whole(context, path, answer):
            yield Mismatch(
                f"GET {path}: status 200, a whole page", f"status {answer.status}, {len(answer.content)} bytes"
            )
            return
        name = render_id(answer)
        if name in known:
            if known[name] != answer.content:
                yield Mismatch(f"GET {path}, a hit: the bytes as rendered", f"{len(answer.content)} other bytes")
            return
        known[name] = answer.content
    yield Mismatch(f"GET {path}: a hit within {MAX_TRIES} requests", f"{len(known)} renderings")


def _is_whole(context: Context, path: str, answer: Answer) -> bool:
    """Whether a page has its end, unless it is a page of the project that has none."""
    site = context.site
    without = site.has_database and path in site.pages and not site.pages[path].body.rstrip().endswith("</html>")
    return without or answer.content.rstrip().endswith(b"</html>")


@check("other-statuses", group="caching")
def other_statuses(context: Context) -> Iterator[Finding]:
    """Answers with a status other than 200 are not cached, and come with their status."""
    require_probes(context)
    for status in STATUSES:
        yield from _rendered_each_time(context, f"odd/status-{status}", status)


@check("cache-control", group="caching")
def cache_control(context: Context) -> Iterator[Finding]:
    """Answers with private, no-store, no-cache or max-age=0, in any spelling and position, are not cached."""
    require_probes(context)
    for kind in CONTROLS:
        yield from _rendered_each_time(context, f"odd/{kind}")


@check("own-lifetime", group="caching")
def own_lifetime(context: Context) -> Iterator[Finding]:
    """Pages that say they are stale soon (Expires, Age, max-age=5) or must be revalidated are not cached."""
    require_probes(context)
    for kind in LIFETIMES:
        yield from _rendered_each_time(context, f"odd/{kind}")


@check("set-cookie", group="caching")
def set_cookie(context: Context) -> Iterator[Finding]:
    """Answers that set a cookie, begin a session or hold a CSRF token are not cached; nobody gets another's cookie."""
    require_probes(context)
    # A session is a row of the database.
    for kind in COOKIES if context.site.may_write else [kind for kind in COOKIES if kind != "session"]:
        path = new_path(f"odd/{kind}")
        answers = repeat(context, path, TIMES)
        yield from _distinct(path, [render_id(answer) for answer in answers], "renderings")
        cookies = [line.split(";")[0] for answer in answers for line in answer.all("Set-Cookie")]
        if len(cookies) < TIMES:
            yield Mismatch(f"GET {path}, {TIMES} times: Set-Cookie each time", f"{len(cookies)} times")
        yield from _distinct(path, cookies, "cookies")


@check("vary", group="caching")
def vary(context: Context) -> Iterator[Finding]:
    """Answers with `Vary: *`, in a second Vary line too, are not cached; a page that varies with a header serves only
    requests with that value."""
    require_probes(context)
    for kind in ("vary-star", "vary-star-last", "vary-star-spaced"):
        yield from _rendered_each_time(context, f"odd/{kind}")
    wrong = list(_rendered_each_time(context, "odd/vary-two-lines"))
    if wrong and not context.strict:
        yield NotTried("a server here reads the first of two Vary lines alone; Django's own responses have one")
    else:
        yield from wrong
    for kind, name in (("vary-language", "Accept-Language"), ("vary-user-agent", "User-Agent")):
        path = new_path(f"odd/{kind}")
        answers = [context.get(path, {name: value}) for value in ("one", "two", "three")]
        yield from _distinct(f"{path} with three values of {name}", map(render_id, answers), "renderings")


@check("authorization", group="caching")
def authorization(context: Context) -> Iterator[Finding]:
    """A request with an Authorization header gets a rendering of its own, which no other request gets."""
    require_probes(context)
    path = new_path()
    own = repeat(context, path, TIMES, {"Authorization": BASIC})
    yield from _distinct(f"{path} with Authorization", map(render_id, own), "renderings")
    for answer in own:
        if paragraphs(answer).get("authorization") != BASIC:
            yield Mismatch(f"GET {path} with Authorization: the page for it", "the page without it")
    until_hit(context, path, tries=4)
    if paragraphs(answer := context.get(path)).get("authorization") or render_id(answer) in map(render_id, own):
        yield Mismatch(f"GET {path} without Authorization: a page of its own", "the page of an authorized visitor")
    if paragraphs(context.get(path, {"Authorization": BASIC})).get("authorization") != BASIC:
        yield Mismatch(f"GET {path} with Authorization, after others: the page for it", "a page cached for others")


@check("other-methods", group="caching")
def other_methods(context: Context) -> Iterator[Finding]:
    """Each POST, PUT and DELETE reaches the application; GET gets no cached answer of theirs, nor the reverse."""
    require_probes(context)
    for method in ("POST", "PUT", "DELETE"):
        path = new_path("form")
        sent = repeat(context, path, TIMES, method=method, body=b"a=1")
        read = [context.get(path) for _ in range(TIMES)]
        sent += repeat(context, path, TIMES, method=method, body=b"a=1")
        yield from _distinct(f"{path}, {len(sent)} times {method},", map(render_id, sent), "renderings")
        for expected, answers in ((method, sent), ("GET", read)):
            if wrong := {paragraphs(answer).get("method", "none") for answer in answers} - {expected}:
                yield Mismatch(f"{expected} {path}: the answer to {expected}", f"that to {', '.join(sorted(wrong))}")


@check("streaming", group="caching")
def streaming(context: Context) -> Iterator[Finding]:
    """A streamed page arrives whole and is not cached: a half-sent page does not show that the rest failed."""
    require_probes(context)
    path = new_path("odd/streaming")
    answers = repeat(context, path, TIMES)
    yield from _distinct(path, map(render_id, answers), "renderings")
    for answer in answers:
        if not answer.content.rstrip().endswith(b"</html>"):
            yield Mismatch(f"GET {path}: a whole page", f"{len(answer.content)} bytes without its end")


@check("broken-off", group="caching")
def broken_off(context: Context) -> Iterator[Finding]:
    """A page whose rendering fails halfway is not cached, however complete the first half looks."""
    require_probes(context)
    path = new_path("odd/breaking")
    found = []
    for _ in range(TIMES):
        # Servers may break off too, or answer with an error of their own.
        with contextlib.suppress(BadAnswer, OSError):
            answer = wire.fetch(context.target, path)
            found += [render_id(answer)] if answer.status == 200 else []
    yield from _distinct(path, found, "renderings")


def _rendered_each_time(context: Context, view: str, status: int = 200) -> Iterator[Mismatch]:
    """What is wrong unless each request gets its own rendering."""
    path = new_path(view)
    answers = repeat(context, path, TIMES)
    if wrong := {answer.status for answer in answers} - {status}:
        yield Mismatch(f"GET {path}: status {status}", f"status {', '.join(map(str, wrong))}")
    yield from _distinct(path, map(render_id, answers), "renderings")


def _distinct(path: str, found: Iterable[str | None], what: str) -> Iterator[Mismatch]:
    found = list(found)
    if len(set(found)) < len(found) or None in found:
        yield Mismatch(f"GET {path}: {len(found)} {what}", f"{len(set(found) - {None})}: it was cached")
