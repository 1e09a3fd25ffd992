"""The search for settings on invented stacks: candidates, end, and result."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bench.measure.records.capacity import Staircase
from bench.measure.run.tuning import Candidate, Settings, SettingsSearch, TuningSpace, memory_needed
from bench.measure.stats.rate_search import Limit, rate_near
from tests.bench.measure.records.run_data import at_rate, changed, failed

LIMIT = Limit("p95", 200.0)
MIB = 2**20
BOTH = ("processes", "threads")
USUAL = Settings(4, 1)
SYNC, ASYNC = ("sync", "gthread"), ("uvicorn",)


def climb(capacity: float, number: int = 1, **changes) -> Staircase:
    """The staircase of a site with this capacity."""
    staircase = Staircase(LIMIT)
    while (rate := staircase.next_rate(rate_near(capacity), near=True)) is not None:
        staircase.add(changed(at_rate(rate, 20.0 if rate <= capacity else 900.0, number), **changes))
    return staircase


def searched(
    search: SettingsSearch, holds: Callable[[Settings], float], rounds: int = 1, noise: float = 0.0, **changes
):
    """Candidates of a search on a stack with this capacity, and the settings and rounds in order.

    Every process needs 50 MiB, and the first one 50 more.
    """
    log, chance = [], random.Random(5)

    def climbed(settings, number, before, near):
        log.append((settings, number))
        more = {name: value(settings) if callable(value) else value for name, value in changes.items()}
        memory = {"app": (50 + 50 * settings.processes) * MIB}
        rate = holds(settings) * (1 + chance.gauss(0, noise))
        yield from ()
        return climb(rate, number, memory_peak_bytes=memory, **more)

    assert list(search.schedule(rounds, climbed)) == []
    return search.done, log


def first_round(log) -> list[tuple[int, int]]:
    return [(settings.processes, settings.threads) for settings, number in log if number == 1]


def plan(knobs=BOTH, usual: Settings = USUAL, fewer=BOTH, **more) -> SettingsSearch:
    return SettingsSearch(TuningSpace("gunicorn", knobs, usual, fewer), margin=0.11, **more)


@pytest.mark.parametrize(
    ("holds", "tried", "best"),
    [
        # Doubling gains nothing, halving loses.
        (lambda it: 200 * min(it.processes, 4), [(4, 1), (8, 1), (2, 1), (4, 2)], Settings(4, 1)),
        (lambda it: 200 * min(it.processes, 8), [(4, 1), (8, 1), (16, 1), (8, 2)], Settings(8, 1)),
        # Fewer are as good, and simpler.
        (lambda it: 200.0, [(4, 1), (8, 1), (2, 1), (1, 1), (1, 2)], Settings(1, 1)),
        (lambda it: 200 * min(it.threads, 4), [(4, 1), (8, 1), (2, 1), (1, 1), (1, 2), (1, 4), (1, 8)], Settings(1, 4)),
    ],
    ids=["usual", "more", "fewer", "threads"],
)
def test_processes_and_threads_are_doubled_while_that_gains_and_halved_while_that_loses_nothing(holds, tried, best):
    search = plan()
    done, log = searched(search, holds)
    assert first_round(log) == tried
    assert search.best(done).settings == best


def test_threads_that_slow_clients_may_need_are_not_taken_away():
    _, log = searched(plan(usual=Settings(1, 4), fewer=("processes",)), lambda it: 200.0)
    assert first_round(log) == [(1, 4), (2, 4), (1, 8)]
    _, log = searched(plan(usual=Settings(1, 4)), lambda it: 200.0)
    assert first_round(log) == [(1, 4), (2, 4), (1, 8), (1, 2), (1, 1)]


def test_more_rounds_are_for_those_near_the_best_each_time_in_the_opposite_order():
    _, log = searched(plan(), lambda it: 200 * min(it.processes, 4), rounds=3)
    later = [(settings.processes, settings.threads) for settings, number in log if number > 1]
    assert sorted(later) == sorted([(4, 1), (8, 1), (4, 2)] * 2)
    assert later[:3] == later[:2:-1]


def test_what_does_not_fit_is_not_tried_and_named():
    search = plan(memory_bytes=370 * MIB)
    _, log = searched(search, lambda it: 200 * it.processes)
    assert (8, 1) not in first_round(log)
    assert search.too_large[Settings(8, 1)] == "needs about 500 MiB of 370 MiB"
    search = plan(usual=Settings(2, 4))
    counted = {"database_connections_limit": 13, "database_connections_peak": 3}
    _, log = searched(search, lambda it: 200 * it.processes, **counted)
    assert (4, 4) not in first_round(log)
    assert search.too_large[Settings(4, 4)] == ("16 threads may each hold a database connection, and 12 are free")


@pytest.mark.parametrize(("gain", "best"), [(1.5, Settings(2, 16, ASYNC)), (1, Settings(2, 1, SYNC))])
def test_other_worker_classes_are_tried_with_the_processes_found_and_their_own_threads(gain, best):
    other = TuningSpace("gunicorn-uvicorn", BOTH, Settings(4, 16, ASYNC))
    search = plan(usual=Settings(2, 1, SYNC), others=[other], fewer=("processes",))
    done, log = searched(search, lambda it: 200 * min(it.processes, 2) * (gain if it.classes == ASYNC else 1))
    assert first_round(log) == [(2, 1), (4, 1), (1, 1), (2, 2), (2, 16), (2, 32)]
    assert search.best(done).settings == best
    assert done[-1].settings.words == "2 processes with 32 threads each (uvicorn)"


def test_settings_whose_processes_are_killed_are_no_result():
    search = plan(("processes",), Settings(1, 1))
    done, _ = searched(search, lambda it: 200.0 * it.processes, oom_kills=lambda it: 2 if it.processes > 1 else 0)
    assert [item.problem for item in done] == ["", "2 processes killed for lack of memory"]
    assert search.best(done).settings == Settings(1, 1)


def test_a_stack_that_fails_ends_the_search_with_the_reason():
    broken = Staircase(LIMIT, [failed(at_rate(50), responses_before_failure=None)])
    search = plan(usual=Settings(1, 1))

    def climbed(*_):
        yield from ()
        return broken

    assert list(search.schedule(3, climbed)) == []
    assert [item.problem for item in search.done] == ["503 answers"]
    assert search.verdict(search.done[0]) == "503 answers"


@pytest.mark.parametrize(
    ("rates", "processes"),
    [
        # Overlapping rounds prove no difference, unless it is large; single rounds cannot overlap.
        ([(530, 630, 530, 800), (600, 600, 600)], 1),
        ([(500, 500, 520), (600, 600, 600)], 2),
        ([(300, 300, 800), (600, 600, 600)], 2),
        ([(500,), (600,)], 2),
    ],
)
def test_rounds_that_overlap_make_no_difference(rates, processes):
    done = [
        Candidate(Settings(number, 1), {turn: climb(rate, turn) for turn, rate in enumerate(capacities, 1)})
        for number, capacities in enumerate(rates, 1)
    ]
    assert plan().best(done).settings.processes == processes


def test_memory_that_was_measured_of_some_servers_is_not_measured():
    some = {"app": 50 * MIB, "nginx": None}
    tried = Candidate(USUAL, {number: climb(50, memory_peak_bytes=some) for number in (1, 2)})
    assert (tried.memory_bytes, tried.memory) == (None, "memory not measured")


def test_memory_is_taken_in_proportion_to_the_most_processes_known():
    one, two = (
        Candidate(Settings(number, 1), {1: climb(50, memory_peak_bytes={"app": size})})
        for number, size in ((1, 100), (2, 150))
    )
    assert memory_needed(Settings(4, 1), []) is None
    assert memory_needed(Settings(4, 1), [one]) == 400
    assert memory_needed(Settings(4, 1), [one, two]) == 300
