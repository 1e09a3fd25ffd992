"""What a layer keeps, and what it must not keep."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from bench.verify import wire
from bench.verify.checks.pages import main_paths
from bench.verify.outcome import Finding
from bench.verify.probes import TRIES, fresh, kept, must_have_probes, rendering, several, shown
from bench.verify.suite import Context, Mismatch, check
from bench.verify.wire import BadAnswer

# How often a page that must not be kept is asked for.
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
STATUSES = (201, 203, 301, 302, 307, 403, 404, 410, 500, 503)
COOKIES = ("set-cookie", "session", "token")
BASIC = "Basic dmVyaWZ5OnZlcmlmeQ=="


@check("keeps-pages", group="caching")
def keeps_pages(context: Context) -> Iterator[Finding]:
    """A page that another visitor asked for before is soon one that was kept, byte for byte as it was rendered."""
    must_have_probes(context)
    yield from _kept_as_rendered(context, fresh())


@check("keeps-site", group="caching")
def keeps_site(context: Context) -> Iterator[Finding]:
    """Home, a list and a detail page are soon kept, and the same for everybody from then on."""
    for path in main_paths(context):
        yield from _kept_as_rendered(context, path)


def _kept_as_rendered(context: Context, path: str) -> Iterator[Mismatch]:
    """What is wrong unless some answer is an earlier rendering, with its very bytes.

    Answers without an id were kept, it is not said of which rendering: all of them are then the same bytes.
    """
    known: dict[str | None, bytes] = {}
    for _ in range(TRIES):
        answer = context.get(path)
        if answer.status != 200 or not answer.content.rstrip().endswith(b"</html>"):
            yield Mismatch(
                f"GET {path}: status 200, a whole page", f"status {answer.status}, {len(answer.content)} bytes"
            )
            return
        name = rendering(answer)
        if name in known:
            if known[name] != answer.content:
                yield Mismatch(f"GET {path}, kept: the bytes as rendered", f"{len(answer.content)} other bytes")
            return
        known[name] = answer.content
    yield Mismatch(f"GET {path}: kept after {TRIES} requests at the latest", f"{len(known)} renderings")


@check("other-statuses", group="caching")
def other_statuses(context: Context) -> Iterator[Finding]:
    """What has a status other than 200 is not kept, and keeps its status."""
    must_have_probes(context)
    for status in STATUSES:
        yield from _rendered_anew(context, f"odd/status-{status}", status)


@check("cache-control", group="caching")
def cache_control(context: Context) -> Iterator[Finding]:
    """What says private, no-store, no-cache or an age of 0 is not kept, however it is spelt and wherever it stands."""
    must_have_probes(context)
    for kind in CONTROLS:
        yield from _rendered_anew(context, f"odd/{kind}")


@check("set-cookie", group="caching")
def set_cookie(context: Context) -> Iterator[Finding]:
    """What sets a cookie, begins a session or holds a CSRF token is not kept, and nobody is given another's cookie."""
    must_have_probes(context)
    for kind in COOKIES:
        path = fresh(f"odd/{kind}")
        answers = several(context, path, TIMES)
        yield from _distinct(path, [rendering(answer) for answer in answers], "renderings")
        cookies = [line.split(";")[0] for answer in answers for line in answer.all("Set-Cookie")]
        if len(cookies) < TIMES:
            yield Mismatch(f"GET {path}, {TIMES} times: Set-Cookie each time", f"{len(cookies)} times")
        yield from _distinct(path, cookies, "cookies")


@check("vary", group="caching")
def vary(context: Context) -> Iterator[Finding]:
    """What varies with everything is not kept; what varies with a header is not given to a visitor with another."""
    must_have_probes(context)
    for kind in ("vary-star", "vary-star-last", "vary-star-spaced"):
        yield from _rendered_anew(context, f"odd/{kind}")
    for kind, name in (("vary-language", "Accept-Language"), ("vary-user-agent", "User-Agent")):
        path = fresh(f"odd/{kind}")
        answers = [context.get(path, {name: value}) for value in ("one", "two", "three")]
        yield from _distinct(f"{path} with three values of {name}", map(rendering, answers), "renderings")


@check("authorization", group="caching")
def authorization(context: Context) -> Iterator[Finding]:
    """What is answered to an Authorization header is given to nobody else, and is not what was kept for others."""
    must_have_probes(context)
    path = fresh()
    own = several(context, path, TIMES, {"Authorization": BASIC})
    yield from _distinct(f"{path} with Authorization", map(rendering, own), "renderings")
    for answer in own:
        if shown(answer).get("authorization") != BASIC:
            yield Mismatch(f"GET {path} with Authorization: the page for it", "the page without it")
    kept(context, path, tries=4)
    if shown(answer := context.get(path)).get("authorization") or rendering(answer) in map(rendering, own):
        yield Mismatch(f"GET {path} without Authorization: a page of its own", "that of who is authorized")
    if shown(context.get(path, {"Authorization": BASIC})).get("authorization") != BASIC:
        yield Mismatch(
            f"GET {path} with Authorization, after others: the page for it", "a page that was kept for others"
        )


@check("other-methods", group="caching")
def other_methods(context: Context) -> Iterator[Finding]:
    """POST, PUT and DELETE reach the application each time, and their answers are not kept for GET, nor the reverse."""
    must_have_probes(context)
    for method in ("POST", "PUT", "DELETE"):
        path = fresh("form")
        sent = several(context, path, TIMES, method=method, body=b"a=1")
        read = [context.get(path) for _ in range(TIMES)]
        sent += several(context, path, TIMES, method=method, body=b"a=1")
        yield from _distinct(f"{path}, {len(sent)} times {method},", map(rendering, sent), "renderings")
        for expected, answers in ((method, sent), ("GET", read)):
            if wrong := {shown(answer).get("method", "none") for answer in answers} - {expected}:
                yield Mismatch(f"{expected} {path}: the answer to {expected}", f"that to {', '.join(sorted(wrong))}")


@check("streaming", group="caching")
def streaming(context: Context) -> Iterator[Finding]:
    """A page sent in pieces is whole and is not kept: nobody can tell from half of it that the rest failed."""
    must_have_probes(context)
    path = fresh("odd/streaming")
    answers = several(context, path, TIMES)
    yield from _distinct(path, map(rendering, answers), "renderings")
    for answer in answers:
        if not answer.content.rstrip().endswith(b"</html>"):
            yield Mismatch(f"GET {path}: a whole page", f"{len(answer.content)} bytes without its end")


@check("broken-off", group="caching")
def broken_off(context: Context) -> Iterator[Finding]:
    """A page whose rendering fails half way is not kept, however whole the half looks to a server."""
    must_have_probes(context)
    path = fresh("odd/breaking")
    found = []
    for _ in range(TIMES):
        # Servers break off too, or answer with an error of their own once they know.
        with contextlib.suppress(BadAnswer, OSError):
            answer = wire.fetch(context.target, path)
            found += [rendering(answer)] if answer.status == 200 else []
    yield from _distinct(path, found, "renderings")


def _rendered_anew(context: Context, view: str, status: int = 200) -> Iterator[Mismatch]:
    """What is wrong unless each request for a page is answered with a rendering of its own."""
    path = fresh(view)
    answers = several(context, path, TIMES)
    if wrong := {answer.status for answer in answers} - {status}:
        yield Mismatch(f"GET {path}: status {status}", f"status {', '.join(map(str, wrong))}")
    yield from _distinct(path, map(rendering, answers), "renderings")


def _distinct(path: str, found: Iterable[str | None], what: str) -> Iterator[Mismatch]:
    found = list(found)
    if len(set(found)) < len(found) or None in found:
        yield Mismatch(f"GET {path}: {len(found)} {what}", f"{len(set(found) - {None})}: it was kept")
