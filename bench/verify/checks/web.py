"""Noise of the web: unrelated and made-up cookies, made-up query strings and made-up hosts."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle, islice
from typing import Any

from bench.serve.machine.http import BadResponse
from bench.verify import hits
from bench.verify.check import check as any_check
from bench.verify.checks.stored_files import stored_files
from bench.verify.context import Context
from bench.verify.mismatch import Figure, Finding, Mismatch, NotTried
from bench.verify.site import MAX_PAGES
from bench.verify.visitor import Visitor
from bench.verify.wire import PageResponse

VISITORS = 24
FLOOD = 1000
CLIENTS = 4
# Number of made-up URLs requested again, to see if any was cached.
SAMPLE = 50
PRIMED = 5
# Number of entries that a flood may add to the stores: locks and marks of pages in other requests.
MAX_ADDED = 50
# Accepted loss of hit ratio by analytics cookies: a rendering or two if all visitors share one cache. With a cache for
# each process, ratios differ by chance, so half of the hits must be left. A layer that stores one variant for each
# cookie has no hits at all.
MAX_LOSS = 0.1
MIN_SHARE = 0.5
# Visitors of public pages, and how often each reads one: a cookie that the first response sets comes with the second.
READERS, READS = 12, 2
QUERIES = ("", "a=1&b=2", "b=2&a=1", "a=1&b=2&", "a=1&a=2", "a=2&a=1", "a=1", "a=1;b=2", "a=%31", "A=1", "page=2", "?")

check = partial(any_check, group="web")


@check("hit-ratio", hits.require_visible_hits, hits.require_cacheable)
def hit_ratio(context: Context) -> Iterator[Finding]:
    """Analytics cookies, new for each visitor, cost no hits; the hit ratio with a CSRF cookie is reported."""
    plain = _ratio(context, dict)
    token = _ratio(context, lambda: {"Cookie": f"csrftoken={secrets.token_hex(16)}"})
    analytics = _ratio(
        context, lambda: {"Cookie": f"_ga=GA1.1.{secrets.randbelow(10**9)}; _gid={secrets.token_hex(6)}"}
    )
    yield Figure("hit_ratio_no_cookie", plain)
    yield Figure("hit_ratio_csrf_cookie", token)
    yield Figure("hit_ratio_analytics_cookies", analytics)
    if not plain:
        yield Mismatch(f"{VISITORS} visitors without cookies: some hits", "none")
    least = MIN_SHARE * plain
    if plain >= 1 - MAX_LOSS:
        least = plain - MAX_LOSS
    if analytics < least:
        what = f"{VISITORS} visitors with analytics cookies: a hit ratio of at least {least:.2f}"
        yield Mismatch(f"{what}, that without cookies being {plain:.2f}", f"{analytics:.2f}")


def _ratio(context: Context, headers: Callable[[], dict[str, str]]) -> float:
    """Hits of visitors to a new page, as a share of the possible hits."""
    path = hits.new_path()
    responses: list[PageResponse] = []
    hit_count = 0
    for _ in range(VISITORS):
        response = context.get(path, headers())
        hit_count += hits.is_hit(response, responses)
        responses.append(response)
    return hit_count / (VISITORS - 1)


@check("parameters", hits.require_probes, leak=True)
def parameters(context: Context) -> Iterator[Finding]:
    """Each query string, in any order of parameters, gets its own page, and so does the URL without a query."""
    path = hits.new_path()
    urls = [hits.with_query(path, query) for query in QUERIES]
    # A server may normalise a query string before the application sees it, with and without the layer.
    right = {}
    for url in urls:
        query = hits.paragraph(context.get(url, context.bypass), "query")
        right[url] = hits.has_paragraph("query", query)
    for url in [*urls, *urls]:
        yield from context.expect(url, right[url])


@check("junk-queries", thorough=True)
def junk_queries(context: Context) -> Iterator[Finding]:
    """1,000 made-up query strings are not cached, add no entries to the store, and evict no cached page."""
    flood, path = _Flood(context, f"{FLOOD} query strings"), hits.new_path()
    junk = [f"{path}?utm_source={secrets.token_hex(8)}&page={number}" for number in range(FLOOD)]
    yield from flood.sent(((url, {}) for url in junk), 200)
    yield from flood.bounded()
    sample = junk[:: FLOOD // SAMPLE]
    first = [context.get(url) for url in sample]
    stayed = []
    for url, before in zip(sample, first, strict=True):
        response = context.get(url)
        if hits.is_hit(response, [before]):
            stayed.append(response)
    yield Figure("junk_queries_kept_of_50", len(stayed))
    if stayed:
        yield stayed[0].wrong(f"not cached, like {len(sample)} of {FLOOD} made-up query strings", f"{len(stayed)} are")


@check("junk-cookies", thorough=True)
def junk_cookies(context: Context) -> Iterator[Finding]:
    """1,000 made-up cookies, of analytics, CSRF tokens and sessions, add no entries to the store, and evict nothing."""
    flood = _Flood(context, f"{FLOOD} cookies")
    names = ("_ga", "csrftoken", "sessionid")
    requests = []
    for path, name in islice(zip(cycle(flood.primed), cycle(names), strict=False), FLOOD):
        requests.append((path, {"headers": {"Cookie": f"{name}={secrets.token_hex(16)}"}}))
    yield from flood.sent(requests, 200)
    yield from flood.bounded()


@check("junk-hosts", thorough=True)
def junk_hosts(context: Context) -> Iterator[Finding]:
    """1,000 made-up hosts are refused, get no cached page and evict none; other spellings and ports of the right host
    make no new pages, and no page with a made-up port in its addresses is cached for others."""
    flood = _Flood(context, f"{FLOOD} hosts")
    hosts = ({"host": f"{secrets.token_hex(4)}.example"} for _ in range(FLOOD))
    yield from flood.sent(zip(cycle(flood.primed), hosts), 400)
    path, known = flood.primed.popitem()
    host = context.target.netloc.removesuffix(f":{context.target.port}")
    spelt = [host.upper(), f"{host}.", *(f"{host}:{port}" for port in range(1, SAMPLE))]
    rendered = []
    for each in spelt:
        response = context.get(path, host=each)
        if response.status == 200 and hits.render_id(response) not in known:
            rendered.append(response)
    if len(rendered) > len(spelt) / 2:
        yield rendered[0].wrong(f"hits under {len(spelt)} spellings of the host", f"{len(rendered)} renderings")
    addressed = hits.path_with_response(shows=["Host"])
    hits.repeat(context, addressed, host=f"{host}:1")
    for _ in range(hits.TIMES):
        yield from context.expect(
            addressed, hits.has_paragraph("Host", f"[{context.target.netloc}]"), when="after a made-up port"
        )


class _Flood:
    """Many made-up requests beside cached pages; raises BadResponse if a page is not cached, NotTried if no page is.

    primed  cached pages, each with its render ids: one for each process with a separate cache
    """

    def __init__(self, context: Context, what: str):
        hits.require_visible_hits(context)
        hits.require_cacheable(context)
        self.context, self.what = context, what
        self.primed: dict[str, set[str | None]] = {}
        for _ in range(PRIMED):
            path = hits.new_path()
            responses = hits.repeat(context, path, hits.MAX_TRIES)
            self.primed[path] = set(map(hits.render_id, responses))
            if len(self.primed[path]) == len(responses):
                raise BadResponse(f"GET {path}: rendered each time, so nothing shows what evicts a cached page")
        self.before = self._entries()

    def sent(self, requests: Iterable[tuple[str, dict[str, Any]]], right: int) -> Iterator[Finding]:
        """Send all of (URL, headers or host), a few at a time: each gets this status, and evicts nothing."""
        requests = list(requests)
        with ThreadPoolExecutor(CLIENTS) as pool:
            responses = pool.map(lambda request: self.context.get(request[0], **request[1]), requests)
            wrong = hits.of_other_status(responses, right)
        if wrong:
            got = f"{len(wrong)} others, such as status {wrong[0].status}"
            yield wrong[0].wrong(f"status {right}, as for all of {len(requests)}", got)
        gone = []
        for path, known in self.primed.items():
            response = self.context.get(path)
            if hits.render_id(response) not in known:
                gone.append(response)
        if len(gone) == len(self.primed):
            yield gone[0].wrong(
                f"still cached after {self.what}, or another of {len(gone)} pages", "all are rendered again"
            )

    def bounded(self) -> Iterator[Finding]:
        """Expect few new entries."""
        if self.before is not None:
            added = (self._entries() or 0) - self.before
            yield Figure("entries_added", added)
            if added > MAX_ADDED:
                yield Mismatch(f"at most {MAX_ADDED} entries added to the store by {self.what}", f"{added}")

    def _entries(self) -> int | None:
        """Number of entries in all stores: files, caches of servers, and stores of the site; None for a --target."""
        running = self.context.running
        if running is None:
            return None
        reached = json.loads(self.context.get("/__probe__/entries").body)["entries"]
        try:
            return len(stored_files(self.context)) + running.entries() + int(reached)
        except FileNotFoundError as error:
            raise NotTried(f"the entries cannot be counted: program not installed: {error.filename}") from None


@check("public-pages", hits.require_probes)
def public_pages(context: Context) -> Iterator[Finding]:
    """Public pages are hits for visitors with other cookies, and no hit sets a cookie; the hit ratio is
    reported, and the reason for each page that is not cached."""
    if not hits.caches_pages(context):
        raise NotTried("no layer here caches pages")
    hits.require_visible_hits(context)
    if not (paths := context.site.public_paths[:MAX_PAGES]):
        raise NotTried("the project names no public page with status 200 and HTML")
    hit_count = requests = 0
    for path in paths:
        responses: list[PageResponse] = []
        hit_responses: list[PageResponse] = []
        for number in range(READERS):
            # Each visitor has the site's cookies and an analytics cookie.
            visitor = Visitor(context.target, {"_ga": f"GA1.1.{secrets.randbelow(10**9)}"})
            own = [visitor.get(path) for _ in range(READS)]
            # Hits of pages given to other visitors: one's own page is no use to others.
            given = [response for response in own if hits.is_hit(response, responses)]
            # The first visitor may find an older page.
            if number > 0:
                hit_count += len(given)
                requests += len(own)
            responses += own
            hit_responses += given
        for response in hit_responses:
            for line in response.all("Set-Cookie"):
                yield response.wrong("a hit without Set-Cookie", line.partition("=")[0])
        if not hit_responses:
            yield _why(context, path, responses)
    yield Figure("hit_ratio_public_pages", hit_count / requests)


def _why(context: Context, path: str, responses: list[PageResponse]) -> Finding:
    """The obstacle to a hit, by the name of the cookie, header or status."""
    if why := hits.obstacle_here(context, *responses):
        return NotTried(f"{path} is not cached: {why}")
    # A hit without cookies: the visitors' own cookies are the obstacle.
    if hits.until_hit(context, path):
        return responses[-1].wrong("a hit for a visitor with such cookies, as without", "it is rendered each time")
    return responses[-1].wrong("a hit", f"no cookie, header or status stops it, yet {len(responses)} renderings")
