"""A private PostgreSQL cluster for tests: own data, own port, an ordinary user, gone at the end."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg2

OWNER = "benchapp"
START_SECONDS = 30
STOP_SECONDS = 15

# Nothing in a test's cluster outlives the tests, so nothing needs to reach the disk.
UNSAFE_AND_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=40")

# A test that waits for another of its connections fails, rather than wait for ever.
IMPATIENT = ("lock_timeout=60s", "idle_in_transaction_session_timeout=120s")


def programs() -> Path | None:
    """The directory with initdb and postgres of the newest version installed, if any."""
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]), reverse=True
    )
    candidates = [str(path) for path in versions] or [shutil.which("initdb") or ""]
    directory = Path(candidates[0]).resolve().parent if candidates[0] else None
    return directory if directory and (directory / "postgres").exists() else None


def ordinary_user() -> dict[str, object]:
    """Arguments of subprocess that leave root, which PostgreSQL refuses to run as."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def directory_for(user: dict[str, object]) -> Path:
    """A new directory that the user owns and can reach: a private TMPDIR of root's would not do."""
    for base in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        resolved = base.resolve()
        if not user or all(path.stat().st_mode & stat.S_IXOTH for path in (resolved, *resolved.parents)):
            directory = Path(tempfile.mkdtemp(prefix="benchapp-pg-", dir=resolved))
            if user:
                os.chown(directory, user["user"], user["group"])
            return directory
    raise RuntimeError("no temporary directory that an ordinary user can reach; set TMPDIR to one")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end_with_parent() -> list[str]:
    """A command to begin another with, which shuts down PostgreSQL even if the tests are killed."""
    return ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []


def wait_until_ready(process: subprocess.Popen, log: Path, **connection: object) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg2.connect(**connection).close()
            return
        except psycopg2.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.05)


def stop(process: subprocess.Popen) -> None:
    """Fast shutdown, then an immediate one."""
    for sign in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(sign)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def initialise(
    binaries: Path, directory: Path, data: Path, password: str, environment: dict[str, str], user: dict[str, int]
) -> None:
    """Make the files of a new cluster in `data`."""
    password_file = directory / "password"
    password_file.write_text(password)
    if user:
        os.chown(password_file, user["user"], user["group"])
    password_file.chmod(0o600)
    subprocess.run(
        [
            *(binaries / "initdb", "--no-sync", "--auth=scram-sha-256", f"--username={OWNER}"),
            *(f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C", "-D", data),
        ],
        check=True,
        env=environment,
        cwd=directory,
        stdout=subprocess.DEVNULL,
        **user,
    )


@contextmanager
def cluster(binaries: Path, settings: Sequence[str] = UNSAFE_AND_FAST + IMPATIENT) -> Iterator[str]:
    """A running cluster; yields the URL of its database `benchapp`, whose user may create others.

    `settings` are parameters of the server, each as name=value.
    """
    user = ordinary_user()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")} | {"LC_ALL": "C"}
    directory = directory_for(user)
    try:
        data, log, password = directory / "data", directory / "log", secrets.token_hex(16)
        initialise(binaries, directory, data, password, environment, user)
        port = free_port()
        options = [f"port={port}", f"unix_socket_directories={directory}", "listen_addresses=127.0.0.1", *settings]
        command = [*end_with_parent(), str(binaries / "postgres"), "-D", str(data)]
        for option in options:
            command += ["-c", option]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **user,
            )
        try:
            server = {"host": "127.0.0.1", "port": port, "user": OWNER, "password": password}
            wait_until_ready(process, log, dbname="postgres", **server)
            url = f"postgres://{OWNER}:{password}@127.0.0.1:{port}"
            run_in(f"{url}/postgres", f"CREATE DATABASE {OWNER}")
            yield f"{url}/{OWNER}"
        finally:
            stop(process)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_in(url: str, statement: str) -> None:
    """One statement outside of a transaction."""
    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()
