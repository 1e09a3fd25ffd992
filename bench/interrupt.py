"""Ctrl-C and SIGTERM as one exception, raised once, and not while a deployment is shut down."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Stop after a signal; not an Exception, so that no handler treats it as a failure."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number

    @property
    def name(self) -> str:
        """SIGINT, SIGTERM or SIGHUP."""
        return signal.Signals(self.number).name

    @property
    def exit_status(self) -> int:
        """Exit status of a program ended by the signal, by convention of shells: 130 or 143."""
        return 128 + self.number


class Interrupts:
    """While the context lasts, the first signal raises Stopped in the main thread; later ones do nothing.

    A failing clean-up replaces Stopped by its own exception: `again` raises Stopped once more.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._raised = False
        self._deferred = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred_at_end(self) -> Iterator[None]:
        """From the end of the block on, defer signals until the end of the block of `released_at_end`."""
        try:
            yield
        finally:
            self._deferred = True

    @contextmanager
    def released_at_end(self) -> Iterator[None]:
        """At the end of the block, raise Stopped for a signal that was deferred or came before."""
        try:
            yield
        finally:
            self._deferred = False
            self.again()

    def again(self) -> None:
        """Raise Stopped once more when a signal has come."""
        self._raised = False
        self._raise()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._first = self._first or number
        self._raise()

    def _raise(self) -> None:
        if self._first and not self._deferred and not self._raised:
            self._raised = True
            raise Stopped(self._first)
