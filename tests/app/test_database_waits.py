"""A request waits for the database for a bounded time, and is then a 503."""

from __future__ import annotations

import logging
import socket
from types import ModuleType

import psycopg2
import pytest
from django.db import OperationalError
from django.http import HttpRequest
from django.test import Client
from django.test.utils import override_settings
from django.urls import path
from psycopg2.extensions import POLL_OK, POLL_READ

from benchapp.caching import resilience
from benchapp.postgresql_waits import Patience
from config import urls
from config.log_filters import one_line_without_database


class Connection:
    """A connection to a server; `!` ends its answer."""

    def __init__(self, here: socket.socket):
        self.here = here

    def fileno(self) -> int:
        return self.here.fileno()

    def poll(self) -> int:
        try:
            return POLL_OK if self.here.recv(1, socket.MSG_DONTWAIT) == b"!" else POLL_READ
        except BlockingIOError:
            return POLL_READ


@pytest.fixture
def pair():
    """A connection, and the server's end of it."""
    here, there = socket.socketpair()
    with here, there:
        yield Connection(here), there


def test_an_answer_ends_the_wait(pair):
    connection, server = pair
    server.sendall(b"..!")
    Patience(5)(connection)


def test_a_silent_database_is_given_up_and_then_left_alone_for_a_moment(pair, monkeypatch):
    connection, server = pair
    monkeypatch.setattr(resilience, "OPEN_S", 60)
    wait = Patience(0.02)
    server.sendall(b".")
    with pytest.raises(psycopg2.OperationalError, match=r"no answer of the database within 0\.02 s"):
        wait(connection)
    server.sendall(b"!")
    with pytest.raises(psycopg2.OperationalError, match="has just not answered"):
        wait(connection)


def unusable(request: HttpRequest) -> None:
    raise OperationalError("no answer\nand more")


def test_a_database_that_cannot_be_used_is_a_503():
    site = ModuleType("urls_with_an_unusable_page")
    vars(site).update(vars(urls), urlpatterns=[path("unusable", unusable), *urls.urlpatterns])
    with override_settings(ROOT_URLCONF=site):
        answer = Client(raise_request_exception=False).get("/unusable")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "The pantry is locked." in answer.text


@pytest.mark.parametrize(("error", "logged"), [(OperationalError("a\nb"), "GET /: a"), (ValueError("a"), "GET /")])
def test_it_costs_one_line_of_log(error, logged):
    record = logging.LogRecord("django.request", logging.ERROR, "", 1, "GET %s", ("/",), (type(error), error, None))
    assert one_line_without_database(record)
    assert record.getMessage() == logged
    assert bool(record.exc_info) is (logged == "GET /")
