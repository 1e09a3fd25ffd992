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
from bench.serve.machine.http import BadResponse
from bench.serve.project.findings.caching import VARY_ALLOWED
from bench.serve.project.opened import page_headers
from bench.verify import page_parser
from bench.verify.context import Context
from bench.verify.expect import Expectation
from bench.verify.mismatch import NEEDS_PROBES, Finding, NotTried
from bench.verify.site import INSIDE
from bench.verify.wire import PageResponse

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
OF_RESPONSES = VOLATILE | {"server", "content-type", "vary"}
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


def with_query(path: str, query: str) -> str:
    """The path with a query string added; an empty one changes nothing."""
    if not query:
        return path
    if "?" in path:
        return f"{path}&{query}"
    return f"{path}?{query}"


def path_with_response(**description: Any) -> str:
    """A new path of a probe page with the described response: see bench/serve/inside/described_responses.py."""
    spelt = base64.urlsafe_b64encode(json.dumps(description, separators=(",", ":")).encode()).decode().rstrip("=")
    return new_path(f"answer/{spelt}")


def with_headers(**headers: str) -> str:
    """A new path of a probe page with these headers; an underscore in a name stands for a dash."""
    return path_with_response(headers=[[name.replace("_", "-"), value] for name, value in headers.items()])


def worker_facts(context: Context) -> dict[str, Any]:
    """The report of a worker on itself; empty without the probe."""
    facts: dict[str, Any] = {}
    response = context.first(INSIDE)
    if response.status == 200:
        facts = json.loads(response.body)
    return facts


def require_probes(context: Context) -> None:
    """Raise NotTried when the --target has no probe views, BadResponse when a deployment of ours has none."""
    if context.first(INSIDE).status != 200:
        if context.running is None:
            raise NotTried(NEEDS_PROBES)
        raise BadResponse("no probe views")


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


def paragraph(response: PageResponse, name: str) -> str:
    """The text of a probe page's paragraph; raises ValueError if the page has no such paragraph."""
    if name not in response.paragraphs:
        raise ValueError(f"{response.sent}: status {response.status}, a page without its paragraph {name}")
    return response.paragraphs[name]


def has_paragraph(name: str, right: str) -> Expectation:
    """Expect a probe page whose paragraph has this text."""

    def wrong(response: PageResponse) -> str | None:
        got = response.paragraphs.get(name)
        if got == right:
            return None
        return f"status {response.status}, the page of {name} {got!r}"

    return Expectation(f"the page of {name} {right!r}", wrong)


def is_complete(response: PageResponse) -> bool:
    """True if a probe page has the first and the last paragraph of one rendering."""
    tail = page_parser.ParsedPage(response.content[-_TAIL_BYTES:].decode("utf-8", "replace")).paragraphs
    return response.status == 200 and "whole" in tail and tail["whole"] == response.paragraphs.get("render-id")


def complete_page(least: int = 0) -> Expectation:
    """A whole probe page, of at least so many bytes."""

    def wrong(response: PageResponse) -> str | None:
        right = is_complete(response) and len(response.content) >= least
        if right:
            return None
        return f"status {response.status}, {len(response.content)} bytes"

    return Expectation("status 200 and the whole page", wrong)


def render_id(response: PageResponse) -> str | None:
    """The id of the rendering, from the text or else from the header, or None."""
    return response.paragraphs.get("render-id") or response.render_id


def is_hit(response: PageResponse, earlier: Iterable[PageResponse]) -> bool:
    """True if a response repeats an earlier rendering. A 200 without an id is a hit: each rendering has one."""
    rendering = render_id(response)
    if rendering is None:
        return response.status == 200
    return any(render_id(item) == rendering for item in earlier)


def until_hit(context: Context, path: str, headers: http.Headers = (), tries: int = MAX_TRIES) -> PageResponse | None:
    """Request `path` until a response is a hit, and return the hit; None if every response was rendered."""
    responses: list[PageResponse] = []
    for _ in range(tries):
        response = context.get(path, headers)
        if is_hit(response, responses):
            return response
        responses.append(response)
    return None


def repeat(
    context: Context, path: str, times: int = TIMES, headers: http.Headers = (), **how: Any
) -> list[PageResponse]:
    """The responses to the same request sent `times` times, one after another."""
    return [context.get(path, headers, **how) for _ in range(times)]


def rendered_each_time(context: Context, path: str, status: int = 200) -> Iterator[Finding]:
    """Request the page several times and expect a new rendering with this status each time."""
    responses = repeat(context, path)
    if wrong := of_other_status(responses, status):
        yield wrong[0].wrong(f"status {status}")
    yield from distinct(responses, "renderings")


def of_other_status(responses: Iterable[PageResponse], status: int) -> list[PageResponse]:
    return [response for response in responses if response.status != status]


def distinct(responses: list[PageResponse], what: str, ids: Iterable[str | None] | None = None) -> Iterator[Finding]:
    """Expect all responses to be different renderings, or all these `ids`, such as cookies in them, to differ."""
    if ids is None:
        ids = [render_id(response) for response in responses]
    ids = list(ids)
    if len(set(ids)) < len(ids) or None in ids:
        got = f"{len(set(ids) - {None})}: it was cached"
        yield responses[-1].wrong(f"{len(ids)} {what} for {len(responses)} requests", got)


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


def stores_bodies(context: Context) -> bool:
    """True if a layer stores only the bodies of pages: a hit has lost its own headers."""
    return any(layer.bodies for layer in context.layers)


def obstacle(response: PageResponse, time_to_live_s: float = 0) -> str | None:
    """The status, cookie or header keeping the response out of caches for so long; None if cacheable.

    Derived from the response only, independently of the rule in the layers, to prove their rule.
    """
    control = response.header("Cache-Control") or ""
    if response.status != 200:
        return f"its status is {response.status}"
    if response.content_type != HTML:
        return f"its Content-Type is {response.header('Content-Type')}"
    if cookies := response.all("Set-Cookie"):
        names = [line.partition("=")[0] for line in cookies]
        return f"it sets the cookie {', '.join(names)}"
    # Vary first: a page that varies by language often reads a language cookie too, and is private for the cookie.
    varies = response.names("Vary") - VARY_ALLOWED
    # A layer may store one page for each language.
    if varies and (varies != {"accept-language"} or response.header("X-Cache") not in STORED):
        return f"it has Vary: {', '.join(sorted(varies))}"
    if _UNSHARED.search(control):
        # With CACHING_X_CACHE the page names the cookie or header read by the view.
        reason = response.header("X-Cache")
        if reason:
            return f"its Cache-Control is {control}, its X-Cache {reason}"
        return f"its Cache-Control is {control}"
    if _lifetime_s(response) < time_to_live_s:
        name = "Expires"
        if "max-age" in control.lower():
            name = "Cache-Control"
        return f"its {name} is {response.header(name)}, and the layer stores for {time_to_live_s:g} s"
    policies = "".join(response.header(name) or "" for name in POLICIES).lower()
    if "'nonce-" in policies or page_parser.ParsedPage(response.text).nonces:
        return "it has a nonce, new for each visitor"
    return None


def _lifetime_s(response: PageResponse) -> float:
    """Seconds for which the response declares itself fresh."""
    for pattern in _LIFETIMES:
        if match := pattern.search(response.header("Cache-Control") or ""):
            return int(match[1])
    if (expires := response.header("Expires")) is None:
        return math.inf
    try:
        return parsedate_to_datetime(expires).timestamp() - time.time()
    except ValueError:
        return 0


def obstacle_here(context: Context, *responses: PageResponse) -> str | None:
    """The obstacle to caching in these responses, the last one rendered, or in the layers here: a store of bodies loses
    headers."""
    obstacles = [obstacle(response, context.time_to_live_s) for response in responses]
    response = responses[-1]
    why = next(filter(None, [*obstacles, _rendered_as(context, response)]), None)
    if why or context.strict or not stores_bodies(context):
        return why
    own = _own_headers(context, response)
    if not own:
        return None
    return f"not all pages have its {' and '.join(own)}, and the layer stores only bodies"


def _rendered_as(context: Context, response: PageResponse) -> str | None:
    """The obstacle to caching in the page as rendered in process, possibly hidden by a server in front."""
    path = ""
    if response.sent:
        path = str(response.sent.path)
    if path in context.site.description.health_checks:
        return "it is named as the page of health checks, and not as public"
    page = context.site.expected(path)
    if page.streams:
        return "it is streamed"
    if page.status == 200 and page.content_type != HTML:
        return f"its Content-Type is {page.content_type or 'none'}"
    return None


def _own_headers(context: Context, response: PageResponse) -> list[str]:
    """Headers of some pages only, so a server of stored bodies cannot send them."""
    usual = context.get(new_path())
    everywhere: dict[str, str] = {}
    if context.running:
        for name, value in page_headers(context.running.case.project).items():
            everywhere[name.lower()] = value
    layer_saw_own = OWN_HEADERS in (response.header("X-Cache") or "")
    own = set()
    for name, value in response.headers:
        key = name.lower()
        is_usual = response.header(name) == usual.header(name)
        if layer_saw_own and key not in SET_FURTHER_OUT and everywhere.get(key) != value:
            is_usual = False
        if not is_usual and key not in OF_RESPONSES:
            own.add(name)
    names = sorted(own)
    if "accept-encoding" in response.names("Vary"):
        return [*names, "Vary: Accept-Encoding"]
    return names


def require_stored_pages(context: Context) -> None:
    """Raise NotTried if no layer here stores whole pages."""
    if not caches_pages(context):
        raise NotTried("no layer here stores whole pages")


def require_visible_hits(context: Context) -> None:
    """Raise NotTried if only the project's code caches its pages: a hit of `cache_page` has a new id."""
    inside = in_its_code(context)
    if inside and not any(layer.caches == PAGES and layer not in inside for layer in context.layers):
        raise NotTried("the project's own code decides which pages are cached, and no response shows it")
