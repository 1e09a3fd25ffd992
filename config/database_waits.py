"""Bounds on how long a request waits for the database: one that hangs, or is locked, must not hold every worker.

Only servers have them, through config/wsgi.py and config/asgi.py: a management command waits as long as it needs.
"""

from __future__ import annotations

from django.db import connections

# The database itself ends a statement first, if it can.
MARGIN_S = 0.25


def limit_waits(seconds: int) -> None:
    """Give up each wait for the default database after so many seconds, with an OperationalError."""
    settings = connections.settings["default"]
    options = settings["OPTIONS"]
    if settings["ENGINE"].endswith("sqlite3"):
        # For another writer.
        options["timeout"] = min(seconds, options["timeout"])
        return
    # A site on SQLite need not load PostgreSQL's driver.
    from config import postgresql_waits

    options.setdefault("options", f"-c statement_timeout={seconds * 1000}")
    postgresql_waits.install(seconds + MARGIN_S)
