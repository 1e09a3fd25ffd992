"""A full store: it evicts or refuses entries, among them those that guard against stale pages; a full disk under it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.machine.small_disk import CannotMount, SmallDisk
from bench.verify.check import check
from bench.verify.checks.files import is_temporary, stored_files
from bench.verify.checks.freshness import (
    INVALIDATED_S,
    NO_RACE,
    Waiting,
    after_race,
    race,
    require_invalidation,
    settle,
    waiting,
    warm,
    wrong_pages,
)
from bench.verify.context import Context
from bench.verify.finding import Finding, Mismatch, NotTried
from bench.verify.hits import new_path, repeat, require_probes, until_hit
from bench.verify.layer_facts import clone
from bench.verify.row_pages import Right, expected_pages
from bench.verify.wire import BadAnswer
from bench.verify.writer import Row, new_rows, require_rows

# The memory of the store in the clone: the least that a caching service starts with.
SMALL_MB = 8
# Made-up pages: large ones fill most of such a store, small ones the rest.
LARGE_PAGES, SMALL_PAGES = 8, 400
AT_ONCE = 8
# How often the probe puts its entries into the store; a request that puts all of them would time out on a busy machine.
FILLS = 16
# How often pages that nobody has requested are requested while the disk is full.
NEW_PAGES = 4


@check("full-store", group="freshness", thorough=True)
def full_store(context: Context) -> Iterator[Finding]:
    """With a store that is full, a write shows as soon as with an empty one, and no page from before it comes back.

    It asks a clone of the deployment with 8 MB for cached pages, and fills that with other entries.
    """
    require_invalidation(context)
    require_probes(context)
    require_rows(context)
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


@check("full-disk", group="freshness", thorough=True)
def full_disk(context: Context) -> Iterator[Finding]:
    """With the store's disk full, then without room for another file, then with room again, writes show and answers are
    whole; afterwards pages are cached again, and no failed write has left a temporary file.

    It asks a clone of the deployment, restarted with its store on a small disk.
    """
    require_invalidation(context)
    require_probes(context)
    require_rows(context)
    context = clone(context, {"cache_memory_mb": SMALL_MB})
    assert context.running is not None
    with new_rows(context) as (_, (row,)):
        warm(context, expected_pages(context, row, None))
        if not stored_files(context):
            raise NotTried("no layer here stores files")
    try:
        with context.running.on_small_disk() as disk:
            yield from _on_disk(context, disk)
    except CannotMount as error:
        raise NotTried(str(error)) from None


def _on_disk(context: Context, disk: SmallDisk) -> Iterator[Finding]:
    """What is wrong while the disk is full, and afterwards."""
    with new_rows(context) as (writer, (row,)):
        warm(context, expected_pages(context, row, None))
        before = _temporary(context)
        for what, fill in (("a full disk", disk.fill), ("a disk without room for a file", disk.fill_names)):
            fill()
            row, old = writer.write(row, "edit"), row
            # The pages that the write removed have made room.
            fill()
            yield from wrong_pages(settle(context, _changed(context, row, old, f"an edit on {what}")))
            yield from _new_pages(context, what)
            disk.free()
        row, old = writer.write(row, "edit"), row
        yield from wrong_pages(settle(context, _changed(context, row, old, "an edit on a disk with room again")))
    if until_hit(context, path := new_path()) is None:
        yield Mismatch(f"GET {path} on a disk with room again: a hit", "it is rendered each time")
    if left := _temporary(context) - before:
        yield Mismatch("no temporary file of a failed write", f"{len(left)}, such as {left.pop()}")


def _temporary(context: Context) -> set[str]:
    """The names of stored files that look as if they were still being written."""
    return {path.name for path in stored_files(context) if is_temporary(path)}


def _new_pages(context: Context, what: str) -> Iterator[Mismatch]:
    """What is wrong with the answers to requests for pages that cannot be stored."""
    for path in [new_path(view) for view in ("page", "large") for _ in range(NEW_PAGES)]:
        try:
            answer = context.get(path)
            got = f"status {answer.status}, {len(answer.content)} bytes"
            whole = answer.status == 200 and answer.content.rstrip().endswith(b"</html>")
        except (BadAnswer, OSError) as error:
            got, whole = str(error), False
        if not whole:
            yield Mismatch(f"GET {path} on {what}: status 200, a whole page", got)


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
