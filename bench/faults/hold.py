"""Something of the site's database, held by another program for a while."""

from __future__ import annotations

import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from bench import paths
from bench.serve.deployment import Running
from bench.verify.finding import NotTried

HOLDS_TIMEOUT_S = 20
ENDS_TIMEOUT_S = 5
NO_LIMIT = "it ends all clients' connections, so only a private database server has it: give --database postgresql"


@contextmanager
def write_lock(running: Running) -> Iterator[str]:
    """Hold the write lock of the site's SQLite file until the block ends; raises NotTried on another database."""
    if not _scheme(running).startswith("sqlite"):
        raise NotTried("only SQLite has one lock for all writers")
    with _held(running, "lock") as said:
        yield said


def has_limit(running: Running) -> bool:
    """Whether the site's database allows so many connections and no more, and has no other clients than the site."""
    return running.services.database is not None


@contextmanager
def connections(running: Running) -> Iterator[str]:
    """Hold every connection that the database allows until the block ends; raises NotTried unless it is private."""
    if not has_limit(running):
        raise NotTried(NO_LIMIT)
    with _held(running, "connections") as said:
        yield said


def _scheme(running: Running) -> str:
    return urlsplit(running.env["DATABASE_URL"]).scheme


@contextmanager
def _held(running: Running, what: str) -> Iterator[str]:
    """Run the program that holds it, as the servers' user, and yield what it says once it does."""
    identity = running.chain.launcher.identity
    program = subprocess.Popen(
        [*identity.prefix, str(paths.PYTHON), "-m", "bench.faults.holder", what],
        cwd=paths.PROJECT,
        env={**running.chain.launcher.clean_env, "DATABASE_URL": running.env["DATABASE_URL"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout
    try:
        holds = select.select([program.stdout], [], [], HOLDS_TIMEOUT_S)[0]
        said = program.stdout.readline().strip() if holds else ""
        if not said:
            program.kill()
            errors = program.communicate()[1].strip().splitlines()
            raise NotTried(f"the {what} could not be held: {errors[-1] if errors else 'no answer in time'}")
        yield said
    finally:
        _end(program)


def _end(program: subprocess.Popen[str]) -> None:
    """Have it let go, by the end of its standard input; kill it when it does not."""
    try:
        program.communicate(timeout=ENDS_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
