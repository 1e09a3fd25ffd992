"""Whole pages: nobody reads half of one, whoever dies while writing it, and what is kept in files stays small."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.verify.checks.freshness import SHORT_TTL_S, SLACK_S
from bench.verify.laid import again, forget, laid
from bench.verify.outcome import Figure, Finding, Mismatch, NotTried
from bench.verify.readers import Readers
from bench.verify.rows import Row, Writer, made
from bench.verify.suite import Context, check
from bench.verify.wire import Answer, BadAnswer

READERS = 64
ROWS = 3
WRITING_S = 1.2
# How often workers are killed, and how soon the site must answer again.
KILLS = 2
BETWEEN_S = 0.3
BACK_S = 10.0
PAUSE_S = 0.02
KEPT_S = 0.04
# What a layer may keep in files beside pages: words, marks, directories of names.
BESIDE_BYTES = 65_536
# Of each page there may be the kept one, and two that are being written or on their way out.
COPIES = 3


@check("whole-pages", group="files", thorough=True)
def whole_pages(context: Context) -> Iterator[Finding]:
    """64 readers of large pages that are rewritten all the time see each of them whole, and the disk does not fill.

    Asked of the same deployment brought up once more with a time to live of 2 s, which rewrites where no write does.
    """
    context = again(context, {"cache_seconds": SHORT_TTL_S})
    with made(context, ROWS) as (writer, rows):
        paths = [f"{row.probe_page}large/" for row in rows]
        size = len(_whole(context, paths[0]))
        with Readers(context, paths, _judge, READERS) as readers:
            most = _rewrite(context, writer, rows, WRITING_S)
        yield from readers.wrong
        yield Figure("large_pages_read", readers.answers)
        yield from _bounded(context, most, ROWS * COPIES * size)


@check("killed-while-writing", group="files", thorough=True)
def killed_while_writing(context: Context) -> Iterator[Finding]:
    """Whoever writes pages is killed again and again: no page is ever cut off, and what is left over is removed.

    Asked of the same deployment brought up once more with a time to live of 2 s.
    """
    context = again(context, {"cache_seconds": SHORT_TTL_S})
    # What is left of it after this is for no other check.
    forget(context)
    with made(context, ROWS) as (writer, rows):
        paths = [f"{row.probe_page}large/" for row in rows]
        size = len(_whole(context, paths[0]))
        with Readers(context, paths, _judge_while_killed, READERS // 8, forgiving=True) as readers:
            killed, back = 0, True
            for _ in range(KILLS):
                with contextlib.suppress(BadAnswer, OSError):
                    _rewrite(context, writer, rows, BETWEEN_S)
                killed += _kill(context)
                # Some who watch over workers give up when the new one dies at birth.
                back = back and _back(context)
        yield from readers.wrong
        if not killed:
            yield NotTried("no server here has a worker process that another one watches over")
            return
        if not back:
            yield NotTried(f"the site does not come back within {BACK_S:g} s when its workers are killed")
            return
        for path in paths:
            if wrong := _judge(path, 0, context.get(path)):
                yield wrong
        yield from _cut_off(context)
        # A server whose own processes are killed may take a page for one that is still in use.
        yield from _left_over(context, ROWS * COPIES * size)


def _judge(path: str, begun: float, answer: Answer) -> Mismatch | None:
    """What is wrong with a large page: it is one title from its first line to its last."""
    if answer.status != 200:
        return Mismatch(f"GET {path}: status 200", f"status {answer.status}")
    if not _is_whole(answer.content):
        return Mismatch(f"GET {path}: the whole page of one rendering", f"{len(answer.content)} bytes of it")
    return None


def _judge_while_killed(path: str, begun: float, answer: Answer) -> Mismatch | None:
    """The same, for a server whose workers are being killed: it may say that it cannot answer now."""
    return None if answer.status >= 500 else _judge(path, begun, answer)


def _is_whole(content: bytes) -> bool:
    begin, lines, end = (_between(content, b'<p id="%s">' % name, b"</p>") for name in (b"begin", b"lines", b"end"))
    whole = begin and begin == end and lines.count(begin) * (len(begin) + 1) == len(lines) + 1
    return bool(whole) and content.rstrip().endswith(b"</html>")


def _between(content: bytes, before: bytes, after: bytes) -> bytes:
    return content.partition(before)[2].partition(after)[0]


def _whole(context: Context, path: str) -> bytes:
    answer = context.get(path)
    if wrong := _judge(path, 0, answer):
        raise ValueError(f"{wrong.expected}; got {wrong.got}")
    return answer.content


def _rewrite(context: Context, writer: Writer, rows: list[Row], seconds: float) -> int:
    """Go on changing the rows for so long; the most bytes that the layer kept in files meanwhile."""
    deadline, most = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        for row in rows:
            writer.write(row, "edit")
            # Time for the page to be rendered and kept, before the next write forbids it.
            time.sleep(KEPT_S)
            most = max(most, _bytes(context))
    return most


def _bounded(context: Context, most: int, bound: int) -> Iterator[Finding]:
    """What is wrong with the room that files take: while pages are rewritten, and when their time is up."""
    if not most:
        return
    yield Figure("largest_store_bytes", most)
    if most > bound + BESIDE_BYTES:
        yield Mismatch(f"at most {bound + BESIDE_BYTES} bytes in files while pages are rewritten", f"{most}")
    yield from _left_over(context, 0)


def _left_over(context: Context, bound: int) -> Iterator[Mismatch]:
    """What is wrong with what is left in files when all pages' time is up."""
    bound += BESIDE_BYTES
    deadline = time.monotonic() + SHORT_TTL_S * len(laid(context)) + SLACK_S
    while (left := _bytes(context)) > bound and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    if left > bound:
        names = ", ".join(str(path.relative_to(_store(context))) for path in _files(context))
        yield Mismatch(f"at most {bound} bytes in files when the time to live is up", f"{left}: {names}")


def _cut_off(context: Context) -> Iterator[Mismatch]:
    """Kept files that hold a part of a page; what is still under a temporary name is served to nobody."""
    for path in _files(context):
        with contextlib.suppress(FileNotFoundError):
            content = path.read_bytes()
            temporary = path.name.startswith(".") or re.search(r"\.\d{10}$", path.name)
            if b'<p id="begin">' in content and not temporary and not _is_whole(content):
                name = path.relative_to(_store(context))
                yield Mismatch(f"{name}: a whole page", f"{len(content)} bytes of one")


def _kill(context: Context) -> int:
    """Kill the worker processes of each server with SIGKILL, which nobody can prepare for; how many."""
    assert context.running is not None
    servers = {server.name for server in context.running.composition.servers}
    killed = 0
    for name, pid in context.running.pids.items():
        if re.sub(r"-\d+$", "", name) in servers:
            for worker in _children(pid):
                with contextlib.suppress(psutil.Error):
                    worker.kill()
                    killed += 1
    return killed


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _back(context: Context) -> bool:
    """Whether the site answers again: as often in a row as it may have workers."""
    deadline, answers = time.monotonic() + BACK_S, 0
    while answers < READERS // 8 and time.monotonic() < deadline:
        try:
            answers = answers + 1 if context.get(context.site.url("healthz")).status == 200 else 0
        except (BadAnswer, OSError):
            answers = 0
            time.sleep(PAUSE_S)
    return answers == READERS // 8


def _store(context: Context) -> Path:
    assert context.running is not None
    return context.running.store


def _files(context: Context) -> list[Path]:
    # Directories come and go while they are looked through, which this way of looking does not mind.
    return [Path(folder, name) for folder, _, names in os.walk(_store(context)) for name in names]


def _bytes(context: Context) -> int:
    total = 0
    for path in _files(context):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total
