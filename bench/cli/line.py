"""One line on the terminal that says how far the suite is; nothing where standard error is no terminal."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from bench.verify.suite import Check

CLEAR = "\r\x1b[K"


class Line:
    """Overwrites itself; cleared at the end of the `with`."""

    def __init__(self, what: str, stream: TextIO | None = None):
        self.what = what
        self.stream = stream or sys.stderr
        self.shown = self.stream.isatty()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.shown:
            self._write(CLEAR)

    def check(self, done: int, total: int, item: Check) -> None:
        """Say which check begins."""
        self.say(f"{done} of {total} checks, {item.group}: {item.name}")

    def say(self, words: str) -> None:
        if self.shown:
            width = shutil.get_terminal_size().columns - 1
            self._write(CLEAR + f"{self.what}: {words}"[:width])

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
