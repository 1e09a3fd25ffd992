"""Noise of the web: unrelated and made-up cookies, made-up query strings and made-up hosts."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

from bench.verify import wire
from bench.verify.check import check
from bench.verify.checks.files import stored_files
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.hits import (
    MAX_TRIES,
    is_hit,
    new_path,
    paragraphs,
    render_id,
    repeat,
    require_cacheable,
    require_probes,
)
from bench.verify.layer_facts import require_visible_hits
from bench.verify.wire import Answer, BadAnswer, Connection

VISITORS = 24
FLOOD = 1000
CLIENTS = 4
# How many of the made-up URLs are requested again, to see whether they were cached.
SAMPLE = 50
PRIMED = 5
# How many entries a flood may add to the stores: locks and marks of the pages that other requests are for.
MAX_ADDED = 50
# How far analytics cookies may lower the hit ratio: by a rendering or two where all visitors share one cache. Where
# each process has its own cache, the ratios differ by chance, so half of the hits must be left. A layer that stores one
# variant for each cookie has no hits at all.
MAX_LOSS = 0.1
MIN_SHARE = 0.5


@check("hit-ratio", group="web")
def hit_ratio(context: Context) -> Iterator[Finding]:
    """Analytics cookies, new for each visitor, cost no hits; the hit ratio with a CSRF cookie is reported."""
    require_visible_hits(context)
    require_cacheable(context)
    plain = _ratio(context, dict)
    analytics = _ratio(
        context, lambda: {"Cookie": f"_ga=GA1.1.{secrets.randbelow(10**9)}; _gid={secrets.token_hex(6)}"}
    )
    token = _ratio(context, lambda: {"Cookie": f"csrftoken={secrets.token_hex(16)}"})
    yield Figure("hit_ratio_no_cookie", plain)
    yield Figure("hit_ratio_csrf_cookie", token)
    yield Figure("hit_ratio_analytics_cookies", analytics)
    if not plain:
        yield Mismatch(f"{VISITORS} visitors without cookies: some hits", "none")
    minimum = _minimum(plain)
    if analytics < minimum:
        what = f"{VISITORS} visitors with analytics cookies: a hit ratio of at least {minimum:.2f}"
        yield Mismatch(f"{what}, that without cookies being {plain:.2f}", f"{analytics:.2f}")


def _minimum(plain: float) -> float:
    """The lowest right hit ratio with analytics cookies, from the ratio without cookies."""
    return plain - MAX_LOSS if plain >= 1 - MAX_LOSS else MIN_SHARE * plain


def _ratio(context: Context, headers: Callable[[], dict[str, str]]) -> float:
    """Hits of visitors to a page that nobody has requested before, as a share of the possible hits."""
    path = new_path()
    answers = [context.get(path, headers()) for _ in range(VISITORS)]
    hits = sum(is_hit(answer, answers[:number]) for number, answer in enumerate(answers))
    return hits / (VISITORS - 1)


@check("parameters", group="web")
def parameters(context: Context) -> Iterator[Finding]:
    """Each query string, in any order of parameters, gets its own page, and so does the URL without one."""
    require_probes(context)
    path = new_path()
    queries = [
        "",
        "a=1&b=2",
        "b=2&a=1",
        "a=1&b=2&",
        "a=1&a=2",
        "a=2&a=1",
        "a=1",
        "a=1;b=2",
        "a=%31",
        "A=1",
        "page=2",
        "?",
    ]
    urls = [f"{path}?{query}" if query else path for query in queries]
    # A server may normalise a query string before the application sees it, with and without the layer.
    right = {url: paragraphs(context.get(url, context.bypass)).get("query") for url in urls}
    for url in [*urls, *urls]:
        if (got := paragraphs(context.get(url)).get("query")) != right[url]:
            yield Mismatch(f"GET {url}: the page of {right[url]!r}", f"that of {got!r}")


@check("junk-queries", group="web", thorough=True)
def junk_queries(context: Context) -> Iterator[Finding]:
    """1,000 made-up query strings are not cached, add no entries to the store, and evict nothing that was cached."""
    require_probes(context)
    primed, path = _primed(context), new_path()
    junk = [f"{path}?utm_source={secrets.token_hex(8)}&page={number}" for number in range(FLOOD)]
    before = _entries(context)
    yield from _flood(context, ((url, "", "") for url in junk), {200})
    yield from _bounded(context, before, f"{FLOOD} query strings")
    yield from _still_cached(context, primed, f"{FLOOD} query strings")
    sample = junk[:: FLOOD // SAMPLE]
    first = [context.get(url) for url in sample]
    stayed = sum(is_hit(context.get(url), [answer]) for url, answer in zip(sample, first, strict=True))
    yield Figure("junk_queries_kept_of_50", stayed)
    if stayed:
        yield Mismatch(
            f"{len(sample)} of {FLOOD} made-up query strings, requested again: none cached", f"{stayed} cached"
        )


@check("junk-cookies", group="web", thorough=True)
def junk_cookies(context: Context) -> Iterator[Finding]:
    """1,000 made-up cookies, of analytics, CSRF tokens and sessions, add no entries to the store, and evict nothing."""
    require_probes(context)
    primed = _primed(context)
    names = ("_ga", "csrftoken", "sessionid")
    cookies = (f"{name}={secrets.token_hex(16)}" for _, name in zip(range(FLOOD), cycle(names), strict=False))
    before = _entries(context)
    yield from _flood(context, ((path, "", cookie) for path, cookie in zip(cycle(primed), cookies)), {200})
    yield from _bounded(context, before, f"{FLOOD} cookies")
    yield from _still_cached(context, primed, f"{FLOOD} cookies")


def _entries(context: Context) -> int | None:
    """The entries of all stores: files, the caches of servers, and what the site reaches; None for a --target."""
    if context.running is None:
        return None
    reached = json.loads(context.get("/__probe__/entries").body)["entries"]
    try:
        return len(stored_files(context)) + context.running.entries() + int(reached)
    except FileNotFoundError as error:
        raise NotTried(f"the entries cannot be counted: program not installed: {error.filename}") from None


def _bounded(context: Context, before: int | None, after: str) -> Iterator[Finding]:
    """What is wrong with the number of entries after a flood."""
    if before is None:
        return
    added = (_entries(context) or 0) - before
    yield Figure("entries_added", added)
    if added > MAX_ADDED:
        yield Mismatch(f"at most {MAX_ADDED} entries added to the store by {after}", f"{added}")


@check("junk-hosts", group="web", thorough=True)
def junk_hosts(context: Context) -> Iterator[Finding]:
    """1,000 made-up hosts are refused, get no cached page and evict none; other spellings and ports of the right host
    make no pages of their own."""
    require_probes(context)
    primed = _primed(context)
    hosts = (f"{secrets.token_hex(4)}.example" for _ in range(FLOOD))
    yield from _flood(context, ((path, host, "") for path, host in zip(cycle(primed), hosts)), {400})
    yield from _still_cached(context, primed, f"{FLOOD} hosts")
    yield from _host_spellings(context, *primed.popitem())


def _host_spellings(context: Context, path: str, known: set[str | None]) -> Iterator[Finding]:
    """What is wrong when a cached page is rendered again for each spelling of the host that the site accepts."""
    host = context.target.netloc.removesuffix(f":{context.target.port}")
    hosts = [host.upper(), f"{host}.", *(f"{host}:{port}" for port in range(1, SAMPLE))]
    answers = [answer for answer in (context.get(path, host=host) for host in hosts) if answer.status == 200]
    renderings = [answer for answer in answers if render_id(answer) not in known]
    if len(renderings) > len(hosts) / 2:
        yield Mismatch(f"GET {path} under {len(hosts)} spellings of the host: hits", f"{len(renderings)} renderings")


def _primed(context: Context) -> dict[str, set[str | None]]:
    """Cached pages, each with its render ids: one for each process that has a cache of its own.

    Raises BadAnswer when a page is not cached.
    """
    require_visible_hits(context)
    primed = {}
    for path in (new_path() for _ in range(PRIMED)):
        answers = repeat(context, path, MAX_TRIES)
        primed[path] = set(map(render_id, answers))
        if len(primed[path]) == len(answers):
            raise BadAnswer(f"GET {path}: rendered each time, so nothing shows what evicts a cached page")
    return primed


def _still_cached(context: Context, primed: dict[str, set[str | None]], after: str) -> Iterator[Mismatch]:
    """What is wrong when all pages that were cached are rendered again."""
    gone = [path for path, known in primed.items() if render_id(context.get(path)) not in known]
    if len(gone) == len(primed):
        yield Mismatch(f"{len(primed)} pages, cached before {after}: not all evicted", "all are rendered again")


def _flood(context: Context, requests: Iterable[tuple[str, str, str]], statuses: set[int]) -> Iterator[Mismatch]:
    """Send all of (URL, Host, Cookie) over a few connections; a mismatch when another status than these came."""
    requests = list(requests)
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = pool.map(lambda part: _ask(context, part), [requests[start::CLIENTS] for start in range(CLIENTS)])
        wrong = [status for part in found for status in part if status not in statuses]
    if wrong:
        right = ", ".join(map(str, statuses))
        yield Mismatch(f"{len(requests)} requests: status {right}", f"{len(wrong)} others, such as status {wrong[0]}")


def _ask(context: Context, requests: list[tuple[str, str, str]]) -> list[int]:
    """The statuses of the answers, on one connection for as long as it stays open."""
    statuses, connection = [], Connection(context.target)
    try:
        for request in requests:
            answer = _exchange(connection, *request)
            if answer is None:
                connection.close()
                connection = Connection(context.target)
                answer = _exchange(connection, *request)
            statuses.append(answer.status if answer else 0)
    finally:
        connection.close()
    return statuses


def _exchange(connection: Connection, url: str, host: str, cookie: str) -> Answer | None:
    """The answer, or None when the connection was closed before it."""
    try:
        return connection.exchange("GET", url, {"Cookie": cookie} if cookie else (), host=host)
    except (wire.Closed, BrokenPipeError, ConnectionResetError):
        return None
