"""A site's connections to PostgreSQL, by BENCHAPP_POOL."""

from __future__ import annotations

import sys
from types import ModuleType

import django
import pytest
from django.core.exceptions import ImproperlyConfigured

from benchapp_overlay import pools
from benchapp_overlay.environment import Env

POSTGRESQL = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "shop",
    "HOST": "db",
    "PORT": "5432",
    "CONN_MAX_AGE": 300,
    "OPTIONS": {"pool": True, "sslmode": "require"},
}


def pooled(monkeypatch, database=POSTGRESQL, psycopg=True, **variables):
    monkeypatch.setattr(pools, "find_spec", lambda name: psycopg)
    for name in ("psycopg", "psycopg_pool"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name) if psycopg else None)
    env = Env()
    env.ENVIRON = {f"BENCHAPP_POOL{name}": value for name, value in variables.items()}
    return pools.with_pool(database, env)


def test_without_the_variable_the_settings_stay(monkeypatch):
    assert pooled(monkeypatch) is POSTGRESQL


@pytest.mark.parametrize("engine", ["sqlite3", "mysql"])
def test_another_database_stays_as_it_is(monkeypatch, engine):
    database = {"ENGINE": f"django.db.backends.{engine}", "NAME": "shop"}
    assert pooled(monkeypatch, database, **{"": "pgbouncer", "_HOST": "/run/x"}) is database


def test_none_opens_a_connection_a_request(monkeypatch):
    database = pooled(monkeypatch, **{"": "none"})
    assert database["CONN_MAX_AGE"] == 0
    assert database["OPTIONS"] == {"sslmode": "require"}


def test_threads_keep_their_connections_for_some_seconds(monkeypatch):
    assert pooled(monkeypatch, **{"": "conn_max_age"})["CONN_MAX_AGE"] == 60
    database = pooled(monkeypatch, **{"": "conn_max_age", "_SECONDS": "30"})
    assert (database["CONN_MAX_AGE"], database["CONN_HEALTH_CHECKS"]) == (30, True)
    assert database["OPTIONS"] == {"sslmode": "require"}


def test_django_s_pool_has_its_size_and_no_persistent_connections(monkeypatch):
    database = pooled(monkeypatch, **{"": "django", "_SIZE": "1"})
    assert database["CONN_MAX_AGE"] == 0
    assert database["OPTIONS"] == {"sslmode": "require", "pool": {"min_size": 1, "max_size": 1}}


def test_django_s_pool_without_psycopg_3_is_refused(monkeypatch):
    with pytest.raises(ImproperlyConfigured, match="needs psycopg 3"):
        pooled(monkeypatch, psycopg=False, **{"": "django"})


def test_django_s_pool_is_newer_than_some_releases_of_django(monkeypatch):
    monkeypatch.setattr(django, "VERSION", (5, 0, 9, "final", 0))
    with pytest.raises(ImproperlyConfigured, match=r"BENCHAPP_POOL=django: .*5\.1"):
        pooled(monkeypatch, **{"": "django"})


def test_pgbouncer_is_reached_by_servers_only(monkeypatch):
    command = pooled(monkeypatch, **{"": "pgbouncer"})
    assert (command["HOST"], command["PORT"], command["DISABLE_SERVER_SIDE_CURSORS"]) == ("db", "5432", True)
    server = pooled(monkeypatch, **{"": "pgbouncer", "_HOST": "/run/benchapp"})
    assert (server["HOST"], server["PORT"]) == ("/run/benchapp", "6432")
    assert server["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert server["OPTIONS"] == {"sslmode": "require", "prepare_threshold": None}
    assert "prepare_threshold" not in pooled(monkeypatch, psycopg=False, **{"": "pgbouncer", "_HOST": "/x"})["OPTIONS"]


def test_an_unknown_pool_is_refused(monkeypatch):
    with pytest.raises(ImproperlyConfigured, match="BENCHAPP_POOL='pgpool'"):
        pooled(monkeypatch, **{"": "pgpool"})
