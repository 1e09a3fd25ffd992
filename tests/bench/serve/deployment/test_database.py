"""The database of a deployment: made and filled once."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.deployment import database, deployment
from bench.serve.deployment.database import AS_IS, Database, copied
from bench.serve.deployment.deployment import Running
from bench.serve.machine.identity import Identity, worker
from bench.serve.project.description import Description
from bench.serve.project.opened import open_project
from bench.serve.project.sqlite_snapshot import snapshot
from tests.cases import bare, kit


def test_the_live_line_names_each_command_that_makes_rows(tmp_path, monkeypatch, capsys):
    steps = []

    def manage(project, words, env, identity, show=False):
        steps.append(words[0])
        Path(database.sqlite_path(project, env["DATABASE_URL"])).touch()

    project = replace(kit(), var=tmp_path)
    monkeypatch.setattr(database.commands, "manage", manage)
    monkeypatch.setattr(database.commands, "collect_static", lambda *words: None)
    monkeypatch.setattr(database, "check_sqlite", lambda project, path, identity: None)
    chosen = database.parse(project, "sqlite")
    for _ in range(2):
        database.prepare(project, chosen, chosen.url, worker(), steps.append)
    shown = ["manage.py migrate --verbosity 0", "migrate", "manage.py loadfixtures", "loadfixtures"]
    assert steps == shown, "once, and each before it runs"
    assert capsys.readouterr().err == "sqlite: creating the database and loading its rows (once)\n"


def test_rows_of_an_earlier_release_are_migrated_once_and_stay(tmp_path, monkeypatch):
    project = replace(kit(), var=tmp_path)
    chosen = database.parse(project, "sqlite")
    path = database.sqlite_path(project, chosen.url)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"rows")
    path.with_name(f"{path.name}.filled").write_text("digest of the release before")
    done = []
    monkeypatch.setattr(database.commands, "manage", lambda project, words, *more, **how: done.append(words[0]))
    monkeypatch.setattr(database, "check_sqlite", lambda project, path, identity: None)
    for _ in range(3):
        database.prepare(project, chosen, chosen.url, worker(), lambda text: None)
        assert (done, path.read_bytes()) == (["migrate"], b"rows")


def apart(folder):
    """As cookiecutter-django has it: its settings begin with others, and manage.py adds a folder of apps."""
    package = folder / "config" / "settings"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").touch()
    (package / "base.py").write_text("from shop.settings import *\n")
    (package / "local.py").write_text("from config.settings.base import *\n")
    manage = (folder / "manage.py").read_text().replace("shop.settings", "config.settings.local")
    apps = "sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'apps'))"
    (folder / "manage.py").write_text(manage.replace("def main():", f"def main():\n    {apps}"))


@pytest.mark.parametrize(
    "file",
    ["", "shop/migrations/0002_more.py", "shop/settings.py", "config/settings/base.py", "apps/a/migrations/1.py"],
)
def test_what_setup_makes_is_made_again_when_it_would_be_another(new_project, own_var, monkeypatch, file):
    folder = new_project("", '[tool.benchapp]\ngenerated = true\nsetup = ["first"]\n')
    if file.startswith(("config", "apps")):
        apart(folder)
    done = []

    def manage(project, words, env, identity, show=False):
        done.append(words[0])
        Path(database.sqlite_path(project, env["DATABASE_URL"])).touch()
        if words[0] == "broken":
            raise BenchError("half way")

    monkeypatch.setattr(database.commands, "manage", manage)
    monkeypatch.setattr(database.commands, "collect_static", lambda *words: None)

    def filled():
        project = open_project(folder)
        chosen = database.parse(project, "sqlite")
        database.prepare(project, chosen, chosen.url, Identity("me", os.geteuid(), os.getegid(), ()), lambda _: None)

    filled()
    filled()
    assert done == ["first"]
    if file:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        with (folder / file).open("a") as changed:
            changed.write("# changed\n")
        filled()
        assert done == ["first", "first"]
        return
    text = (folder / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(text.replace("first", "broken"))
    for _ in range(2):
        with pytest.raises(BenchError):
            filled()
    (folder / "pyproject.toml").write_text(text.replace("first", "second"))
    filled()
    assert done == ["first", "broken", "broken", "second"]


POSTGRESQL, SQLITE = "django.db.backends.postgresql", "django.db.backends.sqlite3"


@pytest.fixture
def theirs(tmp_path):
    """Another project than the kit's, with databases by alias."""

    def make(
        files: dict[str, str], memory: tuple[str, ...] = (), description: Description | None = None, **engines: str
    ) -> SimpleNamespace:
        facts = SimpleNamespace(
            databases=engines, database_files=files, databases_in_memory=memory, database_error=None
        )
        return SimpleNamespace(
            recorded=str(tmp_path),
            description=description or Description(),
            facts=facts,
            copied={} if description and description.generated else files,
            folder=tmp_path,
            var=tmp_path / "var",
            copy_of=tmp_path.joinpath,
        )

    return make


@pytest.mark.parametrize(
    ("value", "ours", "note"),
    [
        (None, False, "database: the project's own, as it is"),
        ("postgresql://live/shop", False, "database: that of --database, as it is"),
        ("postgresql", True, "database: a private one of the kit, filled by the commands of setup"),
    ],
)
def test_whose_database_it_is(theirs, value, ours, note):
    project = theirs({}, default=POSTGRESQL)
    chosen = database.parse(project, value)
    assert (database.is_ours(project, chosen), database.notes(project, chosen)) == (ours, [note])


def test_a_copy_is_the_kit_s_unless_another_alias_is_used_as_it_is(theirs, tmp_path):
    (tmp_path / "db.sqlite3").write_bytes(b"rows")
    files = {"default": str(tmp_path / "db.sqlite3"), "log": str(tmp_path / "log.sqlite3")}
    copied = {"default": SQLITE, "log": SQLITE, "pages": SQLITE}
    project = theirs(files, ("pages",), **copied)
    note = f"database: a copy of {tmp_path / 'db.sqlite3'}"
    chosen = database.parse(project, None)
    assert (database.is_ours(project, chosen), database.notes(project, chosen)) == (True, [note])
    project = theirs(files, ("pages",), **copied, reports=POSTGRESQL)
    chosen = database.parse(project, None)
    assert not database.is_ours(project, chosen)
    assert database.notes(project, chosen) == [note, "databases reports: the project's own, as they are"]


def test_rows_that_setup_makes_are_in_a_database_of_the_kit_and_others_are_not_written(theirs, monkeypatch, tmp_path):
    # Neither the one of the shell nor the project's own.
    monkeypatch.setenv("DATABASE_URL", "postgresql://of/the-shell")
    project = theirs({"default": "/theirs.sqlite3"}, description=Description(generated=True), default=SQLITE)
    chosen = database.parse(project, None)
    note = "database: a private one of the kit, filled by the commands of setup"
    assert (chosen.is_created, chosen.source, database.notes(project, chosen)) == (True, None, [note])
    assert database.is_ours(project, chosen)
    assert not database.is_ours(project, database.parse(project, "postgresql://live/shop"))
    # One in memory would be another in each process, and an empty file has no rows to copy.
    (tmp_path / "db.sqlite3").touch()
    empty = {"default": str(tmp_path / "db.sqlite3")}
    for project in (theirs({}, ("default",), default=SQLITE), theirs(empty, default=SQLITE)):
        chosen = database.parse(project, None)
        assert (chosen.is_created, chosen.source, database.notes(project, chosen)) == (True, None, [note])
    project = theirs({}, description=Description(generated=True), default=SQLITE, logs=POSTGRESQL)
    chosen = database.parse(project, None)
    assert not database.is_ours(project, chosen)
    assert database.notes(project, chosen) == [note, "databases logs: the project's own, as they are"]


def test_a_second_deployment_has_the_same_database_and_not_that_of_the_shell(theirs, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://of/the-shell")
    project = theirs({}, default=POSTGRESQL)
    assert database.parse(project, "").label == AS_IS, "what an empty DATABASE_URL means"
    started = []
    monkeypatch.setattr(deployment, "deployed", lambda case, **how: contextlib.nullcontext(started.append(case)))
    case = bare(catalog.read().stack("gunicorn"), project=project, database=database.parse(project, None))
    running = SimpleNamespace(case=case, env={"DATABASE_URL": ""}, services=None)
    running._on_same_database = functools.partial(Running._on_same_database, running)
    with Running.beside(running):
        pass
    assert started[0].database == Database(AS_IS)
    private = Database("postgresql", service="postgresql", is_created=True).again("postgresql://its/url")
    assert private == Database("postgresql", "postgresql://its/url"), "its service is not started again"


def test_a_relative_file_and_its_lock_are_in_the_project_wherever_a_command_or_a_server_runs(
    theirs, tmp_path, monkeypatch
):
    project = theirs({})
    project.worker = worker
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(database, "locks", lambda: tmp_path / "locks")
    monkeypatch.setattr(database, "check_sqlite", lambda project, path, identity: None)
    for url in ("sqlite:///own.sqlite3", "sqlite:///elsewhere/../own.sqlite3", f"sqlite:///{tmp_path}/own.sqlite3"):
        for place in (tmp_path, tmp_path / "elsewhere"):
            monkeypatch.chdir(place)
            chosen = database.parse(project, url)
            path = Path(chosen.url.removeprefix("sqlite:///"))
            assert path.is_absolute() and path.resolve() == tmp_path / "own.sqlite3"
            with database.in_use(project, chosen, is_exclusive=True):
                assert len(list((tmp_path / "locks").iterdir())) == 1


def test_the_lock_of_a_foreign_file_is_not_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "STATE", tmp_path / "var")
    monkeypatch.setattr(database, "locks", lambda: tmp_path / "var" / "locks")
    monkeypatch.setattr(database, "check_sqlite", lambda project, path, identity: None)
    (tmp_path / "theirs").mkdir()
    with database.in_use(
        open_project(), Database("sqlite", f"sqlite:///{tmp_path}/theirs/db.sqlite3"), is_exclusive=True
    ):
        assert not list((tmp_path / "theirs").iterdir())
        (lock,) = (tmp_path / "var" / "locks").iterdir()
        assert lock.name.startswith("sqlite-")
    # Its own copy has one lock for all who name it.
    (tmp_path / "var" / "data").mkdir()
    for is_created in (True, False):
        chosen = Database("sqlite", f"sqlite:///{tmp_path}/var/data/db.sqlite3", is_created=is_created)
        with database.in_use(open_project(), chosen, is_exclusive=True):
            assert [path.name for path in (tmp_path / "var" / "data").iterdir()] == ["db.sqlite3.lock"]


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_copy_of_a_file_that_is_written_to_is_whole(tmp_path, mode):
    """A row is two equal numbers on pages far apart; each copy that is made meanwhile opens, and has them equal."""
    source = tmp_path / "theirs.sqlite3"
    with closing(sqlite3.connect(source)) as database:
        database.execute(f"PRAGMA journal_mode={mode}")
        database.execute("CREATE TABLE pairs (id INTEGER PRIMARY KEY, number INTEGER, ballast BLOB)")
        database.executemany(
            "INSERT INTO pairs VALUES (?, 0, zeroblob(100000))", [(1,), (2,)] + [(n,) for n in range(3, 60)]
        )
        database.commit()
    stop = threading.Event()
    writer = threading.Thread(target=_write, args=(source, stop))
    writer.start()
    try:
        for number in range(10):
            copy = tmp_path / f"copy{number}.sqlite3"
            snapshot(source, copy)
            with closing(sqlite3.connect(copy)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert database.execute("SELECT count(DISTINCT number) FROM pairs").fetchone() == (1,)
    finally:
        stop.set()
        writer.join()


def _write(path, stop):
    with closing(sqlite3.connect(path, timeout=30)) as database:
        while not stop.is_set():
            database.execute("UPDATE pairs SET number = number + 1, ballast = randomblob(100000)")
            database.commit()


def test_a_copy_is_made_again_when_its_source_changed_though_the_copy_was_written_to_later(tmp_path):
    source, target = tmp_path / "theirs.sqlite3", tmp_path / "ours" / "copy.sqlite3"
    identity = SimpleNamespace(give_tree=lambda folder: None)
    for path, words in (
        (source, "CREATE TABLE one (id)"),
        (source, "CREATE TABLE two (id)"),
        (target, "CREATE TABLE served (id)"),
    ):
        with closing(sqlite3.connect(path)) as database:
            database.execute(words)
        if path is source:
            copied(source, target, identity)
    os.utime(target, (2_000_000_000, 2_000_000_000))
    copied(source, target, identity)
    assert _tables(target) == {"one", "two", "served"}, "nothing changed in the source"
    with closing(sqlite3.connect(source)) as database:
        database.execute("CREATE TABLE three (id)")
    copied(source, target, identity)
    assert _tables(target) == {"one", "two", "three"}


def _tables(path):
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
