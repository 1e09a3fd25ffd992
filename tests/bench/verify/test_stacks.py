"""The suite against a real deployment. tests/deploy/test_stacks.py verifies every stack."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from bench.project import commands
from bench.serve import deployment
from bench.verify.suite import Selection
from bench.verify.verifier import Verifier
from tests.cases import kit, resolved

ROWS = "2000"


@pytest.fixture
def database():
    """A small site of its own, in a directory that servers may write to."""
    folder = Path(tempfile.mkdtemp(prefix="verify-", dir="/tmp"))
    folder.chmod(0o755)
    identity = kit().worker()
    identity.give(folder)
    commands.warm_up(kit())
    path = folder / "site.sqlite3"
    try:
        commands.manage(kit(), ["migrate", "--verbosity", "0"], f"sqlite:///{path}", identity)
        commands.manage(kit(), ["loadfixtures", "--rows", ROWS], f"sqlite:///{path}", identity)
        yield path
    finally:
        shutil.rmtree(folder)


def content(path: Path) -> dict[str, list]:
    """Every row of every table, without SQLite's own statistics."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr)
            for name in names
            if not name.startswith("sqlite_")
        }
    finally:
        connection.close()


@pytest.mark.long
@pytest.mark.servers
def test_verify_leaves_the_database_unchanged(database):
    before, verifier = content(database), Verifier(kit(), Selection(thorough=False))
    case = resolved("gunicorn", changes={"processes": 2}, database_url=f"sqlite:///{database}")
    with deployment.deployed(case) as running:
        # The second time needs the same expected pages.
        for _ in range(2):
            assert [item for item in verifier.verify(running) if not item.ok] == []
    after = content(database)
    assert {name for name in before if before[name] != after[name]} == set()
