"""The circuit breaker, and retries of what a backend did not take."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from benchapp.caching import resilience
from benchapp.caching.resilience import CircuitBreaker, Retry
from tests import clock


def test_the_circuit_is_open_for_a_moment_after_a_timeout(monkeypatch: pytest.MonkeyPatch):
    now = 100.0
    clock.change(monkeypatch, resilience, monotonic=lambda: now)
    breaker = CircuitBreaker()
    assert not breaker.is_open
    breaker.trip()
    assert breaker.is_open
    now += resilience.OPEN_S
    assert not breaker.is_open


def test_it_is_tried_again_until_it_succeeds(scheduled: list):
    outcomes = [False, False, True]
    retry = Retry(lambda: outcomes.pop(0), 0.1)
    retry.request(for_s=60)
    while scheduled:
        scheduled.pop()()
    assert outcomes == []


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


def ended(code: str) -> tuple[list[str], float]:
    """The output of a process that runs this code, and its time in seconds."""
    begun = time.monotonic()
    head = "import os, time\nfrom benchapp.caching import resilience\nfrom benchapp.caching.resilience import later\n"
    done = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=180, check=True)
    return done.stdout.split(), time.monotonic() - begun


def test_a_process_that_ends_makes_its_delayed_calls_before():
    assert ended("later(0.2, print, 'second'); later(0.1, print, 'first')")[0] == ["first", "second"]


def test_a_process_that_ends_waits_for_a_while_only():
    code = "resilience.MAX_EXIT_S = 0.2; later(0, time.sleep, 50); later(50, print, 'never')"
    words, took_s = ended(code)
    assert words == []
    assert took_s < 20


def test_a_forked_process_does_not_wait_for_the_calls_of_its_parent():
    code = """
later(1, print, 'once')
if os.fork() == 0:
    print(len(resilience._pending), flush=True)
    os._exit(0)
os.wait()
"""
    assert ended(code)[0] == ["0", "once"]
