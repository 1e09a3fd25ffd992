"""A small site for the tests that start real servers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.serve.project import commands
from bench.verify.suite import Selection
from bench.verify.verifier import Verifier
from tests import once
from tests.cases import kit
from tests.deploy.production_host import make_certificate
from tests.deploy.running import command

ROWS = 3000


@pytest.fixture(scope="session")
def verifier() -> Verifier:
    """Verifies deployments of `site_url`, whose expected pages are rendered once for all tests."""
    return Verifier(kit(), Selection(thorough=False))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def site_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """DATABASE_URL of an SQLite database with some rows, that the servers' user can write to."""
    # Not below pytest's own directory, which is closed to others.
    folder = Path(tempfile.mkdtemp(prefix="benchapp-site-", dir="/tmp"))
    shutil.copyfile(once.shared(tmp_path_factory, "site.sqlite3", _with_rows), folder / "site.sqlite3")
    url = f"sqlite:///{folder / 'site.sqlite3'}"
    kit().worker(folder).give_tree(folder)
    # Each deployment runs some more commands on it.
    commands.warm_up(kit())
    yield url
    shutil.rmtree(folder)


def _with_rows(database: Path) -> None:
    for words in (["migrate", "--verbosity", "0"], ["loadfixtures", "--rows", str(ROWS)]):
        done = command("manage.py", *words, database=f"sqlite:///{database}")
        assert done.returncode == 0, done.stderr
