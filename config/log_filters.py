"""Filters of log records: what any client can cause takes one short line."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError

MAX_CHARACTERS = 200


def one_line(record: logging.LogRecord) -> bool:
    """Take the traceback and all beyond 200 characters from a record."""
    record.msg, record.args = record.getMessage()[:MAX_CHARACTERS], ()
    record.exc_info = record.exc_text = None
    return True


def one_line_without_database(record: logging.LogRecord) -> bool:
    """The same for a request that failed because the database cannot be used: all of them do."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, (OperationalError, InterfaceError)):
        reason = str(error).partition("\n")[0]
        record.msg, record.args = f"{record.getMessage()}: {reason}", ()
        return one_line(record)
    return True
