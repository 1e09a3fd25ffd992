"""The database of a case: the default SQLite file, the private PostgreSQL cluster, or the user's own."""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bench import paths
from bench.errors import BenchError
from bench.printer import aside
from bench.serve.catalog import catalog
from bench.serve.machine.identity import Identity
from bench.serve.machine.lock import exclusive, shared
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest
from bench.serve.project.sqlite_snapshot import has_content, snapshot

SQLITE = "sqlite"
# Migrates the rows of a project to one of its commits.
MIGRATE = "migrate --noinput"
# SQLite's files beside a database in use.
BESIDE = ("-wal", "-shm", "-journal")
# Databases that one of another kind can stand in for; and the words of each kind, in a URL and in engines.
PLAIN = tuple(f"django.db.backends.{name}" for name in ("sqlite3", "postgresql", "dummy"))
KINDS = (("sqlite", "spatialite", "SQLite"), ("postg", "psql", "PostgreSQL"), ("mysql", "MySQL"), ("oracle", "Oracle"))
# The database of another project's settings, used as it is.
AS_IS = "project"
# Runs a command of manage.py on the database of a URL.
Run = Callable[[str, str], None]


@dataclass(frozen=True)
class Database:
    """The choice of `--database`.

    label       the name in results: sqlite, postgresql or the URL's scheme
    url         the site's DATABASE_URL; empty until `service` is up, and for the project's own database
    service     the service to start, or empty
    is_created  whether the instrument creates and fills the database
    source      the SQLite file that was copied
    """

    label: str
    url: str = ""
    service: str = ""
    is_created: bool = False
    source: Path | None = None

    @property
    def note(self) -> str:
        """The owner of these rows, for people who serve their own project."""
        if self.source is not None and self.source.is_file():
            return f"database: a copy of {self.source}"
        if self.label == AS_IS:
            return "database: the project's own, as it is"
        if self.is_created:
            return "database: a private one of the kit, filled by the commands of setup"
        if self.url:
            return "database: that of --database, as it is"
        return "database: none"

    def again(self, url: str) -> Database:
        """The same for a second deployment beside the one that made the database and serves it by `url`."""
        return replace(self, url=url, service="", is_created=False)

    @property
    def of_project(self) -> bool:
        """True for the rows of the project's own database."""
        return self.label == AS_IS or (self.source is not None and self.source.is_file())

    @property
    def is_named(self) -> bool:
        """True if the user named the database by its URL."""
        return bool(self.url) and not self.is_created


# For a project without a database, and a case that is not brought up.
NO_DATABASE = Database("none")


def parse(project: UnderTest, option: str | None) -> Database:
    """The database of the option `--database`: a URL, `sqlite`, or the name of a persistent service.

    Without the option a copy of the project's SQLite file, or the database of the settings. If `setup` makes the rows,
    an SQLite file filled by `setup`, or without --project the DATABASE_URL of the environment.
    """
    own = not option or option == AS_IS or (option == SQLITE and "default" in project.copied)
    if own and not project.description.generated:
        return _of_settings(project)
    if not option and not project.recorded:
        option = os.environ.get("DATABASE_URL")
    option = option or SQLITE
    _must_fit(project, option)
    if "://" in option:
        try:
            return Database(urlsplit(option).scheme.partition("+")[0], _absolute(project, option))
        except ValueError:
            # The URL is not repeated: it may hold a password.
            raise BenchError("--database: not a readable URL; write postgresql://USER:PASSWORD@HOST/NAME") from None
    if option == SQLITE:
        return Database(SQLITE, f"sqlite:///{project.copy_of('default')}", is_created=True)
    persistent = [name for name, service in catalog.read().services.items() if service.persistent]
    if option not in persistent:
        raise BenchError(
            f"--database {option}: use {', '.join([SQLITE, *persistent])} or a URL such as postgresql://HOST/NAME"
        )
    return Database(option, service=option, is_created=True)


def rows_at(project: UnderTest, chosen: Database) -> Database:
    """The database of a project at a commit: a copy of the same rows, which `prepare` migrates.

    Raises BenchError for a database that all commits would share.
    """
    if project.base is None or chosen is NO_DATABASE or chosen.service:
        return chosen
    if not chosen.is_created:
        raise BenchError("--ref: each commit migrates separate rows: use SQLite, or --database postgresql")
    return replace(chosen, url=f"sqlite:///{project.copy_of('default')}")


def _must_fit(project: UnderTest, option: str) -> None:
    """Raise BenchError if another kind of database would replace a special one, such as MySQL."""
    engine = ""
    if project.recorded:
        engine = project.facts.databases.get("default", "")
    kind = next((words for words in KINDS if words[0] in option.partition(":")[0]), None)
    if engine and engine not in PLAIN and kind and not any(word in engine for word in kind):
        raise BenchError(
            f"--database: the database of {project.folder} is {engine}, which {kind[-1]} cannot replace; "
            "name one of the same kind by its URL, or leave --database out"
        )


def _absolute(project: UnderTest, url: str) -> str:
    """The URL with the whole path of an SQLite file: a server's working directory may be another than the project's."""
    path, parts = sqlite_path(project, url), urlsplit(url)
    if path is None or parts.path in ("", "/:memory:") or parts.path.startswith("//"):
        return url
    return "?".join(filter(None, [f"sqlite:///{path}", parts.query]))


def _of_settings(project: UnderTest) -> Database:
    """The database of a project's own settings."""
    facts = project.facts
    if "default" not in facts.databases:
        return NO_DATABASE
    source = facts.database_files.get("default")
    # A database in memory, different in each process, is filled like a missing file.
    if source is not None or "default" in facts.databases_in_memory:
        created = Database(SQLITE, f"sqlite:///{project.copy_of('default')}", is_created=True)
        if source and has_content(source):
            return replace(created, source=Path(source))
        return created
    if facts.database_error:
        raise BenchError(
            f"{project.folder}: its database cannot be used: {facts.database_error}; start it, or name another with "
            "--database"
        )
    return Database(AS_IS)


def as_they_are(project: UnderTest) -> list[str]:
    """The aliases, besides `default`, of databases that a project's servers use unchanged: neither files nor memory.

    SQLite files are copied.
    """
    if not project.recorded:
        return []
    # `setup` fills a file of the kit's.
    copied = {*project.facts.database_files, *project.facts.databases_in_memory}
    return sorted(alias for alias in project.facts.databases if alias != "default" and alias not in copied)


def is_ours(project: UnderTest, chosen: Database) -> bool:
    """True if checks may write to all databases of a deployment: the kit's, copies or private ones."""
    return not project.recorded or (chosen.is_created and not as_they_are(project))


def notes(project: UnderTest, chosen: Database) -> list[str]:
    """The owners of the rows of a deployment of a --project: copies, private ones, or the project's own databases."""
    if not project.recorded:
        return []
    others = as_they_are(project)
    if not others:
        return [chosen.note]
    return [chosen.note, f"databases {', '.join(others)}: the project's own, as they are"]


@contextmanager
def in_use(project: UnderTest, chosen: Database, *, is_exclusive: bool) -> Iterator[None]:
    """Hold the lock of a database, exclusively or together with other commands that only serve the database.

    A command that verifies pages writes rows, and the rows of another command are wrong content to the check, so
    verification needs the database exclusively. A persistent service has a separate lock. Raises BenchError if the
    database stays in use.
    """
    if chosen.service or not chosen.url:
        yield
        return
    path, what = _lock(project, chosen)
    if is_exclusive:
        with exclusive(path, what):
            yield
    else:
        with shared(path, what):
            yield


def _lock(project: UnderTest, chosen: Database) -> tuple[Path, str]:
    """The file of the database's lock, and a name for people without a password.

    The lock is beside an SQLite file of the kit's; for another database the lock is below `var`.
    """
    path = sqlite_path(project, chosen.url)
    if path is None:
        place = "".join(urlsplit(chosen.url)[1:3]).rpartition("@")[2]
        return _lock_of_another(project.var, chosen.label, place), f"the database {place}"
    if chosen.is_created:
        path.parent.mkdir(parents=True, exist_ok=True)
    else:
        check_sqlite(project, path, project.worker())
    real = path.resolve()
    if chosen.is_created or paths.STATE.resolve() in real.parents:
        return real.with_name(f"{real.name}.lock"), f"the database {path}"
    return _lock_of_another(locks(), chosen.label, str(real)), f"the database {path}"


def locks() -> Path:
    """The folder of the locks of foreign SQLite files: one for all projects, since several may name the same file."""
    return paths.STATE / "locks"


def _lock_of_another(folder: Path, label: str, place: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{label}-{hashlib.sha256(place.encode()).hexdigest()[:12]}.lock"


def check(project: UnderTest, database: Database, env: dict[str, str], identity: Identity) -> None:
    """Before anything is started, have the site try the user's database and the user's settings in `env`.

    If both are the instrument's own, nothing is tried. Raises BenchError with the site's message, which holds no
    password.
    """
    if not database.is_created:
        if (path := sqlite_path(project, database.url)) is not None:
            check_sqlite(project, path, identity)
        commands.check(project, database.url, env, identity)
    elif env:
        commands.check(project, "sqlite://:memory:", env, identity, settings_only=True)


def prepare(
    project: UnderTest, database: Database, url: str, identity: Identity, progress: Callable[[str], None]
) -> None:
    """Make the database ready to serve: create and fill one of the kit's, check one of the user's.

    `progress` is called with each command for rows. Raises BenchError if the user's SQLite file is missing or
    the workers cannot write to its folder.
    """
    if database.is_created or project.copied:
        project.var.mkdir(parents=True, exist_ok=True)
        with exclusive(project.var / f"{database.label}.lock", f"the {database.label} database"):
            for alias, source in project.copied.items():
                if alias != "default" and Path(source).is_file():
                    copied(Path(source), project.copy_of(alias), identity)
            if database.is_created:
                _fill_once(project, database, url, identity, partial(_show_command, project, identity, progress))
    path = sqlite_path(project, url)
    if path is not None:
        check_sqlite(project, path, identity)


def sqlite_path(project: UnderTest, url: str) -> Path | None:
    """The file of an SQLite URL, or None for another database; a relative one is in the project's folder."""
    parts = urlsplit(url)
    if parts.scheme != SQLITE:
        return None
    return project.folder / parts.path[1:]


def _fill_once(project: UnderTest, database: Database, url: str, identity: Identity, run: Run) -> None:
    path = sqlite_path(project, url)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        identity.give_tree(path.parent)
    if path is not None and database.source is not None and database.source.is_file():
        if copied(database.source, path, identity) and project.base:
            run(MIGRATE, url)
        return
    mark, digest = _mark(project, database), _digest(project)
    if is_filled(project, database) and (path is None or path.exists()):
        if not mark.is_file() or mark.read_text("ascii") != digest:
            # Rows of an earlier release of the kit, or of another source, stay.
            run(MIGRATE, url)
            mark.write_text(digest, "ascii")
        return
    # Commands check URL configurations, which may name static files by their hashes.
    commands.collect_static(project, identity)
    aside(f"{database.label}: creating the database and loading its rows (once)")
    if path is None:
        _create_and_fill(project, url, run)
    else:
        with _replacement(path) as new:
            _create_and_fill(project, f"sqlite:///{new}", run)
    mark.write_text(digest, "ascii")


def is_filled(project: UnderTest, database: Database) -> bool:
    """True if a database of the kit's has all rows of the current commands of `setup`.

    The database of the kit's own site may have rows from elsewhere, and is never replaced, only migrated.
    """
    mark = _mark(project, database)
    if not project.recorded:
        return mark.is_file() or not database.service
    return mark.is_file() and mark.read_text("ascii") == _digest(project)


def _mark(project: UnderTest, database: Database) -> Path:
    """The file that says how the database was filled."""
    if database.service:
        return project.var / database.service / "filled"
    path = project.copy_of("default")
    return path.with_name(f"{path.name}.filled")


def _digest(project: UnderTest) -> str:
    """A digest of everything that fills a database: the commands of `setup`, their settings, and the migrations."""
    source_project, files = project.project, list[Path]()
    for root in source_project.roots:
        settings = root / source_project.settings.replace(".", "/")
        files += [settings.with_suffix(".py"), *settings.glob("*.py")]
        if source_project.settings.count(".") > 1:
            # A module such as `shop.settings.local` imports its neighbours.
            files += settings.parent.glob("*.py")
        # Not the migrations in environments, further down.
        for place in (root, settings.parent):
            for depth in ("", "*/", "*/*/"):
                files += place.glob(f"{depth}migrations/*.py")
    state = [project.description.setup, source_project.settings, sorted(source_project.env.items())]
    digest = hashlib.sha256(repr(state).encode())
    for path in sorted({path.resolve() for path in files if path.is_file()}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def copied(source: Path, target: Path, identity: Identity) -> bool:
    """Copy an SQLite database as it is now, for `identity` to write to, unless unchanged since the last copy.

    Returns whether a copy was made.
    """
    files = [path for path in (source, source.with_name(f"{source.name}-wal")) if path.is_file()]
    state = " ".join(f"{path.stat().st_mtime_ns} {path.stat().st_size}" for path in files)
    # The copy's own times say nothing: a site wrote to it.
    mark = target.with_name(f"{target.name}.source")
    if target.is_file() and mark.is_file() and mark.read_text("ascii") == state:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with _replacement(target) as new:
        snapshot(source, new)
    mark.write_text(state, "ascii")
    identity.give_tree(target.parent)
    return True


@contextmanager
def _replacement(path: Path) -> Iterator[Path]:
    """A new SQLite file in place of the one at `path`, renamed when complete.

    Without the renaming, the next command would take an interrupted file for a filled database.
    """
    new = path.with_name(f"{path.name}.partial")
    for name, end in itertools.product((path.name, new.name), ("", *BESIDE)):
        path.with_name(name + end).unlink(missing_ok=True)
    yield new
    new.replace(path)


def _create_and_fill(project: UnderTest, url: str, run: Run) -> None:
    for command in project.description.setup:
        run(command, url)
    # The cache's table is in no migration.
    if project.overlaid and project.facts.has_database_cache:
        run("createcachetable", url)


def _show_command(
    project: UnderTest, identity: Identity, progress: Callable[[str], None], command: str, url: str
) -> None:
    """Run a command of the project on the rows of a URL, and show the command meanwhile."""
    progress(f"manage.py {command}")
    commands.manage(project, shlex.split(command), commands.site_environment(project, url), identity, show=True)


def check_sqlite(project: UnderTest, path: Path, identity: Identity) -> None:
    if not path.is_file():
        commands_of_setup = " and ".join(f"./manage.py {words}" for words in project.description.setup)
        raise BenchError(f"{path}: no such database; run {commands_of_setup} with this DATABASE_URL")
    # The journal of a killed program, or of a command of another user, may be left beside it.
    for item in (path, path.parent, *(path.with_name(path.name + end) for end in BESIDE)):
        if item.exists():
            identity.must_write(item)
