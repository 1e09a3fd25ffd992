"""The one printer of progress: permanent lines and, on a terminal, a live line below.

Every command uses the printer: `run` writes to stdout, `verify` shows its checks on stderr. Without a terminal, only
the permanent lines are written, as plain text.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.live import Live
from rich.text import Text

# Afterwards, an unchanged live line shows the elapsed time.
SILENT_S = 2.0
REFRESHES_PER_S = 1.0


class Outcomes(RegexHighlighter):
    """Colours the words for outcomes, and makes headings bold."""

    highlights = [
        r"(?m)^(?P<bold>[A-Z]{4}[A-Z ]*)\b",
        r"\b(?P<red>FAIL|failed|LOW)\b",
        r"\b(?P<yellow>discarded|MEDIUM|not rated|known limitation)\b",
        r"(?m)^(?P<yellow>warning|note|skipped|skip)\b",
        r"\b(?P<green>HIGH|yes|passed)\b",
        r"(?m)^(?P<green>ok)\b",
    ]


class Printer:
    """Writes to `stream`, stdout by default. As a context manager, removes the live line at the end.

    prefix  begins every live line: `with Printer(sys.stderr, "STACK: ") as printer: printer.show("3 of 40")`
    """

    def __init__(self, stream: TextIO | None = None, prefix: str = ""):
        stream = stream or sys.stdout
        # Only the stream decides: FORCE_COLOR and the like put no control codes into a file.
        self._console = Console(file=stream, force_terminal=stream.isatty(), highlighter=Outcomes())
        self._prefix = prefix
        self._words = ""
        self._since = 0.0
        self._live: Live | None = None

    def __enter__(self) -> Printer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.clear()

    @property
    def width(self) -> int:
        """The columns of the terminal, 80 without one."""
        return self._console.width

    def say(self, line: str) -> None:
        """Write a permanent line in place of the live one."""
        self.clear()
        self.above(line)

    def above(self, line: str) -> None:
        """Write a permanent line above the live line."""
        self._console.out(line)

    def show(self, words: str) -> None:
        """Replace the live line, cut to the terminal's width; empty words remove it. Does nothing without a terminal.

        After SILENT_S the line also shows the elapsed time.
        """
        if not words:
            self.clear()
            return
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            return
        self._words, self._since = words, time.monotonic()
        if self._live is None:
            self._live = Live(
                console=self._console,
                transient=True,
                get_renderable=self._line,
                refresh_per_second=REFRESHES_PER_S,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
            _shown.append(self)
        self._live.refresh()

    def clear(self) -> None:
        """Remove the live line."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
            _shown.remove(self)

    def _line(self) -> Text:
        seconds = time.monotonic() - self._since
        lasting = ""
        if seconds >= SILENT_S:
            lasting = f", {seconds:.0f} s"
        return Text(f"{self._prefix}{self._words}{lasting}", no_wrap=True, overflow="ellipsis")


# Those with a live line.
_shown: list[Printer] = []


def say(line: str) -> None:
    """Print one line on stdout, for commands without a live line."""
    Printer().say(line)


def aside(line: str) -> None:
    """Write a line on stderr, from any thread and module; on a terminal above the live line.

    A line written past the printer would go on at the end of the live line.
    """
    # Another thread may remove its live line meanwhile.
    latest = _shown[-1:]
    if latest and sys.stderr.isatty():
        latest[0].above(line)
    else:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def working(words: str) -> Iterator[None]:
    """Show these words as the live line on stderr during the block."""
    with Printer(sys.stderr) as printer:
        printer.show(words)
        yield
