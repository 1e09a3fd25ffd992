"""Medians, ranges, ratios and verdicts: what a difference is called."""

from __future__ import annotations

import pytest

from bench import stats
from bench.stats import Spread, spread


def test_a_spread_is_the_median_with_the_lowest_and_highest_round():
    assert spread([30.0, 10.0, 20.0]) == Spread(20.0, 10.0, 30.0, 3)
    assert spread([10.0, 20.0]) == Spread(15.0, 10.0, 20.0, 2)


def test_what_was_not_measured_is_left_out_and_nothing_measured_is_none():
    assert spread([None, 5.0, float("nan")]) == Spread(5.0, 5.0, 5.0, 1)
    assert spread([None]) is None
    assert spread([]) is None


@pytest.mark.parametrize(("low", "median", "high", "count"), [(2, 1, 3, 3), (1, 4, 3, 3), (1, 2, 3, 0)])
def test_an_impossible_spread_is_refused(low, median, high, count):
    with pytest.raises(ValueError, match="not a spread"):
        Spread(median, low, high, count)


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (90, 9), (99, 10), (100, 10), (1, 1)])
def test_a_percentile_is_a_value_that_was_measured(percent, expected):
    assert stats.percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], percent) == expected


def test_a_percentile_of_nothing_or_outside_its_bounds_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        stats.percentile([], 50)
    with pytest.raises(ValueError, match="not at 0"):
        stats.percentile([1], 0)


def test_ratios_pair_equal_rounds():
    # The machine was twice as slow in round 2 for both: the ratio does not see it.
    assert stats.paired_ratio({1: 100.0, 2: 50.0}, {1: 10.0, 2: 5.0}) == Spread(10.0, 10.0, 10.0, 2)


def test_ratios_leave_out_rounds_that_one_side_lacks_or_that_are_zero():
    assert stats.paired_ratio({1: 100.0, 2: 50.0}, {1: 0.0, 2: 5.0, 3: 7.0}) == Spread(10.0, 10.0, 10.0, 1)
    assert stats.paired_ratio({1: 100.0}, {2: 10.0}) is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([1, 2, 3], [4, 5, 6], "faster"),
        ([4, 5, 6], [1, 2, 3], "slower"),
        ([1, 2, 3], [3, 4, 5], "inconclusive"),
        ([1, 2, 3], [1, 2, 3], "inconclusive"),
        ([1], [100], "inconclusive"),
        ([1, 2, 3], [100], "inconclusive"),
    ],
)
def test_a_verdict_needs_ranges_that_lie_apart(before, after, expected):
    assert stats.verdict(spread(before), spread(after)) == expected


def test_the_chance_that_equal_things_look_unlike():
    assert stats.chance_of_separation(3) == pytest.approx(1 / 10)
    assert stats.chance_of_separation(5) == pytest.approx(1 / 126)
    with pytest.raises(ValueError, match="at least one round"):
        stats.chance_of_separation(0)
