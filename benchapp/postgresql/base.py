"""The backend, in the module that Django loads."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import base

from benchapp.postgresql import limits

# Django takes psycopg 3 as soon as it can be imported.
if base.Database.__name__ == "psycopg":
    from benchapp.postgresql.psycopg3_waits import Connection

    # Django connects by the `connect` of its module.
    Driver = SimpleNamespace(**vars(base.Database) | {"connect": Connection.connect})
    POOL = {"connection_class": Connection, "timeout": limits.CONNECT_S}
else:
    from psycopg2.extensions import set_wait_callback

    from benchapp.postgresql import psycopg2_waits

    set_wait_callback(psycopg2_waits.wait)
    Driver = base.Database
    POOL = {}


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's backend with limited waits. After a connection gave no response, nobody connects for a moment."""

    Database = Driver

    def __init__(self, settings_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(settings_dict, *args, **kwargs)
        options = settings_dict["OPTIONS"]
        options.setdefault("connect_timeout", limits.CONNECT_S)
        if pool := options.get("pool"):
            options["pool"] = POOL | ({} if pool is True else pool)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect, or take a connection from the pool; raises OperationalError at once while the breaker is open."""
        if limits.breaker.is_open:
            raise OperationalError("the database has just given no response: not tried again yet")
        with limits.connecting():
            return super().get_new_connection(conn_params)

    def is_usable(self) -> bool:
        """Return whether a request's connection still responds; Django replaces it otherwise."""
        if limits.breaker.is_open:
            return False
        begun = time.monotonic()
        with limits.connecting():
            usable = super().is_usable()
        if not usable and time.monotonic() - begun >= limits.CONNECT_S:
            limits.breaker.trip()
        return usable
