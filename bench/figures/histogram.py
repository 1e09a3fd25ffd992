"""Latencies of many requests in HDR histograms: kept with each trial, merged over trials, read for percentiles.

Values are whole microseconds with three significant digits, up to an hour. A percentile of several trials is one of
their merged histogram: the mean of two 99th percentiles is no 99th percentile of anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from hdrh.histogram import HdrHistogram

LONGEST_US = 3_600_000_000
DIGITS = 3
# A percentile with fewer samples beyond it says more about those samples than about the server.
SAMPLES_BEYOND = 10


def new() -> HdrHistogram:
    """An empty histogram."""
    return HdrHistogram(1, LONGEST_US, DIGITS)


def of(counts: Iterable[tuple[int, int]]) -> HdrHistogram:
    """A histogram of pairs of microseconds and how many requests took them."""
    histogram = new()
    for value_us, count in counts:
        histogram.record_value(min(max(value_us, 1), LONGEST_US), count)
    return histogram


def encode(histogram: HdrHistogram) -> str:
    """The histogram as text for a record: compressed V2 in base64, which other HDR libraries read too."""
    return histogram.encode().decode("ascii")


def merged(encoded: Iterable[str | None]) -> HdrHistogram | None:
    """All trials' requests in one histogram; None when there is no trial, or one of them kept none."""
    total = None
    for text in encoded:
        if text is None:
            return None
        part = HdrHistogram.decode(text)
        total = total or new()
        total.add(part)
    return total


def percentile_ms(histogram: HdrHistogram | None, percent: float) -> float | None:
    """The percentile in milliseconds, or None when fewer than SAMPLES_BEYOND requests lie beyond it."""
    if histogram is None or not enough(histogram.total_count, percent):
        return None
    return histogram.get_value_at_percentile(percent) / 1000


def mean_ms(histogram: HdrHistogram | None) -> float | None:
    """The mean in milliseconds; None without requests."""
    if histogram is None or not histogram.total_count:
        return None
    return histogram.get_mean_value() / 1000


def max_ms(histogram: HdrHistogram | None) -> float | None:
    """The longest request in milliseconds, to three digits; None without requests."""
    if histogram is None or not histogram.total_count:
        return None
    return histogram.get_max_value() / 1000


def enough(count: int, percent: float) -> bool:
    """Whether at least SAMPLES_BEYOND of `count` requests lie beyond the percentile."""
    return round(count * (100 - percent) / 100, 6) >= SAMPLES_BEYOND
