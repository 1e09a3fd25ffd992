"""A visitor who asks for a page and at once for the static file that it names, as a browser does."""

from __future__ import annotations

import threading

from bench.faults.visitors import said
from bench.machine import http

INTERVAL_S = 0.2


class Follower(threading.Thread):
    """Asks from the start to the end of the block.

    pages    how many it has seen
    missing  how many of their static files were not there (4xx); other failures are not of the file
    """

    def __init__(self, url: str, path: str, interval_s: float = INTERVAL_S):
        super().__init__(name="follower", daemon=True)
        self.pages = self.missing = 0
        self._url, self._path, self._interval_s = url, path, interval_s
        self._over = threading.Event()

    def __enter__(self) -> Follower:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        """Ask until the end of the block."""
        while not self._over.wait(self._interval_s):
            self._look()

    def _look(self) -> None:
        try:
            found = said(http.get(self._url, self._path).decode())
        except (http.VisitError, UnicodeDecodeError):
            # What fails is counted by the other visitors.
            return
        if found:
            self.pages += 1
            status = http.status(self._url, found[-1])
            self.missing += status is not None and 400 <= status < 500
