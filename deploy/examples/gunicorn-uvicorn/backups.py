"""Backups of the project's databases: `backups.py backup DIRECTORY` and `backups.py restore [--force] FILE`.

The project's own interpreter runs it in the project's folder and environment, so that Django says which databases there
are. SQLite copies its files by its backup API, PostgreSQL by pg_dump. Databases of other kinds are left out.
An error is one line; exit status 1.
"""

import argparse
import fcntl
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote, unquote

import django.db
from django.db import connections

KEEP = 14
# How long SQLite waits for other programs, in seconds.
PATIENCE_S = 60
# The end of a backup's name, by the database's vendor.
SUFFIXES = {"sqlite": ".sqlite3", "postgresql": ".dump"}
# The vendor of Django's dummy database.
NO_DATABASE = "unknown"
STAMP = "%Y-%m-%dT%H%M%S.%fZ"
ANY_STAMP = "????-??-??T??????.??????Z"
BACKUP = re.compile(r"\d{4}-\d\d-\d\dT\d{6}\.\d{6}Z-(?P<alias>.+)(?P<suffix>\.sqlite3|\.dump)")
# Every database of a Django project has it once `migrate` has run.
MIGRATIONS = "django_migrations"
# `migrate` and extensions fill these tables themselves.
FILLED_BEFORE = {MIGRATIONS, "django_content_type", "auth_permission", "django_site", "spatial_ref_sys"}
BEGIN = "BEGIN; SET LOCAL client_min_messages = error; SET LOCAL statement_timeout = 0;"
# All tables are dropped, those of later migrations too, which the backup does not have.
DROP_TABLES = """
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
        AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND pg_has_role(c.relowner, 'USAGE')
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    LOOP
        EXECUTE 'DROP TABLE IF EXISTS ' || name || ' CASCADE';
    END LOOP;
END $$;
"""
PG_RESTORE = ["pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error"]
# Entries of `pg_restore --list`: extensions stay unchanged, because the administrator may own them.
EXTENSION = re.compile(r"(?m)^\d+; \d+ \d+ EXTENSION - (.*\S)")
OF_EXTENSION = re.compile(r"(?m)^\d+; \d+ \d+ (EXTENSION|COMMENT - EXTENSION) .*$")


class Failed(Exception):
    """The reason, in a line."""


def main():
    arguments = parser().parse_args()
    # A stopped unit removes its unfinished files.
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: sys.exit(f"{arguments.command}: stopped"))
    # The project's folder replaces this file's, as for manage.py.
    sys.path[0] = os.getcwd()
    # Django warns of queries before applications are loaded; none are needed here.
    warnings.simplefilter("ignore")
    try:
        databases = project_databases()
        if arguments.command == "backup":
            backup(databases, arguments.directory, arguments.keep)
        else:
            restore(databases, arguments.file, arguments.force)
    except (Failed, django.db.Error, sqlite3.Error, OSError) as error:
        unchanged = "" if arguments.command == "backup" else "; nothing is changed"
        sys.exit(f"{arguments.command}: {first_line(error)}{unchanged}")


def parser():
    command_line = argparse.ArgumentParser(description="Backups of the project's databases.")
    commands = command_line.add_subparsers(dest="command", required=True)
    backups = commands.add_parser("backup", help="write a backup of each database, and remove the oldest")
    backups.add_argument("directory", type=Path)
    backups.add_argument("--keep", type=positive, default=KEEP, help=f"how many stay of each (default: {KEEP})")
    restored = commands.add_parser("restore", help="replace a database with a backup")
    restored.add_argument("file", type=Path)
    restored.add_argument("--force", action="store_true", help="also if it has rows, which are lost")
    return command_line


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: use a whole number, 1 or more")
    return int(text)


def first_line(error):
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error).strip().partition("\n")[0] or type(error).__name__


def project_databases():
    """Each database by its alias; a replica does not count. Raises Failed if the settings cannot be read."""
    try:
        settings = dict(connections.settings)
        by_alias = {alias: connections[alias] for alias in settings if not settings[alias]["TEST"].get("MIRROR")}
    except Exception as error:
        raise Failed(f"the project's settings: {type(error).__name__}: {first_line(error)}") from None
    return {alias: database for alias, database in by_alias.items() if is_kept(database)}


def is_kept(database):
    """True if a database outlives the processes of the project."""
    in_memory = database.vendor == "sqlite" and database.is_in_memory_db()
    return not in_memory and database.vendor != NO_DATABASE


@contextmanager
def named(database):
    """Name the database in its errors."""
    try:
        yield
    except (Failed, django.db.Error, sqlite3.Error) as error:
        raise Failed(f"database {database.alias}: {first_line(error)}") from None


# --- Backup -------------------------------------------------------------------------------------


def backup(databases, directory, keep):
    """Write a backup of each database, or none; then remove the oldest ones."""
    # Files are for their owner only.
    os.umask(0o077)
    covered = {alias: database for alias, database in databases.items() if database.vendor in SUFFIXES}
    if not covered:
        raise Failed("the project has no database of SQLite or PostgreSQL")
    directory.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(timezone.utc).strftime(STAMP)
    copies = {}
    with parts_removed(directory):
        for alias, database in covered.items():
            target = directory / f"{stamp}-{quote(alias, safe='')}{SUFFIXES[database.vendor]}"
            part = Path(f"{target}.part")
            with named(database):
                COPY[database.vendor](database, part)
            copies[part] = target
        for part, target in copies.items():
            part.replace(target)
    for target in copies.values():
        end = target.name[len(stamp) :]
        for old in sorted(directory.glob(ANY_STAMP + end))[:-keep]:
            old.unlink()
        print(target)
    for alias in sorted(databases.keys() - covered.keys()):
        print(f"backup: no backup of database {alias}, {databases[alias].vendor}: see to it", file=sys.stderr)


@contextmanager
def parts_removed(directory):
    """Keep other backups out of the directory meanwhile; no part is left there, of an earlier backup neither."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise Failed(f"{directory}: another backup is being made there") from None
    try:
        yield
    finally:
        for part in directory.glob(ANY_STAMP + "-*.part"):
            part.unlink()
        os.close(handle)


def copy_sqlite(database, target):
    file = Path(database.settings_dict["NAME"])
    if not str(file).startswith("file:") and not file.exists():
        raise Failed(f"{file}: there is no such file: run migrate first")
    database.ensure_connection()
    with closing(sqlite3.connect(target)) as copy:
        copy_pages(database.connection, copy)


def copy_pages(source, target):
    """Copy a whole SQLite database; raises Failed when another program keeps it."""
    deadline = time.monotonic() + PATIENCE_S

    def give_up(status, remaining, total):
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise Failed(f"another program has used the database for {PATIENCE_S} s: stop that, and try again")

    source.backup(target, progress=give_up)


def copy_postgresql(database, target):
    argv, env = connected(database, "pg_dump", "--format=custom", "--no-owner", f"--file={target}")
    run(argv, env)


def connected(database, program, *options):
    """The command line and the environment with which a program of PostgreSQL connects to the database."""
    # Django makes both for psql; the password is in the environment.
    words, env = database.client.settings_to_cmd_args_env(database.settings_dict, ["--no-password", *options])
    env = {**os.environ, **(env or {})}
    # The role that the project assumes owns restored objects.
    if role := database.settings_dict["OPTIONS"].get("assume_role"):
        env["PGOPTIONS"] = f"-c role={role}"
    return [program, *words[1:]], env


def run(argv, env=None):
    """The output of a program; raises Failed with its reason."""
    try:
        done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        raise Failed(f"{argv[0]} not found: install postgresql-client") from None
    if done.returncode != 0:
        raise Failed(reason(argv[0], done.stderr))
    return done.stdout


def reason(program, output):
    """The reason why a program of PostgreSQL failed: its first error and the first detail, in a line."""
    lines = [line.strip().removeprefix(f"{program}: ") for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search("error:|fatal:", line, re.IGNORECASE)]
    details = [line for line in lines if re.search("detail:", line, re.IGNORECASE)]
    chosen = (errors or lines or ["it failed"])[:1] + details[:1]
    return f"{program}: {' '.join(chosen)}"


# --- Restore ------------------------------------------------------------------------------------


def restore(databases, file, force):
    """Replace all of a database with its backup, in one transaction."""
    database = database_of(databases, file)
    with file.open("rb"):
        CHECK[database.vendor](database, file)
    with named(database):
        if not force and has_rows(database):
            raise Failed("it has rows, which would be lost; --force replaces them")
        database.close()
        PUT_BACK[database.vendor](database, file)
    print(f"Restored database {database.alias} from {file.name}.")


def database_of(databases, file):
    """The database whose backup a file is, by its name."""
    match = BACKUP.fullmatch(file.name)
    database = databases.get(unquote(match["alias"])) if match else None
    if not database or match["suffix"] != SUFFIXES.get(database.vendor):
        raise Failed(f"{file}: by its name not a backup of this project: use one that its timer wrote")
    return database


def has_rows(database):
    with database.cursor() as cursor:
        for table in database.introspection.table_names(cursor):
            if table in FILLED_BEFORE:
                continue
            cursor.execute(f"SELECT 1 FROM {database.ops.quote_name(table)} LIMIT 1")
            if cursor.fetchone():
                return True
    return False


def foreign(file):
    return Failed(f"{file}: not a backup of a Django project: it has no table {MIGRATIONS}")


def opened(file):
    """An SQLite backup, read-only: nothing is written beside it."""
    return closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?immutable=1", uri=True))


def check_sqlite(database, file):
    try:
        with opened(file) as copy:
            is_intact = copy.execute("PRAGMA quick_check").fetchone() == ("ok",)
            tables = [name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    except sqlite3.DatabaseError as error:
        raise Failed(f"{file}: {error}") from None
    if not is_intact:
        raise Failed(f"{file}: it is damaged")
    if not tables or (database.alias == "default" and MIGRATIONS not in tables):
        raise foreign(file)


def put_back_sqlite(database, file):
    database.ensure_connection()
    with opened(file) as copy:
        copy_pages(copy, database.connection)


def check_postgresql(database, file):
    try:
        listed = run(["pg_restore", "--list", file])
    except Failed as error:
        raise Failed(f"{file}: {error}") from None
    if database.alias == "default" and not re.search(rf" TABLE \S+ {MIGRATIONS} ", listed):
        raise foreign(file)


def put_back_postgresql(database, file):
    """Have pg_restore write a script, which ends with COMMIT, and psql run it: when either fails, nothing is changed."""
    listed = run(["pg_restore", "--list", file])
    extensions = [f'CREATE EXTENSION IF NOT EXISTS "{name}";' for name in EXTENSION.findall(listed)]
    begin = " ".join([BEGIN, DROP_TABLES, *extensions])
    options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--command={begin}", "--file=-"]
    argv, env = connected(database, "psql", *options)
    with tempfile.NamedTemporaryFile("w") as chosen, tempfile.TemporaryFile("w+") as errors:
        chosen.write(OF_EXTENSION.sub("", listed))
        chosen.flush()
        script = [*PG_RESTORE, f"--use-list={chosen.name}", "--file=-", file]
        with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=errors) as written:
            done = subprocess.run(
                argv, env=env, stdin=written.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        errors.seek(0)
        # A signal ends pg_restore when psql stops reading.
        if written.returncode > 0:
            raise Failed(reason("pg_restore", errors.read()))
    if done.returncode != 0:
        raise Failed(reason("psql", done.stderr))


COPY = {"sqlite": copy_sqlite, "postgresql": copy_postgresql}
CHECK = {"sqlite": check_sqlite, "postgresql": check_postgresql}
PUT_BACK = {"sqlite": put_back_sqlite, "postgresql": put_back_postgresql}


if __name__ == "__main__":
    main()
