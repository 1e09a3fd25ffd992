"""The capacity of a case from its trials."""

from __future__ import annotations

import pytest

from bench.measure.records.capacity import Capacity, Staircase, Visits, capacity, climbs, has_load, overloaded, visits
from bench.measure.stats.rate_search import Limit
from tests.bench.measure.records.run_data import at_rate, failed

LIMIT = Limit("p95", 200.0)
BUSY = "interference: other processes took 90% of the machine"


def discarded(rate: int, reason: str):
    return at_rate(rate, status="discarded", reason=reason)


def round_of(*rates: tuple[int, float]) -> Staircase:
    """The staircase of these rates with their latencies."""
    return Staircase(LIMIT, [at_rate(rate, latency) for rate, latency in rates])


def test_a_rate_holds_while_its_percentile_is_within_the_limit():
    climb = round_of((50, 20), (200, 199), (800, 201), (400, 5000))
    assert {rate: step.held for rate, step in climb.steps.items()} == {50: True, 200: True, 800: False, 400: False}
    assert (climb.low, climb.high, climb.highest.level) == (200, 400, 200)


def test_the_last_trial_of_a_rate_counts_and_each_is_a_try():
    climb = Staircase(LIMIT, [at_rate(50), at_rate(53, 900), at_rate(53)])
    assert (climb.steps[53].held, climb.steps[53].tries, climb.low, climb.high) == (True, 2, 53, None)


@pytest.mark.parametrize(
    ("trial", "is_overload"),
    [
        (discarded(100, "drift: 90 requests in the first third, 20 in the last"), True),
        (discarded(100, "lost: the load tool did not send 7 requests"), True),
        (discarded(100, "drift: 90 requests in the first third; tool: 1 in 100 requests left 90 ms late"), False),
        (discarded(100, BUSY), False),
        (failed(at_rate(100)), True),
        (failed(at_rate(100), reason="wrk exited with status 1", responses_before_failure=None), False),
    ],
)
def test_only_what_an_overloaded_site_does_itself_shows_that_it_does_not_hold(trial, is_overload):
    assert overloaded(trial) == is_overload
    climb = Staircase(LIMIT, [at_rate(95), trial])
    assert (climb.low, climb.high) == (95, 100 if is_overload else None)
    assert climb.ended_by == (None if is_overload else trial.reason)


@pytest.mark.parametrize("reason", [BUSY, "tool: 1 in 100 requests left 90 ms late or more"])
def test_a_trial_that_says_nothing_about_the_site_is_repeated_and_counts_as_half_a_try(reason):
    climb = Staircase(LIMIT, [at_rate(50), discarded(200, reason)])
    assert climb.next_rate(50, near=False) == 200
    climb = Staircase(LIMIT, [at_rate(50), at_rate(50), *[discarded(53, reason)] * 3])
    assert (climb.steps[53].tries, climb.next_rate(50, near=False)) == (1, 53)
    climb.add(discarded(53, reason))
    assert climb.next_rate(50, near=False) is None
    assert [trial.reason for trial in climb.in_doubt] == [reason]
    climb.add(at_rate(53))
    assert climb.in_doubt == []


def test_a_trial_that_says_nothing_does_not_replace_one_that_did():
    climb = Staircase(LIMIT, [at_rate(50), at_rate(50), at_rate(53, 900), *[discarded(53, BUSY)] * 2])
    assert (climb.low, climb.high, climb.ended_by, climb.in_doubt) == (50, 53, None, [])
    assert climb.next_rate(50, near=False) is None


def test_a_trial_without_a_load_ends_the_round():
    climb = Staircase(LIMIT, [failed(at_rate(50), responses_before_failure=None)])
    assert not has_load(climb.trials[50])
    assert (climb.next_rate(50, near=False), climb.low) == (None, None)


def test_a_capacity_is_the_rate_as_achieved():
    """The load of 500 requests/s ended with a late response."""
    climb = Staircase(LIMIT, [at_rate(500, requests_per_second=481.0), at_rate(530, 900)])
    assert capacity([climb]) == Capacity(481.0, 481.0, 530, 1)


def test_the_interval_goes_from_the_lowest_that_held_to_the_highest_that_did_not():
    rounds = [round_of((475, 20), (500, 900)), round_of((500, 20), (530, 900)), round_of((530, 20), (560, 900))]
    assert capacity(rounds) == Capacity(500, 475, 560, 3)


def test_without_an_end_above_the_capacity_is_at_least_so_much():
    rounds = [round_of((475, 20), (500, 900)), Staircase(LIMIT, [at_rate(475), discarded(500, "tool: the load tool")])]
    assert capacity(rounds) == Capacity(475, 475, None, 2)


def test_a_case_that_holds_no_rate_has_no_capacity():
    assert capacity([round_of((1, 900))]) is None


def test_a_round_in_which_nothing_holds_is_not_forgotten():
    rounds = [round_of((475, 20), (500, 900)), round_of((1, 900)), round_of((475, 20), (500, 900))]
    assert capacity(rounds) == Capacity(475, 0, 500, 3)


def test_trials_are_taken_apart_by_case_and_round():
    other = at_rate(50, 20, 2, case_id="two~none")
    by_case = climbs([at_rate(50), at_rate(200), at_rate(50, 20, 2), other], LIMIT)
    assert {case: {number: climb.low for number, climb in rounds.items()} for case, rounds in by_case.items()} == {
        "one~none~home~unlimited~sqlite": {1: 200, 2: 50},
        "two~none": {2: 50},
    }


def test_visitors_follow_from_pages_and_files():
    by_workload = visits(
        {"session": ["/", "/static/a.css", "/posts/?page=2.5", "/static/b.js"], "files": ["/static/a.css"]}
    )
    assert by_workload == {"session": Visits(4, 2)}
    assert by_workload["session"].an_hour(100) == 90_000
