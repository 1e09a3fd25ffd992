"""One rendering for many: of those who ask for a page that is not kept, one renders it and the others wait for it.

Whoever adds a mark for the page first has the turn. The others look again and again until the page is there, and
render it themselves when that takes too long, so that a holder that dies delays nobody for ever. A page that turns
out not to be for keeping leaves another mark: nobody waits for such pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

WAIT_S = 5  # the longest that somebody waits for another's rendering
HOLD_S = 10  # a mark whose holder has died is gone after this time
ALONE_S = 10  # for so long nobody waits for a page that was not for keeping
LOOK_AGAIN_S = 0.01
MARKS_MISSED = 3

BUSY, ALONE = "busy", "alone"

Page = TypeVar("Page")


class Marks(Protocol):
    """Small texts that all workers share and that go by themselves; one that cannot be reached holds none."""

    def add(self, key: str, value: str, seconds: int) -> bool:
        """Keep a text unless there is one; whether it was kept."""

    def get(self, key: str) -> str | None:
        """The text, or None."""

    def set(self, key: str, value: str, seconds: int) -> object:
        """Keep a text in any case."""

    def delete(self, key: str) -> object:
        """Forget a text."""


@dataclass
class Turn:
    """The right to render a page while others wait; to be ended in any case."""

    marks: Marks
    key: str

    def end(self, kept: bool) -> None:
        """Let the others go on: the page is kept for them, or it is not for keeping."""
        if kept:
            self.marks.delete(self.key)
        else:
            self.marks.set(self.key, ALONE, ALONE_S)


def wait_or_take(marks: Marks, key: str, kept_page: Callable[[], Page | None]) -> tuple[Page | None, Turn | None]:
    """The page that another has rendered meanwhile, or the turn to render it; neither: render it, nobody waits."""
    deadline = time.monotonic() + WAIT_S
    without_mark = 0
    while True:
        if marks.add(key, BUSY, HOLD_S):
            turn = Turn(marks, key)
            # Between the caller's look and this turn another's may have ended.
            if (page := kept_page()) is None:
                return None, turn
            turn.end(kept=True)
            return page, None
        mark = marks.get(key)
        if mark == ALONE:
            return None, None
        if (page := kept_page()) is not None:
            return page, None
        without_mark += mark is None
        # Neither added nor there, again and again: the marks cannot be reached, or there is no room for them.
        if without_mark > MARKS_MISSED or time.monotonic() > deadline:
            return None, None
        # A mark that has just gone can be had now.
        if mark is not None:
            time.sleep(LOOK_AGAIN_S)
