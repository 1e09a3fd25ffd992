"""The cost of `./manage.py loadfixtures` beside the databases' own bulk loaders.

The same rows go into a new SQLite file and a private PostgreSQL cluster in two ways, by turns, each timed as
a whole from outside: the command, with the start of Python and Django, making the rows, indexes, page index and
statistics; and the bare loader (`.import` of the sqlite3 shell, `\\copy` of psql) from CSV files that lie
ready, into bare tables of the same definition, with the same indexes and constraints built afterwards.
An untimed first run of the command fills the caches and is sampled for memory: the sum of PSS over its
processes, not counting the PostgreSQL server.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.paths import KIT
from bench.serve.machine import processes
from fixtures.rows import ROWS_DEFAULT, TABLES, Rows
from tests import postgresql
from tests.proofs.arguments import count

LIMIT = 1.25  # what the command may cost, in times of the bare loader
MEMORY_EVERY_S = 0.05
# As in deploy/services/postgresql: safe, and with room for a million rows.
SETTINGS = ("shared_buffers=256MB", "maintenance_work_mem=256MB", "max_wal_size=2GB", "timezone=UTC")


@dataclass
class Contest:
    """One database: how to start over and how to load it, by the command and by the bare loader."""

    name: str
    loader: str
    url: Callable[[], str]  # makes a new, migrated, empty database
    bare: Callable[[], tuple[list[str], Path]]  # makes bare tables; the loader's argv and its script
    command_s: list[float] = field(default_factory=list)
    loader_s: list[float] = field(default_factory=list)
    phases_s: dict[str, list[float]] = field(default_factory=dict)
    memory_bytes: int = 0


def manage(url: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=KIT,
        env=os.environ | {"DATABASE_URL": url, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> None:
    if process.wait():
        raise SystemExit(f"{' '.join(map(str, process.args))} failed with exit code {process.returncode}")


def load(contest: Contest, rows: int) -> None:
    """One timed run of the command."""
    url = contest.url()
    start = time.perf_counter()
    process = manage(url, "loadfixtures", "--rows", str(rows))
    phase, since = "start", start
    for line in process.stdout:
        now = time.perf_counter()
        contest.phases_s.setdefault(phase, []).append(now - since)
        phase, since = line.strip() if line.split()[0].endswith("ing") else "end", now
    finish(process)
    contest.command_s.append(time.perf_counter() - start)


def load_bare(contest: Contest) -> None:
    """One timed run of the bare loader."""
    command, script = contest.bare()
    with script.open("rb") as source:
        start = time.perf_counter()
        finish(subprocess.Popen(command, stdin=source, cwd=script.parent))
        contest.loader_s.append(time.perf_counter() - start)


def memory(url: str, rows: int) -> int:
    """The largest sum of PSS, in bytes, over the processes of one untimed run of the command."""
    process = manage(url, "loadfixtures", "--rows", str(rows))
    peak, over = 0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not over.wait(MEMORY_EVERY_S):
            peak = max(peak, processes.memory_bytes(process.pid) or 0)

    sampler = threading.Thread(target=sample)
    sampler.start()
    for _ in process.stdout:
        pass
    over.set()
    sampler.join()
    finish(process)
    return peak


def export(rows: Rows, directory: Path) -> None:
    """The rows as CSV files, named by their tables."""
    for frame in rows.frames():
        with (directory / f"{frame.table}.csv").open("a", newline="", encoding="utf-8") as target:
            csv.writer(target, lineterminator="\n").writerows(zip(*frame.columns, strict=True))


def sqlite_contest(directory: Path) -> Contest:
    template, site, bare = (directory / f"{name}.sqlite3" for name in ("template", "site", "bare"))
    finish(manage(f"sqlite:///{template}", "migrate", "--verbosity", "0"))
    source = sqlite3.connect(template)
    ours = "tbl_name IN ('benchapp_author', 'benchapp_post', 'benchapp_comment') AND sql IS NOT NULL"
    # Made-up comments have no account, and a CSV file has no NULL for the shell.
    ours += " AND name <> 'comment_user'"
    account = ', "user_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED'
    tables, indexes = (
        [
            sql.replace(account, "")
            for (sql,) in source.execute(f"SELECT sql FROM sqlite_master WHERE type = '{kind}' AND {ours}")
        ]
        for kind in ("table", "index")
    )
    source.close()
    script = directory / "import.sql"
    imports = [f".import {table}.csv benchapp_{table}" for table in TABLES]
    script.write_text("\n".join([".bail on", ".mode csv", *imports, *(f"{sql};" for sql in indexes)]) + "\n")

    def url() -> str:
        remove(site)
        shutil.copyfile(template, site)
        return f"sqlite:///{site}"

    def bare_tables() -> tuple[list[str], Path]:
        remove(bare)
        target = sqlite3.connect(bare)
        for sql in tables:
            target.execute(sql)
        target.close()
        return ["sqlite3", str(bare)], script

    return Contest("SQLite", "sqlite3 .import", url, bare_tables)


def remove(database: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def postgresql_contest(server: str, binaries: Path, directory: Path) -> Contest:
    base = server.rpartition("/")[0]
    template, site, bare = (f"{base}/{name}" for name in ("template", "site", "bare"))

    def create(name: str, options: str = "") -> None:
        postgresql.run_in(f"{base}/postgres", f"DROP DATABASE IF EXISTS {name}")
        postgresql.run_in(f"{base}/postgres", f"CREATE DATABASE {name} {options}")

    def dump(section: str) -> str:
        tables = [option for table in TABLES for option in ("-t", f"benchapp_{table}")]
        command = [str(binaries / "pg_dump"), f"--section={section}", *tables, template]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    create("template")
    finish(manage(template, "migrate", "--verbosity", "0"))
    # Meta-commands that differ between versions of pg_dump and psql are left out, and so are our triggers.
    lines = [line for line in dump("pre-data").splitlines() if not line.startswith("\\")]
    # There are no accounts beside the bare tables.
    without = ("TRIGGER", "auth_user")
    builds = [line for line in dump("post-data").splitlines() if not line.startswith("\\")]
    builds = [part for part in "\n".join(builds).split("\n\n") if not any(word in part for word in without)]
    copy = "\\copy benchapp_{table} ({columns}) from {table}.csv with (format csv)"
    copies = [copy.format(table=table, columns=", ".join(columns)) for table, columns in TABLES.items()]
    tables, script = directory / "tables.sql", directory / "copy.sql"
    tables.write_text("\n".join(lines))
    # What follows sets search_path to nothing and names each table with its schema.
    script.write_text("\n".join(["\\set ON_ERROR_STOP on", *copies, *builds]) + "\n")
    psql = [str(binaries / "psql"), "--quiet", "--no-psqlrc", "--output", os.devnull, "--dbname", bare]

    def url() -> str:
        create("site", "TEMPLATE template")
        return site

    def bare_tables() -> tuple[list[str], Path]:
        create("bare")
        subprocess.run([*psql, "--file", str(tables)], check=True)
        return psql, script

    return Contest("PostgreSQL", "psql \\copy", url, bare_tables)


def generation_s(rows: int) -> float:
    """Making only the rows."""
    start = time.perf_counter()
    for _ in Rows(total=rows).frames():
        pass
    return time.perf_counter() - start


def report(contest: Contest) -> Iterator[str]:
    command, loader = statistics.median(contest.command_s), statistics.median(contest.loader_s)
    yield f"{contest.name}"
    yield f"  loadfixtures      {_seconds(contest.command_s)}"
    yield f"  {contest.loader:17} {_seconds(contest.loader_s)}"
    yield f"  ratio of medians  {command / loader:.2f} (limit {LIMIT})"
    yield f"  peak memory       {contest.memory_bytes / 2**20:.0f} MiB"
    for phase, times in contest.phases_s.items():
        if len(times) == len(contest.command_s):
            yield f"    {phase:21} {statistics.median(times):5.2f} s"


def _seconds(times: list[float]) -> str:
    return f"{statistics.median(times):6.2f} s median of {len(times)} ({min(times):.2f} to {max(times):.2f})"


@contextmanager
def contests(directory: Path) -> Iterator[list[Contest]]:
    """The loaders with installed programs; the others are named."""
    installed = []
    if shutil.which("sqlite3"):
        installed.append(sqlite_contest(directory))
    else:
        print("SQLite: skipped, the sqlite3 shell is not installed")
    binaries = postgresql.programs()
    if binaries is None:
        print("PostgreSQL: skipped, initdb and postgres are not installed")
        yield installed
        return
    with postgresql.cluster(binaries, SETTINGS) as server:
        installed.append(postgresql_contest(server, binaries, directory))
        yield installed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proofs.loadfixtures", description=__doc__.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--rows", type=count(), default=ROWS_DEFAULT, help=f"rows of all tables ({ROWS_DEFAULT:,})")
    parser.add_argument("--rounds", type=count(), default=5, help="timed runs of each (5)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="benchapp-loadfixtures-") as name, contests(Path(name)) as installed:
        export(Rows(total=options.rows), Path(name))
        for contest in installed:
            contest.memory_bytes = memory(contest.url(), options.rows)
        making = []
        for turn in range(options.rounds):
            making.append(generation_s(options.rows))
            for contest in installed:
                runs = [lambda one=contest: load(one, options.rows), lambda one=contest: load_bare(one)]
                for run in runs if turn % 2 else reversed(runs):
                    run()
        print(f"{options.rows:,} rows; only making them takes {_seconds(making)}")
        for contest in installed:
            print("\n".join(report(contest)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
