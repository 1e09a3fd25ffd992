"""Requests in the access log of the front, by web host. Also runs on the front: standard library only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

# The last field of a line, quoted: the addresses of requested applications, one after another.
UPSTREAM = re.compile(rb'"([^"]*)"$')
ADDRESS = re.compile(rb"([0-9.]+):[0-9]+$")


def by_address(lines: Iterable[bytes]) -> dict[str, int] | None:
    """Number of requests by application; None for a log without addresses."""
    counts: Counter[str] = Counter()
    names_addresses = False
    for line in lines:
        field = UPSTREAM.search(line.rstrip())
        names_addresses = names_addresses or field is not None
        # Of several, the last one responded.
        address = None
        if field:
            address = ADDRESS.search(field[1])
        if address:
            counts[address[1].decode()] += 1
    if not names_addresses:
        return None
    return dict(counts)


class NewLines:
    """New lines of a log, after creation."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._first = self._state()

    def _state(self) -> tuple[int, int] | None:
        """Identity and size of the file."""
        try:
            state = self._path.stat()
        except OSError:
            return None
        return state.st_ino, state.st_size

    def by_address(self) -> dict[str, int] | None:
        """Number of requests by application; None without addresses, or if the log was rotated meanwhile."""
        first, now = self._first, self._state()
        if first is None or now is None or now[0] != first[0] or now[1] < first[1]:
            return None
        with self._path.open("rb") as log:
            log.seek(first[1])
            return by_address(log)
