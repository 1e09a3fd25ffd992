"""A layer's service stops and starts again, or hangs for a while, under load; each server restarts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from functools import partial

from bench.verify.check import check as any_check
from bench.verify.checks.files import servers_of
from bench.verify.checks.freshness import require_invalidation
from bench.verify.context import Context
from bench.verify.crowd import Clients
from bench.verify.expect import has, status
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.hits import caches_pages, without_invalidation
from bench.verify.rows import Row, expected_pages, new_rows, soon_right, warm

CLIENTS = 8
THINK_S = 0.02
# Seconds with the service, without it, and with it again.
BEFORE_S, WITHOUT_S = 0.3, 1.2
# Seconds that it hangs: longer than PAGE_S, so that a wait without a limit shows.
HUNG_S = 9.0
# The longest time for a page during that: it may wait for a render lock that the service could not release
# (benchapp/caching/render_lock.py, 5 s), and for a worker.
PAGE_S = 8.0
# This many requests in a row must be hits, because each worker has its own connection to the service.
HITS = 8
BACK_S = 12.0
PAUSE_S = 0.05
# All values that a probe writes begin so.
PROBE_PREFIX = "probe-"

check = partial(any_check, group="service")


@check("service-stops", thorough=True)
def service_stops(context: Context) -> Iterator[Finding]:
    """While the layer's service is stopped, pages are right and writes work; hits return with the service."""
    for name in _services(context):
        yield from _without(context, name, stopped=True)


@check("service-hangs", thorough=True)
def service_hangs(context: Context) -> Iterator[Finding]:
    """While the layer's service hangs, pages come within seconds and writes work; then hits return, none stale."""
    for name in _services(context):
        yield from _without(context, name, stopped=False)


def _services(context: Context) -> list[str]:
    """The services of the deployment's layers; raises NotTried where there are none to stop."""
    if names := [service.name for service in context.own.case.services]:
        return names
    raise NotTried("no layer here uses a service")


def _without(context: Context, name: str, *, stopped: bool) -> Iterator[Finding]:
    """What is wrong while a service is stopped, or else hangs, and afterwards."""
    event, lasting_s = (f"{name} is stopped", WITHOUT_S) if stopped else (f"{name} hangs", HUNG_S)
    fault = context.own.without_service if stopped else context.own.hung
    with new_rows(context) as (writer, (row,)):
        # An earlier check's write may still be invalidating pages.
        if _seconds_until_hits(context) is None:
            yield Mismatch(f"a hit before {event}", "none")
        # Each page is cached before the event, so that one that comes back afterwards is noticed.
        warm(context, expected_pages(context, row, None))
        with _reading(context, row) as clients:
            time.sleep(BEFORE_S)
            with fault(name):
                clients.slowest_s = 0.0
                time.sleep(lasting_s / 2)
                row, old = writer.write(row, "edit"), row
                if stopped:
                    yield from _shown(context, row, old, f"an edit while {event}")
                time.sleep(lasting_s / 2)
                slowest_s = clients.slowest_s
            if not stopped:
                yield from _shown(context, row, old, f"an edit while {event}")
            back_s = _seconds_until_hits(context)
            row, old = writer.write(row, "edit"), row
            yield from _shown(context, row, old, f"an edit after {event}")
        slowest_s = slowest_s if stopped else clients.slowest_s
        yield from clients.wrong
    yield Figure("slowest_without_service_ms" if stopped else "slowest_while_service_hangs_ms", round(slowest_s * 1000))
    yield Figure("hits_return_s" if stopped else "hits_return_after_hanging_s", back_s and round(back_s, 1))
    if slowest_s > PAGE_S and not stopped:
        yield Mismatch(f"each page within {PAGE_S:g} s while {event}", f"one took {slowest_s:.1f} s")
    if back_s is None:
        yield Mismatch(f"hits again within {BACK_S:g} s after {event}", "none")


@check("restarts", require_invalidation, thorough=True)
def restarts(context: Context) -> Iterator[Finding]:
    """Each server and service restarts under load right after a write: no page from before the write comes back."""
    running = context.own
    with new_rows(context) as (writer, (row,)):
        for name in (*(service.name for service in running.case.services), *servers_of(context)):
            with _reading(context, row, tolerant=True) as clients:
                warm(context, expected_pages(context, row, None))
                row, old = writer.write(row, "edit"), row
                running.restart(name)
                yield from soon_right(context, row, old, f"an edit and a restart of {name}")
            yield from clients.wrong


def _reading(context: Context, row: Row, *, tolerant: bool = False) -> Clients:
    """Clients that request the row's pages and the home page until the block ends."""
    paths = [row.probe_page, row.post_page or "", context.site.url("home")]
    right = (status(200), has(PROBE_PREFIX, what="the probe's row"))
    return Clients(context, paths, CLIENTS, *right, tolerant=tolerant, pause_s=THINK_S)


def _shown(context: Context, row: Row, old: Row, what: str) -> Iterator[Finding]:
    """What is wrong unless every page shows a write soon; a layer without invalidation need not."""
    if not without_invalidation(context):
        yield from soon_right(context, row, old, what)


def _seconds_until_hits(context: Context) -> float | None:
    """Seconds until many requests in a row for a page cost at most one rendering of it, or of its cached part."""
    begun, name = time.monotonic(), "render-id" if caches_pages(context) else "part-id"
    while (now := time.monotonic() - begun) < BACK_S:
        path = f"/__probe__/slow/0/{secrets.token_hex(8)}/"
        context.get(path)
        if len({context.get(path).paragraphs.get(name) for _ in range(HITS)}) == 1:
            return now
        time.sleep(PAUSE_S)
    return None
