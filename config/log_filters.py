"""Filters of log records: what any client can cause takes one short line."""

from __future__ import annotations

import logging

MAX_CHARACTERS = 200


def one_line(record: logging.LogRecord) -> bool:
    """Take the traceback and all beyond 200 characters from a record."""
    record.msg, record.args = record.getMessage()[:MAX_CHARACTERS], ()
    record.exc_info = record.exc_text = None
    return True
