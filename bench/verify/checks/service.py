"""A layer's service stops and starts again, or hangs for a while, under load."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator

from bench.verify.check import check
from bench.verify.checks.freshness import INVALIDATED_S, settle, waiting, wrong_pages
from bench.verify.clients import Clients
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.layer_facts import caches_pages, without_invalidation
from bench.verify.wire import Answer
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


def _services(context: Context) -> list[str]:
    """The services of the deployment's layers; raises NotTried where there are none to stop."""
    if context.running is None:
        raise NotTried("it stops services, so it needs a deployment of its own: verify a STACK")
    if names := [service.name for service in context.running.composition.services]:
        return names
    raise NotTried("no layer here uses a service")


def _stopped(context: Context, name: str) -> Iterator[Finding]:
    assert context.running is not None
    with new_rows(context) as (writer, (row,)):
        yield from _hit_at_first(context, f"{name} is stopped")
        with _reading(context, row) as clients:
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
        with _reading(context, row) as clients:
            time.sleep(BEFORE_S)
            with context.running.hung_service(name):
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


def _reading(context: Context, row: Row) -> Clients:
    """Clients that request the row's pages and the home page until the block ends."""
    paths = [row.probe_page, row.post_page or "", context.site.url("home")]
    return Clients(context, paths, _judge, CLIENTS, pause_s=THINK_S)


def _shown(context: Context, row: Row, old: Row, what: str) -> Iterator[Mismatch]:
    """What is wrong unless every page shows a write soon; a layer without invalidation need not."""
    if not without_invalidation(context):
        yield from wrong_pages(settle(context, waiting(context, row, old, INVALIDATED_S, what)))


def _judge(path: str, answer: Answer) -> Mismatch | None:
    if answer.status == 200 and PROBE_PREFIX in answer.text:
        return None
    return Mismatch(f"GET {path}: status 200 with the probe's row", f"status {answer.status}")


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
        if _hits(context, f"/probe/slow/0/{secrets.token_hex(8)}/"):
            return now
        time.sleep(PAUSE_S)
    return None
