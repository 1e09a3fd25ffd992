"""Stampede: many clients at once request a page that is not cached yet."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.finding import NEEDS_PROBES, Figure, Finding, Mismatch, NotTried
from bench.verify.hits import new_path, paragraph, require_cacheable
from bench.verify.layer_facts import PAGES, PARTS, layers_of
from bench.verify.wire import Answer, Connection

CLIENTS = 50
# How long the page takes to render: long enough for all clients to request it meanwhile.
SLOW_MS = 100
CONNECT_S = 5.0
# The same with a page that takes longer than a second, and more clients than it can be rendered for.
VERY_SLOW_MS, MANY_CLIENTS = 1_500, 200
# How long many clients at once may wait for an uncacheable page that takes milliseconds.
UNCACHEABLE_CLIENTS, UNCACHEABLE_S = 30, 5.0


@check("stampede", group="stampede")
def stampede(context: Context) -> Iterator[Finding]:
    """50 clients request an uncached slow page at once: all get it, and a layer that coalesces renders it once."""
    yield from _stampede(context, SLOW_MS, CLIENTS)


@check("stampede-slow", group="stampede", thorough=True)
def slow_stampede(context: Context) -> Iterator[Finding]:
    """200 clients request an uncached page that takes 1.5 s: all get it, and a layer that coalesces renders it once.

    And of many clients at once at an uncacheable page none waits for the others' renderings one by one.
    """
    if not any(layer.coalesces for layer in layers_of(context)):
        yield NotTried("no layer here coalesces requests: each client costs a rendering")
        return
    yield from _stampede(context, VERY_SLOW_MS, MANY_CLIENTS)
    path = new_path("odd/private")
    begun = time.monotonic()
    answers = _at_once(context, path, UNCACHEABLE_CLIENTS)
    took_s = time.monotonic() - begun
    yield Figure("uncacheable_wait_ms", round(took_s * 1000))
    if wrong := [answer.status for answer in answers if answer.status != 200]:
        yield Mismatch(f"GET {path}, uncacheable: status 200", f"status {wrong[0]} for {len(wrong)}")
    if took_s > UNCACHEABLE_S:
        expected = f"GET {path}, uncacheable, by {UNCACHEABLE_CLIENTS} clients at once: all within {UNCACHEABLE_S:g} s"
        yield Mismatch(expected, f"{took_s:.1f} s")


def _stampede(context: Context, slow_ms: int, clients: int) -> Iterator[Finding]:
    """What is wrong when many clients request an uncached page of so many milliseconds at once."""
    require_cacheable(context)
    path = f"/__probe__/slow/{slow_ms}/{secrets.token_hex(8)}/"
    answers = _at_once(context, path, clients)
    if all(answer.status == 404 for answer in answers):
        raise NotTried(NEEDS_PROBES)
    wrong = [answer.status for answer in answers if answer.status != 200]
    if wrong:
        yield Mismatch(f"GET {path} by {clients} clients at once: status 200", f"status {wrong[0]} for {len(wrong)}")
        return
    renderings = len({paragraph(answer, "render-id") for answer in answers})
    parts = len({paragraph(answer, "part-id") for answer in answers})
    yield Figure(f"renderings_of_{clients}", renderings)
    for caches, what, made in ((PAGES, "rendering", renderings), (PARTS, "rendering of its slow part", parts)):
        by = [layer for layer in layers_of(context) if layer.caches == caches and layer.coalesces]
        if caches == PARTS and any(layer.caches == PARTS for layer in layers_of(context)):
            yield Figure(f"parts_of_{clients}", parts)
        if by and made != 1:
            how = f"{by[0].name} ({by[0].coalesces})"
            yield Mismatch(f"GET {path} by {clients} clients at once: 1 {what}, as {how} says", f"{made}")


def _at_once(context: Context, path: str, clients: int) -> list[Answer]:
    """The answers to clients that are all connected before the first of them sends its request."""
    barrier = threading.Barrier(clients, timeout=CONNECT_S)

    def ask(_: int) -> Answer:
        try:
            with Connection(context.target) as connection:
                # On a busy machine one may not connect in time; the others then go on without it.
                with contextlib.suppress(threading.BrokenBarrierError):
                    barrier.wait()
                return connection.exchange("GET", path)
        except OSError:
            barrier.abort()
            raise

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(ask, range(clients)))
