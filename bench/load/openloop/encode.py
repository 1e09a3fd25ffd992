"""The counts as the load tool prints them: with HDR histograms, which other programs read, too."""

from __future__ import annotations

from typing import Any

from bench.stats import histogram


def encoded(total: dict[str, Any]) -> dict[str, Any]:
    """The counts of `together`, each counter of microseconds as a histogram."""
    histograms = {
        name: histogram.encode(histogram.of((int(value), count) for value, count in total[name].items()))
        for name in ("latency", "delay")
    }
    return total | histograms | {"max_us": max(map(int, total["latency"]), default=0)}
