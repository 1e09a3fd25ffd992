"""A full store: it evicts or refuses entries, among them those that guard against stale pages."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.verify.check import check
from bench.verify.checks.freshness import (
    INVALIDATED_S,
    NO_RACE,
    Right,
    Waiting,
    after_race,
    expected_pages,
    race,
    require_invalidation,
    settle,
    waiting,
    warm,
    wrong_pages,
)
from bench.verify.context import Context
from bench.verify.finding import Finding, NotTried
from bench.verify.hits import new_path, repeat, require_probes
from bench.verify.layer_facts import clone
from bench.verify.wire import BadAnswer
from bench.verify.writer import Row, new_rows

# The memory of the store in the clone: the least that a caching service starts with.
SMALL_MB = 8
# Made-up pages: large ones fill most of such a store, small ones the rest.
LARGE_PAGES, SMALL_PAGES = 8, 400
AT_ONCE = 8
# How often the probe puts its entries into the store.
FILLS = 8


@check("full-store", group="freshness", thorough=True)
def full_store(context: Context) -> Iterator[Finding]:
    """With a store that is full, a write shows as soon as with an empty one, and no page from before it comes back.

    It asks a clone of the deployment with 8 MB for cached pages, and fills that with other entries.
    """
    require_invalidation(context)
    require_probes(context)
    context = clone(context, {"cache_memory_mb": SMALL_MB})
    with new_rows(context, 2) as (writer, (row, raced)):
        for each in (row, raced):
            warm(context, [*expected_pages(context, each, None), Right(each.probe_page)])
        row, old = writer.write(row, "edit"), row
        settle(context, _changed(context, row, old, "an edit"))
        for _ in range(FILLS):
            writer.fill()
            # Pages that visitors request all the time stay; those of the edited row are left alone.
            repeat(context, context.site.url("home"), AT_ONCE)
        _request_made_up_pages(context)
        # Entries that guard the edit may have been evicted.
        yield from wrong_pages(settle(context, _changed(context, row, old, "an edit and a full store")))
        found = race(context, writer, raced, "update")
        if found is None:
            yield NotTried(NO_RACE)
            return
        yield from wrong_pages(settle(context, [after_race(found[0], INVALIDATED_S)]))


def _changed(context: Context, row: Row, old: Row, what: str) -> list[Waiting]:
    """The pages that an edit changes, the probe's own too: nothing but the edit has ever invalidated that one."""
    own = Right(row.probe_page, (row.title or "",), (old.title or "",))
    return [*waiting(context, row, old, INVALIDATED_S, what), Waiting(own, time.monotonic(), INVALIDATED_S, what)]


def _request_made_up_pages(context: Context) -> None:
    def ask(path: str) -> None:
        with contextlib.suppress(BadAnswer, OSError):
            context.get(path)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, [new_path("large") for _ in range(LARGE_PAGES)]))
        list(pool.map(ask, [new_path() for _ in range(SMALL_PAGES)]))
