"""Latencies in HDR histograms: one per trial, merged over trials, read as percentiles.

Values are whole microseconds with three significant digits, up to an hour. The percentile of several trials comes from
their merged histogram: the mean of two 99th percentiles is not a 99th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hdrh.histogram import HdrHistogram

from bench.errors import BenchError

MAX_US = 3_600_000_000
DIGITS = 3
# With fewer samples beyond it, a percentile describes these samples and not the server.
MIN_SAMPLES_BEYOND = 10


def new() -> HdrHistogram:
    """An empty histogram."""
    return HdrHistogram(1, MAX_US, DIGITS)


def from_counts(counts: Iterable[tuple[int, int]]) -> HdrHistogram:
    """A histogram from pairs of microseconds and number of requests."""
    histogram = new()
    for value_us, count in counts:
        histogram.record_value(min(max(value_us, 1), MAX_US), count)
    return histogram


def encode(histogram: HdrHistogram) -> str:
    """The histogram as text for a record: compressed V2 in base64, readable by other HDR libraries."""
    return str(histogram.encode().decode("ascii"))


def merged(encoded: Iterable[str | None]) -> HdrHistogram | None:
    """The requests of all trials in one histogram; None without trials, or when a trial has no histogram."""
    total = None
    for text in encoded:
        if text is None:
            return None
        try:
            part = HdrHistogram.decode(text)
        except Exception:  # its own kinds, and those of base64, zlib and struct
            raise BenchError("a trial's histogram of latencies cannot be read; measure again") from None
        total = total or new()
        total.add(part)
    return total


def percentile_ms(histogram: HdrHistogram, percent: float) -> float:
    """A percentile in milliseconds."""
    return float(histogram.get_value_at_percentile(percent) / 1000)


def needed(percent: float) -> int:
    """Number of requests needed for MIN_SAMPLES_BEYOND beyond the percentile: 1,000 for the 99th."""
    return math.ceil(round(MIN_SAMPLES_BEYOND * 100 / (100 - percent), 6))


def enough(count: int, percent: float) -> bool:
    """True if at least MIN_SAMPLES_BEYOND of `count` requests lie beyond the percentile."""
    return count >= needed(percent)
