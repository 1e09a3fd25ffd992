"""Which cases go on, and when a race is decided."""

from __future__ import annotations

import math

from bench.figures.race import FIRST_NOISE, MIN_LEFT, Race
from bench.figures.race import look as look_at

LOOKS = 20


def look(table, *how, **also):
    """A race on one table."""
    return look_at([table], *how, **also)


def logs(*rows, first=1):
    """Cases 0, 1, ... with these figures by round, None for a voided trial."""
    return {
        case: {number: math.log(figure) for number, figure in enumerate(row, first) if figure}
        for case, row in enumerate(rows)
    }


NEAR = [(100.0, 101.0), (99.0, 98.5), (101.0, 101.5), (98.0, 99.5)]


def test_one_round_drops_what_no_noise_explains_and_decides_nothing():
    race = look(logs(*[(100.0,)] * MIN_LEFT, (40.0,), (5.0,)), Race({}), 1, LOOKS)
    assert (race.dropped, race.decided) == ({MIN_LEFT + 1: 1}, False)


def test_one_round_leaves_enough_cases_to_show_the_noise_of_the_next():
    race = look(logs((1000.0,), *[(1.0 + case,) for case in range(9)]), Race({}), 1, LOOKS)
    assert set(race.dropped) == set(range(1, 10 - MIN_LEFT + 1))


def test_figures_of_different_rounds_are_not_compared_before_their_noise_is_known():
    table = logs(*[(100.0, None)] * 5, (None, 1.0))
    assert look(table, Race({}), 2, LOOKS) == Race({})


def test_the_best_leads_when_the_others_are_dropped():
    race = look(logs((200.0, 201.0), *NEAR), Race({}), 2, LOOKS)
    assert (race.leads, race.ties) == (True, False)
    assert race.dropped == dict.fromkeys((1, 2, 3, 4), 2)


def test_cases_within_the_margin_tie_when_the_noise_shows_it():
    alike = [(100.0, 100.1, 100.2), (100.1, 100.0, 100.3), (100.0, 100.2, 100.1)]
    assert look(logs(*alike), Race({}), 3, LOOKS).ties
    assert not look(logs((120.0, 90.0, 100.0), (95.0, 118.0, 92.0), (90.0, 100.0, 121.0)), Race({}), 3, LOOKS).decided


def test_a_dropped_case_stays_dropped_and_keeps_its_round():
    table = logs((200.0, 201.0), *NEAR) | {5: {1: math.log(5.0)}}
    race = look(table, Race({5: 1}), 2, LOOKS)
    assert (race.dropped[5], race.dropped[1], race.leads) == (1, 2, True)


def test_a_case_alone_is_decided_by_its_second_round():
    assert [look(logs(row), Race({}), len(row), LOOKS).leads for row in ((9.0,), (9.0, 8.0))] == [False, True]
    assert look({0: {}}, Race({}), 1, LOOKS) == Race({})


def test_more_looks_take_more_proof():
    table = logs((120.0, 121.0), *NEAR)
    assert look(table, Race({}), 2, looks=1).leads
    assert not look(table, Race({}), 2, looks=100_000).leads


def test_noise_beyond_all_numbers_decides_nothing():
    assert look(logs((1.0, 1e9), (1e9, 1.0)), Race({}), 2, LOOKS) == Race({})


def test_the_noise_of_the_first_look_covers_that_of_the_simulations():
    """They go up to 20 %: a round that is noisier than that is not believed."""
    assert FIRST_NOISE > 0.2


def test_the_best_over_two_tables_need_not_be_the_best_of_one():
    one = logs((100.0, 101.0), (10.0, 10.1), (80.0, 79.5), (1.0, 1.01))
    other = logs((10.0, 10.1), (100.0, 99.5), (80.0, 80.8), (1.0, 1.01))
    assert [look(table, Race({}), 2, LOOKS).dropped.keys() for table in (one, other)] == [{1, 2, 3}, {0, 2, 3}]
    race = look_at([one, other], Race({}), 2, LOOKS)
    assert (race.dropped.keys(), race.leads) == ({0, 1, 3}, True)


def test_a_case_takes_part_in_a_race_of_two_tables_with_a_figure_in_each():
    one, other = logs((100.0, 101.0), (10.0, 10.1), (500.0, 501.0)), logs((100.0, 101.0), (10.0, 10.1))
    race = look_at([one, other], Race({}), 2, LOOKS)
    assert (race.dropped.keys(), race.leads) == ({1}, True)
