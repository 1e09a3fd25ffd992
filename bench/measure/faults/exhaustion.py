"""Memory or room on a disk runs out."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure.faults.edited import EditedRow, edited_rows, require_invalidation, require_rows
from bench.measure.faults.fault import ANY, NO_CACHED_PAGES, NO_MEMORY_LIMIT, fault
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable
from bench.measure.faults.stored import require_files
from bench.paths import entries_below
from bench.serve.machine import http
from bench.serve.machine.small_disk import CannotMount, SmallDisk
from bench.verify import rows
from bench.verify.checks.stored_files import is_temporary
from bench.verify.crowd import NO_RACE, after_race, race
from bench.verify.hits import complete_page, new_path, repeat, until_hit
from bench.verify.mismatch import Figure, Finding, Mismatch

FULL_S = 3.0
# A page that uses so many megabytes; its worker is killed at the limit.
MEMORY = "/__probe__/memory/{}/"
TIMES = 2
MEMORY_TIMEOUT_S = 10.0
# Capacity of a store to be filled: the minimum of a caching service.
SMALL_MB = 8
# Made-up pages: large ones fill most of such a store, small ones the rest.
LARGE_PAGES, SMALL_PAGES, ASKED_AT_ONCE = 8, 400, 8
# Number of requests to fill the store; a single request would time out on a busy machine.
FILLS = 16
# Number of new pages requested while the disk is full.
NEW_PAGES = 4


@fault("memory", "starved", ANY, NO_MEMORY_LIMIT)
def memory(scene: FaultContext) -> Generator[None]:
    """Two requests need as much memory as the size has: the kernel kills processes at the limit."""
    megabytes, before = scene.running.case.size.burstable_mb * 2**20 // 10**6, scene.running.oom_kills() or 0
    yield
    with scene.cause():
        for _ in range(TIMES):
            http.status(scene.running.url, MEMORY.format(megabytes), MEMORY_TIMEOUT_S)
            scene.wait(1.0)
    yield
    kills = (scene.running.oom_kills() or 0) - before
    scene.figures["oom_kills"] = kills
    if not kills:
        scene.wrong.append("no process was killed at the limit of memory")


@fault("full-store", "starved", misfit=NO_CACHED_PAGES, cache_memory_mb=SMALL_MB)
def full_store(scene: FaultContext) -> Generator[None]:
    """The store of pages is full of other entries, with 8 MB: an edit shows, and no older page comes back."""
    require_rows(scene)
    require_invalidation(scene)
    with edited_rows(scene, 2) as (row, raced):
        yield
        with scene.cause():
            row.edit("after an edit")
            scene.note(_fill(scene, row))
            # Entries that guard the edit may have been evicted.
            row.shown("after an edit and a full store")
            scene.note(_race(scene, raced))
        yield


def _fill(scene: FaultContext, row: EditedRow) -> Iterator[Finding]:
    """Fill the store, while visitors constantly request the home page; pages of the row are not requested."""
    for _ in range(FILLS):
        row.writer.fill()
        repeat(scene.context, scene.site.url("home"), ASKED_AT_ONCE)
    paths = [new_path("large") for _ in range(LARGE_PAGES)] + [new_path() for _ in range(SMALL_PAGES)]
    scene.context.prefetch(paths)
    yield Figure("made_up_pages", len(paths))


def _race(scene: FaultContext, raced: EditedRow) -> Iterator[Finding]:
    """Findings after a write during a slow rendering."""
    result = race(scene.context, raced.writer, raced.row, "update")
    if result is None:
        raise FaultNotApplicable(NO_RACE)
    yield from rows.wrong_pages(rows.settle(scene.context, [after_race(result[0], rows.INVALIDATED_S)]))


@fault("full-disk", "starved", misfit=NO_CACHED_PAGES, cache_memory_mb=SMALL_MB)
def full_disk(scene: FaultContext) -> Generator[None]:
    """The disk of stored pages is full for 3 s, then has room for no other file: edits show, pages are whole; with room
    again pages are stored again."""
    with _small_disk(scene, scene.running.store) as disk:
        require_files(scene)
        with edited_rows(scene) as edited:
            before = _temporary(scene)
            yield
            with scene.cause():
                for what, fill in (("a full disk", disk.fill), ("a disk without room for a file", disk.fill_names)):
                    fill()
                    for row in edited:
                        row.edit(f"after an edit on {what}")
                    # The pages that the write removed have made room.
                    fill()
                    scene.note(_complete_pages(scene, what))
                    scene.wait(FULL_S / 2)
                    disk.free()
            for row in edited:
                row.edit("after an edit on a disk with room again")
            scene.note(_stores_again(scene, before))
            yield


def _complete_pages(scene: FaultContext, what: str) -> Iterator[Finding]:
    """Findings on new pages."""
    for view in ("page", "large"):
        for _ in range(NEW_PAGES):
            yield from scene.context.expect(new_path(view), complete_page(), when=f"on {what}")


def _stores_again(scene: FaultContext, before: set[str]) -> Iterator[Finding]:
    """Findings on the store once the disk has room again."""
    path = new_path()
    if until_hit(scene.context, path) is None:
        yield Mismatch(f"GET {path} on a disk with room again, a hit", "it is rendered each time")
    left = _temporary(scene) - before
    if left:
        yield Mismatch("no temporary file of a failed write", f"{len(left)}, such as {left.pop()}")


def _temporary(scene: FaultContext) -> set[str]:
    """Names of stored files that look as if they were still being written."""
    return {path.name for path in entries_below(scene.running.store) if path.is_file() and is_temporary(path)}


@fault("full-logs", "starved")
def full_logs(scene: FaultContext) -> Generator[None]:
    """The disk of the logs is full for 3 s, and then has room again."""
    with _small_disk(scene, scene.running.logs) as disk:
        yield
        with scene.cause():
            disk.fill()
            scene.wait(FULL_S)
            disk.free()
        yield


@contextmanager
def _small_disk(scene: FaultContext, folder: Path) -> Iterator[SmallDisk]:
    """A directory of the servers on a separate small disk. Raises FaultNotApplicable if no disk can be mounted."""
    try:
        with scene.running.on_small_disk(folder) as disk:
            yield disk
    except CannotMount as error:
        raise FaultNotApplicable(str(error)) from None


FAULTS = (memory, full_store, full_disk, full_logs)
