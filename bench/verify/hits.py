"""Tell cache hits from renderings, with probe pages that nobody has requested before, and explain misses.

A probe page shows the render id in the text too, because a layer that stores only bodies loses the headers. Two
responses with the same render id come from one rendering, so the second was cached.
"""

from __future__ import annotations

import base64
import json
import math
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from bench.serve.catalog.manifest import Layer
from bench.serve.machine import http
from bench.serve.machine.http import BadAnswer
from bench.serve.project.findings.caching import VARY_ALLOWED
from bench.serve.project.opened import page_headers
from bench.verify import page_parser
from bench.verify.context import Context
from bench.verify.expect import Expectation
from bench.verify.finding import NEEDS_PROBES, Finding, NotTried
from bench.verify.site import INSIDE
from bench.verify.wire import Answer

# With up to 32 processes, each with a cache, the 33rd request must be a hit (pigeonhole principle).
MAX_TRIES = 33
# Requests for a page that must not be cached: enough for a layer that stores at the second request.
TIMES = 3
# The last bytes of a probe page mark the page as complete.
_TAIL_BYTES = 300
# Values of `caches` in a layer's manifest.
PAGES, PARTS = "pages", "parts"
# Headers that may differ between two right responses for the same page, or do not describe the page.
VOLATILE = {"date", "x-render-id", "content-length", "transfer-encoding", "connection", "keep-alive", "age", "via"}
VOLATILE |= {"accept-ranges", "x-cache", "x-request-id"}
OF_ANSWERS = VOLATILE | {"server", "content-type", "vary"}
# Values of X-Cache: the layer stores the page, or the page has headers that not every page has.
STORED, OWN_HEADERS = ("hit", "miss"), "page-headers"
# Middleware or a server further out may add these to a page; benchapp/caching/cacheability.py.
SET_FURTHER_OUT = {"x-content-type-options", "referrer-policy", "cross-origin-opener-policy"}
SET_FURTHER_OUT |= {"strict-transport-security", "x-frame-options"}
# Each of these in Cache-Control is enough to keep a page out of a shared cache.
_UNSHARED = re.compile(r"\b(private|no-store|no-cache|max-age=0|s-maxage=0|must-revalidate|proxy-revalidate)\b", re.I)
_LIFETIMES = (re.compile(r"\bs-maxage=(\d+)", re.I), re.compile(r"\bmax-age=(\d+)", re.I))
HTML = "text/html;charset=utf-8"
POLICIES = ("Content-Security-Policy", "Content-Security-Policy-Report-Only")


def new_path(view: str = "page") -> str:
    """A new path of a probe page."""
    return f"/__probe__/{view}/{secrets.token_hex(8)}/"


def path_with_response(**said: Any) -> str:
    """A new path of a probe page with the described response: see bench/serve/inside/described_responses.py."""
    spelt = base64.urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).decode().rstrip("=")
    return new_path(f"answer/{spelt}")


def with_headers(**headers: str) -> str:
    """A new path of a probe page with these headers, their names spelt with underscores."""
    return path_with_response(headers=[[name.replace("_", "-"), value] for name, value in headers.items()])


def require_probes(context: Context) -> None:
    """Raise NotTried when the --target has no probe views, BadAnswer when a deployment of ours has none."""
    if context.first(INSIDE).status != 200:
        if context.running is None:
            raise NotTried(NEEDS_PROBES)
        raise BadAnswer("no probe views")


def require_tokens(context: Context) -> None:
    """Raise NotTried if visitors of the project get no CSRF tokens."""
    require_probes(context)
    if not context.site.token_cookie:
        raise NotTried("the project has no CsrfViewMiddleware, so that visitors get no token")


def require_cacheable(context: Context) -> None:
    """Raise NotTried, with the obstacle, if the project's middleware keeps every page out of caches."""
    require_probes(context)
    if not context.strict and (why := obstacle_here(context, context.get(new_path()))):
        raise NotTried(f"no page of the project is cached: {why}")


def paragraph(answer: Answer, name: str) -> str:
    """The text of a probe page's paragraph; raises ValueError if the page has no such paragraph."""
    if name not in answer.paragraphs:
        raise ValueError(f"{answer.sent}: status {answer.status}, a page without its paragraph {name}")
    return answer.paragraphs[name]


def has_paragraph(name: str, right: str) -> Expectation:
    """Expect a probe page whose paragraph has this text."""

    def wrong(answer: Answer) -> str | None:
        got = answer.paragraphs.get(name)
        if got == right:
            return None
        return f"status {answer.status}, the page of {name} {got!r}"

    return Expectation(f"the page of {name} {right!r}", wrong)


def is_whole(answer: Answer) -> bool:
    """True if a probe page has the first and the last paragraph of one rendering."""
    tail = page_parser.ParsedPage(answer.content[-_TAIL_BYTES:].decode("utf-8", "replace")).paragraphs
    return answer.status == 200 and "whole" in tail and tail["whole"] == answer.paragraphs.get("render-id")


def complete_page(least: int = 0) -> Expectation:
    """A whole probe page, of at least so many bytes."""

    def wrong(answer: Answer) -> str | None:
        right = is_whole(answer) and len(answer.content) >= least
        if right:
            return None
        return f"status {answer.status}, {len(answer.content)} bytes"

    return Expectation("status 200 and the whole page", wrong)


def render_id(answer: Answer) -> str | None:
    """The id of the rendering, from the text or else from the header, or None."""
    return answer.paragraphs.get("render-id") or answer.render_id


def is_hit(answer: Answer, earlier: Iterable[Answer]) -> bool:
    """True if a response repeats an earlier rendering. A 200 without an id is a hit: each rendering has one."""
    found = render_id(answer)
    if found is None:
        return answer.status == 200
    return any(render_id(item) == found for item in earlier)


def until_hit(context: Context, path: str, headers: http.Headers = (), tries: int = MAX_TRIES) -> Answer | None:
    """Request `path` until a response is a hit, and return the hit; None if every response was rendered."""
    answers: list[Answer] = []
    for _ in range(tries):
        answer = context.get(path, headers)
        if is_hit(answer, answers):
            return answer
        answers.append(answer)
    return None


def repeat(context: Context, path: str, times: int = TIMES, headers: http.Headers = (), **how: Any) -> list[Answer]:
    """The responses to the same request sent `times` times, one after another."""
    return [context.get(path, headers, **how) for _ in range(times)]


def rendered_each_time(context: Context, path: str, status: int = 200) -> Iterator[Finding]:
    """Request the page several times and expect a new rendering with this status each time."""
    answers = repeat(context, path)
    if wrong := [answer for answer in answers if answer.status != status]:
        yield wrong[0].wrong(f"status {status}")
    yield from distinct(answers, "renderings")


def distinct(answers: list[Answer], what: str, found: Iterable[str | None] | None = None) -> Iterator[Finding]:
    """Expect all responses to be different renderings, or all cookies `found` in them to differ."""
    found = [render_id(answer) for answer in answers] if found is None else list(found)
    if len(set(found)) < len(found) or None in found:
        got = f"{len(set(found) - {None})}: it was cached"
        yield answers[-1].wrong(f"{len(found)} {what} for {len(answers)} requests", got)


def in_its_code(context: Context) -> list[Layer]:
    """The layers whose content, time to live and invalidation the project's code decides.

    A project that reads the kit's variables uses the kit's time to live, and invalidates like the kit's layers.
    """
    if context.site.description.reads_environment:
        return []
    return [it for it in context.layers if it.in_site]


def without_invalidation(context: Context) -> list[Layer]:
    """The layers without invalidation by writes: a stale page lives until the end of the time to live."""
    return [layer for layer in context.layers if not layer.invalidation or layer in in_its_code(context)]


def caches_pages(context: Context) -> bool:
    """True if a layer caches whole pages."""
    return any(layer.caches == PAGES for layer in context.layers)


def obstacle(answer: Answer, time_to_live_s: float = 0) -> str | None:
    """The status, cookie or header keeping the response out of caches for so long; None if cacheable.

    Derived from the response only, independently of the rule in the layers, to prove their rule.
    """
    control = answer.header("Cache-Control") or ""
    if answer.status != 200:
        return f"its status is {answer.status}"
    if answer.content_type != HTML:
        return f"its Content-Type is {answer.header('Content-Type')}"
    if cookies := answer.all("Set-Cookie"):
        return f"it sets the cookie {', '.join(line.partition('=')[0] for line in cookies)}"
    # Vary first: a page that varies by language often reads a language cookie too, and is private for the cookie.
    varies = answer.names("Vary") - VARY_ALLOWED
    # A layer may store one page for each language.
    if varies and (varies != {"accept-language"} or answer.header("X-Cache") not in STORED):
        return f"it has Vary: {', '.join(sorted(varies))}"
    if _UNSHARED.search(control):
        # With CACHING_X_CACHE the page names the cookie or header read by the view.
        reason = answer.header("X-Cache")
        if reason:
            return f"its Cache-Control is {control}, its X-Cache {reason}"
        return f"its Cache-Control is {control}"
    if _lifetime_s(answer) < time_to_live_s:
        name = "Cache-Control" if "max-age" in control.lower() else "Expires"
        return f"its {name} is {answer.header(name)}, and the layer stores for {time_to_live_s:g} s"
    policies = "".join(answer.header(name) or "" for name in POLICIES).lower()
    if "'nonce-" in policies or page_parser.ParsedPage(answer.text).nonces:
        return "it has a nonce, new for each visitor"
    return None


def _lifetime_s(answer: Answer) -> float:
    """Seconds for which the response declares itself fresh."""
    for pattern in _LIFETIMES:
        if found := pattern.search(answer.header("Cache-Control") or ""):
            return int(found[1])
    if (expires := answer.header("Expires")) is None:
        return math.inf
    try:
        return parsedate_to_datetime(expires).timestamp() - time.time()
    except ValueError:
        return 0


def obstacle_here(context: Context, *answers: Answer) -> str | None:
    """The obstacle to caching in these responses, the last one rendered, or in the layers here: a store of bodies loses
    headers."""
    found = [obstacle(answer, context.time_to_live_s) for answer in answers]
    answer = answers[-1]
    why = next(filter(None, [*found, _rendered_as(context, answer)]), None)
    if why or context.strict or not any(layer.bodies for layer in context.layers):
        return why
    own = _own_headers(context, answer)
    if not own:
        return None
    return f"not all pages have its {' and '.join(own)}, and the layer stores only bodies"


def _rendered_as(context: Context, answer: Answer) -> str | None:
    """The obstacle to caching in the page as rendered in process, possibly hidden by a server in front."""
    path = str(answer.sent.path) if answer.sent else ""
    if path in context.site.description.health_checks:
        return "it is named as the page of health checks, and not as public"
    page = context.site.expected(path)
    if page.streams:
        return "it is streamed"
    if page.status == 200 and page.content_type != HTML:
        return f"its Content-Type is {page.content_type or 'none'}"
    return None


def _own_headers(context: Context, answer: Answer) -> list[str]:
    """Headers of some pages only, so a server of stored bodies cannot send them."""
    usual = context.get(new_path())
    of_all = page_headers(context.running.case.project) if context.running else {}
    everywhere = {name.lower(): value for name, value in of_all.items()}
    own = {name for name, _ in answer.headers if answer.header(name) != usual.header(name)}
    if OWN_HEADERS in (answer.header("X-Cache") or ""):
        others = [name for name, value in answer.headers if everywhere.get(name.lower()) != value]
        own |= {name for name in others if name.lower() not in SET_FURTHER_OUT}
    found = sorted(name for name in own if name.lower() not in OF_ANSWERS)
    if "accept-encoding" in answer.names("Vary"):
        return [*found, "Vary: Accept-Encoding"]
    return found


def require_stored_pages(context: Context) -> None:
    """Raise NotTried if no layer here stores whole pages."""
    if not any(layer.caches == PAGES for layer in context.layers):
        raise NotTried("no layer here stores whole pages")


def require_visible_hits(context: Context) -> None:
    """Raise NotTried if only the project's code caches its pages: a hit of `cache_page` has a new id."""
    inside = in_its_code(context)
    if inside and not any(layer.caches == PAGES and layer not in inside for layer in context.layers):
        raise NotTried("the project's own code decides which pages are cached, and no response shows it")
