"""Medians, ranges, ratios and verdicts: what a difference is called."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from bench.figures import stats
from bench.figures.stats import Spread, spread


def test_a_spread_is_the_median_with_the_lowest_and_highest_round():
    assert spread([30.0, 10.0, 20.0]) == Spread(20.0, 10.0, 30.0, 3)
    assert spread([10.0, 20.0]) == Spread(15.0, 10.0, 20.0, 2)


def test_the_interval_of_many_rounds_is_the_bootstraps():
    values = [random.Random(number).gauss(100, 5) for number in range(9)]
    draw = random.Random(1)
    drawn = sorted(statistics.median(draw.choices(values, k=9)) for _ in range(4000))
    found = spread(values)
    assert (found.low, found.high) == (drawn[100], drawn[3900])
    assert min(values) < found.low < found.median < found.high < max(values)


@pytest.mark.parametrize("rounds", range(1, 13))
def test_the_medians_of_all_resamples_are_certain(rounds):
    assert sum(chance for _, chance in stats._medians_of_resamples(range(rounds))) == pytest.approx(1)


def test_what_was_not_measured_is_left_out_and_nothing_measured_is_none():
    assert spread([None, 5.0, float("nan")]) == Spread(5.0, 5.0, 5.0, 1)
    assert spread([None]) is None
    assert spread([]) is None


@pytest.mark.parametrize(("low", "median", "high", "count"), [(2, 1, 3, 3), (1, 4, 3, 3), (1, 2, 3, 0)])
def test_an_impossible_spread_is_refused(low, median, high, count):
    with pytest.raises(ValueError, match="not a spread"):
        Spread(median, low, high, count)


def test_ratios_pair_equal_rounds():
    # The machine was twice as slow in round 2 for both: the ratio does not see it.
    assert stats.paired_ratio({1: 100.0, 2: 50.0}, {1: 10.0, 2: 5.0}) == Spread(10.0, 10.0, 10.0, 2)


def test_ratios_leave_out_rounds_that_one_side_lacks_or_that_are_zero():
    assert stats.paired_ratio({1: 100.0, 2: 50.0}, {1: 0.0, 2: 5.0, 3: 7.0}) == Spread(10.0, 10.0, 10.0, 1)
    assert stats.paired_ratio({1: 100.0}, {2: 10.0}) is None


# ------------------------------------------------------------------------------------- comparisons


def of_rounds(*figures):
    return dict(enumerate(figures, 1))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (of_rounds(100, 50, 80), of_rounds(121, 60, 97), "faster"),
        (of_rounds(121, 60, 97), of_rounds(100, 50, 80), "slower"),
        (of_rounds(100, 100, 100), of_rounds(103, 103, 103), "inconclusive"),
        (of_rounds(100, 100, 100), of_rounds(150, 90, 130), "inconclusive"),
        (of_rounds(100), of_rounds(1000), "inconclusive"),
    ],
    ids=["more in every round", "less in every round", "within the margin", "not in every round", "one round"],
)
def test_a_verdict_of_paired_rounds(before, after, expected):
    assert stats.paired(before, after).verdict == expected


def test_the_whole_interval_must_lie_beyond_the_margin():
    # As measured: a stack against itself, 1.084 (1.036 to 1.175) and 0.947 (0.915 to 0.996).
    assert stats.Ratio(1.084, 1.036, 1.175, 5, 0.05).verdict == "inconclusive"
    assert stats.Ratio(0.947, 0.915, 0.996, 5, 0.05).verdict == "inconclusive"
    assert stats.Ratio(1.084, 1.051, 1.175, 5, 0.05).verdict == "faster"
    assert stats.Ratio(0.92, 0.88, 0.95, 5, 0.05).verdict == "slower"


def test_the_margin_is_what_counts_as_a_difference():
    before, after = of_rounds(100, 100, 101), of_rounds(103, 103, 104)
    assert stats.paired(before, after, margin=0.01).verdict == "faster"
    assert stats.paired(before, after, margin=0.10).verdict == "inconclusive"


def test_rounds_that_both_have_are_compared():
    found = stats.paired({1: 10.0, 2: 20.0, 3: 0.0}, {1: 20.0, 2: 40.0, 3: 5.0, 4: 7.0})
    assert (found.ratio, found.rounds, found.margin) == (2.0, 2, stats.MARGIN)
    assert stats.paired({1: 10.0}, {2: 10.0}) is None


def test_two_runs_have_no_pairs():
    assert stats.unpaired([100, 101, 99], [120, 122, 121]).verdict == "faster"
    assert stats.unpaired([120, 122, 121], [100, 101, 99, 100]).verdict == "slower"
    assert stats.unpaired([100, 80, 120], [110, 90, 130]).verdict == "inconclusive"
    assert stats.unpaired([100, 100], [100, 100]).verdict == "inconclusive"
    assert stats.unpaired([100], [200]).verdict == "inconclusive"
    assert stats.unpaired([], [200]) is None


def test_students_quantiles():
    assert (stats.student(1), stats.student(4.9), stats.student(0.2)) == (12.706, 2.776, 12.706)
    assert stats.student(60) == pytest.approx(2.000, abs=0.002)


def measured_twice(draw, rounds, noise, factor=1.0):
    """Figures of two things, one `factor` times the other, on a machine whose speed is another in each round."""
    machine = [draw.gauss(0, 0.2) for _ in range(rounds)]
    return [
        of_rounds(*(100 * times * math.exp(speed + draw.gauss(0, noise)) for speed in machine))
        for times in (1.0, factor)
    ]


@pytest.mark.parametrize("rounds", [2, 3, 5, 10])
@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1])
def test_the_same_thing_measured_twice_is_no_difference_19_times_in_20(rounds, noise):
    draw = random.Random(f"{rounds} {noise}")
    called = [stats.paired(*measured_twice(draw, rounds, noise)).verdict for _ in range(2000)]
    assert called.count("inconclusive") >= 0.95 * len(called)


def test_a_real_difference_is_found():
    draw = random.Random(5)
    called = [stats.paired(*measured_twice(draw, 5, 0.03, factor=1.2)).verdict for _ in range(500)]
    assert called.count("faster") >= 0.95 * len(called)
    assert "slower" not in called
