"""Connections of a site to PostgreSQL, kept as BENCHAPP_POOL says.

https://docs.djangoproject.com/en/stable/ref/databases/#persistent-connections
https://docs.djangoproject.com/en/stable/ref/databases/#connection-pool
https://docs.djangoproject.com/en/stable/ref/databases/#transaction-pooling-server-side-cursors
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from benchapp_overlay.environment import Env, require_pool

NONE, PERSISTENT, DJANGO, PGBOUNCER = "none", "conn_max_age", "django", "pgbouncer"
# The port that names PgBouncer's socket in its folder.
PGBOUNCER_PORT = "6432"
# Seconds that a thread keeps its connection.
USUAL_S = 60


def with_pool(database: dict[str, Any], env: Env) -> dict[str, Any]:
    """Return the settings of a PostgreSQL database with the pool that the environment chooses, any other unchanged.

    Raises ImproperlyConfigured for Django's pool without psycopg 3, or with an older Django.
    """
    pool = env.choice("BENCHAPP_POOL", "", NONE, PERSISTENT, DJANGO, PGBOUNCER)
    if not pool or not database.get("ENGINE", "").rpartition(".")[2].startswith(("postg", "postgis")):
        return database
    options = {name: value for name, value in database.get("OPTIONS", {}).items() if name != "pool"}
    settings = {**database, "CONN_MAX_AGE": 0, "OPTIONS": options}
    if pool == PERSISTENT:
        seconds = env.whole_number("BENCHAPP_POOL_SECONDS", USUAL_S, minimum=0, maximum=86_400)
        settings |= {"CONN_MAX_AGE": seconds, "CONN_HEALTH_CHECKS": True}
    elif pool == DJANGO:
        require_pool("BENCHAPP_POOL=django")
        size = env.whole_number("BENCHAPP_POOL_SIZE", 8, minimum=1, maximum=1000)
        options["pool"] = {"min_size": min(2, size), "max_size": size}
    elif pool == PGBOUNCER:
        # A connection to PgBouncer is cheap to keep. A cursor on the server belongs to a session.
        settings |= {"CONN_MAX_AGE": USUAL_S, "CONN_HEALTH_CHECKS": True, "DISABLE_SERVER_SIDE_CURSORS": True}
        # Only servers have the variable: a migration or a dump needs a session, which transaction pooling has not.
        if folder := env.text("BENCHAPP_POOL_HOST"):
            settings |= {"HOST": folder, "PORT": PGBOUNCER_PORT}
        if find_spec("psycopg"):
            # A prepared statement belongs to a session.
            options["prepare_threshold"] = None
    return settings
