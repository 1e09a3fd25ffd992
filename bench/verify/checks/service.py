"""The service of a layer stops and starts again, or hangs for a while, with clients asking all the while."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator

from bench.verify.checks.freshness import TOLD_S, settle, waiting, wrong_pages
from bench.verify.laid import keeps_pages, untold
from bench.verify.outcome import Figure, Finding, Mismatch, NotAsked
from bench.verify.readers import Readers
from bench.verify.rows import Row, made
from bench.verify.suite import Context, check
from bench.verify.wire import Answer

CLIENTS = 8
THINK_S = 0.02
# Seconds with the service, without it, and with it again.
BEFORE_S, WITHOUT_S = 0.3, 1.2
# Seconds that it hangs: longer than any layer waits for one answer of it.
HUNG_S = 3.0
# The longest that a page may take meanwhile: it may wait for somebody whose turn the service has not heard the end of
# (benchapp/caching/render_lock.py, 5 s), and for a worker.
PAGE_S = 8.0
# So many askings in a row have to be a HIT: each worker has a connection of its own to the service.
HITS = 8
BACK_S = 12.0
PAUSE_S = 0.05
# How all that a probe writes begins.
PROBE_WORD = "probe-"


@check("service-stops", group="service", thorough=True)
def service_stops(context: Context) -> Iterator[Finding]:
    """While a layer's service is stopped pages keep coming, none is wrong, writes are taken; with it hits return."""
    for name in _services(context):
        yield from _stopped(context, name)


@check("service-hangs", group="service", thorough=True)
def service_hangs(context: Context) -> Iterator[Finding]:
    """While a layer's service hangs pages come within seconds, writes are taken; after it none is old, hits return."""
    for name in _services(context):
        yield from _hung(context, name)


def _services(context: Context) -> list[str]:
    """The services of the deployment's layers; raises NotAsked where there are none to stop."""
    if context.running is None:
        raise NotAsked("it needs a deployment of its own, whose services it may stop: verify a STACK")
    if names := [service.name for service in context.running.composition.services]:
        return names
    raise NotAsked("no layer here uses a service")


def _stopped(context: Context, name: str) -> Iterator[Finding]:
    assert context.running is not None
    with made(context) as (writer, (row,)):
        yield from _kept_at_first(context, f"{name} is stopped")
        with _reading(context, row) as readers:
            time.sleep(BEFORE_S)
            with context.running.without_service(name):
                readers.slowest_s = 0.0
                time.sleep(WITHOUT_S / 2)
                row, old = writer.write(row, "edit"), row
                yield from _shown(context, row, old, f"an edit without {name}")
                time.sleep(WITHOUT_S / 2)
                slowest_s = readers.slowest_s
            back_s = _seconds_until_hits(context)
            row, old = writer.write(row, "edit"), row
            yield from _shown(context, row, old, f"an edit after {name} is back")
        yield from readers.wrong
    yield Figure("slowest_without_service_ms", round(slowest_s * 1000))
    yield Figure("hits_return_s", None if back_s is None else round(back_s, 1))
    if back_s is None:
        yield Mismatch(f"hits again within {BACK_S:g} s after {name} is back", "none")


def _hung(context: Context, name: str) -> Iterator[Finding]:
    assert context.running is not None
    with made(context) as (writer, (row,)):
        yield from _kept_at_first(context, f"{name} hangs")
        with _reading(context, row) as readers:
            time.sleep(BEFORE_S)
            with context.running.hung_service(name):
                readers.slowest_s = 0.0
                time.sleep(HUNG_S / 2)
                row, old = writer.write(row, "edit"), row
                time.sleep(HUNG_S / 2)
            yield from _shown(context, row, old, f"an edit while {name} hung")
            back_s = _seconds_until_hits(context)
            row, old = writer.write(row, "edit"), row
            yield from _shown(context, row, old, f"an edit after {name} has hung")
        yield from readers.wrong
    slowest_s = readers.slowest_s
    yield Figure("slowest_while_service_hangs_ms", round(slowest_s * 1000))
    yield Figure("hits_return_after_hanging_s", None if back_s is None else round(back_s, 1))
    if slowest_s > PAGE_S:
        yield Mismatch(f"each page within {PAGE_S:g} s while {name} hangs", f"one took {slowest_s:.1f} s")
    if back_s is None:
        yield Mismatch(f"hits again within {BACK_S:g} s after {name} has hung", "none")


def _kept_at_first(context: Context, event: str) -> Iterator[Mismatch]:
    """What is wrong when nothing is kept before the event; a write that an earlier check made may be told just now."""
    if _seconds_until_hits(context) is None:
        yield Mismatch(f"a HIT before {event}", "none")


def _reading(context: Context, row: Row) -> Readers:
    """Clients that ask for the row's pages and the home page until the block ends."""
    paths = [row.probe_page, row.post_page or "", context.site.url("home")]
    return Readers(context, paths, _judge, CLIENTS, pause_s=THINK_S)


def _shown(context: Context, row: Row, old: Row, what: str) -> Iterator[Mismatch]:
    """What is wrong unless every page shows a write soon; a layer that cannot be told need not."""
    if not untold(context):
        yield from wrong_pages(settle(context, waiting(context, row, old, TOLD_S, what)))


def _judge(path: str, begun: float, answer: Answer) -> Mismatch | None:
    if answer.status == 200 and PROBE_WORD in answer.text:
        return None
    return Mismatch(f"GET {path}: status 200 with the row that a probe has made", f"status {answer.status}")


def _hits(context: Context, path: str) -> bool:
    """Whether a page, or the part of it that the layer keeps, is made no more than once for many askings in a row."""
    name = "render-id" if keeps_pages(context) else "part-id"
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
