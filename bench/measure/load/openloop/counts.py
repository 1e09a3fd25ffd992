"""The counts of one process of the load tool, and the sum over several, on one machine or on more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

COUNTERS = ("statuses", "latency", "delay")
LONGEST = ("seconds", "late_s")
# Equal parts of the load in which latencies are added up.
SLICES = 10
# A page with a token, or with a text by chance, differs in at most so many bytes from request to request.
VARYING_BYTES = 256


@dataclass
class Counts:
    """Counts of one process.

    seconds                 from the start to the end, or to the last response if later
    late_s                  seconds until the process was ready
    answers                 complete responses, whatever their status
    due, dropped            requests planned by an open loop, and requests not sent
    bytes                   received
    connect, read, timeout  requests that failed: no connection, a broken one, no response in time
    resized                 responses longer or shorter than the first for the same path by more than VARYING_BYTES
    opened                  opened connections
    thirds                  responses in the first, second and last third of the load
    slice_answers           responses in each of SLICES equal parts of the load
    slice_us                total microseconds of these responses
    latency, delay          microseconds -> requests; `delay` is the delay of sending in an open loop
    visits                  the log of the requests, if requested (bench.measure.load.visits)
    """

    seconds: float = 0.0
    late_s: float = 0.0
    answers: int = 0
    due: int = 0
    dropped: int = 0
    bytes: int = 0
    connect: int = 0
    read: int = 0
    timeout: int = 0
    resized: int = 0
    opened: int = 0
    thirds: list[int] = field(default_factory=lambda: [0, 0, 0])
    slice_answers: list[int] = field(default_factory=lambda: [0] * SLICES)
    slice_us: list[int] = field(default_factory=lambda: [0] * SLICES)
    statuses: Counter[int] = field(default_factory=Counter)
    latency: Counter[int] = field(default_factory=Counter)
    delay: Counter[int] = field(default_factory=Counter)
    visits: list[list[Any]] = field(default_factory=list)

    def note(self, latency_us: int, at: float) -> None:
        """Count the latency of a response at this share of the load, 1 and more after the end of the load."""
        self.latency[latency_us] += 1
        if at < 1:
            self.thirds[int(at * 3)] += 1
            part = int(at * SLICES)
            self.slice_answers[part] += 1
            self.slice_us[part] += latency_us

    def packed(self) -> dict[str, Any]:
        """The counts in types of JSON."""
        packed = dict(vars(self))
        for name in COUNTERS:
            packed[name] = {str(key): n for key, n in packed[name].items()}
        return packed


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The sum of the packed counts of several processes."""
    total: dict[str, Any] = {}
    for name, first in parts[0].items():
        values = [part[name] for part in parts]
        if name in LONGEST:
            total[name] = max(values)
        elif name == "visits":
            total[name] = list(chain.from_iterable(values))
        elif name in COUNTERS:
            counts = Counter[str]()
            for counter in values:
                counts.update(counter)
            total[name] = {key: counts[key] for key in sorted(counts, key=int)}
        elif isinstance(first, list):
            total[name] = [sum(counts) for counts in zip(*values, strict=True)]
        else:
            total[name] = sum(values)
    return total
