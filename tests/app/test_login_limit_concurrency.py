"""Passwords that are checked at one moment by several processes share the places of a limit."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import RequestFactory

from benchapp.login_limit import attempts, limits
from benchapp.login_limit.models import FailedLogin

AT_ONCE = 12
CREDENTIALS = {"username": "margaret", "password": "words"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt ends because a machine is slow."""
    monkeypatch.setattr(attempts, "PAUSES", 36_000)
    monkeypatch.setattr(attempts, "UNDECIDED_S", 3600)
    monkeypatch.setattr(attempts, "WINDOW_S", 3600)


def log_in_at_once(end: Callable[[], object]) -> int:
    """The number of checked passwords, each by a thread with its own connection; `end` comes after a check."""
    request = RequestFactory().post("/login/", REMOTE_ADDR="203.0.113.7")

    def log_in(_: int) -> bool:
        try:
            begun = attempts.begin(limits.limits_of(request, CREDENTIALS))
            end()
            return begun
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(log_in, range(AT_ONCE)))


def test_wrong_passwords_are_checked_up_to_the_limit(site_database: str):
    request = RequestFactory().post("/login/", REMOTE_ADDR="203.0.113.7")
    wrong = log_in_at_once(lambda: attempts.count_failure("test", CREDENTIALS, request))
    assert (wrong, FailedLogin.objects.filter(attempt=None).count()) == (limits.FEW, 3 * limits.FEW)


def test_right_passwords_are_all_checked(site_database: str):
    assert log_in_at_once(attempts.release) == AT_ONCE
    assert not FailedLogin.objects.exists()
