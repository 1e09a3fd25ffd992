"""More slow clients than the stack has threads, while others visit the site."""

from __future__ import annotations

from collections.abc import Iterator

from bench.verify import slow
from bench.verify.check import AFTER, check
from bench.verify.context import Context
from bench.verify.finding import Mismatch, NotTried
from bench.verify.hits import new_path
from bench.verify.slow import LIMIT_S, SlowClients, Slowness

# The kernel spreads connections over processes by chance: with so many for each thread, none stays free by luck.
FOR_EACH_THREAD = 4


@check("slow-bodies", stage=AFTER, thorough=True)
def slow_bodies(context: Context) -> Iterator[Mismatch]:
    """Clients that send 1 byte of 1,000, more of them than threads, delay no one else: others are served within 1 s."""
    yield from _held_up(context, slow.bodies(context.target, new_path("form")))


@check("slow-headers", stage=AFTER, thorough=True)
def slow_headers(context: Context) -> Iterator[Mismatch]:
    """Unfinished header blocks, more of them than threads, delay no one else: others are served within 1 s."""
    yield from _held_up(context, slow.headers(context.target, context.site.url("home")))


def _held_up(context: Context, how: Slowness) -> Iterator[Mismatch]:
    if context.running is None:
        raise NotTried("the site's number of threads is not known: bench did not start it")
    with SlowClients(context.target, how) as clients:
        clients.grow(FOR_EACH_THREAD * context.running.case.threads + 1)
        for path in (context.site.url("home"), context.site.url("health")):
            if problem := slow.held_up(context.target, [path]):
                yield Mismatch(
                    f"GET {path} during {clients.count} {how.name}: an answer within {LIMIT_S:g} s", problem[1]
                )
