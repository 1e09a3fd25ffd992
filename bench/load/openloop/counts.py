"""The counts of one process of the load tool, and the sum over several."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bench.figures import histogram

SUMS = ("answers", "due", "dropped", "bytes", "connect", "read", "timeout", "resized", "opened")


@dataclass
class Counts:
    """Counts of one process.

    seconds                 from the start to the end, or to the last answer when that came later
    answers                 whole answers, whatever their status
    due, dropped            requests that an open loop had to send, and those it did not send
    bytes                   received
    connect, read, timeout  requests that failed: no connection, a broken one, no answer in time
    resized                 answers whose length differs from the first one to the same path
    opened                  connections made
    thirds                  answers in the first, second and last third of the load
    latency, delay          microseconds -> requests; `delay` is how late a request of an open loop left
    visits                  the log of the requests, where one is asked for (bench.load.openloop.visits)
    """

    seconds: float = 0.0
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
    statuses: Counter[int] = field(default_factory=Counter)
    latency: Counter[int] = field(default_factory=Counter)
    delay: Counter[int] = field(default_factory=Counter)
    visits: list[list[Any]] = field(default_factory=list)

    def packed(self) -> dict[str, Any]:
        """As JSON can hold it, the latencies as HDR histograms."""
        return vars(self) | {
            "max_us": max(self.latency, default=0),
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "latency": histogram.encode(histogram.of(self.latency.items())),
            "delay": histogram.encode(histogram.of(self.delay.items())),
        }


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The sum of the packed counts of several processes."""
    statuses: Counter[str] = Counter()
    for part in parts:
        statuses.update(part["statuses"])
    total = {name: sum(part[name] for part in parts) for name in SUMS}
    for name in ("latency", "delay"):
        merged = histogram.merged([part[name] for part in parts])
        total[name] = histogram.encode(merged or histogram.new())
    return total | {
        "seconds": max(part["seconds"] for part in parts),
        "max_us": max(part["max_us"] for part in parts),
        "visits": [visit for part in parts for visit in part["visits"]],
        "thirds": [sum(counts) for counts in zip(*(part["thirds"] for part in parts), strict=True)],
        "statuses": dict(sorted(statuses.items())),
    }
