"""Stampede: many clients at once request a page that is not cached yet."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.crowd import at_once
from bench.verify.hits import PAGES, PARTS, of_other_status, paragraph, require_cacheable, with_headers
from bench.verify.mismatch import NEEDS_PROBES, Figure, Finding, NotTried

SLOW = "stampede-slow"
CLIENTS = 50
# Rendering time of the page: long enough for requests of all clients to arrive.
SLOW_MS = 100
# A page that takes longer than a second, and more clients than renderings are possible.
VERY_SLOW_MS, MANY_CLIENTS = 1_500, 200
# Number of clients at once for an uncacheable page of a few milliseconds, and their time limit.
UNCACHEABLE_CLIENTS, UNCACHEABLE_S = 30, 5.0


@check("stampede", group="stampede", is_exclusive=True)
def stampede(context: Context) -> Iterator[Finding]:
    """50 clients request an uncached slow page at once: all get it, and a layer that coalesces renders it once."""
    yield from _stampede(context, SLOW_MS, CLIENTS)


@check(SLOW, group="stampede", thorough=True)
def slow_stampede(context: Context) -> Iterator[Finding]:
    """200 clients request an uncached page of 1.5 s: all get it, and a layer that coalesces renders it once.

    Many clients at once of an uncacheable page do not wait for each other's renderings one by one.
    """
    if SLOW not in context.declared and not any(layer.coalesces for layer in context.layers):
        raise NotTried("no layer here coalesces requests: each client costs a rendering")
    yield from _stampede(context, VERY_SLOW_MS, MANY_CLIENTS, SLOW in context.declared)
    begun = time.monotonic()
    responses = at_once(context, with_headers(Cache_Control="private"), UNCACHEABLE_CLIENTS)
    took_s = time.monotonic() - begun
    yield Figure("uncacheable_wait_ms", round(took_s * 1000))
    if wrong := of_other_status(responses, 200):
        yield wrong[0].wrong("status 200 for an uncacheable page", f"status {wrong[0].status} for {len(wrong)}")
    if took_s > UNCACHEABLE_S:
        expected = f"all of {UNCACHEABLE_CLIENTS} clients at once within {UNCACHEABLE_S:g} s for an uncacheable page"
        yield responses[0].wrong(expected, f"{took_s:.1f} s")


def _stampede(context: Context, slow_ms: int, clients: int, declared: bool = False) -> Iterator[Finding]:
    """Let many clients request an uncached page of so many milliseconds at once; `declared` layers must fail by
    rendering more than once."""
    require_cacheable(context)
    responses = at_once(context, f"/__probe__/slow/{slow_ms}/{secrets.token_hex(8)}/", clients)
    if not of_other_status(responses, 404):
        raise NotTried(NEEDS_PROBES)
    if wrong := of_other_status(responses, 200):
        yield wrong[0].wrong(f"status 200 for {clients} clients at once", f"status {wrong[0].status} for {len(wrong)}")
        return
    for caches, name, figure in ((PAGES, "render-id", "renderings"), (PARTS, "part-id", "parts")):
        renderings = len({paragraph(response, name) for response in responses})
        by = [layer for layer in context.layers if layer.caches == caches]
        if by or caches == PAGES:
            yield Figure(f"{figure}_of_{clients}", renderings)
        if (coalescing := [layer for layer in by if layer.coalesces or declared]) and renderings != 1:
            how = f"{coalescing[0].name} ({coalescing[0].coalesces or 'declared'})"
            yield responses[0].wrong(
                f"1 rendering for {clients} clients at once, as {how} says", f"{renderings} {figure}"
            )
