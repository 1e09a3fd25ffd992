"""A request waits for PostgreSQL for a bounded time, with each driver, and is then a 503."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from types import ModuleType
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.test import Client
from django.test.utils import override_settings
from django.urls import path

from benchapp import views
from benchapp.postgresql.timeouts import statement_timeout_s, with_statement_timeout
from config import urls
from config.log_filters import OneLineWithoutDatabase
from tests.app import drivers
from tests.managing import manage_on

TIMEOUT_S = 1
# A driver's shortest limit for a connection, and what a busy machine adds.
LONGEST_S = 2 + 1.5
AT_ONCE_S = 0.5


@pytest.fixture(params=[drivers.PSYCOPG2, drivers.PSYCOPG3])
def driver(request: pytest.FixtureRequest) -> str:
    return request.param


def use(driver: str, url: str, command: str) -> dict:
    """The output of a command of `database_client`, in a process with this driver."""
    environment = drivers.environment(driver) | {
        "DATABASE_URL": url,
        "BENCHAPP_SERVER": "wsgi",
        "BENCHAPP_DATABASE_TIMEOUT": str(TIMEOUT_S),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.app.database_client", command],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def with_options(url: str, options: str) -> str:
    return f"{url}?options={quote(options)}"


def test_a_statement_has_a_limit_whatever_else_the_url_says(driver, postgresql_site):
    parameters = use(driver, with_options(postgresql_site, "-c work_mem=8MB"), "parameters")
    assert parameters == {"driver": driver, "statement_timeout": f"{TIMEOUT_S}s", "work_mem": "8MB"}
    parameters = use(driver, with_options(postgresql_site, "--statement-timeout=7s"), "parameters")
    assert parameters["statement_timeout"] == "7s"


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ("", 0),
        ("-c work_mem=8MB", 0),
        ("-c statement_timeout=2500", 2.5),
        ("-c work_mem=8MB -cstatement_timeout=3s", 3),
        ("--statement-timeout=2min", 120),
        ("-c STATEMENT_TIMEOUT=1h --statement_timeout=9ms", 0.009),
        ("-c other.statement_timeout=5", 0),
        ("-c statement_timeout=1.5s", 1.5),
        ("-c statement_timeout=soon", 0),
        ("-c idle_in_transaction_session_timeout=5", 0),
    ],
)
def test_a_limit_of_the_url_is_found_and_kept(options, seconds):
    assert statement_timeout_s(options) == pytest.approx(seconds)
    after = with_statement_timeout(options, 2)
    assert after.startswith(options)
    named = seconds or "=soon" in options
    assert (after == options) is bool(named)
    assert named or statement_timeout_s(after) == 2


def test_a_slow_statement_keeps_no_other_from_the_database(driver, postgresql_site):
    results = use(driver, with_options(postgresql_site, "-c statement_timeout=0"), "slow")
    assert results["slow"]["value"] == "OperationalError"
    assert results["slow"]["seconds"] < LONGEST_S
    assert results["other"]["value"] == 1


def test_a_url_may_allow_more_time_to_a_statement(driver, postgresql_site):
    results = use(driver, with_options(postgresql_site, "-c statement_timeout=30s"), "slow")
    assert results["slow"]["value"] == "slept"


def test_a_server_that_hangs_is_given_up_and_then_not_tried_for_a_moment(driver, postgresql_site):
    results = use(driver, postgresql_site, "hung")
    states = ("established", "connecting", "refused")
    assert [results[state]["value"] for state in states] == ["OperationalError"] * 3
    assert results["established"]["seconds"] < LONGEST_S
    assert results["connecting"]["seconds"] < LONGEST_S
    assert results["refused"]["seconds"] < AT_ONCE_S
    assert results["after"]["value"] == 1


def test_a_request_waits_once_for_a_server_that_hangs_since_the_last_one(driver, postgresql_site):
    # The limit of a statement would be longer.
    results = use(driver, with_options(postgresql_site, "-c statement_timeout=30s"), "hung_between_requests")
    assert [results[state]["value"] for state in ("first", "other")] == ["OperationalError"] * 2
    assert TIMEOUT_S <= results["first"]["seconds"] < 2 * TIMEOUT_S
    assert results["other"]["seconds"] < AT_ONCE_S


def test_a_pool_gives_up_a_server_that_hangs(postgresql_site):
    # The limit of a statement would be longer.
    url = with_options(postgresql_site, "-c statement_timeout=30s") + "&pool=true"
    results = use(drivers.PSYCOPG3, url, "hung_between_requests")
    for state in ("first", "other"):
        assert results[state]["value"] == "OperationalError"
        assert results[state]["seconds"] < LONGEST_S


def test_a_server_that_responds_is_always_tried(driver, postgresql_site):
    results = use(driver, postgresql_site, "responding")
    assert results == {name: ["OperationalError", 1, 1] for name in ("lock", "killed", "killed before")}


def test_greenlets_wait_at_the_same_time(driver, postgresql_site):
    results = use(driver, with_options(postgresql_site, "-c statement_timeout=30s"), "greenlets")
    assert results == {"held": "held", "freed": True, "had": "had"}


def test_a_pool_lends_its_connections(postgresql_site):
    url = f"{postgresql_site}?pool={quote(json.dumps({'min_size': 1, 'max_size': 3}))}"
    results = use(drivers.PSYCOPG3, url, "pool")
    assert results["values"] == ["slept"] * 6
    assert results["connections"] <= 3


def test_a_pool_without_psycopg_3_is_refused_in_one_line():
    done = manage_on("postgresql://a@127.0.0.1:9/x?pool=true", "check")
    assert done.returncode == 1
    assert done.stderr == "manage.py: DATABASE_URL: a pool needs psycopg 3: pip install 'psycopg[binary,pool]'\n"


@pytest.mark.servers
def test_a_psycopg_3_without_limits_is_refused_in_one_line():
    environment = drivers.environment(drivers.PSYCOPG3) | {
        "DATABASE_URL": "postgresql://a@127.0.0.1:9/x",
        "BENCHAPP_SERVER": "wsgi",
    }
    old = "psycopg.__version__ = '3.3.5'; del psycopg.errors._WaitTimeout"
    code = f"import psycopg; {old}; import manage; manage.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "check"], cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "psycopg 3.3.5" in done.stderr, done.stderr


@pytest.mark.long
@pytest.mark.servers
def test_the_tests_of_the_sites_database_pass_with_psycopg_3():
    files = ["fixtures_load", "page_index", "pagination", "pagination_concurrency"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-k", "postgresql", "-p", "no:cacheprovider"]
        + [f"tests/app/test_{name}.py" for name in files],
        cwd=settings.BASE_DIR,
        env=drivers.environment(drivers.PSYCOPG3),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:]


# --- Responses and logs -------------------------------------------------------------------------


@pytest.fixture(params=[OperationalError, InterfaceError])
def error(request: pytest.FixtureRequest) -> Exception:
    """Errors of a database that cannot be used, the second one of a connection that is closed already."""
    return request.param("no response\nand more")


def test_a_database_that_cannot_be_used_is_a_503(error):
    def unusable(request: HttpRequest) -> None:
        raise error

    site = ModuleType("urls_with_an_unusable_page")
    vars(site).update(vars(urls), urlpatterns=[path("unusable", unusable), *urls.urlpatterns])
    with override_settings(ROOT_URLCONF=site):
        response = Client(raise_request_exception=False).get("/unusable")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert "The pantry is locked." in response.text


def test_a_site_whose_database_cannot_be_used_is_not_ready(error, monkeypatch):
    class Connection:
        def cursor(self) -> None:
            raise error

    monkeypatch.setattr(views, "connection", Connection())
    assert Client().get("/readyz").status_code == 503


def test_it_costs_one_line_of_log(error):
    record = logging.LogRecord("django.request", logging.ERROR, "", 1, "GET %s", ("/",), (type(error), error, None))
    assert OneLineWithoutDatabase().filter(record)
    assert (record.getMessage(), record.exc_info) == ("GET /: no response", None)


def test_another_error_has_its_traceback():
    other = ValueError("a")
    record = logging.LogRecord("django.request", logging.ERROR, "", 1, "GET %s", ("/",), (ValueError, other, None))
    assert OneLineWithoutDatabase().filter(record)
    assert record.getMessage() == "GET /"
    assert record.exc_info
