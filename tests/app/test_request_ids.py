"""Ids of requests in the application, and its own access log as an operator has chosen it."""

from __future__ import annotations

import json
import logging

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from benchapp import middleware
from benchapp.serving import request_id
from benchapp.serving.request_id import InLog, identified

OWN = "3f2a9c0e-1111-4c5d-9aaa-0123456789ab"


@pytest.mark.parametrize("given", ["", "short", "has space here", 'quote"quote', "x" * 65, "a\nb345678"])
def test_an_id_that_may_not_stand_in_a_log_is_replaced(given, rf: RequestFactory, settings):
    settings.BENCHAPP_ACCESS_LOG = True
    seen = []
    view = identified(lambda request: seen.append(request.headers["X-Request-Id"]) or HttpResponse())
    response = view(rf.get("/", headers={"x-request-id": given}))
    assert response.headers["X-Request-Id"] == seen[0] != given
    assert request_id.VALID.fullmatch(seen[0])


@pytest.mark.parametrize("adds", [True, False])
def test_the_id_of_the_server_in_front_is_kept(adds, rf, settings):
    """The response has it here only if that server does not add it."""
    settings.BENCHAPP_ACCESS_LOG = adds
    seen = []
    view = identified(lambda request: seen.append(request.headers["X-Request-Id"]) or HttpResponse())
    response = view(rf.get("/", headers={"x-request-id": OWN}))
    assert seen == [OWN]
    assert response.headers.get("X-Request-Id") == (OWN if adds else None)


def test_a_line_of_a_log_has_the_id_of_its_request_and_of_no_other(rf, settings):
    settings.BENCHAPP_ACCESS_LOG = True
    ids = []

    def log(_=None) -> HttpResponse:
        record = logging.makeLogRecord({})
        assert InLog().filter(record)
        ids.append(record.request_id)
        return HttpResponse()

    identified(log)(rf.get("/", headers={"x-request-id": OWN}))
    log()
    assert ids == [OWN, "-"]


ADDRESSES = [
    ("203.0.113.77", "203.0.113.0"),
    ("2001:db8:1:2:3::4", "2001:db8:1::"),
    ("::1", "::"),
    ("", "-"),
]


@pytest.mark.parametrize(("address", "masked"), ADDRESSES)
def test_an_access_log_in_json_without_addresses(address, masked, rf, settings, caplog):
    settings.BENCHAPP_LOG_FORMAT, settings.BENCHAPP_LOG_ADDRESSES = "json", "masked"
    odd = 'a"b\\c\x01é'
    request = rf.get("/x", REMOTE_ADDR=address, HTTP_USER_AGENT=odd, HTTP_X_REQUEST_ID=OWN)
    with caplog.at_level(logging.INFO, "benchapp.access"):
        middleware.access_logger.addHandler(caplog.handler)
        middleware.access_log(lambda _: HttpResponse("yes"))(request)
        middleware.access_logger.removeHandler(caplog.handler)
    entry = json.loads(caplog.messages[0])
    assert (entry["client"], entry["agent"], entry["id"], entry["status"]) == (masked, odd, OWN, 200)
