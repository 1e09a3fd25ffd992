"""Files of a store are whole, also where it is full; no client reads a part of a page, whichever process is killed."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from bench.serve.machine.small_disk import CannotMount, SmallDisk
from bench.verify import rows
from bench.verify.check import check
from bench.verify.checks.freshness import SHORT_TTL_S, require_invalidation
from bench.verify.context import Context
from bench.verify.crowd import NO_RACE, Clients, Slow, after_race, race
from bench.verify.expect import Expectation
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.hits import complete_page, new_path, repeat, require_probes, until_hit
from bench.verify.rows import Row, Writer
from bench.verify.wire import Answer, BadAnswer, TooLate

CLIENTS = 64
ROWS = 3
WRITING_S = 1.2
# Time for a page to be rendered and stored before the next write invalidates it.
STORE_S = 0.04
# What removes expired files may sleep this long when it has found none.
SWEPT_S = 10.0
# What a layer may store beside pages: generations, locks, indexes.
OVERHEAD_BYTES = 65_536
# Of each page there may be the stored copy and two that are being written or removed.
COPIES = 3
# How often workers are killed.
KILLS = 2
BETWEEN_S = 0.3
# How many clients wait for one rendering when its worker is killed.
WAITING = 60
# How much longer than the servers need to start: the page that all wait for is rendered anew, in less than a second.
RENDERED_ANEW_S = 3.0
CODINGS = ("identity", "gzip")
# The site may answer with one worker at first; then nobody can ask how far that one is, for half a second each time.
ATTEMPTS = 24
AT_ONCE = "the application server sends a body only when it has all of it"
TOO_LATE = f"in {ATTEMPTS} attempts no worker was killed before it had answered"
# How soon the site must answer again, and how many times in a row: as often as it may have workers.
BACK_S = 10.0
ANSWERS = 8
PAUSE_S = 0.02
# The longest time until a master asks for the status of a killed worker.
GONE_S = 1.0
NO_WORKERS = "no server here has worker processes under a master"
# Some masters give up when the new worker dies at its start.
NOT_BACK = f"the site does not come back within {BACK_S:g} s after its workers are killed"
# The memory of the store in the clone: the least that a caching service starts with.
SMALL_MB = 8
# Made-up pages: large ones fill most of such a store, small ones the rest.
LARGE_PAGES, SMALL_PAGES, ASKED_AT_ONCE = 8, 400, 8
# How often the probe puts its entries into the store; a request that puts all of them would time out on a busy machine.
FILLS = 16
# How often pages that nobody has requested are requested while the disk is full.
NEW_PAGES = 4


@check("render-lock-holder-killed", group="stampede", thorough=True)
def holder_killed(context: Context) -> Iterator[Finding]:
    """All workers are killed while 60 clients wait for one rendering: another page is answered within three times the
    servers' start, and 3 s.

    It asks a clone of the deployment.
    """
    if not any(layer.coalesces for layer in context.layers):
        raise NotTried("no layer here coalesces requests")
    rows.require_rows(context)
    context = context.clone({})
    # All workers start at once, beside the clients: on a busy machine that takes as long as several starts.
    bound_s = 3 * context.own.ready_s + RENDERED_ANEW_S
    with rows.new_rows(context) as (writer, (row,)):
        for _ in range(ATTEMPTS):
            with ThreadPoolExecutor(WAITING) as pool, Slow(context, writer, row) as slow:
                for _ in range(WAITING):
                    pool.submit(context.get, slow.path)
                # Killed once only: some masters wait before they replace workers that die one soon after another.
                if in_time := slow.under_way:
                    must_kill_application(context)
                    took_s = seconds_until(context, new_path())
            if in_time:
                break
        else:
            raise NotTried(TOO_LATE)
    if took_s is None:
        raise _not_back(context)
    yield Figure("after_kill_ms", round(took_s * 1000))
    if took_s > bound_s:
        expected = f"another page within {bound_s:.1f} s after all workers are killed, with {WAITING} clients waiting"
        yield Mismatch(expected, f"{took_s:.1f} s")


@check("killed-mid-body", rows.require_rows, group="files", thorough=True)
def killed_mid_body(context: Context) -> Iterator[Finding]:
    """Workers are killed in the middle of a body: the client sees that it broke off, and no part of it is cached.

    It asks a clone of the deployment.
    """
    context = context.clone({})
    with rows.new_rows(context) as (writer, (row,)):
        for coding in CODINGS:
            yield from _killed_mid_body(context, writer, row, {"Accept-Encoding": coding})


def _killed_mid_body(context: Context, writer: Writer, row: Row, headers: dict[str, str]) -> Iterator[Finding]:
    reached = False
    for _ in range(ATTEMPTS):
        with Slow(context, writer, row, "halting", headers) as slow:
            reached = reached or slow.reached
            if not slow.under_way:
                continue
            must_kill_application(context)
            if not is_back(context):
                raise _not_back(context)
        (asked,) = slow.asked
        if isinstance(error := asked.exception(), TooLate):
            yield Mismatch("a connection that closes when the body breaks off", str(error))
        # A server in between may have sent nothing yet, and answers with an error of its own.
        if not error and asked.result().status < 500:
            yield from context.judge(asked.result(), complete)
        try:
            again = context.get(slow.path, headers)
        except ConnectionRefusedError:
            # Some masters end with their workers, but not at once.
            raise _not_back(context) from None
        yield from context.judge(again, complete)
        return
    yield NotTried(TOO_LATE if reached else AT_ONCE)


def _not_back(context: Context) -> NotTried:
    """The reason; the next check gets another clone."""
    context.spent = True
    return NotTried(NOT_BACK)


@check("whole-pages", rows.require_rows, group="files", thorough=True)
def whole_pages(context: Context) -> Iterator[Finding]:
    """64 clients of large pages that change all the time get complete pages only, and the disk does not fill.

    It asks a clone of the deployment with a time to live of 2 s, which ends pages that no write invalidates.
    """
    context = context.clone({"cache_seconds": SHORT_TTL_S})
    with rows.new_rows(context, ROWS) as (writer, made):
        paths, size = _large_pages(context, made)
        with Clients(context, paths, CLIENTS, complete) as clients:
            most = _rewrite(context, writer, made, WRITING_S)
        yield from clients.wrong
        yield Figure("large_pages_read", clients.answers)
        if most:
            yield Figure("largest_store_bytes", most)
            bound = ROWS * COPIES * size + OVERHEAD_BYTES
            if most > bound:
                yield Mismatch(f"at most {bound} bytes in files while pages are rewritten", f"{most}")
            yield from _left_over(context, 0)


@check("killed-while-writing", rows.require_rows, group="files", thorough=True)
def killed_while_writing(context: Context) -> Iterator[Finding]:
    """Workers are killed while they write pages: no page is ever cut off, and what they leave is removed.

    It asks a clone of the deployment with a time to live of 2 s.
    """
    context = context.clone({"cache_seconds": SHORT_TTL_S})
    context.spent = True
    with rows.new_rows(context, ROWS) as (writer, made):
        paths, size = _large_pages(context, made)
        with Clients(context, paths, CLIENTS // 8, complete, tolerant=True) as clients:
            killed, back = 0, True
            for _ in range(KILLS):
                with contextlib.suppress(BadAnswer, OSError):
                    _rewrite(context, writer, made, BETWEEN_S)
                killed += kill_workers(context, servers_of(context))
                back = back and is_back(context)
        yield from clients.wrong
        if not (killed and back):
            yield NotTried(NOT_BACK if killed else NO_WORKERS)
            return
        for path in paths:
            yield from context.ask(path, complete)
        yield from _cut_off(context)
        # A server that loses its own processes may count their pages as still in use.
        yield from _left_over(context, ROWS * COPIES * size)


def _incomplete(answer: Answer) -> str | None:
    """What a large page is instead of complete: then it repeats one title from its first line to its last."""
    right = answer.status == 200 and _is_whole(answer.content)
    return None if right else f"status {answer.status}, {len(answer.content)} bytes of it"


complete = Expectation("status 200, the complete page of one rendering", _incomplete)


def _is_whole(content: bytes) -> bool:
    begin, lines, end = (
        content.partition(b'<p id="%s">' % name)[2].partition(b"<")[0].strip() for name in (b"begin", b"lines", b"end")
    )
    whole = begin and begin == end and lines.count(begin) * (len(begin) + 1) == len(lines) + 1
    return bool(whole) and content.rstrip().endswith(b"</html>")


def _large_pages(context: Context, made: list[Row]) -> tuple[list[str], int]:
    """The paths of the rows' large pages, and how many bytes one has."""
    paths = [f"{row.probe_page}large/" for row in made]
    answer = context.get(paths[0])
    if wrong := _incomplete(answer):
        raise ValueError(f"{answer.sent}: {wrong}, not {complete.words}")
    return paths, len(answer.content)


def _rewrite(context: Context, writer: Writer, made: list[Row], seconds: float) -> int:
    """Change the rows for that long; returns the most bytes that the layer stored in files meanwhile."""
    deadline, most = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        for row in made:
            writer.write(row, "edit")
            time.sleep(STORE_S)
            most = max(most, _bytes(context))
    return most


def _left_over(context: Context, bound: int) -> Iterator[Finding]:
    """What is wrong with what the files still hold when all pages have expired."""
    bound += OVERHEAD_BYTES
    deadline = time.monotonic() + SHORT_TTL_S * len(context.layers) + SWEPT_S + rows.SLACK_S
    while (left := _bytes(context)) > bound and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
    if left > bound:
        names = ", ".join(str(path.relative_to(context.own.store)) for path in stored_files(context))
        yield Mismatch(f"at most {bound} bytes in files when the time to live is up", f"{left}: {names}")


def _cut_off(context: Context) -> Iterator[Finding]:
    """Stored files that hold a part of a page; no server serves those under a temporary name."""
    for path in stored_files(context):
        with contextlib.suppress(FileNotFoundError):
            content = path.read_bytes()
            if b'<p id="begin">' in content and not is_temporary(path) and not _is_whole(content):
                name = path.relative_to(context.own.store)
                yield Mismatch(f"{name}: a complete page", f"{len(content)} bytes of one")


def _bytes(context: Context) -> int:
    total = 0
    for path in stored_files(context):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def servers_of(context: Context) -> list[str]:
    """The names of the servers of the deployment, the innermost first."""
    return [server.name for server in context.own.case.servers]


def kill_workers(context: Context, servers: Container[str]) -> int:
    """Kill the worker processes of these servers with SIGKILL, and wait until they are gone; returns how many."""
    killed = []
    for name, pid in context.own.pids.items():
        if re.sub(r"-\d+$", "", name) in servers:
            with contextlib.suppress(psutil.Error):
                killed += psutil.Process(pid).children(recursive=True)
    for worker in killed:
        with contextlib.suppress(psutil.Error):
            worker.kill()
    psutil.wait_procs(killed, timeout=GONE_S)
    return len(killed)


def must_kill_application(context: Context) -> None:
    """Kill the workers of the application server; raises NotTried where it has none."""
    if not kill_workers(context, servers_of(context)[:1]):
        raise NotTried(NO_WORKERS)


def is_back(context: Context) -> bool:
    """Wait until the site answers again; returns whether it does in time."""
    return seconds_until(context, context.site.url("health"), ANSWERS) is not None


def seconds_until(context: Context, path: str, times: int = 1) -> float | None:
    """How long it takes until a page is answered with 200 so many times in a row; None when that takes too long."""
    begun, answers = time.monotonic(), 0
    while answers < times:
        if time.monotonic() - begun > BACK_S:
            return None
        try:
            answers = answers + 1 if context.get(path).status == 200 else 0
        except (BadAnswer, OSError):
            answers = 0
            time.sleep(PAUSE_S)
    return time.monotonic() - begun


@check("full-store", require_invalidation, require_probes, group="freshness", thorough=True)
def full_store(context: Context) -> Iterator[Finding]:
    """With a store that is full, a write shows as soon as with an empty one, and no page from before it comes back.

    It asks a clone of the deployment with 8 MB for cached pages, and fills that with other entries.
    """
    context = context.clone({"cache_memory_mb": SMALL_MB})
    with rows.new_rows(context, 2) as (writer, (row, raced)):
        for each in (row, raced):
            rows.warm(context, [*rows.expected_pages(context, each, None), rows.ExpectedPage(each.probe_page)])
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
        yield from rows.wrong_pages(rows.settle(context, [after_race(found[0], rows.INVALIDATED_S)]))


@check("full-disk", require_invalidation, require_probes, group="freshness", thorough=True)
def full_disk(context: Context) -> Iterator[Finding]:
    """With the store's disk full, then without room for another file, then with room again, writes show and answers are
    whole; afterwards pages are cached again, and no failed write has left a temporary file.

    It asks a clone of the deployment, restarted with its store on a small disk.
    """
    context = context.clone({"cache_memory_mb": SMALL_MB})
    with rows.new_rows(context) as (_, (row,)):
        rows.warm(context, rows.expected_pages(context, row, None))
        if not stored_files(context):
            raise NotTried("no layer here stores files")
    try:
        with context.own.on_small_disk() as disk:
            yield from _on_disk(context, disk)
    except CannotMount as error:
        raise NotTried(str(error)) from None


def _on_disk(context: Context, disk: SmallDisk) -> Iterator[Finding]:
    """What is wrong while the disk is full, and afterwards."""
    with rows.new_rows(context) as (writer, (row,)):
        rows.warm(context, rows.expected_pages(context, row, None))
        before = _temporary(context)
        for what, fill in (("a full disk", disk.fill), ("a disk without room for a file", disk.fill_names)):
            fill()
            row, old = writer.write(row, "edit"), row
            # The pages that the write removed have made room.
            fill()
            yield from _changed(context, row, old, f"an edit on {what}")
            for path in [new_path(view) for view in ("page", "large") for _ in range(NEW_PAGES)]:
                yield from context.ask(path, complete_page(), when=f"on {what}")
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
    yield from rows.soon_right(
        context, row, old, what, rows.ExpectedPage(row.probe_page, (row.title or "",), (old.title or "",))
    )


def is_temporary(path: Path) -> bool:
    """Whether it has the name of a file that is still being written."""
    return path.name.startswith(".") or re.search(r"\.\d{10}$", path.name) is not None


def stored_files(context: Context) -> list[Path]:
    """The files that the layers of the deployment have stored."""
    # os.walk ignores directories that disappear meanwhile.
    return [Path(folder, name) for folder, _, names in os.walk(context.own.store) for name in names]
