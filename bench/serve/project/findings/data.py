"""Findings: the database, its connections and migrations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.serve.project.description import FILE
from bench.serve.project.findings.finding import DOCS, ERROR, RENDER, WARNING, Examination, Occurrence, finding
from bench.serve.project.inspection import Facts

# Databases that a private one of PostgreSQL can take the place of.
PRIVATE = re.compile(r"postg|psql|sqlite3")
# Django has this option of SQLite from then on.
TRANSACTION_MODE = (5, 1)
SQLITE_OPTIONS = 'OPTIONS = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL"}'


@finding("database-unusable", ERROR, "", found_in=RENDER, setting="DATABASES")
def database_unusable(examination: Examination) -> Iterator[Occurrence]:
    """The database cannot be used."""
    facts = examination.facts
    if facts.database_error:
        yield Occurrence(f"the database cannot be used: {facts.database_error}", remedy=_remedy(facts))


def _remedy(facts: Facts) -> str:
    if not (facts.database_error or "").startswith("OperationalError"):
        return "correct DATABASES in its settings"
    if PRIVATE.search(facts.databases.get("default", "")):
        return "start it, or add --database postgresql: a private one that the commands of setup fill"
    return "start it, or name another of its kind: --database URL"


@finding(
    "database-empty",
    WARNING,
    "look with --database sqlite or postgresql, which the commands of setup fill",
    link=f"{DOCS}/topics/migrations/#workflow",
    found_in=RENDER,
    setting="DATABASES",
)
def database_empty(examination: Examination) -> Iterator[Occurrence]:
    """The database has no tables yet, so pages that need them are not judged."""
    if examination.is_unfilled and not examination.facts.database_error:
        yield Occurrence("the database has no tables yet: errors of pages that query it are not shown")


@finding(
    "migrations-unapplied",
    ERROR,
    f"run ./manage.py migrate, or have the kit fill a database: generated = true in [tool.benchapp] of {FILE}",
    link=f"{DOCS}/topics/migrations/#workflow",
    found_in=RENDER,
    setting="DATABASES",
)
def migrations_unapplied(examination: Examination) -> Iterator[Occurrence]:
    """The database lacks migrations."""
    facts = examination.facts
    if facts.migrations_left and not facts.database_error and not examination.is_unfilled:
        left = f"{facts.migrations_left} migrations are"
        if facts.migrations_left == 1:
            left = "1 migration is"
        yield Occurrence(f"{left} not applied to the database")


@finding(
    "migration-unsafe",
    WARNING,
    "divide it: add what is new, deploy, then remove what is old",
    link="https://github.com/3YOURMIND/django-migration-linter/blob/main/docs/incompatibilities.md",
    found_in=RENDER,
)
def migration_unsafe(examination: Examination) -> Iterator[Occurrence]:
    """A migration breaks or blocks the version that runs (django-migration-linter, if it is installed)."""
    for where, problem in examination.facts.lint:
        yield Occurrence(f"it would break or block the running version: {problem}", where)


@finding("sqlite-locks", WARNING, "", link=f"{DOCS}/ref/databases/#sqlite-notes", setting="DATABASES")
def sqlite_locks(examination: Examination) -> Iterator[Occurrence]:
    """Several processes write to SQLite with settings for one."""
    facts = examination.facts
    remedy = SQLITE_OPTIONS
    if examination.django_version < TRANSACTION_MODE:
        remedy = "upgrade to Django 5.1 or newer, whose SQLite backend has transaction_mode, or use a database server"
    for alias, (transactions, journal) in facts.sqlite_modes.items():
        if (transactions, journal) != ("IMMEDIATE", "WAL") and alias not in facts.databases_in_memory:
            yield Occurrence(
                f"{alias}: transactions are {transactions} and the journal is {journal}: with several processes, "
                "writes fail with 'database is locked'",
                remedy=remedy,
            )


@finding(
    "persistent-connections",
    WARNING,
    "set CONN_MAX_AGE = 0 for ASGI servers, or use the driver's pool",
    link=f"{DOCS}/ref/databases/#persistent-database-connections",
    setting="DATABASES",
)
def persistent_connections(examination: Examination) -> Iterator[Occurrence]:
    """An ASGI server keeps opening persistent connections."""
    facts = examination.facts
    persist = any(age != 0 for age in facts.conn_max_age.values())
    if persist and "asgi" in facts.application and not examination.own_settings:
        yield Occurrence(
            "connections to the database persist: an ASGI server opens more and more of them",
            examination.line("DATABASES", "CONN_MAX_AGE"),
        )


@finding(
    "too-many-connections",
    WARNING,
    "serve with fewer threads or a smaller pool, or put a pooler in front of the database",
    link=f"{DOCS}/ref/databases/#connection-management",
    found_in=RENDER,
    setting="DATABASES",
)
def too_many_connections(examination: Examination) -> Iterator[Occurrence]:
    """The servers may open more connections than the database accepts."""
    facts, processes = examination.facts, examination.processes
    needed = processes * examination.threads
    holders = f"{needed} threads"
    if pool := facts.pools.get("default"):
        needed = processes * pool
        holders = f"{processes} processes with a pool of {pool} each"
    if facts.max_connections is not None and needed > facts.max_connections:
        yield Occurrence(f"{holders} may hold {needed} connections, and the database accepts {facts.max_connections}")


@finding(
    "server-side-cursors",
    WARNING,
    "set DISABLE_SERVER_SIDE_CURSORS = True for it, unless the pooler keeps a connection for a whole session",
    link=f"{DOCS}/ref/databases/#transaction-pooling-server-side-cursors",
    setting="DATABASES",
)
def server_side_cursors(examination: Examination) -> Iterator[Occurrence]:
    """QuerySet.iterator() uses cursors of the server, which a pooler by transactions loses."""
    for alias, place in examination.facts.poolers.items():
        yield Occurrence(
            f"{alias} is behind a pooler ({place}), such as PgBouncer: if it pools by transaction, "
            "QuerySet.iterator() fails with 'cursor does not exist'"
        )


@finding(
    "session-saved-always",
    WARNING,
    "leave SESSION_SAVE_EVERY_REQUEST off, or keep sessions in a cache",
    setting="SESSION_SAVE_EVERY_REQUEST",
)
def session_saved_always(examination: Examination) -> Iterator[Occurrence]:
    """Each request of a visitor with a session writes to the database."""
    if examination.facts.session_save_every_request:
        yield Occurrence("each request of a visitor with a session writes to the database")
