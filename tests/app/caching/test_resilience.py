"""The circuit breaker, and retries of what a backend did not take."""

from __future__ import annotations

import threading

import pytest

from benchapp.caching import resilience
from benchapp.caching.resilience import CircuitBreaker, Retry


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list:
    """The delayed calls, to be made by the test."""
    calls: list = []
    monkeypatch.setattr(resilience, "later", lambda seconds, action, *arguments: calls.append(action))
    return calls


def test_the_circuit_is_open_for_a_moment_after_a_timeout(monkeypatch: pytest.MonkeyPatch):
    now = 100.0
    monkeypatch.setattr(resilience.time, "monotonic", lambda: now)
    breaker = CircuitBreaker()
    assert not breaker.is_open
    breaker.trip()
    assert breaker.is_open
    now += resilience.OPEN_S
    assert not breaker.is_open


def test_it_is_tried_again_until_it_succeeds(scheduled: list):
    answers = [False, False, True]
    retry = Retry(lambda: answers.pop(0), 0.1)
    retry.request(for_s=60)
    while scheduled:
        scheduled.pop()()
    assert answers == []


def test_many_requests_share_one_timer(scheduled: list):
    retry = Retry(lambda: True, 0.1)
    for _ in range(5):
        retry.request(for_s=60)
    assert len(scheduled) == 1


def test_a_request_during_an_attempt_causes_another(scheduled: list):
    attempts: list[int] = []

    def attempt() -> bool:
        if not attempts:
            retry.request(for_s=60)
        attempts.append(1)
        return True

    retry = Retry(attempt, 0.1)
    retry.request(for_s=60)
    while scheduled:
        scheduled.pop()()
    assert len(attempts) == 2


def test_it_gives_up_in_the_end(scheduled: list):
    retry = Retry(lambda: False, 0.1)
    retry.request(for_s=0)
    scheduled.pop()()
    assert scheduled == []


def test_a_delayed_call_runs_in_a_thread_that_keeps_no_process_alive():
    seen: list[bool] = []
    done = threading.Event()

    def action(word: str) -> None:
        seen.append(threading.current_thread().daemon and word == "now")
        done.set()

    resilience.later(0, action, "now")
    assert done.wait(10)
    assert seen == [True]
