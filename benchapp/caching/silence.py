"""Whoever has not answered in time is not asked again for a moment, so that a page waits for a hung service once."""

from __future__ import annotations

import time

SILENT_S = 1.0


class Silence:
    """The moment after a service has not answered in time; threads may share it."""

    def __init__(self) -> None:
        self._until = 0.0

    def begin(self) -> None:
        """The service has not answered in time."""
        self._until = time.monotonic() + SILENT_S

    @property
    def lasts(self) -> bool:
        """Whether the service is left alone now."""
        return time.monotonic() < self._until
