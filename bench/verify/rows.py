"""Rows written through the site's probes, and the expected pages about a row after each write."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.serve.machine.http import BadResponse
from bench.verify.context import Context
from bench.verify.expect import has, lacks, status, wrong_of
from bench.verify.mismatch import NEEDS_PROBES, NEEDS_ROWS, Finding, Mismatch, NotTried
from bench.verify.page_parser import TOKEN
from bench.verify.visitor import Visitor
from bench.verify.wire import PageResponse

ROWS = "/__probe__/rows/"
FILL = "/__probe__/fill/"
# Time limit of an invalidation: a web server may check open files only once a second, and count whole seconds.
INVALIDATED_S = 2.5
# Caches count in whole seconds, and the machine may be busy.
SLACK_S = 2.0
PAUSE_S = 0.02


@dataclass(frozen=True)
class Row:
    """Texts in the database about a probe's author, expected on the site's pages.

    name             the author's name; None if the author is gone
    title, comment   of the author's post and its newest comment; None if the post is gone
    posts, comments  numbers of posts and comments, as written on the pages
    totals           the sentence with all counts on the home page
    never            texts that were rolled back: no page may ever show one
    """

    author: int
    name: str | None
    title: str | None
    comment: str | None
    posts: str
    comments: str
    totals: str
    author_page: str
    post_page: str | None
    probe_page: str
    never: list[str]


def require_rows(context: Context) -> None:
    """Raise NotTried if no probe knows how to write the project's rows."""
    if not context.site.has_rows:
        raise NotTried(NEEDS_ROWS)


class Writer:
    """A visitor who sends the probes' forms."""

    def __init__(self, context: Context):
        self.context = context
        self.visitor = Visitor(context.target)
        self.token = self.visitor.token(context.site.url("login")) or ""
        self.removed: set[int] = set()
        # True if a row may exist that the writer does not know.
        self.lost = False

    def make(self) -> Row:
        """A new author with one post and one comment; raises NotTried if the site has no probes."""
        response = self._post(ROWS)
        if response.status == 404:
            raise NotTried(NEEDS_PROBES)
        return _row(response)

    def write(self, row: Row, what: str) -> Row:
        """Do `what` to the row, see bench/serve/inside/site/rows.py; returns the new state of the row."""
        written = _row(self._post(f"{ROWS}{row.author}/{what}/"))
        if written.name is None:
            self.removed.add(row.author)
        return written

    def gate(self, row: Row, what: str) -> int:
        """`close`, `open` or `look` at the gate of the row's gated page; returns the number of renderings waiting
        there."""
        return int(_json(self._post(f"/__probe__/gate/{row.author}/{what}/"))["waiting"])

    def fill(self) -> None:
        """Fill the site's caches with other entries; raises BadResponse if that fails."""
        _json(self._post(FILL))

    def remove(self, rows: list[Row]) -> None:
        """Delete via the site, so that layers are invalidated; fall back to manage.py proberows."""
        left = self.lost
        for row in rows:
            if row.author not in self.removed:
                try:
                    self.write(row, "remove")
                except (BadResponse, OSError):
                    left = True
        if left:
            with contextlib.suppress(NotTried):
                self.context.site.remove_probes(self.context.env)

    def _post(self, path: str) -> PageResponse:
        return self.visitor.post(path, {TOKEN: self.token})


@contextlib.contextmanager
def new_rows(context: Context, count: int = 1) -> Iterator[tuple[Writer, list[Row]]]:
    """New rows of the check's own, removed again however the block ends."""
    require_rows(context)
    writer = Writer(context)
    rows: list[Row] = []
    try:
        for _ in range(count):
            rows.append(writer.make())
        yield writer, rows
    except (BadResponse, OSError):
        # The response may be lost although the row was made.
        writer.lost = writer.lost or len(rows) < count
        raise
    finally:
        writer.remove(rows)


def _row(response: PageResponse) -> Row:
    fields = _json(response)
    try:
        return Row(**fields)
    except TypeError as error:
        raise BadResponse(f"{response.sent}: {error}") from None


def _json(response: PageResponse) -> dict[str, Any]:
    if response.status != 200:
        raise BadResponse(f"{response.sent}: status {response.status}, not 200")
    content = json.loads(response.body)
    if not isinstance(content, dict):
        raise BadResponse(f"{response.sent}: not a JSON object")
    return content


@dataclass(frozen=True)
class PageAfterWrite:
    """Expectations of an anonymous visitor at `path`, after a write."""

    path: str
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    status: int = 200

    def met(self, response: PageResponse) -> bool:
        return self._compared(response) is None

    def wrong(self, response: PageResponse, when: str) -> Mismatch:
        expected, got = self._compared(response) or ("", "")
        return response.wrong(expected, got, f"GET {self.path} {when}")

    def _compared(self, response: PageResponse) -> tuple[str, str] | None:
        gone = lacks(*self.unwanted, what="nothing from before the write")
        return wrong_of(response, (status(self.status), has(*self.wanted), gone))


def expected_pages(context: Context, row: Row, old: Row | None) -> list[PageAfterWrite]:
    """The expected pages about a row; `old` is the row before the write."""
    site = context.site
    gone = _gone(row, old)
    renamed = None
    if old and old.name != row.name:
        renamed = row.name
    there = 200
    if not row.name:
        there = 404
    rights = [
        PageAfterWrite(site.url("home"), words(row.totals, row.title, renamed), gone),
        PageAfterWrite(site.url("posts"), words(row.title, row.title and row.name), gone),
        PageAfterWrite(site.url("comments", "posts"), words(row.title, row.comment), gone),
        PageAfterWrite(site.url("authors"), words(row.name), gone),
        PageAfterWrite(row.author_page, words(row.name, row.title, row.name and row.posts), gone, there),
    ]
    if post := row.post_page or (old and old.post_page):
        if row.title:
            rights.append(PageAfterWrite(post, words(row.title, row.comment, row.name, row.comments), gone))
        else:
            rights.append(PageAfterWrite(post, (), gone, 404))
    return rights


def _gone(row: Row, old: Row | None) -> tuple[str, ...]:
    """Texts that no page may show any more, or at all."""
    if old is None:
        return tuple(row.never)
    gone = []
    if row.title != old.title:
        gone.append(old.title)
    if row.name != old.name:
        gone.append(old.name)
    if row.comment is None:
        gone.append(old.comment)
    return (*words(*gone), *row.never)


def words(*texts: str | None) -> tuple[str, ...]:
    """The given texts without None."""
    return tuple(word for word in texts if word)


@dataclass
class PendingPage:
    """A page that must become right after a write, with a limit for staleness.

    done_s  seconds from the write to the first right page; None before
    """

    right: PageAfterWrite
    written: float
    bound_s: float
    what: str
    done_s: float | None = None
    stale: PageResponse | None = field(default=None, repr=False)

    def request(self, context: Context) -> None:
        """Request the page and note if it is right."""
        begun = time.monotonic()
        response = context.get(self.right.path)
        if self.right.met(response):
            # Without a wrong response before, it may have been right all along.
            self.done_s = 0.0
            if self.stale:
                self.done_s = begun - self.written
        else:
            self.stale = response

    @property
    def over(self) -> bool:
        """True if the page is right, or was requested and wrong at the end of its time: a busy machine may delay the
        only request."""
        late = time.monotonic() - self.written > self.bound_s + PAUSE_S
        return self.done_s is not None or (late and self.stale is not None)


def until(context: Context, path: str, is_right: Callable[[PageResponse], bool], deadline: float) -> PageResponse:
    """The first right response, or the one at the deadline (of time.monotonic)."""
    while True:
        response = context.get(path)
        if is_right(response) or time.monotonic() >= deadline:
            return response
        time.sleep(PAUSE_S)


def warm(context: Context, rights: Iterable[PageAfterWrite]) -> None:
    """Request the pages to get them cached."""
    for right in rights:
        context.get(right.path)


def waiting(context: Context, row: Row, old: Row | None, bound_s: float, what: str) -> list[PendingPage]:
    """The pages changed by a write, from now on."""
    now = time.monotonic()
    return [PendingPage(right, now, bound_s, what) for right in expected_pages(context, row, old)]


def settle(context: Context, waited: list[PendingPage], *, stale_until_expired: bool = False) -> list[PendingPage]:
    """Request the pages until each is right or its time is over, and once more to get them cached.

    stale_until_expired  processes with separate caches may serve a stale page after a new one, until the page expires
    """
    while True:
        while pending := [item for item in waited if not item.over]:
            for item in pending:
                item.request(context)
            if any(item.done_s is None for item in pending):
                time.sleep(PAUSE_S)
        for item in waited:
            if item.done_s is not None and not item.right.met(response := context.get(item.right.path)):
                item.done_s, item.stale = None, response
        if not stale_until_expired or all(item.over for item in waited):
            return waited
        time.sleep(PAUSE_S)


def wrong_pages(waited: Iterable[PendingPage]) -> Iterator[Finding]:
    """Findings for pages that did not become right, or did not stay right."""
    for item in waited:
        if item.done_s is None and item.stale is not None:
            yield item.right.wrong(item.stale, f"{item.bound_s:g} s after {item.what}")


def soon_right(context: Context, row: Row, old: Row, what: str, *more: PageAfterWrite) -> Iterator[Finding]:
    """Expect every page, and `more` pages, to show a write soon."""
    waited = waiting(context, row, old, INVALIDATED_S, what)
    waited += [PendingPage(right, time.monotonic(), INVALIDATED_S, what) for right in more]
    yield from wrong_pages(settle(context, waited))
