"""A row edited by a fault: every page about it must show the edit soon, whatever is broken meanwhile."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from bench.errors import BenchError
from bench.measure.faults.fault_context import FaultContext, FaultNotApplicable
from bench.serve.machine.http import BadResponse
from bench.verify import rows
from bench.verify.hits import caches_pages, without_invalidation
from bench.verify.mismatch import NEEDS_ROWS, NotTried
from bench.verify.rows import PageAfterWrite, Row, Writer

# So many requests in a row must be hits, because each worker has its own connection to the caching service.
HITS = 8
HITS_S, POLL_S = 12.0, 0.05


@dataclass
class EditedRow:
    """A row made by the fault, and the row before its last edit."""

    scene: FaultContext
    writer: Writer
    row: Row
    old: Row

    def warm(self) -> None:
        """Request all pages about the row, to get them into the layers."""
        with suppress(BadResponse, OSError):
            pages = rows.expected_pages(self.scene.context, self.row, None)
            rows.warm(self.scene.context, [*pages, PageAfterWrite(self.row.probe_page)])

    def write(self) -> None:
        """Edit the row; note a failed edit as wrong."""
        self.old = self.row
        try:
            self.row = self.writer.write(self.row, "edit")
        except (BadResponse, OSError) as error:
            self.scene.wrong.append(f"an edit: {error}")

    def shown(self, when: str) -> None:
        """Note every page without the last edit, after a short wait; without invalidation, pages may be stale."""
        if self.row != self.old and not without_invalidation(self.scene.context):
            own = PageAfterWrite(self.row.probe_page, (self.row.title or "",), (self.old.title or "",))
            self.scene.note(rows.soon_right(self.scene.context, self.row, self.old, when, own))

    def edit(self, when: str) -> None:
        """Edit the row, and note every page that does not show the edit soon."""
        self.write()
        self.shown(when)


@contextmanager
def edited_rows(scene: FaultContext, count: int = 1) -> Iterator[list[EditedRow]]:
    """Rows made by the fault, with their pages cached; removed at the end of the block.

    Empty for a project without probes for rows. Raises BenchError if the site does not write the rows.
    """
    if not scene.site.has_rows:
        yield []
        return
    with ExitStack() as stack:
        try:
            writer, new_rows = stack.enter_context(rows.new_rows(scene.context, count))
        except NotTried as reason:
            raise FaultNotApplicable(str(reason)) from None
        except (BadResponse, OSError) as error:
            raise BenchError(str(error) or type(error).__name__) from None
        edited = [EditedRow(scene, writer, row, row) for row in new_rows]
        for row in edited:
            row.warm()
        yield edited


def require_rows(scene: FaultContext) -> None:
    """Raise FaultNotApplicable for a project without probes for rows."""
    if not scene.site.has_rows:
        raise FaultNotApplicable(NEEDS_ROWS)


def require_invalidation(scene: FaultContext) -> None:
    """Raise FaultNotApplicable if no write invalidates a layer's pages."""
    if stale := without_invalidation(scene.context):
        raise FaultNotApplicable(f"no write invalidates {stale[0].name}")


def seconds_until_hits(scene: FaultContext) -> float | None:
    """Seconds until many requests in a row for a page cost at most one rendering of the page, or of its cached part."""
    name = "part-id"
    if caches_pages(scene.context):
        name = "render-id"
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < HITS_S:
        if _are_hits(scene, name):
            return now
        scene.wait(POLL_S)
    return None


def _are_hits(scene: FaultContext, name: str) -> bool:
    """True if requests for a new page are hits, once it was requested."""
    path = f"/__probe__/slow/0/{secrets.token_hex(8)}/"
    try:
        scene.context.get(path)
        identifiers = {scene.context.get(path).paragraphs.get(name) for _ in range(HITS)}
    except (BadResponse, OSError):
        return False
    return len(identifiers) == 1 and None not in identifiers


def note_hits(scene: FaultContext) -> None:
    """Note how soon requests are hits again."""
    back_s = seconds_until_hits(scene)
    if back_s is None:
        scene.figures["hits_return_s"] = None
        scene.wrong.append(f"no hit within {HITS_S:g} s")
    else:
        scene.figures["hits_return_s"] = round(back_s, 1)
