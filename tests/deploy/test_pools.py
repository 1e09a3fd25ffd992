"""The connections that PostgreSQL has, by the value `pool`, behind a real server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from bench import programs
from bench.errors import BenchError
from bench.serve.deployment import connections, deployment
from tests import postgresql
from tests.app import drivers
from tests.cases import resolved
from tests.deploy.running import command, get
from tests.waiting import until

pytestmark = pytest.mark.servers
PROCESSES = 3


@pytest.fixture(scope="module")
def database():
    """The URL of a cluster with some rows."""
    binaries = postgresql.programs()
    if binaries is None:
        pytest.skip("programs not installed: initdb, postgres")
    with postgresql.cluster(binaries) as url:
        for words in (["migrate", "--verbosity", "0"], ["loadfixtures", "--rows", "500"]):
            done = command("manage.py", *words, database=url)
            assert done.returncode == 0, done.stderr
        yield url


@contextmanager
def loaded(database: str, pool: str, env: dict[str, str] | None = None) -> Iterator[connections.Connections]:
    """What counts the connections of a site with this pool, after a load of all its processes."""
    changes = {"processes": PROCESSES, "threads": 1, "pool": pool, "pool_size": 1}
    case = resolved("gunicorn", database_url=database, changes=changes, env=env or {})
    with deployment.deployed(case) as running, connections.Connections(database) as counted:
        counted.watch(0.02)
        with ThreadPoolExecutor(3 * PROCESSES) as visitors:
            responses = list(visitors.map(lambda _: get(f"{running.url}/posts/"), range(60)))
        assert {response.status_code for response in responses} == {200}
        yield counted


def test_without_a_pool_no_connection_is_left(database):
    with loaded(database, "none") as counted:
        until(lambda: counted.count() == 0, "the end of all connections")


def test_each_thread_keeps_its_connection(database):
    with loaded(database, "conn_max_age") as counted:
        assert counted.count() == PROCESSES


def test_pgbouncer_shares_its_connections_among_all_processes(database):
    if not programs.find(["pgbouncer"]):
        pytest.skip("program not installed: pgbouncer")
    with loaded(database, "pgbouncer") as counted:
        assert counted.count() == counted.peak() == 1


def test_django_s_pool_has_its_size_in_each_process(database):
    env = {"PYTHONPATH": drivers.environment(drivers.PSYCOPG3)["PYTHONPATH"]}
    with loaded(database, "django", env) as counted:
        assert counted.count() == counted.peak() == PROCESSES


@pytest.mark.parametrize("pool", ["django", "pgbouncer"])
def test_a_pool_is_for_postgresql(pool, site_url):
    with pytest.raises(BenchError, match=rf"pool={pool}: it is for PostgreSQL"):
        resolved("gunicorn", database_url=site_url, changes={"pool": pool})
