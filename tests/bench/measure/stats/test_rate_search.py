"""The latency limit of a capacity, and the staircase that finds the highest rate within it."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable

import pytest

from bench.errors import BenchError
from bench.measure.stats.rate_search import FIRST_RATE, RATES, Limit, Step, bracket, next_rate, parse_limit, rate_near


def climbed(holds: Callable[[int], bool], first: int = FIRST_RATE, near: bool = False) -> tuple[dict[int, Step], int]:
    """The steps of a whole staircase, and its number of trials."""
    steps: dict[int, Step] = {}
    trials = 0
    while (rate := next_rate(steps, first, near=near)) is not None:
        trials += 1
        assert trials < 40, "the staircase does not end"
        steps[rate] = Step(holds(rate), steps[rate].tries + 1 if rate in steps else 1)
    return steps, trials


@pytest.mark.parametrize(
    ("text", "limit", "words"),
    [
        ("p95=200ms", Limit("p95", 200.0), "p95 within 200 ms"),
        ("p99=1.5s", Limit("p99", 1500.0), "p99 within 1500 ms"),
        ("p50=0.5ms", Limit("p50", 0.5), "p50 within 0.5 ms"),
    ],
)
def test_a_limit_is_a_percentile_and_a_time(text, limit, words):
    assert parse_limit(text) == limit
    assert limit.words == words
    assert parse_limit(str(limit)) == limit


@pytest.mark.parametrize("text", ["", "p95", "p95=", "p95=200", "p75=200ms", "95=200ms", "p95=-1ms", "p95=200 ms"])
def test_another_text_is_refused_in_one_line(text):
    with pytest.raises(BenchError) as refused:
        parse_limit(text)
    assert str(refused.value) == (
        f"{text}: write it as p95=200ms or p99=1.5s; percentiles are p50, p90, p95, p99, units ms and s"
    )


@pytest.mark.parametrize("text", ["p95=0ms", "p95=10s"])
def test_a_limit_that_always_or_never_holds_is_refused(text):
    with pytest.raises(BenchError, match=f"^{text}: use more than 0 and less than 10 s, when a request counts"):
        parse_limit(text)


def test_the_rates_are_six_percent_apart_where_whole_numbers_allow():
    assert list(RATES) == sorted(set(RATES))
    assert all(after / before < 1.08 for before, after in itertools.pairwise(RATES) if before >= 40)
    assert (rate_near(0.1), rate_near(499), rate_near(500), rate_near(10**9)) == (1, 475, 500, RATES[-1])


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("capacity", [1, 3, 49, 50, 77, 500, 1234, 40_000])
def test_the_staircase_ends_between_the_highest_rate_that_holds_and_its_neighbour(capacity, near):
    first = rate_near(capacity * 1.1) if near else FIRST_RATE
    steps, trials = climbed(lambda rate: rate <= capacity, first, near)
    low, high = bracket(steps)
    assert low == rate_near(capacity)
    assert RATES.index(high) == RATES.index(low) + 1
    assert (steps[low].tries, steps[high].tries) == (2, 2)
    assert trials <= (7 if near else 13)


def test_a_site_that_holds_no_rate_or_every_rate_has_one_end_only():
    assert bracket(climbed(lambda rate: False)[0]) == (None, 1)
    assert bracket(climbed(lambda rate: True)[0]) == (RATES[-1], None)


def test_one_disturbed_trial_does_not_end_the_climb():
    seen = []

    def holds(rate: int) -> bool:
        seen.append(rate)
        return rate <= 700 and len(seen) != 2

    assert bracket(climbed(holds)[0]) == (670, 710)


def rounds_of(true: float, noise: float, rounds: int, chance: random.Random) -> list[tuple[int, int]]:
    """The ends of staircases of a site whose capacity varies around its true rate from trial to trial."""
    ends: list[tuple[int, int]] = []
    for _ in range(rounds):
        first = rate_near(statistics.median_high(low for low, _ in ends)) if ends else FIRST_RATE
        steps, _ = climbed(lambda rate: rate <= true * (1 + chance.gauss(0, noise)), first, near=bool(ends))
        low, high = bracket(steps)
        ends.append((low or 0, high or RATES[-1]))
    return ends


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_noise_moves_the_capacity_to_neither_side(noise):
    chance = random.Random(3)
    intervals = [rounds_of(700, noise, 1, chance)[0] for _ in range(300)]
    assert 680 < statistics.mean((low * high) ** 0.5 for low, high in intervals) < 720


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_the_interval_of_five_rounds_holds_the_truth_95_times_in_100(noise):
    chance = random.Random(5)
    runs = [rounds_of(700, noise, 5, chance) for _ in range(200)]
    holds = sum(min(low for low, _ in ends) <= 700 <= max(high for _, high in ends) for ends in runs)
    assert holds >= 190
