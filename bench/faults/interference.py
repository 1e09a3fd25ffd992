"""The CPU time that other processes took while a fault was watched, whichever of ours died meanwhile."""

from __future__ import annotations

import contextlib
import time

import psutil


class OwnShare:
    """What the machine used since it was made, beside this process with all its descendants, dead ones too."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy_s, self._own_s = _busy_s(), _own_s()

    def of_others(self) -> float:
        """Share of all cores that other processes took."""
        elapsed = (time.monotonic() - self._began) * (psutil.cpu_count() or 1)
        others = (_busy_s() - self._busy_s) - (_own_s() - self._own_s)
        return round(min(1.0, max(0.0, others / elapsed)), 4)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(times.user + getattr(times, "nice", 0.0) + times.system + getattr(times, "steal", 0.0))


def _own_s() -> float:
    """CPU seconds of this process and its descendants; each has that of its own ended children."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total
