"""Freshness: how soon a write shows on every page it changes, and whether stale pages come back."""

from __future__ import annotations

import contextlib
import secrets
import statistics
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from bench.project.description import FILE
from bench.verify import wire
from bench.verify.check import check
from bench.verify.clients import Clients
from bench.verify.context import Context
from bench.verify.described_write import becomes_fresh
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.layer_facts import clone, in_its_code, layers_of, without_invalidation
from bench.verify.row_pages import Right, expected_pages, words
from bench.verify.wire import Answer, BadAnswer
from bench.verify.writer import Row, Writer, new_rows

# So long after a write its invalidation must have worked: a web server may check the files it keeps open only once a
# second, and count whole seconds.
INVALIDATED_S = 2.5
# The time to live of the clone, where nothing else ends a stale page.
SHORT_TTL_S = 2
# Caches count in whole seconds, and the machine may be busy.
SLACK_S = 2.0
# The longest wait for a rendering to reach a gate.
GATE_S = 4.0
RACES = 8
NO_RACE = f"in {RACES} attempts no write went through while a rendering was on its way"
PAUSE_S = 0.02
# Visitors who ask while a command writes.
READERS = 2
# How many writes a visitor asks after, and how often.
OWN_WRITES, READS = 8, 3

ROLL_BACK = "roll-back"
WRITES = ("comment", "edit", "update", ROLL_BACK, "delete")
AUTHOR_WRITES = ("rename", "remove")
UNSIGNALLED = "update-silently"
# Writes in the database's own shell. A page that becomes 404 gives a cache nothing to store in place of the stale one.
SILENT_WRITES = (UNSIGNALLED, "delete-silently", "remove-silently")


@dataclass
class Waiting:
    """A page that must become right after a write, and how long it may be stale.

    done_s  how many seconds after the write it was right; None before
    """

    right: Right
    written: float
    bound_s: float
    what: str
    done_s: float | None = None
    wrong: Answer | None = field(default=None, repr=False)

    def ask(self, context: Context) -> None:
        """Request the page and note whether it is right."""
        begun = time.monotonic()
        answer = context.get(self.right.path)
        if self.right.met(answer):
            # Without a wrong answer before, it may have been right all along.
            self.done_s = 0.0 if self.wrong is None else begun - self.written
        else:
            self.wrong = answer

    @property
    def over(self) -> bool:
        """Whether it is right, or was still wrong at the end of its time: on a busy machine its only request may
        come after that."""
        late = time.monotonic() - self.written > self.bound_s + PAUSE_S
        return self.done_s is not None or (late and self.wrong is not None)


@check("told-of-writes", group="freshness")
def writes(context: Context) -> Iterator[Finding]:
    """A comment, an edit, a bulk update and a deletion invalidate every page that shows the row; no page ever shows a
    write that is rolled back."""
    yield from _invalidated_by(context, WRITES)


@check("told-of-authors", group="freshness", thorough=True)
def authors(context: Context) -> Iterator[Finding]:
    """An author's new name invalidates every page that shows it, posts too; deleting the author removes the author's
    posts and comments from every page."""
    yield from _invalidated_by(context, AUTHOR_WRITES)


@check("told-of-commands", group="freshness", thorough=True)
def commands(context: Context) -> Iterator[Finding]:
    """A write by a management command invalidates every page that shows the row, while visitors request them; where
    no probe writes rows, the described write, if the project says what that makes stale."""
    require_invalidation(context, described=True)
    if context.running is None:
        raise NotTried("it runs a command with the site's settings: verify a STACK instead of a --target")
    if not context.site.has_rows:
        yield from becomes_fresh(context, INVALIDATED_S)
        return
    with new_rows(context) as (writer, (row,)):
        paths = [right.path for right in expected_pages(context, row, None)]
        with Clients(context, paths, lambda path, answer: None, READERS, pause_s=PAUSE_S):
            # A cache in front is purged by the first write, and must not get the page from before the second one.
            written = writer.write(row, "edit")
            new = writer.write_by_command(written, "edit")
            yield from wrong_pages(settle(context, waiting(context, new, written, INVALIDATED_S, "a command's edit")))


@check("read-your-write", group="freshness", thorough=True)
def read_your_write(context: Context) -> Iterator[Finding]:
    """A visitor who asks right after a write sees it, and no visitor who has seen it sees the page from before."""
    require_invalidation(context)
    asked = 0
    with new_rows(context) as (writer, (row,)):
        for _ in range(OWN_WRITES):
            rights = expected_pages(context, row, None)
            warm(context, [*rights, *rights])
            row, old = writer.write(row, "edit"), row
            for number in range(READS):
                for right in expected_pages(context, row, old):
                    asked += 1
                    if not right.met(answer := context.get(right.path)):
                        yield right.wrong(answer, f"read {number + 1} after an edit")
    yield Figure("reads_after_writes", asked)


def require_invalidation(context: Context, described: bool = False) -> None:
    """Raise NotTried where stale pages only expire; `described`: the described write is enough."""
    if not context.site.description.invalidates:
        raise NotTried(f"the project names no stale pages ([tool.benchapp.stale] in its {FILE}): see time-to-live")
    if not context.site.has_rows and not described:
        raise NotTried("it writes rows, and the project has no probe that does: see told-of-commands")
    if names := ", ".join(layer.name for layer in without_invalidation(context)):
        raise NotTried(f"no write invalidates {names}: see time-to-live")


def _invalidated_by(context: Context, kinds: Iterable[str]) -> Iterator[Finding]:
    """Make these writes to a row, one after another, and see each page become right."""
    require_invalidation(context)
    with new_rows(context) as (writer, (row,)):
        warm(context, expected_pages(context, row, None))
        waited: list[Waiting] = []
        for what in kinds:
            new, wrong = _rolled_back(context, writer, row) if what == ROLL_BACK else (writer.write(row, what), [])
            yield from wrong
            waited += settle(context, waiting(context, new, row, INVALIDATED_S, what))
            row = new
        yield from _found(waited)


def _rolled_back(context: Context, writer: Writer, row: Row) -> tuple[Row, list[Mismatch]]:
    """Roll a write back and request all pages during its transaction and after it: the row, and where it showed.

    The gate may answer late, from the very worker that is writing: then the pages are requested only after it.
    """
    paths = [right.path for right in expected_pages(context, row, None)]
    writer.gate(row, "close")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(writer.write, row, ROLL_BACK)
        deadline = time.monotonic() + GATE_S
        while not writing.done() and not writer.gate(row, "look") and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        answers = [(path, context.get(path)) for path in paths]
        writer.gate(row, "open")
        row = writing.result()
    answers += [(path, context.get(path)) for path in paths]
    shown = [(path, word) for path, answer in answers for word in row.never if word in answer.text]
    return row, [Mismatch(f"GET {path}: nothing of the rolled-back write", word) for path, word in shown]


@check("slow-rendering", group="freshness")
def slow_rendering(context: Context) -> Iterator[Finding]:
    """A rendering that began before a write and ends after it is not cached, nor sent to later requests."""
    require_invalidation(context)
    # Once alone, once with another client: that one must get the new page, and may replace the old one.
    with new_rows(context, 2) as (writer, rows):
        for row, others in zip(rows, (0, 1), strict=True):
            raced = race(context, writer, row, "edit", others)
            if raced is None:
                yield NotTried(NO_RACE)
                return
            right, late = raced
            for asked in late:
                if asked.answer and not right.met(asked.answer):
                    yield right.wrong(asked.answer, "requested after a write during an older rendering")
            yield from wrong_pages(settle(context, [after_race(right, INVALIDATED_S)]))


@check("time-to-live", group="freshness", thorough=True)
def time_to_live(context: Context) -> Iterator[Finding]:
    """No page is older than the time to live, with and without invalidation, whatever is written meanwhile. That
    includes pages of rows deleted without a signal, which become 404.

    It asks a clone of the deployment with a time to live of 2 s.
    """
    bound_s = SHORT_TTL_S * len(layers_of(context)) + SLACK_S
    if names := ", ".join(layer.name for layer in in_its_code(context)):
        raise NotTried(f"how long {names} stores something is up to the project's own code")
    if not context.site.has_rows:
        # The write of a process whose layers know of no stale pages.
        short = clone(context, {"cache_seconds": SHORT_TTL_S})
        yield from becomes_fresh(replace(short, env={**short.env, "BENCHAPP_STALE": "{}"}), bound_s)
        return
    invalidates = not without_invalidation(context)
    # Authors last: the home page names only the newest six.
    kinds = SILENT_WRITES if invalidates else (*WRITES, *AUTHOR_WRITES)
    context = clone(context, {"cache_seconds": SHORT_TTL_S})
    with new_rows(context, len(kinds) + 1) as (writer, [*rows, raced]):
        for row in rows:
            warm(context, expected_pages(context, row, None))
        waited: list[Waiting] = []
        raced_page = race(context, writer, raced, UNSIGNALLED if invalidates else "edit")
        for what, row in zip(kinds, rows, strict=True):
            waited += waiting(context, writer.write(row, what), row, bound_s, what)
        if raced_page:
            waited.append(after_race(raced_page[0], bound_s))
        # The home page counts all rows, so it must show the totals after the last write.
        last = writer.write(raced, "look").totals
        for item in waited:
            if item.right.path == context.site.url("home"):
                item.right = replace(item.right, wanted=(last, *item.right.wanted[1:]))
        settle(context, waited, stale_until_expired=True)
        yield Figure("time_to_live_s", SHORT_TTL_S)
        yield from _found(waited, "old")


def race(context: Context, writer: Writer, row: Row, what: str, others: int = 0) -> tuple[Right, list[Asked]] | None:
    """Write during a rendering that has read the row already; None when no write was in time.

    Returns what the page must say now, and the requests of `others` clients sent after the write and before the end of
    the rendering. The write may reach the worker that is rendering, so it takes some attempts.
    """
    for _ in range(RACES):
        with Slow(context, writer, row) as slow:
            row, old = writer.write(row, what), row
            in_time = slow.under_way
            late = [slow.ask_again() for _ in range(others)]
        if in_time:
            return Right(slow.path, words(row.title), words(old.title)), late
    return None


def after_race(right: Right, bound_s: float) -> Waiting:
    return Waiting(right, time.monotonic(), bound_s, "a write during a slow rendering")


class Slow:
    """A rendering that has read a row's title when the block begins, and answers when it ends.

    view     `gated` waits before it answers, `halting` in the middle of its body
    """

    def __init__(self, context: Context, writer: Writer, row: Row, view: str = "gated", headers: wire.Headers = ()):
        self.context, self.writer, self.row = context, writer, row
        self.path = f"{row.probe_page}{view}/{secrets.token_hex(8)}/"
        self.headers = headers
        self.asked: list[Asked] = []
        self.reached = False

    def __enter__(self) -> Slow:
        self.writer.gate(self.row, "close")
        self.asked.append(Asked(self.context, self.path, self.headers))
        deadline = time.monotonic() + GATE_S
        # An answer that has come already never waits at the gate.
        while not self.reached and self.asked[0].is_alive() and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            self.reached = bool(self.writer.gate(self.row, "look"))
        return self

    @property
    def under_way(self) -> bool:
        """Whether the rendering has read the row and is still going on."""
        return self.reached and self.asked[0].is_alive()

    def ask_again(self) -> Asked:
        """Another client requests the page during the first rendering."""
        self.asked.append(Asked(self.context, self.path, self.headers))
        # Time for it to arrive; if it arrives later, it must get the new page all the same.
        time.sleep(PAUSE_S)
        return self.asked[-1]

    def __exit__(self, *exc_info: object) -> None:
        # With its workers killed the site may not answer; then nobody waits at the gate either.
        with contextlib.suppress(BadAnswer, OSError):
            self.writer.gate(self.row, "open")
        for asked in self.asked:
            asked.join()


class Asked(threading.Thread):
    """One anonymous request in a thread; `answer` is None when it failed, and `error` is the reason."""

    def __init__(self, context: Context, path: str, headers: wire.Headers = ()):
        super().__init__(daemon=True)
        self.context, self.path, self.headers = context, path, headers
        self.answer: Answer | None = None
        self.error: BadAnswer | OSError | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self.context.get(self.path, self.headers)
        except (BadAnswer, OSError) as error:
            self.error = error


def warm(context: Context, rights: Iterable[Right]) -> None:
    """Request the pages, so that the layer caches them as they are."""
    for right in rights:
        context.get(right.path)


def waiting(context: Context, row: Row, old: Row | None, bound_s: float, what: str) -> list[Waiting]:
    """The pages that a write changes, from now on."""
    now = time.monotonic()
    return [Waiting(right, now, bound_s, what) for right in expected_pages(context, row, old)]


def settle(context: Context, waited: list[Waiting], *, stale_until_expired: bool = False) -> list[Waiting]:
    """Request the pages until each is right or its time is over, and once more, so that the layer caches them.

    stale_until_expired  a process with a cache of its own may serve a stale page after another served the new one,
                         until the page expires
    """
    while True:
        while pending := [item for item in waited if not item.over]:
            for item in pending:
                item.ask(context)
            if any(item.done_s is None for item in pending):
                time.sleep(PAUSE_S)
        for item in waited:
            if item.done_s is not None and not item.right.met(answer := context.get(item.right.path)):
                item.done_s, item.wrong = None, answer
        if not stale_until_expired or all(item.over for item in waited):
            return waited
        time.sleep(PAUSE_S)


def _found(waited: list[Waiting], name: str = "fresh") -> Iterator[Finding]:
    yield from wrong_pages(waited)
    taken = [item.done_s * 1000 for item in waited if item.done_s is not None]
    if taken:
        yield Figure(f"{name}_p50_ms", round(statistics.median(taken)))
        yield Figure(f"{name}_max_ms", round(max(taken)))


def wrong_pages(waited: Iterable[Waiting]) -> Iterator[Mismatch]:
    """The pages that did not become right, or did not stay right."""
    for item in waited:
        if item.done_s is None and item.wrong is not None:
            yield item.right.wrong(item.wrong, f"{item.bound_s:g} s after {item.what}")
