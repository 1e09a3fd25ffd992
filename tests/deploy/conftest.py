"""A small site for the tests that start real servers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import paths
from bench.host.identity import worker
from bench.verify import Selection, Verifier

ROWS = 3000


def command(*words: str, database: str = "", timeout_s: float = 120, **more) -> subprocess.CompletedProcess:
    """Run a command of the project as a user would, in the checkout."""
    env = {**os.environ, **({"DATABASE_URL": database} if database else {})}
    return subprocess.run(
        [sys.executable, *words],
        cwd=paths.PROJECT,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
        **more,
    )


@pytest.fixture(scope="session")
def verifier() -> Verifier:
    """Verifies deployments of `site_url`, whose expected pages are rendered once for all tests."""
    return Verifier(Selection(thorough=False))


@pytest.fixture(scope="session")
def site_url(tmp_path_factory) -> str:
    """DATABASE_URL of an SQLite database with some rows, that the servers' user can write to."""
    folder: Path = tmp_path_factory.mktemp("site")
    url = f"sqlite:///{folder / 'site.sqlite3'}"
    for words in (["migrate", "--verbosity", "0"], ["loadfixtures", "--rows", str(ROWS)]):
        done = command("manage.py", *words, database=url)
        assert done.returncode == 0, done.stderr
    worker(folder).give_tree(folder)
    return url
