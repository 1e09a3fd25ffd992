"""Files of a store are whole: no client reads a part of a page while pages are rewritten."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from bench.paths import entries_below
from bench.verify import rows
from bench.verify.check import check
from bench.verify.checks.freshness import SHORT_TTL_S
from bench.verify.context import Context
from bench.verify.crowd import Clients
from bench.verify.expect import Expectation
from bench.verify.mismatch import Figure, Finding, Mismatch
from bench.verify.rows import Row, Writer
from bench.verify.wire import PageResponse

CLIENTS = 64
ROWS = 3
WRITING_S = 1.2
# Time for a page to be rendered and stored before the next write invalidates it.
STORE_S = 0.04
# The sweeper of expired files may sleep this long after finding none.
SWEPT_S = 10.0
# Other contents of a store: generations, locks, indexes.
OVERHEAD_BYTES = 65_536
# Copies of each page: the stored one, and two being written or removed.
COPIES = 3


@check("whole-pages", rows.require_rows, group="files", thorough=True)
def whole_pages(context: Context) -> Iterator[Finding]:
    """64 clients of constantly changing large pages get complete pages only, and the disk does not fill.

    A clone of the deployment has a time to live of 2 s, so that pages without invalidation expire.
    """
    context = context.clone({"cache_seconds": SHORT_TTL_S})
    with rows.new_rows(context, ROWS) as (writer, new_rows):
        paths, size = large_pages(context, new_rows)
        with Clients(context, paths, CLIENTS, complete) as clients:
            most = rewrite(context, writer, new_rows, WRITING_S)
        yield from clients.wrong
        yield Figure("large_pages_read", clients.responses)
        if most:
            yield Figure("largest_store_bytes", most)
            bound = ROWS * COPIES * size + OVERHEAD_BYTES
            if most > bound:
                yield Mismatch(f"at most {bound} bytes in files while pages are rewritten", f"{most}")
            yield from left_over(context, 0)


def _incomplete(response: PageResponse) -> str | None:
    """The fault of a large page, or None: a complete page repeats one title from its first line to its last."""
    right = response.status == 200 and _is_complete(response.content)
    if right:
        return None
    return f"status {response.status}, {len(response.content)} bytes of it"


complete = Expectation("status 200, the complete page of one rendering", _incomplete)


def _is_complete(content: bytes) -> bool:
    begin, lines, end = (_paragraph(content, name) for name in (b"begin", b"lines", b"end"))
    is_whole = begin and begin == end and lines.count(begin) * (len(begin) + 1) == len(lines) + 1
    return bool(is_whole) and content.rstrip().endswith(b"</html>")


def _paragraph(content: bytes, name: bytes) -> bytes:
    """The text of a paragraph, of a page that may be cut off."""
    return content.partition(b'<p id="%s">' % name)[2].partition(b"<")[0].strip()


def large_pages(context: Context, written: list[Row]) -> tuple[list[str], int]:
    """The paths of the rows' large pages, and how many bytes one has."""
    paths = [f"{row.probe_page}large/" for row in written]
    response = context.get(paths[0])
    if wrong := _incomplete(response):
        raise ValueError(f"{response.sent}: {wrong}, not {complete.words}")
    return paths, len(response.content)


def rewrite(context: Context, writer: Writer, written: list[Row], seconds: float) -> int:
    """Change the rows for so many seconds; returns the most bytes that the layer stored in files meanwhile."""
    deadline, most = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        for row in written:
            writer.write(row, "edit")
            time.sleep(STORE_S)
            most = max(most, _bytes(context))
    return most


def left_over(context: Context, bound: int) -> Iterator[Finding]:
    """Expect few files when all pages have expired."""
    bound += OVERHEAD_BYTES
    deadline = time.monotonic() + SHORT_TTL_S * len(context.layers) + SWEPT_S + rows.SLACK_S
    while (left := _bytes(context)) > bound and time.monotonic() < deadline:
        time.sleep(rows.PAUSE_S)
    if left > bound:
        names = ", ".join(str(path.relative_to(context.own.store)) for path in stored_files(context))
        yield Mismatch(f"at most {bound} bytes in files when the time to live is up", f"{left}: {names}")


def cut_off(context: Context) -> Iterator[Finding]:
    """Store truncated pages as files under temporary names; no server may serve them."""
    for path in stored_files(context):
        with contextlib.suppress(FileNotFoundError):
            content = path.read_bytes()
            if b'<p id="begin">' in content and not is_temporary(path) and not _is_complete(content):
                name = path.relative_to(context.own.store)
                yield Mismatch(f"{name}: a complete page", f"{len(content)} bytes of one")


def _bytes(context: Context) -> int:
    total = 0
    for path in stored_files(context):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def is_temporary(path: Path) -> bool:
    """True if the file name is temporary, so the file is still being written."""
    return path.name.startswith(".") or re.search(r"\.\d{10}$", path.name) is not None


def stored_files(context: Context) -> list[Path]:
    """The files stored by the deployment's layers."""
    return [path for path in entries_below(context.own.store) if not path.is_dir()]
