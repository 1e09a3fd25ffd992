"""Filters of log records: an event that any client can cause takes one short line."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError

MAX_CHARACTERS = 200


class OneLine(logging.Filter):
    """Take the traceback and all beyond 200 characters from a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = record.getMessage()[:MAX_CHARACTERS], ()
        record.exc_info = record.exc_text = None
        return True


class OneLineWithoutDatabase(OneLine):
    """The same for requests that fail while the database cannot be used."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, (OperationalError, InterfaceError)):
            return True
        reason = str(error).partition("\n")[0]
        record.msg, record.args = f"{record.getMessage()}: {reason}", ()
        return super().filter(record)
