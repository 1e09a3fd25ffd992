"""The model: ratios with their intervals, and the fastest case."""

from __future__ import annotations

import math
import random
import time

import numpy
import pytest

from bench.measure.stats import GeometricMean, Table
from bench.measure.stats.least_squares import Fit
from bench.measure.stats.table import MIN_LEFT
from bench.words import INCONCLUSIVE, LEADS, TIES

NEAR = [(100.0, 101.0), (99.0, 98.5), (101.0, 101.5), (98.0, 99.5)]


def table(*rows, first=1):
    """Cases 0, 1, ... with these rates by round, None for a discarded trial."""
    return Table(
        {case: {n: rate for n, rate in enumerate(row, first) if rate is not None} for case, row in enumerate(rows)}
    )


def drawn(cases, rounds, seed, *, noise=0.05, discarded=0.0, noisy=1.0):
    """Equal cases, except that the first is so many times noisier."""
    draw = random.Random(seed)
    speeds = [draw.gauss(5, 0.3) for _ in range(rounds)]
    return {
        case: {
            n: math.exp(speed + draw.gauss(0, noise * (1 if case else noisy)))
            for n, speed in enumerate(speeds)
            if draw.random() >= discarded
        }
        for case in range(cases)
    }


def test_two_cases_have_the_interval_of_a_paired_t_test():
    from scipy import stats

    one, two = (120.0, 260.0, 118.0, 131.0), (100.0, 205.0, 104.0, 109.0)
    logs = numpy.log(one) - numpy.log(two)
    interval = stats.t.interval(0.9, 3, logs.mean(), stats.sem(logs))
    ratio = table(one, two).ratio(0, 1, confidence=0.9)
    assert ratio == pytest.approx((math.exp(logs.mean()), *numpy.exp(interval)))


@pytest.mark.parametrize("discarded", [0.0, 0.25])
def test_noise_and_effects_are_those_of_least_squares(discarded):
    rates = drawn(9, 5, 3, discarded=discarded)
    cells = {case: {n: math.log(rate) for n, rate in rounds.items()} for case, rounds in rates.items()}
    keys = [(case, n) for case, rounds in cells.items() for n in rounds]
    design = numpy.array([[*(case == c for c in cells), *(n == r for r in range(5))] for case, n in keys], float)
    logs = numpy.array([cells[case][n] for case, n in keys])
    solved, _, rank, _ = numpy.linalg.lstsq(design, logs, rcond=None)
    left, fit = logs - design @ solved, Fit(cells)
    assert fit.noise.freedom == len(keys) - rank
    assert fit.noise.variance == pytest.approx(sum(left**2) / fit.noise.freedom)
    assert fit.rounds[1] - fit.rounds[4] == pytest.approx(solved[9 + 1] - solved[9 + 4])


def test_a_slow_round_is_no_noise():
    one, two = (100.0, 51.0, 99.0), (50.0, 25.0, 50.0)
    assert table(one, two).ratio(0, 1)[1:] == pytest.approx((1.94, 2.1), abs=0.05)


def test_a_ratio_and_its_inverse_agree():
    rates = Table(drawn(5, 3, 1))
    estimate, low, high = rates.ratio(2, 4)
    assert rates.ratio(4, 2) == pytest.approx((1 / estimate, 1 / high, 1 / low))
    assert rates.ratio(2, 2) == (1, 1, 1)


def test_one_round_says_nothing_about_noise():
    assert table((200.0,), (100.0,)).ratio(0, 1) == (pytest.approx(2), 0, math.inf)


def test_a_case_that_is_plainly_noisier_has_a_separate_interval():
    rates = Table(drawn(8, 10, 4, noisy=6))
    (_, low, high), (_, other_low, other_high) = rates.ratio(0, 1), rates.ratio(2, 1)
    assert math.log(high / low) > 3 * math.log(other_high / other_low)
    assert math.log(other_high / other_low) == pytest.approx(0.09, abs=0.03)


def test_missing_rounds_are_left_out_and_the_rest_is_compared():
    rates = table((100.0, None, 104.0, 98.0), (50.0, 80.0, None, 49.0), (None, 161.0, 100.0, 100.0))
    assert rates.ratio(0, 1)[0] == pytest.approx(2)
    # The second round was fast: rates measured only there are corrected.
    assert rates.rate(1) < 60


def test_cases_without_a_round_in_common_are_compared_by_others_and_stay_open():
    rates = table((100.0, None), (None, 100.0), (100.0, 50.0))
    assert rates.ratio(0, 1) == (pytest.approx(0.5), 0, math.inf)
    assert rates.decide().verdict == INCONCLUSIVE


@pytest.mark.parametrize("wrong", [0.0, -5.0, math.nan, math.inf])
def test_what_is_no_rate_counts_as_missing(wrong):
    rates = table((wrong, wrong), (wrong, 10.0, 11.0), (5.0, 5.0, 5.4))
    assert rates.names == [1, 2]
    assert rates.ratio(1, 2)[0] == pytest.approx(2, rel=0.05)
    with pytest.raises(KeyError):
        rates.ratio(0, 1)


@pytest.mark.parametrize("options", [{"margin": -0.1}, {"margin": math.nan}, {"look": 0}, {"look": -1}])
def test_a_wrong_question_is_refused(options):
    with pytest.raises(ValueError, match="margin"):
        table(*NEAR).decide(**options)
    with pytest.raises(ValueError, match="confidence 95"):
        table(*NEAR).ratio(0, 1, confidence=95)


@pytest.mark.parametrize("rates", [{}, {"a": {}}, {"a": {1: 0.0}}])
def test_without_a_rate_nothing_is_decided(rates):
    assert Table(rates).decide().verdict == INCONCLUSIVE
    assert Table(rates).decide().best is None


def test_the_best_leads_when_the_others_are_slower_by_more_than_the_margin():
    decision = table((200.0, 201.0), *NEAR).decide()
    assert (decision.verdict, decision.best, decision.ties, set(decision.slower)) == (LEADS, 0, (), {1, 2, 3, 4})
    assert table((200.0, 201.0), *NEAR).decide(margin=1.0).verdict != LEADS


def test_cases_tie_when_their_rounds_show_that_they_are_within_the_margin():
    alike = [(100.0, 100.1, 100.2), (100.1, 100.0, 100.3), (100.0, 100.2, 100.1), (50.0, 50.1, 50.1)]
    decision = table(*alike).decide()
    assert (decision.verdict, decision.best, set(decision.ties), decision.slower) == (TIES, 1, {0, 2}, (3,))
    noisy = table((120.0, 90.0, 100.0), (95.0, 118.0, 92.0), (90.0, 100.0, 121.0)).decide()
    assert (noisy.verdict, noisy.ties, len(noisy.open)) == (INCONCLUSIVE, (), 2)


def test_later_looks_take_more_proof():
    rates = table((115.0, 116.0), *NEAR)
    assert [rates.decide(look=number).verdict for number in (None, 1, 1000)] == [LEADS, LEADS, INCONCLUSIVE]


def test_a_dropped_case_stays_slower_and_is_never_the_best():
    rates = table((100.0, 101.0, 99.0), (50.0, 50.0, 50.0), (300.0, None, None))
    assert rates.decide(dropped={2}).verdict == LEADS
    assert set(rates.decide(dropped={2}).slower) == {1, 2}


def test_one_round_drops_what_no_noise_explains_and_decides_nothing():
    decision = table(*[(100.0,)] * MIN_LEFT, (40.0,), (5.0,)).decide(look=1)
    assert (decision.verdict, decision.slower) == (INCONCLUSIVE, (MIN_LEFT + 1,))
    # The next round of these must show noise.
    assert len(table((1000.0,), *[(1.0 + case,) for case in range(9)]).decide(look=1).open) == MIN_LEFT - 1


def test_a_single_case_leads_with_its_second_round():
    assert [table(row).decide().verdict for row in ((9.0,), (9.0, 8.0))] == [INCONCLUSIVE, LEADS]


def test_noise_beyond_all_numbers_decides_nothing():
    assert table((1.0, 1e9), (1e9, 1.0)).decide().verdict == INCONCLUSIVE


def test_over_several_workloads_the_geometric_mean_counts():
    one = table((100.0, 101.0), (10.0, 10.1), (80.0, 79.5), (500.0, 501.0))
    other = table((10.0, 10.1), (100.0, 99.5), (80.0, 80.8))
    both = GeometricMean([one, other])
    assert [rates.decide().best for rates in (one, other, both)] == [3, 1, 2]
    assert both.decide().verdict == LEADS
    assert both.rate(0) == pytest.approx(math.sqrt(one.rate(0) * other.rate(0)))
    assert both.ratio(2, 0)[0] == pytest.approx(math.sqrt(one.ratio(2, 0)[0] * other.ratio(2, 0)[0]))
    assert GeometricMean([one]).ratio(2, 0) == pytest.approx(one.ratio(2, 0))


def test_the_rounds_of_two_runs_are_never_paired():
    steady = Table({"a": {1: 100.0, 2: 101.0, 3: 99.0}, "b": {1: 50.0, 2: 50.5, 3: 49.6}})
    uneven = Table({"a": {1: 100.0, 2: 150.0, 3: 80.0}, "b": {1: 50.0, 2: 75.5, 3: 40.1}})
    _, low, high = (steady.alone("a") - steady.alone("a")).ratio()
    assert 0.95 < low < 1 < high < 1.05
    # Both cases were slow together: within the run this is no noise, between runs it is.
    assert uneven.ratio("a", "b")[1] > 1.9
    estimate, low, high = (uneven.alone("a") - uneven.alone("a")).ratio()
    assert (estimate, low < 0.8, high > 1.25) == (1, True, True)
    once = Table({"a": {1: 100.0}})
    assert (steady.alone("a") - once.alone("a")).ratio()[1:] == (0, math.inf)
    faster = Table({"b": {1: 100.0, 2: 101.0, 3: 99.2}})
    estimate, low, high = (faster.alone("b") - steady.alone("b")).ratio()
    assert (faster.alone("b").rate, estimate) == (pytest.approx(100.1, abs=0.1), pytest.approx(2, abs=0.01))
    assert 1.9 < low < high < 2.1


def test_a_rate_without_an_upper_bound_in_one_of_two_runs_bounds_no_ratio():
    """Nothing above 100 failed, so that the first run may be far faster than the second."""
    before = Table({"a": {1: 100.0, 2: 100.0}}, {"a": math.inf})
    after = Table({"a": {1: 102.0, 2: 102.0}})
    assert (after.alone("a") - before.alone("a")).ratio() == (pytest.approx(1.02), 0, pytest.approx(1.02))


def test_rates_that_were_found_in_steps_differ_by_more_than_a_step():
    """Rounds that all end at the same steps have no noise, and still prove no more than the steps."""
    rates = {"a": dict.fromkeys((1, 2, 3), 560.0), "b": dict.fromkeys((1, 2, 3), 530.0), "c": {1: 100.0, 2: 100.0}}
    steps = {"a": 1.06, "b": 1.06, "c": 1.06}
    compared = Table(rates, steps)
    assert compared.ratio("a", "b") == pytest.approx((560 / 530, 560 / 530 / 1.06, 560 * 1.06 / 530))
    assert (compared.decide().verdict, compared.decide().slower) == (INCONCLUSIVE, ("c",))
    # Without a failed rate, the capacity may be any higher one.
    assert Table(rates, {**steps, "c": math.inf}).decide().open == ("b", "c")


def test_a_run_of_all_stacks_and_layers_is_decided_in_a_moment():
    rates = Table(drawn(143, 10, 1, discarded=0.05, noisy=9))
    begun = time.process_time()
    rates.decide(look=10)
    assert time.process_time() - begun < 2
