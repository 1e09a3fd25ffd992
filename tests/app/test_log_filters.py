"""What any client can cause takes one short line of log."""

from __future__ import annotations

import logging

import pytest
from django.test import Client


def test_a_foreign_host_costs_one_short_line(db: None, client: Client, caplog: pytest.LogCaptureFixture):
    logger = logging.getLogger("django")
    logger.addHandler(caplog.handler)
    try:
        assert client.get("/healthz", headers={"host": "a" * 4000}).status_code in (200, 400)
        assert client.get("/", headers={"host": "a" * 4000}).status_code == 400
    finally:
        logger.removeHandler(caplog.handler)
    (record,) = [item for item in caplog.records if item.name == "django.security.DisallowedHost"][:1]
    assert len(record.getMessage()) == 200
    assert record.exc_info is None
