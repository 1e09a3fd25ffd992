"""The database of a deployment: made and filled once."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import paths
from bench.machine.identity import worker
from bench.project import under_test
from bench.project.description import Description
from bench.serve import database, deployment
from bench.serve.database import AS_IS, Database
from bench.serve.deployment import Running


def test_the_live_line_gives_way_before_rows_are_loaded(tmp_path, monkeypatch, capsys):
    steps = []

    def manage(words, url, identity, show=False):
        steps.append(words[0])
        Path(database.sqlite_path(url)).touch()

    monkeypatch.setattr(under_test, "_selected", [replace(under_test.current(), var=tmp_path)])
    monkeypatch.setattr(database.commands, "manage", manage)
    monkeypatch.setattr(database, "check_sqlite", lambda path, identity: None)
    chosen = database.parse("sqlite")
    for _ in range(2):
        database.prepare(chosen, chosen.url, worker(), steps.append)
    assert steps == ["", "migrate", "loadfixtures"], "once, and after the line is cleared"
    assert capsys.readouterr().err == "sqlite: creating the database and loading its rows (once)\n"


POSTGRESQL, SQLITE = "django.db.backends.postgresql", "django.db.backends.sqlite3"


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """Another project than the kit's, with databases by alias, under test."""

    def select(
        files: dict[str, str], memory: tuple[str, ...] = (), said: Description | None = None, **engines: str
    ) -> None:
        facts = SimpleNamespace(
            databases=engines, database_files=files, databases_in_memory=memory, database_error=None
        )
        project = SimpleNamespace(
            recorded=str(tmp_path),
            description=said or Description(),
            facts=facts,
            copied={} if said and said.generated else files,
            folder=tmp_path,
            var=tmp_path / "var",
            copy_of=tmp_path.joinpath,
        )
        monkeypatch.setattr(under_test, "current", lambda: project)

    return select


@pytest.mark.parametrize(
    ("asked", "ours", "note"),
    [
        (None, False, "database: the project's own, as it is"),
        ("postgresql://live/shop", False, "database: that of --database, as it is"),
        ("postgresql", True, "database: a private one of the kit, filled by the commands of setup"),
    ],
)
def test_whose_database_it_is(theirs, asked, ours, note):
    theirs({}, default=POSTGRESQL)
    chosen = database.parse(asked)
    assert (database.is_ours(chosen), database.notes(chosen)) == (ours, [note])


def test_a_copy_is_the_kit_s_unless_another_alias_is_used_as_it_is(theirs, tmp_path):
    (tmp_path / "db.sqlite3").touch()
    files = {"default": str(tmp_path / "db.sqlite3"), "log": str(tmp_path / "log.sqlite3")}
    copied = {"default": SQLITE, "log": SQLITE, "pages": SQLITE}
    theirs(files, ("pages",), **copied)
    note = f"database: a copy of {tmp_path / 'db.sqlite3'}"
    assert (database.is_ours(database.parse(None)), database.notes(database.parse(None))) == (True, [note])
    theirs(files, ("pages",), **copied, reports=POSTGRESQL)
    chosen = database.parse(None)
    assert not database.is_ours(chosen)
    assert database.notes(chosen) == [note, "databases reports: the project's own, as they are"]


def test_rows_that_setup_makes_are_in_a_database_of_the_kit_and_others_are_not_written(theirs, monkeypatch):
    # Neither the one of the shell nor the project's own.
    monkeypatch.setenv("DATABASE_URL", "postgresql://of/the-shell")
    theirs({"default": "/theirs.sqlite3"}, said=Description(generated=True), default=SQLITE)
    chosen = database.parse(None)
    note = "database: a private one of the kit, filled by the commands of setup"
    assert (chosen.made, chosen.source, database.notes(chosen)) == (True, None, [note])
    assert database.is_ours(chosen) and not database.is_ours(database.parse("postgresql://live/shop"))
    theirs({}, said=Description(generated=True), default=SQLITE, logs=POSTGRESQL)
    chosen = database.parse(None)
    assert not database.is_ours(chosen)
    assert database.notes(chosen) == [note, "databases logs: the project's own, as they are"]


def test_a_second_deployment_has_the_same_database_and_not_that_of_the_shell(theirs, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://of/the-shell")
    theirs({}, default=POSTGRESQL)
    assert database.parse("").label == AS_IS, "what an empty DATABASE_URL asks for"
    asked = []
    monkeypatch.setattr(deployment, "deployed", lambda composition, **how: contextlib.nullcontext(asked.append(how)))
    running = SimpleNamespace(database=database.parse(None), env={"DATABASE_URL": ""}, composition=None, services=None)
    running._same_database = Running._same_database.fget(running)
    with Running.beside(running):
        pass
    assert asked[0]["database"] == Database(AS_IS)
    private = Database("postgresql", service="postgresql", made=True).again("postgresql://its/url")
    assert private == Database("postgresql", "postgresql://its/url"), "its service is not started again"


def test_the_lock_of_a_foreign_file_is_not_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "VAR", tmp_path / "var")
    monkeypatch.setattr(database, "locks", lambda: tmp_path / "var" / "locks")
    monkeypatch.setattr(database, "check_sqlite", lambda path, identity: None)
    (tmp_path / "theirs").mkdir()
    with database.in_use(f"sqlite:///{tmp_path}/theirs/db.sqlite3", alone=True):
        assert not list((tmp_path / "theirs").iterdir())
        (lock,) = (tmp_path / "var" / "locks").iterdir()
        assert lock.name.startswith("sqlite-")
    # Its own copy has one lock, whoever names it.
    (tmp_path / "var" / "data").mkdir()
    with database.in_use(f"sqlite:///{tmp_path}/var/data/db.sqlite3", alone=True):
        assert [path.name for path in (tmp_path / "var" / "data").iterdir()] == ["db.sqlite3.lock"]
