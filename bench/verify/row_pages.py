"""What the pages about a row must show an anonymous visitor after a write."""

from __future__ import annotations

from dataclasses import dataclass

from bench.verify.context import Context
from bench.verify.finding import Mismatch
from bench.verify.wire import Answer
from bench.verify.writer import Row


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
        missing, left = ", ".join(self.missing(answer)), ", ".join(self.left(answer))
        expected, got = f"GET {self.path} {when}: status {self.status}", f"status {answer.status}"
        if missing:
            expected, got = f"{expected} with {missing}", f"{got} without it"
        if left:
            expected, got = f"{expected} without {left}", f"{got} with {left}"
        return Mismatch(expected, got)


def expected_pages(context: Context, row: Row, old: Row | None) -> list[Right]:
    """What every page about a row must say now; `old` is the row before the write."""
    site = context.site
    gone = _gone(row, old)
    rights = [
        Right(site.url("home"), words(row.totals, row.title, _renamed(row, old)), gone),
        Right(site.url("posts"), words(row.title, row.name if row.title else None), gone),
        Right(site.url("comments", "posts"), words(row.title, row.comment), gone),
        Right(site.url("authors"), words(row.name), gone),
        Right(row.author_page, words(row.name, row.title, row.posts if row.name else None), gone, _status(row.name)),
    ]
    if post := row.post_page or (old and old.post_page):
        says = words(row.title, row.comment, row.name, row.comments) if row.title else ()
        rights.append(Right(post, says, gone, _status(row.title)))
    return rights


def _renamed(row: Row, old: Row | None) -> str | None:
    """The author's new name, if it is another one."""
    return row.name if old and old.name != row.name else None


def _gone(row: Row, old: Row | None) -> tuple[str, ...]:
    """What no page may show any more, and what no page may ever show."""
    if old is None:
        return tuple(row.never)
    names = words(*(was for was, now in ((old.title, row.title), (old.name, row.name)) if was != now))
    return (*names, *words(old.comment if row.comment is None else None), *row.never)


def _status(there: str | None) -> int:
    return 200 if there else 404


def words(*found: str | None) -> tuple[str, ...]:
    """Those that are there."""
    return tuple(word for word in found if word)
