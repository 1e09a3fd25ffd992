"""Write to the running site through its probes: make, change and remove an author with a post."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.verify.browser import Browser
from bench.verify.context import Context
from bench.verify.finding import NEEDS_PROBES, NEEDS_ROWS, NotTried
from bench.verify.wire import Answer, BadAnswer

ROWS = "/__probe__/rows/"
FILL = "/__probe__/fill/"


@dataclass(frozen=True)
class Row:
    """The texts that the site's pages must show about a probe's author, from the database.

    name             the author's name; None when the author is gone
    title, comment   of the author's post and its newest comment; None when the post is gone
    posts, comments  how many posts and comments, as the pages say it
    totals           the sentence on the home page that counts everything
    never            texts that were written and rolled back: no page may ever show them
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
    """Raise NotTried where no probe knows how to write the project's rows."""
    if not context.site.has_rows:
        raise NotTried(NEEDS_ROWS)


class Writer:
    """A visitor who sends the probes' forms."""

    def __init__(self, context: Context):
        self.context = context
        self.browser = Browser(context.target)
        self.token = self.browser.token(context.site.url("login")) or ""
        self.removed: set[int] = set()

    def make(self) -> Row:
        """A new author with one post and one comment; raises NotTried where the site has no probes."""
        answer = self._post(ROWS)
        if answer.status == 404:
            raise NotTried(NEEDS_PROBES)
        return _row(ROWS, answer)

    def write(self, row: Row, what: str) -> Row:
        """Do `what` to the row, see bench/inside/site/rows.py; returns the row as it is then."""
        path = f"{ROWS}{row.author}/{what}/"
        written = _row(path, self._post(path))
        if written.name is None:
            self.removed.add(row.author)
        return written

    def write_by_command(self, row: Row, what: str) -> Row:
        """The same in a process of its own, which ends before this returns; raises BenchError when it fails."""
        return Row(**self.context.site.write_row(row.author, what, self.context.env))

    def gate(self, row: Row, what: str) -> int:
        """`close`, `open` or `look` at the gate of the row's gated page; how many renderings wait at it."""
        path = f"/__probe__/gate/{row.author}/{what}/"
        return int(_json(path, self._post(path))["waiting"])

    def fill(self) -> None:
        """Fill the site's caches with entries of other names; raises BadAnswer when that fails."""
        _json(FILL, self._post(FILL))

    def _post(self, path: str) -> Answer:
        return self.browser.post(path, {"csrfmiddlewaretoken": self.token})


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
    finally:
        _remove(writer, rows)


def _remove(writer: Writer, rows: list[Row]) -> None:
    """Delete via the site so that its layers are invalidated; fall back to manage.py removeprobes."""
    left = 0
    for row in rows:
        if row.author in writer.removed:
            continue
        try:
            writer.write(row, "remove")
        except (BadAnswer, OSError):
            left += 1
    if left:
        with contextlib.suppress(NotTried):
            writer.context.site.remove_probes(writer.context.env)


def _row(path: str, answer: Answer) -> Row:
    found = _json(path, answer)
    try:
        return Row(**found)
    except TypeError as error:
        raise BadAnswer(f"POST {path}: {error}") from None


def _json(path: str, answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        raise BadAnswer(f"POST {path}: status {answer.status}, not 200")
    found = json.loads(answer.body)
    if not isinstance(found, dict):
        raise BadAnswer(f"POST {path}: not a JSON object")
    return found
