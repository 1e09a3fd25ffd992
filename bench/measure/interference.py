"""Interference by other processes, before and during the load; also checks pages during it."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from bench.machine import http
from bench.machine.processes import Interference

# A page with a token differs in at most so many bytes from request to request, and never in length.
MAX_UNLIKE_BYTES = 256
# Seconds between two checked pages.
INTERVAL_S = 1.0
# Seconds for which the other processes of the machine are observed, and how many of them are named.
LOOK_S = 1.0
MAX_NAMED = 3
MIN_NAMED = 0.02


class Bodies(threading.Thread):
    """Fetches a page of the workload at intervals and compares it with the page before the load.

    get      fetches the page at a path; raises VisitError
    checked  pages fetched
    wrong    the first thing that was wrong, or empty
    """

    def __init__(self, get: Callable[[str], bytes], expected: Mapping[str, bytes], interval_s: float = INTERVAL_S):
        super().__init__(name="bodies", daemon=True)
        self._get = get
        self._expected = dict(expected)
        self._interval_s = interval_s
        self._end = threading.Event()
        self._order = random.Random(len(self._expected))
        self.checked = 0
        self.wrong = ""

    def run(self) -> None:
        """Check pages until `stop`."""
        while not self._end.wait(self._interval_s):
            self._look(self._order.choice(list(self._expected)))

    def stop(self) -> None:
        """Wait for the page under way and end."""
        self._end.set()
        if self.is_alive():
            self.join()

    def _look(self, path: str) -> None:
        try:
            found = self._get(path)
        except http.VisitError as error:
            self.wrong = self.wrong or str(error)
            return
        self.checked += 1
        self.wrong = self.wrong or unlike(path, self._expected[path], found)


def unlike(path: str, expected: bytes, found: bytes) -> str:
    """What is wrong with a body, or empty when it is the page it was before."""
    if len(found) != len(expected):
        return f"GET {path}: {len(found):,} bytes, not {len(expected):,}"
    if found == expected or sum(a != b for a, b in zip(found, expected, strict=True)) <= MAX_UNLIKE_BYTES:
        return ""
    return f"GET {path}: another page of the same size"


@dataclass(frozen=True)
class MachineLoad:
    """What other processes take of the machine now.

    share  of all cores; None when the machine does not report it
    words  that share, and the busiest processes that can be seen
    """

    share: float | None
    words: str

    @classmethod
    def of(cls, share: float | None, others: Mapping[tuple[int, str], float]) -> MachineLoad:
        """From the share of all others, and that of every process that can be seen, by number and name."""
        busiest = sorted(others.items(), key=lambda item: -item[1])[:MAX_NAMED]
        named = [f"{name}, process {pid}: {part:.0%}" for (pid, name), part in busiest if part >= MIN_NAMED]
        words = f"other processes take {share or 0:.0%} of this machine"
        return cls(share, f"{words} ({'; '.join(named) or 'none that can be seen from here'})")


def machine_load(seconds: float = LOOK_S) -> MachineLoad:
    """Observe the processes of others, without this process and its children, for some seconds."""
    interference, before, began = Interference(), _processes(), time.monotonic()
    time.sleep(seconds)
    after, elapsed = _processes(), time.monotonic() - began
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    taken = {key: after[key] - before[key] for key in after.keys() & before.keys()}
    share = interference.share([sum(used for (pid, _), used in taken.items() if pid in ours)])
    others = {key: used for key, used in taken.items() if key[0] not in ours}
    return MachineLoad.of(share, {key: used / elapsed / (psutil.cpu_count() or 1) for key, used in others.items()})


def _processes() -> dict[tuple[int, str], float]:
    """CPU seconds of every process that can be seen, by number and name."""
    found = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        if times := process.info["cpu_times"]:
            found[process.pid, process.info["name"]] = times.user + times.system
    return found
