"""Histograms of latency: merged over trials, and silent where there are too few samples."""

from __future__ import annotations

import random

import pytest

from bench.figures import histogram


def test_percentiles_of_several_trials_come_from_all_their_requests():
    # One trial is quick and long, one slow and short: the mean of their percentiles would be 505 ms.
    quick = histogram.encode(histogram.of([(10_000, 99_000)]))
    slow = histogram.encode(histogram.of([(1_000_000, 500)]))
    both = histogram.merged([quick, slow])
    assert both.total_count == 99_500
    assert histogram.percentile_ms(both, 99) == pytest.approx(10, rel=0.002)
    assert histogram.percentile_ms(both, 99.9) == pytest.approx(1000, rel=0.002)
    assert both.get_max_value() == pytest.approx(1_000_000, rel=0.002)
    assert histogram.mean_ms(both) == pytest.approx(10 + 990 * 500 / 99_500, rel=0.002)


def test_the_mean_is_that_of_the_library():
    draw = random.Random(1)
    for largest in (90, 50_000, histogram.MAX_US):
        found = histogram.of((draw.randint(1, largest), draw.randint(1, 9)) for _ in range(300))
        assert histogram.mean_ms(found) == found.get_mean_value() / 1000


def test_a_percentile_needs_ten_samples_beyond_it():
    assert histogram.percentile_ms(histogram.of([(1000, 999)]), 99) is None
    assert histogram.percentile_ms(histogram.of([(1000, 1000)]), 99) == pytest.approx(1, rel=0.002)
    assert histogram.percentile_ms(histogram.of([(1000, 9_999)]), 99.9) is None
    assert histogram.percentile_ms(histogram.of([(1000, 10_000)]), 99.9) is not None


def test_a_trial_without_a_histogram_cannot_be_merged():
    encoded = histogram.encode(histogram.of([(1000, 100)]))
    assert histogram.merged([encoded, None]) is None
    assert histogram.merged([]) is None
    assert histogram.percentile_ms(None, 50) is histogram.mean_ms(None) is None


def test_a_value_out_of_range_counts_at_its_end():
    ends = histogram.of([(0, 1), (10**12, 1)])
    assert ends.total_count == 2
    assert ends.get_max_value() == pytest.approx(histogram.MAX_US, rel=0.002)
