"""Medians of rounds and their intervals."""

from __future__ import annotations

import random
import statistics

import pytest

from bench.figures import stats
from bench.figures.stats import Estimate, estimate


def test_a_spread_is_the_median_with_the_lowest_and_highest_round():
    assert estimate([30.0, 10.0, 20.0]) == Estimate(20.0, 10.0, 30.0, 3)
    assert estimate([10.0, 20.0]) == Estimate(15.0, 10.0, 20.0, 2)


def test_the_interval_of_many_rounds_is_the_bootstraps():
    values = [random.Random(number).gauss(100, 5) for number in range(9)]
    draw = random.Random(1)
    drawn = sorted(statistics.median(draw.choices(values, k=9)) for _ in range(4000))
    found = estimate(values)
    assert (found.low, found.high) == (drawn[100], drawn[3900])
    assert min(values) < found.low < found.median < found.high < max(values)


@pytest.mark.parametrize("rounds", range(1, 13))
def test_the_medians_of_all_resamples_are_certain(rounds):
    assert sum(chance for _, chance in stats._medians_of_resamples(range(rounds))) == pytest.approx(1)


def test_what_was_not_measured_is_left_out_and_nothing_measured_is_none():
    assert estimate([None, 5.0, float("nan")]) == Estimate(5.0, 5.0, 5.0, 1)
    assert estimate([None]) is None
    assert estimate([]) is None


@pytest.mark.parametrize(("low", "median", "high", "count"), [(2, 1, 3, 3), (1, 4, 3, 3), (1, 2, 3, 0)])
def test_an_impossible_estimate_is_refused(low, median, high, count):
    with pytest.raises(ValueError, match="not an estimate"):
        Estimate(median, low, high, count)


def test_ratios_pair_equal_rounds():
    # The machine was twice as slow in round 2 for both: the ratio does not see it.
    assert stats.paired_ratio({1: 100.0, 2: 50.0}, {1: 10.0, 2: 5.0}) == Estimate(10.0, 10.0, 10.0, 2)


def test_ratios_leave_out_rounds_that_one_side_lacks_or_that_are_zero():
    assert stats.paired_ratio({1: 100.0, 2: 50.0}, {1: 0.0, 2: 5.0, 3: 7.0}) == Estimate(10.0, 10.0, 10.0, 1)
    assert stats.paired_ratio({1: 100.0}, {2: 10.0}) is None
