"""Too many wrong passwords are refused for a while, by account and by address."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchapp import login
from benchapp.models import FailedLogin
from tests.app.conftest import PASSWORD

HOME, ELSEWHERE = "203.0.113.7", "198.51.100.9"


@pytest.fixture(autouse=True)
def few(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "FEW", 2)
    monkeypatch.setattr(login, "MANY", 20)
    get_user_model().objects.create_user("margaret", password=PASSWORD)


def log_in(name: str = "margaret", password: str = "wrong", address: str = HOME) -> int:
    data = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/login/", data).status_code


def test_an_account_is_refused_from_an_address_that_failed_too_often():
    assert [log_in() for _ in range(4)] == [200, 200, 429, 429]
    assert log_in(password=PASSWORD) == 429
    # Its owner is elsewhere, and others are not concerned.
    assert log_in(password=PASSWORD, address=ELSEWHERE) == 302
    assert log_in(name="somebody") == 200


def test_the_answer_says_when_to_come_back():
    for _ in range(2):
        log_in()
    answer = Client(REMOTE_ADDR=HOME).post("/login/", {"username": "margaret", "password": "wrong"})
    assert (answer.status_code, answer["Retry-After"]) == (429, "300")
    assert "never" not in answer["Cache-Control"]
    assert "private" in answer["Cache-Control"]


def test_an_account_is_refused_from_everywhere_after_more_failures():
    assert [log_in(address=f"203.0.113.{number}") for number in range(21)] == [200] * 20 + [429]
    assert log_in(password=PASSWORD, address=ELSEWHERE) == 429


@pytest.mark.parametrize(
    ("addresses", "status"),
    [
        (["203.0.113.7"] * 21, 429),
        ([f"2001:db8::{number:x}" for number in range(21)], 429),
        ([f"2001:db8:0:{number:x}::1" for number in range(21)], 200),
        # One address of IPv4, as a socket of both versions names it, and one of each.
        (["::ffff:203.0.113.7"] * 11 + ["203.0.113.7"] * 10, 429),
        ([f"::ffff:203.0.113.{number}" for number in range(21)], 200),
        (["::ffff:127.0.0.1"] * 21, 200),
        # All clients may look like this one.
        (["127.0.0.1"] * 21, 200),
        ([""] * 21, 200),
    ],
)
def test_an_address_is_refused_after_failures_with_many_accounts(addresses: list[str], status: int):
    found = [log_in(name=f"name-{number}", address=address) for number, address in enumerate(addresses)]
    assert found == [200] * 20 + [status]


def test_a_missing_field_is_no_failure():
    assert [log_in(password="") for _ in range(5)] == [200] * 5
    assert log_in(password=PASSWORD) == 302


def test_failures_are_forgotten_after_a_while():
    assert [log_in() for _ in range(3)] == [200, 200, 429]
    FailedLogin.objects.update(at=timezone.now() - timedelta(seconds=login.WINDOW_S))
    assert log_in() == 200
    assert FailedLogin.objects.count() == 3


def test_a_failed_login_costs_few_queries_however_many_there_were():
    for _ in range(20):
        log_in(name="nobody", address="203.0.113.8")
        with CaptureQueriesContext(connection) as queries:
            log_in(address="203.0.113.9")
        assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) <= 4


def test_an_account_has_one_name_however_a_client_spells_it():
    names = ["margaret", " margaret", "margaret\t", "\uff4dargaret", "\u2003margaret "]
    assert [log_in(name) for name in names] == [200, 200, 429, 429, 429]
