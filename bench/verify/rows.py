"""Writes to the running site, through its probes: an author with a post, made, changed and removed again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from bench.verify.browser import Browser
from bench.verify.outcome import NotAsked
from bench.verify.suite import Context
from bench.verify.wire import Answer, BadAnswer

MAKE = "/probe/rows/"
PROBES_OFF = "it needs the probes: start the site with BENCHAPP_PROBES=1"


@dataclass(frozen=True)
class Row:
    """What the site's pages must say of a probe's author, as the database has it.

    name            of the author; None when there is no author any more
    title, comment  of the author's post and its newest comment; None when there is no post
    posts, said     how many, in the words of the pages
    totals          the sentence of the home page that counts everything
    never           what was written and rolled back: no page may show it at any time
    """

    author: int
    name: str | None
    title: str | None
    comment: str | None
    posts: str
    said: str
    totals: str
    author_page: str
    post_page: str | None
    probe_page: str
    never: list[str]


class Writer:
    """A visitor who sends the probes' forms."""

    def __init__(self, context: Context):
        self.context = context
        self.browser = Browser(context.target)
        self.token = self.browser.token(context.site.url("login")) or ""
        self.removed: set[int] = set()

    def make(self) -> Row:
        """A new author with one post and one comment; raises NotAsked where the site has no probes."""
        answer = self._post(MAKE)
        if answer.status == 404:
            raise NotAsked(PROBES_OFF)
        return _row(MAKE, answer)

    def write(self, row: Row, what: str) -> Row:
        """Do `what` to the row, see probes/rows.py; the row as it is then."""
        path = f"{MAKE}{row.author}/{what}/"
        written = _row(path, self._post(path))
        if written.name is None:
            self.removed.add(row.author)
        return written

    def gate(self, row: Row, what: str) -> int:
        """`close`, `open` or only `look` at the gate of the row's gated page; how many renderings wait at it."""
        path = f"/probe/gate/{row.author}/{what}/"
        return int(_json(path, self._post(path))["waiting"])

    def _post(self, path: str) -> Answer:
        return self.browser.post(path, {"csrfmiddlewaretoken": self.token})


@contextlib.contextmanager
def made(context: Context, count: int = 1) -> Iterator[tuple[Writer, list[Row]]]:
    """So many rows that nobody else has, removed again however the block ends."""
    writer = Writer(context)
    rows: list[Row] = []
    try:
        for _ in range(count):
            rows.append(writer.make())
        yield writer, rows
    finally:
        _remove(writer, rows)


def _remove(writer: Writer, rows: list[Row]) -> None:
    """By the site that made them, whose layers are told of it; by the site's command when that is gone."""
    left = 0
    for row in rows:
        if row.author in writer.removed:
            continue
        try:
            writer.write(row, "remove")
        except (BadAnswer, OSError):
            left += 1
    if left:
        with contextlib.suppress(NotAsked):
            writer.context.site.remove_probes(writer.context.env)


def _row(path: str, answer: Answer) -> Row:
    found = _json(path, answer)
    try:
        return Row(**found)
    except TypeError as error:
        raise BadAnswer(f"POST {path}: {error}") from None


def _json(path: str, answer: Answer) -> dict:
    if answer.status != 200:
        raise BadAnswer(f"POST {path}: status {answer.status}, not 200")
    return json.loads(answer.body)
