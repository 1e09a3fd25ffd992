"""Stampede: many clients at once for a page that nobody has asked for yet."""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.verify.laid import PAGES, PARTS, laid
from bench.verify.outcome import Figure, Finding, Mismatch, NotAsked
from bench.verify.rows import PROBES_OFF
from bench.verify.suite import Context, check
from bench.verify.wire import Answer, Connection

CLIENTS = 50
# How long the page takes to make: long enough for all to ask meanwhile.
SLOW_MS = 100
CONNECT_S = 5.0


@check("stampede", group="stampede")
def stampede(context: Context) -> Iterator[Finding]:
    """Of 50 clients at once for a slow page that is not there, all are answered; a layer that can has it made once."""
    path = f"/probe/slow/{SLOW_MS}/{secrets.token_hex(8)}/"
    answers = _at_once(context, path, CLIENTS)
    if all(answer.status == 404 for answer in answers):
        raise NotAsked(PROBES_OFF)
    wrong = [answer.status for answer in answers if answer.status != 200]
    if wrong:
        yield Mismatch(f"GET {path} by {CLIENTS} clients at once: status 200", f"status {wrong[0]} for {len(wrong)}")
        return
    renderings = len({_paragraph(answer, "render-id") for answer in answers})
    parts = len({_paragraph(answer, "part-id") for answer in answers})
    yield Figure(f"renderings_of_{CLIENTS}", renderings)
    for keeps, what, made in ((PAGES, "rendering", renderings), (PARTS, "making of its slow part", parts)):
        by = [layer for layer in laid(context) if layer.caches == keeps and layer.coalesces]
        if keeps == PARTS and any(layer.caches == PARTS for layer in laid(context)):
            yield Figure(f"parts_of_{CLIENTS}", parts)
        if by and made != 1:
            how = f"{by[0].name} ({by[0].coalesces})"
            yield Mismatch(f"GET {path} by {CLIENTS} clients at once: 1 {what}, as {how} says", f"{made}")


def _at_once(context: Context, path: str, clients: int) -> list[Answer]:
    """The answers to so many clients who are all connected before the first of them asks."""
    barrier = threading.Barrier(clients, timeout=CONNECT_S)

    def ask(_: int) -> Answer:
        try:
            with Connection(context.target) as connection:
                # On a machine so busy that one cannot connect in time, the others ask without that one.
                with contextlib.suppress(threading.BrokenBarrierError):
                    barrier.wait()
                return connection.exchange("GET", path)
        except OSError:
            barrier.abort()
            raise

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(ask, range(clients)))


def _paragraph(answer: Answer, name: str) -> str:
    found = re.search(rf'<p id="{name}">([^<]*)</p>', answer.text)
    if not found:
        raise ValueError(f"a probe page without its paragraph {name}")
    return found[1]
