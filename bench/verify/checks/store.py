"""Stores of layers that are full: a cache, or a disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bench.machine.small_disk import CannotMount, SmallDisk
from bench.verify import rows
from bench.verify.check import check
from bench.verify.checks.freshness import require_invalidation
from bench.verify.context import Context
from bench.verify.crowd import NO_RACE, after_race, race
from bench.verify.finding import Finding, Mismatch, NotTried
from bench.verify.hits import new_path, repeat, require_probes, until_hit, whole
from bench.verify.rows import Right, Row, expected_pages, new_rows, settle, soon_right, warm

# The memory of the store in the clone: the least that a caching service starts with.
SMALL_MB = 8
# Made-up pages: large ones fill most of such a store, small ones the rest.
LARGE_PAGES, SMALL_PAGES, ASKED_AT_ONCE = 8, 400, 8
# How often the probe puts its entries into the store; a request that puts all of them would time out on a busy machine.
FILLS = 16
# How often pages that nobody has requested are requested while the disk is full.
NEW_PAGES = 4


@check("full-store", require_invalidation, require_probes, group="freshness", thorough=True)
def full_store(context: Context) -> Iterator[Finding]:
    """With a store that is full, a write shows as soon as with an empty one, and no page from before it comes back.

    It asks a clone of the deployment with 8 MB for cached pages, and fills that with other entries.
    """
    context = context.clone({"cache_memory_mb": SMALL_MB})
    with new_rows(context, 2) as (writer, (row, raced)):
        for each in (row, raced):
            warm(context, [*expected_pages(context, each, None), Right(each.probe_page)])
        row, old = writer.write(row, "edit"), row
        list(_changed(context, row, old, "an edit"))
        for _ in range(FILLS):
            writer.fill()
            # Pages that visitors request all the time stay; those of the edited row are left alone.
            repeat(context, context.site.url("home"), ASKED_AT_ONCE)
        made_up = [new_path("large") for _ in range(LARGE_PAGES)] + [new_path() for _ in range(SMALL_PAGES)]
        context.prefetch(made_up)
        # Entries that guard the edit may have been evicted.
        yield from _changed(context, row, old, "an edit and a full store")
        found = race(context, writer, raced, "update")
        if found is None:
            raise NotTried(NO_RACE)
        yield from rows.wrong_pages(settle(context, [after_race(found[0], rows.INVALIDATED_S)]))


@check("full-disk", require_invalidation, require_probes, group="freshness", thorough=True)
def full_disk(context: Context) -> Iterator[Finding]:
    """With the store's disk full, then without room for another file, then with room again, writes show and answers are
    whole; afterwards pages are cached again, and no failed write has left a temporary file.

    It asks a clone of the deployment, restarted with its store on a small disk.
    """
    context = context.clone({"cache_memory_mb": SMALL_MB})
    with new_rows(context) as (_, (row,)):
        warm(context, expected_pages(context, row, None))
        if not stored_files(context):
            raise NotTried("no layer here stores files")
    try:
        with context.own.on_small_disk() as disk:
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
            yield from _changed(context, row, old, f"an edit on {what}")
            for path in [new_path(view) for view in ("page", "large") for _ in range(NEW_PAGES)]:
                yield from context.ask(path, whole(), when=f"on {what}")
            disk.free()
        row, old = writer.write(row, "edit"), row
        yield from _changed(context, row, old, "an edit on a disk with room again")
    if until_hit(context, path := new_path()) is None:
        yield Mismatch(f"GET {path} on a disk with room again: a hit", "it is rendered each time")
    if left := _temporary(context) - before:
        yield Mismatch("no temporary file of a failed write", f"{len(left)}, such as {left.pop()}")


def _temporary(context: Context) -> set[str]:
    """The names of stored files that look as if they were still being written."""
    return {path.name for path in stored_files(context) if is_temporary(path)}


def _changed(context: Context, row: Row, old: Row, what: str) -> Iterator[Finding]:
    """The pages that an edit changes, the probe's own too: nothing but the edit has ever invalidated that one."""
    yield from soon_right(context, row, old, what, Right(row.probe_page, (row.title or "",), (old.title or "",)))


def is_temporary(path: Path) -> bool:
    """Whether it has the name of a file that is still being written."""
    return path.name.startswith(".") or re.search(r"\.\d{10}$", path.name) is not None


def stored_files(context: Context) -> list[Path]:
    """The files that the layers of the deployment have stored."""
    # os.walk ignores directories that disappear meanwhile.
    return [Path(folder, name) for folder, _, names in os.walk(context.own.store) for name in names]
