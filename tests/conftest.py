from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import environ
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend

from tests import once, order, postgresql

# If the tests run in the background, SIGINT is ignored, and so it would be in every program they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that uses one of these starts PostgreSQL, so it has the mark `servers`.
POSTGRESQL_FIXTURES = {"postgresql_url", "postgresql_site"}

# Fixtures for tests of several folders, and what becomes of a skip.
pytest_plugins = ["tests.projects", "tests.skips"]

NewSite = Callable[[str], AbstractContextManager[str]]

SERIAL = itertools.count(1)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        if POSTGRESQL_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)
    # `-m` and others choose and sort the tests here.
    yield
    items[:] = order.longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> order.ByHost | None:
    """Distribute by files and releases if `--dist loadfile` is given."""
    return order.ByHost(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests, which live until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _says_nothing_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a command of a project may take seconds: its line is no part of what a test compares."""
    monkeypatch.setattr("bench.serve.project.run_command.SILENT_S", 600.0)


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """URL of a database in a private PostgreSQL cluster that lives as long as the tests; its user may create others."""
    binaries = postgresql.programs()
    if binaries is None:
        pytest.skip("programs not installed: initdb, postgres")
    with postgresql.cluster(binaries) as url:
        yield url


@pytest.fixture
def postgresql_database(postgresql_url: str) -> Iterator[str]:
    """URL of an empty PostgreSQL database of the test's own."""
    with new_postgresql_database(postgresql_url) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def site_database(request: pytest.FixtureRequest, new_site: NewSite) -> Iterator[str]:
    """The site's tables, migrated and empty, on SQLite and on PostgreSQL in turn, as connection `default`.

    The database is real and the test's own: transactions commit, and other threads and processes can use
    its URL, which is the fixture's value.
    """
    with new_site(request.param) as url:
        yield url


@pytest.fixture
def postgresql_site(new_site: NewSite) -> Iterator[str]:
    """`site_database` for a test of PostgreSQL only."""
    with new_site("postgresql") as url:
        yield url


@pytest.fixture
def sqlite_site(new_site: NewSite) -> Iterator[str]:
    """`site_database` for a test of SQLite only."""
    with new_site("sqlite") as url:
        yield url


@pytest.fixture
def new_site(site_template: Callable[[str], str], tmp_path: Path, django_db_blocker: Any) -> NewSite:
    """A context manager that makes an empty site in a database of a vendor, for as long as it lasts."""

    @contextmanager
    def site(vendor: str) -> Iterator[str]:
        template = site_template(vendor)
        with django_db_blocker.unblock(), site_copy(vendor, template, tmp_path) as url, default_database(url):
            yield url

    return site


@pytest.fixture(scope="session")
def site_template(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Callable[[str], str]:
    """Gives the URL of a migrated database of a vendor, to be copied."""
    urls: dict[str, str] = {}

    def template(vendor: str) -> str:
        if vendor not in urls:
            if vendor == "sqlite":
                path = once.shared(tmp_path_factory, "template.sqlite3", lambda path: migrate(f"sqlite:///{path}"))
                urls[vendor] = f"sqlite:///{path}"
            else:
                server = request.getfixturevalue("postgresql_url")
                postgresql.run_in(server, "CREATE DATABASE site_template")
                urls[vendor] = f"{server.rpartition('/')[0]}/site_template"
                migrate(urls[vendor])
        return urls[vendor]

    def migrate(url: str) -> None:
        with django_db_blocker.unblock(), default_database(url):
            call_command("migrate", verbosity=0)

    return template


@contextmanager
def site_copy(vendor: str, template: str, directory: Path) -> Iterator[str]:
    if vendor == "sqlite":
        copy = directory / f"site{next(SERIAL)}.sqlite3"
        shutil.copyfile(template.removeprefix("sqlite:///"), copy)
        yield f"sqlite:///{copy}"
    else:
        with new_postgresql_database(template, "TEMPLATE site_template") as url:
            yield url


@contextmanager
def new_postgresql_database(server: str, options: str = "") -> Iterator[str]:
    base = server.rpartition("/")[0]
    name = f"test{next(SERIAL)}"
    postgresql.run_in(f"{base}/postgres", f"CREATE DATABASE {name} {options}")
    try:
        yield f"{base}/{name}"
    finally:
        postgresql.run_in(f"{base}/postgres", f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def default_database(url: str) -> Iterator[None]:
    """Let connection `default` be this database, in this thread and in those that begin meanwhile."""
    config = environ.Env.db_url_config(url)
    if url.startswith("sqlite"):
        config["OPTIONS"] = settings.SQLITE_OPTIONS
    before_settings, before = connections.settings, connections["default"]
    connections.settings = connections.configure_settings({"default": config})
    backend = load_backend(config["ENGINE"])
    connections["default"] = backend.DatabaseWrapper(connections.settings["default"], "default")
    forget_rows()
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings, connections["default"] = before_settings, before
        forget_rows()


def forget_rows() -> None:
    """Empty what Django keeps of a database's rows: another one may have other keys."""
    from django.contrib.contenttypes.models import ContentType

    ContentType.objects.clear_cache()
