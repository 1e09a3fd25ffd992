"""A project in the environment that its rendered host has, and the backups that the host makes of its databases."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg2

from bench.serve.production import one_host
from bench.serve.project.opened import UnderTest
from tests.cases import for_files

SQLITE, POSTGRESQL = "sqlite", "postgresql"


@dataclass
class Site:
    """A project's folder and environment as a host has them, and its default database."""

    folder: Path
    script: Path
    env: dict[str, str]
    database: str
    backups: Path

    def run(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, *map(str, words)]
        return subprocess.run(argv, cwd=self.folder, env=self.env | env, capture_output=True, text=True, timeout=120)

    def backup(self, *options: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.script, "backup", self.backups, *options, **env)

    def restore(self, file: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.script, "restore", *options, file, **env)

    def new_backup(self, **env: str) -> Path:
        """A new backup of the default database."""
        done = self.backup(**env)
        assert (done.stderr, done.returncode) == ("", 0)
        return Path(done.stdout.splitlines()[0])

    def files(self) -> list[str]:
        return sorted(path.name for path in self.backups.iterdir()) if self.backups.exists() else []

    @property
    def kind(self) -> str:
        return SQLITE if self.database.startswith(SQLITE) else POSTGRESQL

    def sql(self, statement: str) -> list[tuple]:
        if self.kind == SQLITE:
            with closing(sqlite3.connect(self.database.removeprefix("sqlite:///"), isolation_level=None)) as connection:
                return connection.execute(statement).fetchall()
        connection = psycopg2.connect(self.database)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def note(self, text: str) -> None:
        """Write a row of the site: a session."""
        self.sql(f"INSERT INTO django_session VALUES ('{text}', '', '2999-01-01')")

    def notes(self) -> list[str]:
        return sorted(key for (key,) in self.sql("SELECT session_key FROM django_session"))


def rendered(project: UnderTest, out: Path) -> Path:
    one_host.write(for_files("nginx-gunicorn", "none", "production", project), out)
    return out


def migrated(project: UnderTest, out: Path, database: str, folder: Path) -> Site:
    """The site of a project on an empty database, which gets the project's tables."""
    site = site_on(project, out, database, folder)
    done = site.run("manage.py", "migrate", "--verbosity", 0)
    assert done.returncode == 0, done.stderr
    return site


def site_on(project: UnderTest, out: Path, database: str, folder: Path) -> Site:
    """The site of a project on a migrated database, with the environment that its host has."""
    text = (out / "site.env").read_text().replace("/var/lib/benchapp", str(folder / "data"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    env = {"PATH": os.environ["PATH"], **dict(line.split("=", 1) for line in lines)}
    if project.overlaid:
        env |= {"BENCHAPP_DATABASE_URL": database, "PYTHONPATH": str(out / "python")}
    else:
        env |= {"DATABASE_URL": database, "SECRET_KEY": "x" * 50}
    (folder / "data").mkdir()
    return Site(project.folder, out / "backups.py", env, database, folder / "b")
