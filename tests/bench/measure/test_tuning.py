"""The search for settings on invented stacks: what is tried, where it stops, and which answer it gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.figures.capacity import Limit, next_rate, rate_near
from bench.measure import tuning
from bench.measure.tuning import Answer, Room, Search, Settings, Tried, memory_needed, search, tried
from bench.results.capacity import Climb
from tests.bench.results.run_data import at_rate, failed

LIMIT = Limit("p95", 200.0)
MIB = 2**20
BOTH = ("processes", "threads")


def climb(capacity: float, number: int = 1, **changes) -> Climb:
    """The staircase of a site that holds so much."""
    made = Climb(LIMIT)
    while (rate := made.next_rate(rate_near(capacity), near=True)) is not None:
        made.add(replace(at_rate(rate, 20.0 if rate <= capacity else 900.0, number), **changes))
    return made


class Stack:
    """Settings -> the rate that they hold; every process needs `each` MiB and the first one 50 more.

    log  what was measured: settings and round
    """

    def __init__(self, holds: Callable[[Settings], float], each: int = 50, noise: float = 0.0, **changes):
        self.holds, self.each, self.noise, self.changes = holds, each, noise, changes
        self.log: list[tuple[Settings, int]] = []
        self._rounds: dict[Settings, dict[int, Climb]] = {}
        self._chance = random.Random(5)

    def measure(self, settings: Settings, number: int, near: int | None) -> Tried:
        self.log.append((settings, number))
        rate = self.holds(settings) * (1 + self._chance.gauss(0, self.noise))
        memory = {"app": (50 + self.each * settings.processes) * MIB}
        made = climb(rate, number, memory_peak_bytes=memory, **self.changes)
        rounds = self._rounds.setdefault(settings, {})
        rounds[number] = made
        return tried(settings, rounds)

    @property
    def first_round(self) -> list[tuple[int, int]]:
        return [(settings.processes, settings.threads) for settings, number in self.log if number == 1]


USUAL = Settings(4, 1)


def plan(knobs=BOTH, usual: Settings = USUAL, room: Room | None = None) -> Search:
    return Search(knobs, usual, room or Room(), margin=0.11)


def chosen(found: Search, done: list[Tried]) -> Settings:
    return found.best(done).settings


def test_processes_are_doubled_until_that_gains_nothing_and_then_threads():
    stack, found = Stack(lambda it: 200 * min(it.processes, 4)), plan()
    done = search(found, 3, stack.measure)
    assert stack.first_round == [(1, 1), (2, 1), (4, 1), (8, 1), (4, 2)]
    assert chosen(found, done) == Settings(4, 1), "of those that hold as much, the simplest"
    assert {item.settings: found.verdict(item, done) for item in done} == {
        Settings(1, 1): "holds 0.25 times as much",
        Settings(2, 1): "holds 0.50 times as much",
        Settings(4, 1): "take these",
        Settings(8, 1): "no difference",
        Settings(4, 2): "no difference",
    }


def test_threads_are_more_where_they_gain_something():
    stack, found = Stack(lambda it: 200 * it.processes if it.processes == 1 else 210 * min(it.threads, 4)), plan()
    done = search(found, 3, stack.measure)
    assert stack.first_round == [(1, 1), (2, 1), (1, 2)]
    stack, found = Stack(lambda it: 200 * min(it.threads, 4)), plan()
    done = search(found, 3, stack.measure)
    assert stack.first_round == [(1, 1), (2, 1), (1, 2), (1, 4), (1, 8)]
    assert chosen(found, done) == Settings(1, 4)


def test_more_rounds_are_for_those_near_the_best():
    stack = Stack(lambda it: 200 * min(it.processes, 4))
    search(plan(), 3, stack.measure)
    later = [(settings.processes, settings.threads) for settings, number in stack.log if number > 1]
    assert sorted(later) == sorted([(4, 1), (8, 1), (4, 2)] * 2)
    assert later[:3] == later[:2:-1], "in the opposite order each time"


def test_a_stack_keeps_its_own_threads_which_slow_clients_need():
    stack = Stack(lambda it: 200.0)
    search(plan(usual=Settings(4, 4)), 1, stack.measure)
    assert stack.first_round == [(1, 4), (2, 4), (1, 8)]


def test_only_what_the_stack_uses_is_changed():
    stack = Stack(lambda it: 200 * min(it.threads, 2))
    search(plan(("threads",), Settings(4, 1)), 1, stack.measure)
    assert stack.first_round == [(4, 1), (4, 2), (4, 4)]


def test_the_largest_number_that_fits_the_memory_is_tried():
    stack, found = Stack(lambda it: 200 * it.processes), plan(room=Room(memory_bytes=370 * MIB))
    done = search(found, 1, stack.measure)
    assert stack.first_round == [(1, 1), (2, 1), (4, 1), (6, 1), (6, 2)]
    assert found.too_large(done)[Settings(12, 1)] == "needs about 650 MiB of 370 MiB"


def test_the_connections_that_the_database_allows_are_learned_from_the_first_trial():
    stack = Stack(lambda it: 200 * it.processes, database_connections_limit=13, database_connections_peak=3)
    found = plan(usual=Settings(4, 4))
    done = search(found, 1, stack.measure)
    assert stack.first_round == [(1, 4), (2, 4), (3, 4)]
    assert found.too_large(done)[Settings(6, 4)] == "24 threads may each hold a database connection, and 12 are free"
    assert {item.connections for item in done} == {3}


SYNC, ASYNC = ("sync", "gthread"), ("uvicorn",)


def other_class(**more) -> Search:
    usual = Settings(4, 1, SYNC)
    return Search(BOTH, usual, more.pop("room", Room()), margin=0.11, others=[Settings(4, 16, ASYNC)], **more)


def test_other_worker_classes_are_tried_with_the_processes_found_and_their_own_threads():
    stack, found = Stack(lambda it: 200 * min(it.processes, 2) * (1.5 if it.classes == ASYNC else 1)), other_class()
    done = search(found, 1, stack.measure)
    assert stack.first_round == [(1, 1), (2, 1), (4, 1), (2, 2), (2, 16), (2, 32)]
    assert chosen(found, done) == Settings(2, 16, ASYNC)
    assert [item.settings.words for item in done][-3:] == [
        "2 processes with 2 threads each (gthread)",
        "2 processes with 16 threads each (uvicorn)",
        "2 processes with 32 threads each (uvicorn)",
    ]


def test_another_worker_class_that_gains_nothing_is_not_the_answer():
    stack, found = Stack(lambda it: 200 * min(it.processes, 2)), other_class()
    done = search(found, 1, stack.measure)
    assert chosen(found, done) == Settings(2, 1, SYNC)


def test_another_worker_class_that_does_not_fit_is_left_out_with_the_reason():
    stack = Stack(lambda it: 200 * min(it.processes, 2), database_connections_limit=13, database_connections_peak=3)
    found = other_class()
    done = search(found, 1, stack.measure)
    assert (2, 16) not in stack.first_round
    why = found.too_large(done)[Settings(2, 16, ASYNC)]
    assert why == "32 threads may each hold a database connection, and 12 are free"


def test_settings_whose_processes_are_killed_are_no_answer():
    def holds(settings: Settings) -> float:
        stack.changes = {"oom_kills": 2 if settings.processes > 1 else 0}
        return 200.0 * settings.processes

    stack, found = Stack(holds), plan(("processes",))
    done = search(found, 1, stack.measure)
    assert [item.problem for item in done] == ["", "2 processes killed for want of memory"]
    assert chosen(found, done) == Settings(1, 1)


def test_a_stack_that_fails_ends_the_search_with_the_reason():
    broken = Climb(LIMIT, [failed(at_rate(50), came_back=None)])
    found = plan()
    done = search(found, 3, lambda settings, number, near: tried(settings, {number: broken}))
    assert [item.problem for item in done] == ["503 answers"]
    assert found.verdict(done[0], done) == "503 answers"


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_noise_seldom_costs_more_than_a_quarter(noise):
    good = 0
    for seed in range(12):
        stack, found = Stack(lambda it: 200 * min(it.processes, 3), noise=noise), plan(("processes",))
        stack._chance = random.Random(seed)
        done = search(found, 3, stack.measure)
        good += chosen(found, done).processes == 4
    assert good >= 10


@pytest.mark.parametrize(
    ("rates", "processes"),
    [
        # Rounds that overlap prove no difference, unless it is large; those of one round have nothing to overlap with.
        ([(530, 630, 530, 800), (600, 600, 600)], 1),
        ([(500, 500, 520), (600, 600, 600)], 2),
        ([(300, 300, 800), (600, 600, 600)], 2),
        ([(500,), (600,)], 2),
    ],
)
def test_rounds_that_overlap_make_no_difference(rates, processes):
    done = [
        tried(Settings(number, 1), {turn: climb(rate, turn) for turn, rate in enumerate(found, 1)})
        for number, found in enumerate(rates, 1)
    ]
    assert chosen(plan(), done).processes == processes


def test_memory_is_taken_in_proportion_until_two_numbers_are_known():
    one = Tried(Settings(1, 1), memory_bytes=100.0)
    assert memory_needed(Settings(4, 1), []) is None
    assert memory_needed(Settings(4, 1), [one]) == 400
    assert memory_needed(Settings(4, 1), [one, Tried(Settings(2, 1), memory_bytes=150.0)]) == 250


def test_the_answer_is_one_sentence():
    rounds = {
        number: climb(capacity, number, memory_peak_bytes={"app": 120 * MIB})
        for number, capacity in ((1, 450), (2, 475))
    }
    first, second = tried(Settings(2, 4), rounds), tried(Settings(4, 4), rounds)
    assert Answer("gunicorn", "none", LIMIT.words, first, ()).sentence == (
        "gunicorn with layer none: take 2 processes with 4 threads each; they hold 462 requests/s (450 to 500 in 2 "
        "rounds) with p95 within 200 ms, in 120 MiB and with at most 8 database connections."
    )
    counted = replace(first, connections=7)
    assert Answer("gunicorn", "none", LIMIT.words, counted, (second,)).sentence.endswith(
        "and with 7 database connections. No difference to 4 processes with 4 threads each: take the simpler."
    )


def test_the_search_begins_near_what_is_known():
    begun = []

    def measure(settings, number, near):
        begun.append((number, near))
        return stack.measure(settings, number, near)

    stack = Stack(lambda it: 200.0)
    search(plan(("processes",)), 2, measure)
    assert begun == [(1, None), (1, 200), (2, None), (2, None)]
    assert next_rate({}, 200, near=True) == 200
    assert tuning.MAX_FINALISTS == 3
