"""The connections that PostgreSQL has, by the value `pool`, behind a real server."""

from __future__ import annotations

import os
import pwd
import runpy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from bench import paths, programs
from bench.errors import BenchError
from bench.serve.deployment import connections, deployment
from bench.serve.production import containers, one_host
from benchapp_overlay.environment import with_credentials
from tests import postgresql
from tests.app import drivers
from tests.cases import production, resolved
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
    """The counter of the connections of a site with this pool, after a load of all its processes."""
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


START = runpy.run_path(str(paths.DEPLOY / "services" / "pgbouncer" / "pgbouncer_start.py"))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://me:it%27s%40@db:5433/shop",
            "shop = host='db' port='5433' dbname='shop' user='me' password='it''s@'",
        ),
        ("postgres://me@/shop-2?host=%2Frun%2Fpg", "\"shop-2\" = host='/run/pg' dbname='shop-2' user='me'"),
        ("postgis://me@[::1]/shop", "shop = host='::1' dbname='shop' user='me'"),
    ],
)
def test_pgbouncer_is_told_where_the_database_of_the_site_is(url, expected):
    assert START["section"](url) == f"[databases]\n{expected}\n"


def test_without_a_user_it_is_that_of_the_process():
    name = pwd.getpwuid(os.getuid()).pw_name
    expected = f"shop = host='/var/run/postgresql' dbname='shop' user='{name}'"
    assert START["section"]("postgresql:///shop") == f"[databases]\n{expected}\n"


def test_the_secrets_of_systemd_name_the_database(tmp_path, monkeypatch):
    (tmp_path / "secrets.env").write_text("# DATABASE_URL=postgresql:///old\nDATABASE_URL='postgresql:///shop'\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert START["database_url"]() == "postgresql:///shop"


@pytest.mark.parametrize(
    "written",
    [
        "postgresql:///shop",
        ' "postgresql:///shop"',
        "'postgresql:///it'",
        "postgresql:///it'",
        "'",
        r"postgresql:///a\\b",
    ],
)
def test_pgbouncer_reads_the_secrets_as_the_site_does(tmp_path, monkeypatch, written):
    (tmp_path / "secrets.env").write_text(f"DATABASE_URL={written}\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.delenv("BENCHAPP_DATABASE_URL", raising=False)
    assert START["database_url"]() == with_credentials(os.environ)["DATABASE_URL"]


def test_a_host_has_its_unit_and_only_servers_use_it(tmp_path):
    one_host.write(production("nginx-gunicorn", pool="pgbouncer", pool_size=9), tmp_path)
    unit = (tmp_path / "systemd" / "benchapp-pgbouncer.service").read_text("utf-8")
    assert "\nUser=benchapp-app\n" in unit and "\nLoadCredential=secrets.env:" in unit
    assert " /usr/sbin/pgbouncer /etc/benchapp/pgbouncer.ini " in unit
    assert "\ndefault_pool_size = 9\n" in (tmp_path / "pgbouncer.ini").read_text("utf-8")
    assert (tmp_path / "pgbouncer_start.py").is_file()
    for name in ("gunicorn", "gunicorn-standin"):
        text = (tmp_path / "systemd" / f"benchapp-{name}.service").read_text("utf-8")
        assert "\nEnvironment=BENCHAPP_POOL_HOST=/run/benchapp\n" in text
        # At a stop it is there for the last requests.
        assert "\nAfter=network.target benchapp-pgbouncer.service\n" in text
    # It learns the database's place at its start.
    assert "`systemctl restart benchapp-pgbouncer; benchapp-deploy --again`" in (tmp_path / "INSTALL.md").read_text(
        "utf-8"
    )
    environment = (tmp_path / "site.env").read_text("utf-8")
    assert "\nBENCHAPP_POOL=pgbouncer\n" in environment and "BENCHAPP_POOL_HOST" not in environment


def test_it_is_for_one_host(tmp_path):
    with pytest.raises(BenchError, match="is for one host; run one beside the database"):
        containers.write(production("nginx-gunicorn", pool="pgbouncer"), tmp_path / "out", "compose")
