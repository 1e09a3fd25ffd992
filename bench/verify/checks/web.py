"""What the web sends to a site all day: cookies that mean nothing to it, made-up query strings and hosts."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

from bench.verify import wire
from bench.verify.outcome import Figure, Finding
from bench.verify.probes import PAST_THE_LAYER, TRIES, fresh, is_kept, must_have_probes, rendering, several, shown
from bench.verify.suite import Context, Mismatch, check
from bench.verify.wire import Answer, BadAnswer, Connection

VISITORS = 24
FLOOD = 1000
CLIENTS = 4
# How many of those made up are asked for again, to see whether they were kept.
SAMPLE = 50
PRIMED = 5
# What cookies of analytics may cost of the hits that visitors without cookies have: a rendering or two more, where all
# visitors share what is kept. Many processes with caches of their own meet a page first in each, so that their two
# ratios are never quite the same: of those hits, this share must be left. A layer to which each cookie is a variant has
# none.
MAY_COST = 0.1
LEAST_SHARE = 0.5


@check("hit-ratio", group="web")
def hit_ratio(context: Context) -> Iterator[Finding]:
    """Cookies of analytics, a new one for each visitor, cost no hits; the ratio with a CSRF cookie is reported."""
    must_have_probes(context)
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
    least = _least(plain)
    if analytics < least:
        what = f"{VISITORS} visitors with cookies of analytics: a hit ratio of at least {least:.2f}"
        yield Mismatch(f"{what}, that without cookies being {plain:.2f}", f"{analytics:.2f}")


def _least(plain: float) -> float:
    """The hit ratio that cookies of analytics must leave, by that without cookies."""
    return plain - MAY_COST if plain >= 1 - MAY_COST else LEAST_SHARE * plain


def _ratio(context: Context, headers: Callable[[], dict[str, str]]) -> float:
    """Hits of so many visitors to a page that nobody has asked for before, of those that could be hits."""
    path = fresh()
    answers = [context.get(path, headers()) for _ in range(VISITORS)]
    hits = sum(is_kept(answer, answers[:number]) for number, answer in enumerate(answers))
    return hits / (VISITORS - 1)


@check("parameters", group="web")
def parameters(context: Context) -> Iterator[Finding]:
    """A query string, in whatever order, gets the answer to that very one, and the page without one stays its own."""
    must_have_probes(context)
    path = fresh()
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
    # A server may tidy a query string before the application sees it; it does so past the layer too.
    right = {url: shown(context.get(url, PAST_THE_LAYER)).get("query") for url in urls}
    for url in [*urls, *urls]:
        if (got := shown(context.get(url)).get("query")) != right[url]:
            yield Mismatch(f"GET {url}: the page of {right[url]!r}", f"that of {got!r}")


@check("junk-queries", group="web", thorough=True)
def junk_queries(context: Context) -> Iterator[Finding]:
    """1,000 made-up query strings are not kept, and what was kept before them still is."""
    must_have_probes(context)
    primed, path = _primed(context), fresh()
    junk = [f"{path}?utm_source={secrets.token_hex(8)}&page={number}" for number in range(FLOOD)]
    yield from _flood(context, ((url, "") for url in junk), {200})
    yield from _still_kept(context, primed, f"{FLOOD} query strings")
    sample = junk[:: FLOOD // SAMPLE]
    first = [context.get(url) for url in sample]
    stayed = sum(is_kept(context.get(url), [answer]) for url, answer in zip(sample, first, strict=True))
    yield Figure("junk_queries_kept_of_50", stayed)
    if stayed:
        yield Mismatch(f"{len(sample)} of {FLOOD} made-up query strings, asked for again: none kept", f"{stayed} kept")


@check("junk-hosts", group="web", thorough=True)
def junk_hosts(context: Context) -> Iterator[Finding]:
    """1,000 made-up hosts are refused, get nothing that was kept and change nothing that was; the right host in another
    spelling, with made-up ports, makes no page of its own."""
    must_have_probes(context)
    primed = _primed(context)
    hosts = (f"{secrets.token_hex(4)}.example" for _ in range(FLOOD))
    yield from _flood(context, ((path, host) for path, host in zip(cycle(primed), hosts, strict=False)), {400})
    yield from _still_kept(context, primed, f"{FLOOD} hosts")
    yield from _spelt(context, *primed.popitem())


def _spelt(context: Context, path: str, known: set[str | None]) -> Iterator[Finding]:
    """What is wrong when a page that was kept is another one under each spelling of the host that the site takes."""
    host = context.target.netloc.removesuffix(f":{context.target.port}")
    hosts = [host.upper(), f"{host}.", *(f"{host}:{port}" for port in range(1, SAMPLE))]
    answers = [answer for answer in (context.get(path, host=host) for host in hosts) if answer.status == 200]
    anew = [answer for answer in answers if rendering(answer) not in known]
    if len(anew) > len(hosts) / 2:
        yield Mismatch(f"GET {path} under {len(hosts)} spellings of the host: what was kept", f"{len(anew)} renderings")


def _primed(context: Context) -> dict[str, set[str | None]]:
    """Pages that are kept, each with its renderings, of which a process with a cache of its own has one each.

    Raises BadAnswer when a page is not kept.
    """
    primed = {}
    for path in (fresh() for _ in range(PRIMED)):
        answers = several(context, path, TRIES)
        primed[path] = set(map(rendering, answers))
        if len(primed[path]) == len(answers):
            raise BadAnswer(f"GET {path}: rendered anew each time, so it cannot be told what drives a kept page out")
    return primed


def _still_kept(context: Context, primed: dict[str, set[str | None]], after: str) -> Iterator[Mismatch]:
    """What is wrong when all pages that were kept are rendered anew."""
    gone = [path for path, known in primed.items() if rendering(context.get(path)) not in known]
    if len(gone) == len(primed):
        yield Mismatch(f"{len(primed)} pages, kept before {after}: not all driven out", "all are rendered anew")


def _flood(context: Context, requests: Iterable[tuple[str, str]], statuses: set[int]) -> Iterator[Mismatch]:
    """Send all of (URL, Host) over a few connections; what came with another status than these."""
    requests = list(requests)
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = pool.map(lambda part: _ask(context, part), [requests[start::CLIENTS] for start in range(CLIENTS)])
        wrong = [status for part in found for status in part if status not in statuses]
    if wrong:
        right = ", ".join(map(str, statuses))
        yield Mismatch(f"{len(requests)} requests: status {right}", f"{len(wrong)} others, such as status {wrong[0]}")


def _ask(context: Context, requests: list[tuple[str, str]]) -> list[int]:
    """The statuses of the answers, on one connection for as long as it stays open."""
    statuses, connection = [], Connection(context.target)
    try:
        for url, host in requests:
            answer = _exchange(connection, url, host)
            if answer is None:
                connection.close()
                connection = Connection(context.target)
                answer = _exchange(connection, url, host)
            statuses.append(answer.status if answer else 0)
    finally:
        connection.close()
    return statuses


def _exchange(connection: Connection, url: str, host: str) -> Answer | None:
    """The answer, or None when the connection was closed before it."""
    try:
        return connection.exchange("GET", url, host=host)
    except (wire.Closed, BrokenPipeError, ConnectionResetError):
        return None
