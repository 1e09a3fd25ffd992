"""The log of an open loop's requests, for those who ask what each visitor saw."""

from __future__ import annotations

import re
from typing import Any

from bench.load.openloop.connection import Connection


class VisitLog:
    """Notes each request when it has ended, as bench.load.visits.Visit reads it.

    mark  a regular expression: what its groups find in a body is what the page said
    """

    def __init__(self, mark: str):
        self._mark = re.compile(mark.encode(), re.DOTALL)
        self.visits: list[list[Any]] = []

    def ended(self, connection: Connection, now: float, failure: str = "") -> None:
        """A request was answered, or failed."""
        answer = connection.answer
        found = None if failure else self._mark.search(b"".join(answer.pieces or ()))
        said = [group.decode("utf-8", "replace") for group in found.groups()] if found else []
        status = 0 if failure else answer.status
        self._add(connection.since, connection.left, now, connection.page, not connection.fresh)
        self.visits[-1] += [connection.again, status, failure, answer.size, said]

    def unsent(self, page: int, due: float, now: float, failure: str, again: int = 0) -> None:
        """A request found no connection."""
        self._add(due, now, now, page, False)
        self.visits[-1] += [again, 0, failure, 0, []]

    def _add(self, due: float, left: float, end: float, page: int, kept: bool) -> None:
        self.visits.append([round(due, 6), round(left, 6), round(end, 6), page, kept])
