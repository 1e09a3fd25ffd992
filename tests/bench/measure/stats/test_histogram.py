"""Histograms of latency: merged over trials, and silent with too few samples."""

from __future__ import annotations

import pytest

from bench.errors import BenchError
from bench.measure.stats import histogram


def test_percentiles_of_several_trials_come_from_all_their_requests():
    # One trial is quick and long, one slow and short: the mean of their percentiles would be 505 ms.
    quick = histogram.encode(histogram.from_counts([(10_000, 99_000)]))
    slow = histogram.encode(histogram.from_counts([(1_000_000, 500)]))
    both = histogram.merged([quick, slow])
    assert both.total_count == 99_500
    percentiles = [both.get_value_at_percentile(percent) for percent in (99, 99.9)]
    assert percentiles == pytest.approx([10_000, 1_000_000], rel=0.002)
    assert both.get_max_value() == pytest.approx(1_000_000, rel=0.002)


def test_a_percentile_needs_ten_samples_beyond_it():
    counts = ((999, 99), (1000, 99), (9_999, 99.9), (10_000, 99.9))
    assert [histogram.enough(count, percent) for count, percent in counts] == [False, True, False, True]


def test_a_trial_without_a_histogram_cannot_be_merged():
    encoded = histogram.encode(histogram.from_counts([(1000, 100)]))
    assert histogram.merged([encoded, None]) is None
    assert histogram.merged([]) is None
    for damaged in ("abc", "", encoded[:-8], "HISTFAAAAAAA"):
        with pytest.raises(BenchError, match="histogram of latencies cannot be read"):
            histogram.merged([damaged])


def test_a_value_out_of_range_counts_at_its_end():
    ends = histogram.from_counts([(0, 1), (10**12, 1)])
    assert ends.total_count == 2
    assert ends.get_max_value() == pytest.approx(histogram.MAX_US, rel=0.002)
