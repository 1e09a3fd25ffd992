"""The database hangs, or ends and comes back, under visitors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.serve.deployment import Running
from bench.verify.check import LAYER, check
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.wire import BadAnswer

# No wait for the database may be longer; the site's own limit is 2 s, and a machine may be busy.
HEALTH_S = 4.0
PAGE_S = 8.0
# Pages have taken every thread by then.
SETTLED_S = 0.3
# Without a database for so long, then it must serve again within as much.
WITHOUT_S = 5.0
BACK_S = 10.0
PAUSE_S = 0.1


@check("database-hangs", stage=LAYER, thorough=True)
def database_hangs(context: Context) -> Iterator[Finding]:
    """While the database hangs, a page is a 503 with Retry-After within seconds; nothing holds up the health page."""
    running, name = _database(context)
    with running.hung(name):
        yield from _without(context, running, "while the database hangs")
    yield from _back(context, "after the database has hung")


@check("database-stops", stage=LAYER, thorough=True)
def database_stops(context: Context) -> Iterator[Finding]:
    """While the database is stopped for 5 s, a page is a 503 with Retry-After, not the health page; then pages come."""
    running, name = _database(context)
    begun = time.monotonic()
    with running.without_service(name):
        yield from _without(context, running, "while the database is stopped")
        time.sleep(max(0.0, begun + WITHOUT_S - time.monotonic()))
    yield from _back(context, "after the database is back")


def _database(context: Context) -> tuple[Running, str]:
    """The deployment and the name of its database's service; raises NotTried where there is none to stop."""
    if not context.strict:
        raise NotTried(
            "what its pages and its health page do without a database is the project's own, see `bench faults`"
        )
    if context.running is None or context.running.services.database is None:
        raise NotTried("it stops the database, so it needs one of its own: give --database postgresql")
    return context.running, context.running.services.database


def _without(context: Context, running: Running, when: str) -> Iterator[Finding]:
    """One request for each thread, for a page that no layer caches, and meanwhile one for the health page."""
    health = context.site.url("health")
    with ThreadPoolExecutor(running.case.threads) as pool:
        pages = [pool.submit(_page, context) for _ in range(running.case.threads)]
        time.sleep(SETTLED_S)
        begun = time.monotonic()
        status = context.get(health).status
        health_s = time.monotonic() - begun
        answers = [page.result() for page in pages]
    slowest_s = max(took for _, took in answers)
    yield Figure("health_page_ms", round(health_s * 1000))
    yield Figure("slowest_page_ms", round(slowest_s * 1000))
    if status != 200 or health_s > HEALTH_S:
        yield Mismatch(
            f"GET {health} {when}: status 200 within {HEALTH_S:g} s", f"status {status} after {health_s:.1f} s"
        )
    if wrong := {text for text, _ in answers} - {"503 with Retry-After"}:
        yield Mismatch(f"a page {when}: status 503 with Retry-After", ", ".join(sorted(wrong)))
    if slowest_s > PAGE_S:
        yield Mismatch(f"a page {when}: within {PAGE_S:g} s", f"{slowest_s:.1f} s")


def _page(context: Context) -> tuple[str, float]:
    """What comes for a page of the database, and after how many seconds."""
    begun = time.monotonic()
    try:
        answer = context.get(context.site.url("section", "home"), context.bypass)
        text = f"{answer.status} {'with' if answer.header('Retry-After') else 'without'} Retry-After"
    except (BadAnswer, OSError) as error:
        text = str(error)
    return text, time.monotonic() - begun


def _back(context: Context, when: str) -> Iterator[Finding]:
    """Seconds until as many pages in a row are right as there are threads, each with a connection of its own."""
    assert context.running is not None
    begun = time.monotonic()
    right = 0
    while right < 2 * context.running.case.threads:
        right = right + 1 if _page(context)[0].startswith("200 ") else 0
        if time.monotonic() > begun + BACK_S:
            yield Mismatch(f"pages again within {BACK_S:g} s {when}", "none")
            return
        if not right:
            time.sleep(PAUSE_S)
    yield Figure("pages_return_s", round(time.monotonic() - begun, 1))
