"""Accounts of the visitors of faults: made in copies, and in a database of a project's own by leave alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.faults import stage
from bench.project import commands
from bench.project.description import Description, Login
from bench.serve.database import AS_IS, Database
from bench.verify.site import Site

COPY = Database("sqlite", "sqlite:///copy", made=True, source=Path("/theirs.sqlite3"))


@pytest.fixture
def site(monkeypatch):
    """What a deployment's site may do on a database, with or without leave."""
    said = Description(login=Login("/in/"))
    facts = SimpleNamespace(databases={"default": "x"}, database_files={}, databases_in_memory=())
    project = SimpleNamespace(
        recorded="theirs",
        copied={},
        facts=facts,
        description=said,
        python=Path(),
        manage_py=Path(),
        var=Path(),
        environment=dict,
        worker=lambda: SimpleNamespace(prefix=()),
    )
    monkeypatch.setattr(commands, "site_environment", lambda project, url, home: {})
    urls = {"login": "/in/"}
    monkeypatch.setattr(
        stage, "learn", lambda *place, **how: Site(urls, {}, Path(), Path(), Path(), description=how["description"])
    )

    def made(database, write):
        case = SimpleNamespace(project=project, database=database)
        return stage._site(SimpleNamespace(env={"DATABASE_URL": ""}, case=case), write)

    return made


@pytest.mark.parametrize(
    ("database", "write", "may"),
    [
        (Database(AS_IS), False, (False, False)),
        (Database("postgresql", "postgresql://live/shop"), False, (False, False)),
        (Database(AS_IS), True, (True, False)),
        (COPY, False, (True, True)),
        (Database("postgresql", service="postgresql", made=True), False, (True, True)),
    ],
)
def test_a_database_that_is_used_as_it_is_needs_leave(site, database, write, may):
    found = site(database, write)
    assert (found.may_write, found.is_copy) == may


def test_without_leave_nobody_signs_in_and_a_note_says_so(site, monkeypatch):
    def run(*words, **more):
        raise AssertionError(words)

    monkeypatch.setattr("bench.verify.site.run_command.run", run)
    notes = []
    with stage._accounts(site(Database(AS_IS), False), SimpleNamespace(), notes) as cookies:
        assert cookies == []
    assert notes == [
        "no visitor is signed in: it writes to the project's own database: give --write to allow that, or another "
        "--database"
    ]
