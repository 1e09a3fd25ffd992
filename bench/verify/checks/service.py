"""A layer's service stops and starts again, or hangs for a while, under load; each server restarts."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator

from bench.verify.check import check
from bench.verify.checks.freshness import (
    INVALIDATED_S,
    require_invalidation,
    settle,
    waiting,
    warm,
    wrong_pages,
)
from bench.verify.clients import Clients, Judge
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.layer_facts import caches_pages, without_invalidation
from bench.verify.row_pages import expected_pages
from bench.verify.wire import Answer
from bench.verify.workers import servers_of
from bench.verify.writer import Row, new_rows

CLIENTS = 8
THINK_S = 0.02
# Seconds with the service, without it, and with it again.
BEFORE_S, WITHOUT_S = 0.3, 1.2
# Seconds that it hangs: longer than any layer's timeout for one answer.
HUNG_S = 3.0
# The longest time for a page during that: it may wait for a render lock that the service could not release
# (benchapp/caching/render_lock.py, 5 s), and for a worker.
PAGE_S = 8.0
# This many requests in a row must be hits, because each worker has its own connection to the service.
HITS = 8
BACK_S = 12.0
PAUSE_S = 0.05
NEEDS_OWN = "it stops services and servers, so it needs a deployment of its own: verify a STACK"
# All values that a probe writes begin so.
PROBE_PREFIX = "probe-"


@check("service-stops", group="service", thorough=True)
def service_stops(context: Context) -> Iterator[Finding]:
    """While the layer's service is stopped, pages are right and writes work; hits return with the service."""
    for name in _services(context):
        yield from _stopped(context, name)


@check("service-hangs", group="service", thorough=True)
def service_hangs(context: Context) -> Iterator[Finding]:
    """While the layer's service hangs, pages come within seconds and writes work; then hits return, none stale."""
    for name in _services(context):
        yield from _hung(context, name)


@check("restarts", group="service", thorough=True)
def restarts(context: Context) -> Iterator[Finding]:
    """Each server and service restarts under load right after a write: no page from before the write comes back."""
    require_invalidation(context)
    if context.running is None:
        raise NotTried(NEEDS_OWN)
    services = [service.name for service in context.running.case.services]
    with new_rows(context) as (writer, (row,)):
        for name in (*services, *servers_of(context)):
            with _reading(context, row, _judge_while_down, tolerant=True) as clients:
                warm(context, expected_pages(context, row, None))
                row, old = writer.write(row, "edit"), row
                context.running.restart(name)
                yield from _shown(context, row, old, f"an edit and a restart of {name}")
            yield from clients.wrong


def _services(context: Context) -> list[str]:
    """The services of the deployment's layers; raises NotTried where there are none to stop."""
    if context.running is None:
        raise NotTried(NEEDS_OWN)
    if names := [service.name for service in context.running.case.services]:
        return names
    raise NotTried("no layer here uses a service")


def _stopped(context: Context, name: str) -> Iterator[Finding]:
    assert context.running is not None
    with new_rows(context) as (writer, (row,)):
        yield from _hit_at_first(context, f"{name} is stopped")
        with _reading(context, row, _judge) as clients:
            time.sleep(BEFORE_S)
            with context.running.without_service(name):
                clients.slowest_s = 0.0
                time.sleep(WITHOUT_S / 2)
                row, old = writer.write(row, "edit"), row
                yield from _shown(context, row, old, f"an edit without {name}")
                time.sleep(WITHOUT_S / 2)
                slowest_s = clients.slowest_s
            back_s = _seconds_until_hits(context)
            row, old = writer.write(row, "edit"), row
            yield from _shown(context, row, old, f"an edit after {name} is back")
        yield from clients.wrong
    yield Figure("slowest_without_service_ms", round(slowest_s * 1000))
    yield Figure("hits_return_s", None if back_s is None else round(back_s, 1))
    if back_s is None:
        yield Mismatch(f"hits again within {BACK_S:g} s after {name} is back", "none")


def _hung(context: Context, name: str) -> Iterator[Finding]:
    assert context.running is not None
    with new_rows(context) as (writer, (row,)):
        yield from _hit_at_first(context, f"{name} hangs")
        with _reading(context, row, _judge) as clients:
            time.sleep(BEFORE_S)
            with context.running.hung(name):
                clients.slowest_s = 0.0
                time.sleep(HUNG_S / 2)
                row, old = writer.write(row, "edit"), row
                time.sleep(HUNG_S / 2)
            yield from _shown(context, row, old, f"an edit while {name} hung")
            back_s = _seconds_until_hits(context)
            row, old = writer.write(row, "edit"), row
            yield from _shown(context, row, old, f"an edit after {name} has hung")
        yield from clients.wrong
    slowest_s = clients.slowest_s
    yield Figure("slowest_while_service_hangs_ms", round(slowest_s * 1000))
    yield Figure("hits_return_after_hanging_s", None if back_s is None else round(back_s, 1))
    if slowest_s > PAGE_S:
        yield Mismatch(f"each page within {PAGE_S:g} s while {name} hangs", f"one took {slowest_s:.1f} s")
    if back_s is None:
        yield Mismatch(f"hits again within {BACK_S:g} s after {name} has hung", "none")


def _hit_at_first(context: Context, event: str) -> Iterator[Mismatch]:
    """What is wrong without any hit before the event; an earlier check's write may still be invalidating pages."""
    if _seconds_until_hits(context) is None:
        yield Mismatch(f"a hit before {event}", "none")


def _reading(context: Context, row: Row, judge: Judge, *, tolerant: bool = False) -> Clients:
    """Clients that request the row's pages and the home page until the block ends."""
    paths = [row.probe_page, row.post_page or "", context.site.url("home")]
    return Clients(context, paths, judge, CLIENTS, tolerant=tolerant, pause_s=THINK_S)


def _shown(context: Context, row: Row, old: Row, what: str) -> Iterator[Mismatch]:
    """What is wrong unless every page shows a write soon; a layer without invalidation need not."""
    if not without_invalidation(context):
        yield from wrong_pages(settle(context, waiting(context, row, old, INVALIDATED_S, what)))


def _judge(path: str, answer: Answer) -> Mismatch | None:
    if answer.status == 200 and PROBE_PREFIX in answer.text:
        return None
    return Mismatch(f"GET {path}: status 200 with the probe's row", f"status {answer.status}")


def _judge_while_down(path: str, answer: Answer) -> Mismatch | None:
    """The same while a server is down: another one may answer with a 5xx."""
    return None if answer.status >= 500 else _judge(path, answer)


def _hits(context: Context, path: str) -> bool:
    """Whether many requests in a row for a page cost at most one rendering of it, or of its cached part."""
    name = "render-id" if caches_pages(context) else "part-id"
    context.get(path)
    return len({_paragraph(context.get(path), name) for _ in range(HITS)}) == 1


def _paragraph(answer: Answer, name: str) -> str | None:
    found = re.search(rf'<p id="{name}">([^<]*)</p>', answer.text)
    return found[1] if found else None


def _seconds_until_hits(context: Context) -> float | None:
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < BACK_S:
        if _hits(context, f"/__probe__/slow/0/{secrets.token_hex(8)}/"):
            return now
        time.sleep(PAUSE_S)
    return None
