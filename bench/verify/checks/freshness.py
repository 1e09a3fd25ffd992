"""Freshness: how soon a write shows on every page it concerns, and whether what is old can come back."""

from __future__ import annotations

import secrets
import statistics
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from bench.verify.laid import again, laid, untold
from bench.verify.outcome import Figure, Finding, Mismatch, NotTried
from bench.verify.rows import Row, Writer, made
from bench.verify.suite import Context, check
from bench.verify.wire import Answer

# A page asked for so long after a write must be right where the layer is told: a web server may look once a second
# only at the files it keeps open, and count whole seconds.
TOLD_S = 2.5
# Where only the time to live ends an old page, the deployment is brought up once more with this one.
SHORT_TTL_S = 2
# Clocks of caches tick in whole seconds, and a machine may be busy.
SLACK_S = 2.0
# A gate is not waited for longer.
GATE_S = 4.0
RACES = 8
PAUSE_S = 0.02

ROLL_BACK = "roll-back"
WRITES = ("comment", "edit", "update", ROLL_BACK, "delete")
OF_AUTHORS = ("rename", "remove")
SILENT = "update-silently"


@dataclass(frozen=True)
class Right:
    """What an anonymous visitor must see at `path`."""

    path: str
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    status: int = 200

    def met(self, answer: Answer) -> bool:
        return answer.status == self.status and not self.missing(answer) and not self.left(answer)

    def missing(self, answer: Answer) -> list[str]:
        return [word for word in self.wanted if word not in answer.text]

    def left(self, answer: Answer) -> list[str]:
        return [word for word in self.unwanted if word in answer.text]

    def wrong(self, answer: Answer, when: str) -> Mismatch:
        expected = f"GET {self.path} {when}: status {self.status}"
        expected += f" with {', '.join(self.missing(answer))}" if self.missing(answer) else ""
        expected += f" without {', '.join(self.left(answer))}" if self.left(answer) else ""
        return Mismatch(expected, f"status {answer.status}, not so")


@dataclass
class Waiting:
    """A page that has to become right after a write, and until when it may be wrong.

    done_s  how many seconds after the write it was right, None before
    """

    right: Right
    written: float
    bound_s: float
    what: str
    done_s: float | None = None
    wrong: Answer | None = field(default=None, repr=False)

    def ask(self, context: Context) -> None:
        """Ask for the page; what begins after its time must be right."""
        begun = time.monotonic()
        answer = context.get(self.right.path)
        if self.right.met(answer):
            # It may have been right all along; only a wrong answer proves that it was not.
            self.done_s = 0.0 if self.wrong is None else begun - self.written
        else:
            self.wrong = answer

    @property
    def over(self) -> bool:
        return self.done_s is not None or time.monotonic() - self.written > self.bound_s + PAUSE_S


@check("told-of-writes", group="freshness")
def told_of_writes(context: Context) -> Iterator[Finding]:
    """A layer that is told shows a comment, an edit, a bulk update and a deletion on every page; none shows at any time
    what is rolled back."""
    yield from _told_of(context, WRITES)


@check("told-of-authors", group="freshness", thorough=True)
def told_of_authors(context: Context) -> Iterator[Finding]:
    """A layer that is told shows an author's new name on every page, the posts' too, and nothing of an author who is
    deleted, nor of the posts and comments that go with them."""
    yield from _told_of(context, OF_AUTHORS)


def _told_of(context: Context, kinds: Iterable[str]) -> Iterator[Finding]:
    """Write so to a row, one after another, and see each page become right."""
    if names := ", ".join(layer.name for layer in untold(context)):
        yield NotTried(f"{names} cannot be told of a write: see time-to-live")
        return
    with made(context) as (writer, (row,)):
        _keep(context, _rights(context, row, None))
        waited: list[Waiting] = []
        for what in kinds:
            new, wrong = _rolled_back(context, writer, row) if what == ROLL_BACK else (writer.write(row, what), [])
            yield from wrong
            waited += settle(context, waiting(context, new, row, TOLD_S, what))
            row = new
        yield from _found(context, waited)


def _rolled_back(context: Context, writer: Writer, row: Row) -> tuple[Row, list[Mismatch]]:
    """Roll a write back, all pages being asked for while its transaction is open, and after it: what showed of it.

    The gate's word may come late, from the very worker that is writing: then they are asked for after it only.
    """
    paths = [right.path for right in _rights(context, row, None)]
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
    return row, [Mismatch(f"GET {path}: nothing of what is rolled back", word) for path, word in shown]


@check("slow-rendering", group="freshness")
def slow_rendering(context: Context) -> Iterator[Finding]:
    """What a rendering read before a write and answers after it is not kept, nor given to who asks after the write."""
    if names := ", ".join(layer.name for layer in untold(context)):
        yield NotTried(f"{names} cannot be told of a write: see time-to-live")
        return
    # Once alone, once with another client: what that one is given must be new, but may take the place of what is old.
    with made(context, 2) as (writer, rows):
        for row, others in zip(rows, (0, 1), strict=True):
            race = _race(context, writer, row, "edit", others)
            if race is None:
                yield NotTried(f"in {RACES} attempts no write went through while a rendering was on its way")
                return
            right, late = race
            for asked in late:
                if asked.answer and not right.met(asked.answer):
                    yield right.wrong(asked.answer, "asked for after a write, while an older rendering was on its way")
            yield from wrong_pages(settle(context, [_outlasted(right, TOLD_S)]))


@check("time-to-live", group="freshness", thorough=True)
def time_to_live(context: Context) -> Iterator[Finding]:
    """No page is older than the time to live, whether or not its layer is told, and whatever is written meanwhile.

    Asked of the same deployment brought up once more with a time to live of 2 s.
    """
    telling = not untold(context)
    # Authors last: the home page names only the newest six.
    kinds = (SILENT,) if telling else (*WRITES, *OF_AUTHORS)
    bound_s = SHORT_TTL_S * len(laid(context)) + SLACK_S
    context = again(context, {"cache_seconds": SHORT_TTL_S})
    with made(context, len(kinds) + 1) as (writer, [*rows, raced]):
        for row in rows:
            _keep(context, _rights(context, row, None))
        waited: list[Waiting] = []
        race = _race(context, writer, raced, SILENT if telling else "edit")
        for what, row in zip(kinds, rows, strict=True):
            waited += waiting(context, writer.write(row, what), row, bound_s, what)
        if race:
            waited.append(_outlasted(race[0], bound_s))
        # The home page counts all of them, which only the last one can be right about.
        last = writer.write(raced, "look").totals
        for item in waited:
            if item.right.path == context.site.url("home"):
                item.right = replace(item.right, wanted=(last, *item.right.wanted[1:]))
        settle(context, waited, old_till_over=True)
        yield Figure("time_to_live_s", SHORT_TTL_S)
        yield from _found(context, waited, "old")


def _race(context: Context, writer: Writer, row: Row, what: str, others: int = 0) -> tuple[Right, list[_Asked]] | None:
    """Write while a rendering that has read the row before is on its way; None when no write was in time.

    What the page must say now, and the answers to so many other clients who asked after the write and before the
    rendering had ended. A request may be given to the very worker that is rendering, so it takes some attempts.
    """
    for _ in range(RACES):
        with _Slow(context, writer, row) as slow:
            row, old = writer.write(row, what), row
            in_time = slow.under_way
            late = [slow.ask_again() for _ in range(others)]
        if in_time:
            return Right(slow.path, _words(row.title), _words(old.title)), late
    return None


def _outlasted(right: Right, bound_s: float) -> Waiting:
    return Waiting(right, time.monotonic(), bound_s, "a write that a slower rendering outlasted")


class _Slow:
    """A rendering that has read a row's title when the block begins, and answers when it ends."""

    def __init__(self, context: Context, writer: Writer, row: Row):
        self.context, self.writer, self.row = context, writer, row
        self.path = f"{row.probe_page}gated/{secrets.token_hex(8)}/"
        self.asked: list[_Asked] = []

    def __enter__(self) -> _Slow:
        self.writer.gate(self.row, "close")
        self.asked.append(_Asked(self.context, self.path))
        deadline = time.monotonic() + GATE_S
        while not self.writer.gate(self.row, "look") and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        return self

    @property
    def under_way(self) -> bool:
        """Whether the rendering has not been answered yet."""
        return self.asked[0].is_alive()

    def ask_again(self) -> _Asked:
        """Another client asks for the page while the first rendering is on its way."""
        self.asked.append(_Asked(self.context, self.path))
        # Time for it to arrive; when it has not, it is a client that asks later, and must be answered as well.
        time.sleep(PAUSE_S)
        return self.asked[-1]

    def __exit__(self, *exc_info: object) -> None:
        self.writer.gate(self.row, "open")
        for asked in self.asked:
            asked.join()


class _Asked(threading.Thread):
    """One anonymous request on its way; `answer` is None when it failed."""

    def __init__(self, context: Context, path: str):
        super().__init__(daemon=True)
        self.context, self.path = context, path
        self.answer: Answer | None = None
        self.start()

    def run(self) -> None:
        self.answer = self.context.get(self.path)


def _rights(context: Context, row: Row, old: Row | None) -> list[Right]:
    """What every page about a row must say now, `old` being what it was before."""
    site = context.site
    gone = _gone(row, old)
    rights = [
        Right(site.url("home"), _words(row.totals, row.title, _renamed(row, old)), gone),
        Right(site.url("posts"), _words(row.title, row.name if row.title else None), gone),
        Right(site.url("comments", "posts"), _words(row.title, row.comment), gone),
        Right(site.url("authors"), _words(row.name), gone),
        Right(row.author_page, _words(row.name, row.title, row.posts if row.name else None), gone, _status(row.name)),
    ]
    if post := row.post_page or (old and old.post_page):
        says = _words(row.title, row.comment, row.name, row.said) if row.title else ()
        rights.append(Right(post, says, gone, _status(row.title)))
    return rights


def _renamed(row: Row, old: Row | None) -> str | None:
    """The author's new name, if it is another one."""
    return row.name if old and old.name != row.name else None


def _gone(row: Row, old: Row | None) -> tuple[str, ...]:
    """What no page may show any more, and what none may show at any time."""
    if old is None:
        return tuple(row.never)
    names = _words(*(was for was, now in ((old.title, row.title), (old.name, row.name)) if was != now))
    return (*names, *_words(old.comment if row.comment is None else None), *row.never)


def _status(there: str | None) -> int:
    return 200 if there else 404


def _words(*words: str | None) -> tuple[str, ...]:
    return tuple(word for word in words if word)


def _keep(context: Context, rights: Iterable[Right]) -> None:
    """Have the pages kept as they are."""
    for right in rights:
        context.get(right.path)


def waiting(context: Context, row: Row, old: Row | None, bound_s: float, what: str) -> list[Waiting]:
    """The pages that a write concerns, beginning now."""
    now = time.monotonic()
    return [Waiting(right, now, bound_s, what) for right in _rights(context, row, old)]


def settle(context: Context, waited: list[Waiting], *, old_till_over: bool = False) -> list[Waiting]:
    """Ask for the pages until each is right or its time is over; asked once more, each is kept as it is then.

    old_till_over  a process with a cache of its own may give an old page after another gave the new one, until the
                   page's time is over
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
        if not old_till_over or all(item.over for item in waited):
            return waited
        time.sleep(PAUSE_S)


def _found(context: Context, waited: list[Waiting], name: str = "fresh") -> Iterator[Finding]:
    yield from wrong_pages(waited)
    taken = [item.done_s * 1000 for item in waited if item.done_s is not None]
    if taken:
        yield Figure(f"{name}_p50_ms", round(statistics.median(taken)))
        yield Figure(f"{name}_max_ms", round(max(taken)))


def wrong_pages(waited: Iterable[Waiting]) -> Iterator[Mismatch]:
    """The pages that did not become right, or did not stay so."""
    for item in waited:
        if item.done_s is None and item.wrong is not None:
            yield item.right.wrong(item.wrong, f"{item.bound_s:g} s after {item.what}")
