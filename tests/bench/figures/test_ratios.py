"""Ratios and verdicts: what a difference is called, and which cases may be the fastest."""

from __future__ import annotations

import math
import random

import pytest

from bench.figures import ratios
from bench.figures.noise import noise_of
from bench.figures.ratios import standings


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
    assert ratios.paired(before, after).verdict == expected


def test_the_whole_interval_must_lie_beyond_the_margin():
    # As measured: a stack against itself, 1.084 (1.036 to 1.175) and 0.947 (0.915 to 0.996).
    assert ratios.Ratio(1.084, 1.036, 1.175, 5, 0.05).verdict == "inconclusive"
    assert ratios.Ratio(0.947, 0.915, 0.996, 5, 0.05).verdict == "inconclusive"
    assert ratios.Ratio(1.084, 1.051, 1.175, 5, 0.05).verdict == "faster"
    assert ratios.Ratio(0.92, 0.88, 0.95, 5, 0.05).verdict == "slower"


def test_the_margin_is_what_counts_as_a_difference():
    before, after = of_rounds(100, 100, 101), of_rounds(103, 103, 104)
    assert ratios.paired(before, after, margin=0.01).verdict == "faster"
    assert ratios.paired(before, after, margin=0.10).verdict == "inconclusive"


def test_rounds_that_both_have_are_compared():
    found = ratios.paired({1: 10.0, 2: 20.0, 3: 0.0}, {1: 20.0, 2: 40.0, 3: 5.0, 4: 7.0})
    assert (found.ratio, found.rounds, found.margin) == (2.0, 2, ratios.MARGIN)
    assert ratios.paired({1: 10.0}, {2: 10.0}) is None


def test_two_runs_have_no_pairs():
    assert ratios.unpaired([100, 101, 99], [120, 122, 121]).verdict == "faster"
    assert ratios.unpaired([120, 122, 121], [100, 101, 99, 100]).verdict == "slower"
    assert ratios.unpaired([100, 80, 120], [110, 90, 130]).verdict == "inconclusive"
    assert ratios.unpaired([100, 100], [100, 100]).verdict == "inconclusive"
    assert ratios.unpaired([100], [200]).verdict == "inconclusive"
    assert ratios.unpaired([], [200]) is None


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
    called = [ratios.paired(*measured_twice(draw, rounds, noise)).verdict for _ in range(500)]
    assert called.count("inconclusive") >= 0.95 * len(called)


def test_a_real_difference_is_found():
    draw = random.Random(5)
    called = [ratios.paired(*measured_twice(draw, 5, 0.03, factor=1.2)).verdict for _ in range(500)]
    assert called.count("faster") >= 0.95 * len(called)
    assert "slower" not in called


# ------------------------------------------------------------------------------------- the best of many


def judged(rates, margin=0.05, order=None):
    """The standings of cases -> requests/s by round, None for a voided trial."""
    table = {
        name: {number: math.log(rate) for number, rate in enumerate(rounds) if rate is not None}
        for name, rounds in rates.items()
    }
    return standings(noise_of(table), order or list(table), margin)


ALIKE = {f"alike {n}": (330 + n, 349 - n) for n in range(10)}


def test_two_rounds_of_twelve_cases_tell_far_apart_cases_apart():
    # As measured: by two rounds of each case alone this was a tie.
    found = judged({"static": (18_184, 18_986), "noisy": (81, 266)} | ALIKE)
    assert (found.leader, found.tied) == ("static", ())
    assert found.ratios["noisy"].low > 2
    assert found.ratios["noisy"].low < found.ratios["noisy"].ratio < found.ratios["noisy"].high
    assert found.ratios["alike 0"].low > 40
    assert (found.ratios["static"].low, found.ratios["static"].ratio, found.ratios["static"].high) == (1, 1, 1)


def test_cases_within_chance_tie_and_the_interval_says_by_how_much_they_may_differ():
    found = judged(ALIKE)
    assert found.leader == "alike 0"
    assert found.slower == ()
    assert len(found.tied) == 9
    assert all(ratio.low == pytest.approx(1, abs=0.001) and 1 < ratio.high < 1.2 for ratio in found.ratios.values())


def test_one_round_proves_nothing():
    found = judged({"a": (1000,), "b": (10,), "c": (11,)})
    assert (found.leader, set(found.tied), found.proven) == ("a", {"b", "c"}, False)
    assert found.ratios["b"].ratio == pytest.approx(100)
    assert (found.ratios["b"].low, found.ratios["b"].high) == (1, math.inf)


def test_a_case_alone_leads():
    found = judged({"a": (1000, 1010)})
    assert (found.leader, found.tied, found.slower) == ("a", (), ())


def test_a_case_of_one_round_is_judged_by_the_noise_of_the_others():
    found = judged({"fast": (1000, None), "slow": (None, 300)} | ALIKE)
    assert (found.leader, found.tied) == ("fast", ())
    assert found.ratios["slow"].low > 2
    assert found.ratios["slow"].rounds == 1


def test_cases_that_nothing_connects_are_not_compared():
    found = judged({"a": (1000, None), "b": (None, 10), "c": (900, None), "d": (None, 11)})
    assert set(found.tied) == {"b", "c", "d"}


def test_a_noisy_leader_is_not_proven_where_a_quiet_second_is():
    rates = {"noisy": (900, 300, 700), "quiet": (501, 500, 499)} | {f"slow {n}": (100, 101, 100 - n) for n in range(6)}
    found = judged(rates)
    assert set(found.tied) | {found.leader} == {"noisy", "quiet"}
    assert found.ratios["slow 0"].low > 4  # by the quiet one


def test_a_difference_within_the_margin_is_a_tie():
    rates = {"a": (103, 103.01), "b": (100, 100.01), "c": (100.01, 100)}
    assert judged(rates).tied == ("b", "c")
    assert judged(rates, margin=0.01).slower == ("b", "c")


def test_of_two_cases_it_is_the_interval_of_paired_rounds():
    before, after = (100, 90, 107), (141, 130, 149)
    pair = ratios.paired(of_rounds(*before), of_rounds(*after))
    found = judged({"after": after, "before": before}).ratios["before"]
    assert found.low == pytest.approx(pair.low)
    assert found.high == pytest.approx(pair.high)


# ------------------------------------------------------------------------------------- two runs


def test_the_noise_of_all_cases_tells_two_runs_apart():
    draw = random.Random(3)

    def run(factor):
        rates = {name: (factor if name == 0 else 1) * 100 for name in range(12)}
        return noise_of(
            {name: {n: math.log(rate) + draw.gauss(0, 0.02) for n in range(2)} for name, rate in rates.items()}
        )

    before, after = run(1), run(1.3)
    assert ratios.between(before, after, 0, 1.3, 0.05).verdict == "faster"
    assert ratios.between(after, before, 0, 1 / 1.3, 0.05).verdict == "slower"
    assert ratios.between(before, after, 1, 1.0, 0.05).verdict == "inconclusive"


def test_what_slows_whole_rounds_is_noise_between_two_runs():
    machine = (0.0, 0.3)
    tables = [
        {n: {j: factor + speed + n / 1000 for j, speed in enumerate(machine)} for n in range(12)} for factor in (0, 0.2)
    ]
    first, second = (noise_of(table) for table in tables)
    assert ratios.between(first, second, 0, 1.22, 0.05).verdict == "inconclusive"
