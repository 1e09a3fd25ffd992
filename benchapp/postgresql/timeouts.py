"""statement_timeout among libpq's `options` of a connection to PostgreSQL."""

from __future__ import annotations

import re

SETTING = re.compile(r"(?:^|\s)(?:-c\s*|--)statement[_-]timeout=(\S*)", re.IGNORECASE)
VALUE = re.compile(r"'?(\d+(?:\.\d+)?)(us|ms|s|min|h|d)?'?")
# https://www.postgresql.org/docs/current/config-setting.html#CONFIG-SETTING-NAMES-VALUES
SECONDS = {None: 0.001, "us": 0.000001, "ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}


def with_statement_timeout(options: str, seconds: int) -> str:
    """Return the options with a limit for each statement; options with a limit stay as they are."""
    if SETTING.search(options):
        return options
    return f"{options} -c statement_timeout={seconds * 1000}".strip()


def statement_timeout_s(options: str) -> float:
    """Return the limit of a statement in seconds; 0 without a limit, or for an unreadable one."""
    named = SETTING.findall(options)
    value = VALUE.fullmatch(named[-1]) if named else None
    if value is None:
        return 0.0
    return float(value[1]) * SECONDS[value[2]]
