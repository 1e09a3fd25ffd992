"""Complete pages: no client reads a partial page, even when a worker dies, and stored files stay small."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from bench.verify.check import check
from bench.verify.checks.freshness import SHORT_TTL_S, SLACK_S
from bench.verify.clients import Clients
from bench.verify.context import Context
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.layer_facts import clone, forget_clones, layers_of
from bench.verify.wire import Answer, BadAnswer
from bench.verify.workers import NO_WORKERS, NOT_BACK, is_back, kill_workers, servers_of
from bench.verify.writer import Row, Writer, new_rows, require_rows

CLIENTS = 64
ROWS = 3
WRITING_S = 1.2
# How often workers are killed.
KILLS = 2
BETWEEN_S = 0.3
PAUSE_S = 0.02
# Time for a page to be rendered and stored before the next write invalidates it.
STORE_S = 0.04
# What removes expired files may sleep this long when it has found none.
SWEPT_S = 10.0
# What a layer may store beside pages: generations, locks, indexes.
OVERHEAD_BYTES = 65_536
# Of each page there may be the stored copy and two that are being written or removed.
COPIES = 3


@check("whole-pages", group="files", thorough=True)
def whole_pages(context: Context) -> Iterator[Finding]:
    """64 clients of large pages that change all the time get complete pages only, and the disk does not fill.

    It asks a clone of the deployment with a time to live of 2 s, which ends pages that no write invalidates.
    """
    require_rows(context)
    context = clone(context, {"cache_seconds": SHORT_TTL_S})
    with new_rows(context, ROWS) as (writer, rows):
        paths = [f"{row.probe_page}large/" for row in rows]
        size = len(_whole(context, paths[0]))
        with Clients(context, paths, judge_large, CLIENTS) as clients:
            most = _rewrite(context, writer, rows, WRITING_S)
        yield from clients.wrong
        yield Figure("large_pages_read", clients.answers)
        yield from _bounded(context, most, ROWS * COPIES * size)


@check("killed-while-writing", group="files", thorough=True)
def killed_while_writing(context: Context) -> Iterator[Finding]:
    """Workers are killed while they write pages: no page is ever cut off, and what they leave is removed.

    It asks a clone of the deployment with a time to live of 2 s.
    """
    require_rows(context)
    context = clone(context, {"cache_seconds": SHORT_TTL_S})
    # No other check may use this clone afterwards.
    forget_clones(context)
    with new_rows(context, ROWS) as (writer, rows):
        paths = [f"{row.probe_page}large/" for row in rows]
        size = len(_whole(context, paths[0]))
        with Clients(context, paths, _judge_while_killed, CLIENTS // 8, tolerant=True) as clients:
            killed, back = 0, True
            for _ in range(KILLS):
                with contextlib.suppress(BadAnswer, OSError):
                    _rewrite(context, writer, rows, BETWEEN_S)
                killed += kill_workers(context, servers_of(context))
                back = back and is_back(context)
        yield from clients.wrong
        if not (killed and back):
            yield NotTried(NOT_BACK if killed else NO_WORKERS)
            return
        for path in paths:
            if wrong := judge_large(path, context.get(path)):
                yield wrong
        yield from _cut_off(context)
        # A server that loses its own processes may count their pages as still in use.
        yield from _left_over(context, ROWS * COPIES * size)


def judge_large(path: str, answer: Answer) -> Mismatch | None:
    """What is wrong with a large page; a complete one repeats one title from its first line to its last."""
    if answer.status != 200:
        return Mismatch(f"GET {path}: status 200", f"status {answer.status}")
    if not _is_whole(answer.content):
        return Mismatch(f"GET {path}: the complete page of one rendering", f"{len(answer.content)} bytes of it")
    return None


def _judge_while_killed(path: str, answer: Answer) -> Mismatch | None:
    """The same for a server whose workers are being killed: it may answer with a 5xx."""
    return None if answer.status >= 500 else judge_large(path, answer)


def _is_whole(content: bytes) -> bool:
    begin, lines, end = (_between(content, b'<p id="%s">' % name, b"</p>") for name in (b"begin", b"lines", b"end"))
    whole = begin and begin == end and lines.count(begin) * (len(begin) + 1) == len(lines) + 1
    return bool(whole) and content.rstrip().endswith(b"</html>")


def _between(content: bytes, before: bytes, after: bytes) -> bytes:
    return content.partition(before)[2].partition(after)[0]


def _whole(context: Context, path: str) -> bytes:
    answer = context.get(path)
    if wrong := judge_large(path, answer):
        raise ValueError(f"{wrong.expected}; got {wrong.got}")
    return answer.content


def _rewrite(context: Context, writer: Writer, rows: list[Row], seconds: float) -> int:
    """Change the rows for that long; returns the most bytes that the layer stored in files meanwhile."""
    deadline, most = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        for row in rows:
            writer.write(row, "edit")
            time.sleep(STORE_S)
            most = max(most, _bytes(context))
    return most


def _bounded(context: Context, most: int, bound: int) -> Iterator[Finding]:
    """What is wrong with the size of the store: while pages are rewritten, and when they have expired."""
    if not most:
        return
    yield Figure("largest_store_bytes", most)
    if most > bound + OVERHEAD_BYTES:
        yield Mismatch(f"at most {bound + OVERHEAD_BYTES} bytes in files while pages are rewritten", f"{most}")
    yield from _left_over(context, 0)


def _left_over(context: Context, bound: int) -> Iterator[Mismatch]:
    """What is wrong with what the files still hold when all pages have expired."""
    bound += OVERHEAD_BYTES
    deadline = time.monotonic() + SHORT_TTL_S * len(layers_of(context)) + SWEPT_S + SLACK_S
    while (left := _bytes(context)) > bound and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    if left > bound:
        names = ", ".join(str(path.relative_to(_store(context))) for path in stored_files(context))
        yield Mismatch(f"at most {bound} bytes in files when the time to live is up", f"{left}: {names}")


def _cut_off(context: Context) -> Iterator[Mismatch]:
    """Stored files that hold a part of a page; no server serves those under a temporary name."""
    for path in stored_files(context):
        with contextlib.suppress(FileNotFoundError):
            content = path.read_bytes()
            if b'<p id="begin">' in content and not is_temporary(path) and not _is_whole(content):
                name = path.relative_to(_store(context))
                yield Mismatch(f"{name}: a complete page", f"{len(content)} bytes of one")


def is_temporary(path: Path) -> bool:
    """Whether it has the name of a file that is still being written."""
    return path.name.startswith(".") or re.search(r"\.\d{10}$", path.name) is not None


def _store(context: Context) -> Path:
    assert context.running is not None
    return context.running.store


def stored_files(context: Context) -> list[Path]:
    # os.walk ignores directories that disappear meanwhile.
    return [Path(folder, name) for folder, _, names in os.walk(_store(context)) for name in names]


def _bytes(context: Context) -> int:
    total = 0
    for path in stored_files(context):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total
