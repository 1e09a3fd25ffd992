"""The database of a case: the default SQLite file, the private PostgreSQL cluster, or one that the user names."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench import paths
from bench.catalog import catalog
from bench.errors import BenchError
from bench.host.identity import Identity, worker
from bench.host.lock import exclusive, shared
from bench.project import commands

SQLITE = "sqlite"


@dataclass(frozen=True)
class Database:
    """What `--database` asks for.

    label    what results call it: sqlite, postgresql or the URL's scheme
    url      the site's DATABASE_URL, or empty until `service` is up and gives it
    service  the service to start, or empty
    own      whether the instrument creates and fills it
    """

    label: str
    url: str = ""
    service: str = ""
    own: bool = False


def default_sqlite() -> Path:
    """The SQLite file that the site uses by default."""
    return paths.VAR / "data" / "benchapp.sqlite3"


def parse(asked: str | None) -> Database:
    """The database of `--database asked`: a URL, `sqlite`, or the name of a persistent service.

    Without one it is the DATABASE_URL of the environment, or the default SQLite file.
    """
    asked = asked or os.environ.get("DATABASE_URL") or SQLITE
    if "://" in asked:
        try:
            return Database(urlsplit(asked).scheme.partition("+")[0], asked)
        except ValueError:
            # The URL is not repeated: it may hold a password.
            raise BenchError("--database: not a readable URL; write postgresql://USER:PASSWORD@HOST/NAME") from None
    if asked == SQLITE:
        return Database(SQLITE, f"sqlite:///{default_sqlite()}", own=True)
    persistent = [name for name, service in catalog.read().services.items() if service.persistent]
    if asked not in persistent:
        raise BenchError(
            f"--database {asked}: use {', '.join([SQLITE, *persistent])} or a URL such as postgresql://HOST/NAME"
        )
    return Database(asked, service=asked, own=True)


@contextmanager
def in_use(asked: str | None, *, alone: bool) -> Iterator[None]:
    """Hold the lock of the database of `--database asked`, alone or together with others that only serve it.

    A command that verifies pages writes rows, and the rows of another command are wrong content to it: it needs the
    database alone. A persistent service has a lock of its own. Raises BenchError when the database stays in use.
    """
    chosen = parse(asked)
    if chosen.service:
        yield
        return
    path, what = _lock(chosen)
    with (exclusive if alone else shared)(path, what):
        yield


def _lock(chosen: Database) -> tuple[Path, str]:
    """The file of the database's lock, beside an SQLite file, and a name for people without a password."""
    path = sqlite_path(chosen.url)
    if path is None:
        place = "".join(urlsplit(chosen.url)[1:3]).rpartition("@")[2]
        paths.VAR.mkdir(exist_ok=True)
        digest = hashlib.sha256(place.encode()).hexdigest()[:12]
        return paths.VAR / f"{chosen.label}-{digest}.lock", f"the database {place}"
    if chosen.own:
        path.parent.mkdir(parents=True, exist_ok=True)
    else:
        check_sqlite(path, worker())
    return path.resolve().with_name(f"{path.resolve().name}.lock"), f"the database {path}"


def check(database: Database, env: dict[str, str], identity: Identity) -> None:
    """Before anything is started, have the site try the user's database and the user's settings in `env`.

    There is nothing to try when both are the instrument's own. Raises BenchError with the site's message, which
    holds no password.
    """
    if not database.own:
        if (path := sqlite_path(database.url)) is not None:
            check_sqlite(path, identity)
        commands.check(database.url, env, identity)
    elif env:
        commands.check("sqlite://:memory:", env, identity, settings_only=True)


def prepare(database: Database, url: str, identity: Identity, progress: Callable[[str], None]) -> None:
    """See that the database can be served: create and fill one of our own, check one of the user's.

    `progress` is called with nothing before rows are loaded, which shows its own progress. Raises BenchError when the
    user's SQLite file is missing or the workers cannot write to it.
    """
    if database.own:
        paths.VAR.mkdir(exist_ok=True)
        with exclusive(paths.VAR / f"{database.label}.lock", f"the {database.label} database"):
            _fill_once(database, url, identity, progress)
    path = sqlite_path(url)
    if path is not None:
        check_sqlite(path, identity)


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite URL, or None for another database; a relative one is in the checkout."""
    parts = urlsplit(url)
    return paths.PROJECT / parts.path[1:] if parts.scheme == SQLITE else None


def _fill_once(database: Database, url: str, identity: Identity, progress: Callable[[str], None]) -> None:
    path = sqlite_path(url)
    marker = path or paths.VAR / database.service / "filled"
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        identity.give_tree(path.parent)
    if marker.exists():
        return
    progress("")
    print(f"{database.label}: creating the database and loading its rows (once)", file=sys.stderr, flush=True)
    if path is None:
        _create_and_fill(url, identity)
        marker.touch()
        return
    # Only a complete file gets the name: the next command would take an interrupted one for a filled database.
    partial = path.with_name(f"{path.name}.partial")
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(partial.name + end).unlink(missing_ok=True)
    _create_and_fill(f"sqlite:///{partial}", identity)
    partial.replace(path)


def _create_and_fill(url: str, identity: Identity) -> None:
    commands.manage(["migrate", "--verbosity", "0"], url, identity, show=True)
    commands.manage(["loadfixtures"], url, identity, show=True)


def check_sqlite(path: Path, identity: Identity) -> None:
    if not path.is_file():
        raise BenchError(
            f"{path}: no such database; run ./manage.py migrate and ./manage.py loadfixtures with this DATABASE_URL"
        )
    # The journal of a killed program, or of a command of another user, may be left beside it.
    for item in (path, path.parent, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        if item.exists():
            identity.must_write(item)
