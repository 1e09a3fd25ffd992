"""Run a load tool as a process: with a time limit, with its output stored, and never left behind."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench.errors import GlobalFault, is_disk_full
from bench.interrupt import SIGNALS
from bench.measure.load import Command, Figures
from bench.serve.machine.error_output import drain

# File descriptors of a load tool in addition to its connections.
SPARE_FILES = 100
POLL_S = 0.1


class TrialError(Exception):
    """The reason for a failed trial; `log` has details, `figures` are the load tool's if it finished."""

    def __init__(self, reason: str, log: Path | None = None, figures: Figures | None = None):
        super().__init__(reason)
        self.log = log
        self.figures = figures


def run(
    command: Command,
    connections: int,
    output: Path,
    limit_s: float,
    *,
    interrupt_after_s: float | None = None,
    enough: threading.Event | None = None,
) -> tuple[str, str]:
    """Run a load tool in the folder of `output`; returns its stdout and stderr, stored as `output`.out and .err.

    After `interrupt_after_s` the tool gets SIGINT, and its exit status is ignored. It also gets SIGINT when `enough` is
    set, but must then exit with success. Raises TrialError on failure or after `limit_s`, GlobalFault if the tool
    cannot be started.
    """
    directory = output.parent
    for file, content in command.files.items():
        (directory / file).parent.mkdir(exist_ok=True)
        (directory / file).write_text(content, "utf-8")
    output.with_suffix(".command").write_text(shlex.join(command.argv) + "\n", "utf-8")
    out, err = output.with_suffix(".out"), output.with_suffix(".err")
    process = reader = None
    errors: list[bytes] = []
    try:
        Path(command.argv[0]).stat()
        with out.open("wb") as stdout, _open_files(connections + SPARE_FILES), signals_deferred():
            process = _start(command, directory, stdout)
            reader = threading.Thread(target=drain, args=(process.stderr, errors), name="load tool's errors")
            reader.start()
        status = _wait(process, limit_s, interrupt_after_s, enough)
    except OSError as error:
        if is_disk_full(error):
            raise
        raise GlobalFault(f"the load tool cannot be started: {command.argv[0]}: {error.strerror}") from None
    finally:
        _end(process, reader)
    err.write_bytes(b"".join(errors))
    texts = out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace")
    if interrupt_after_s is None and status != 0:
        raise TrialError(_failure(Path(command.argv[0]).name, status, limit_s, texts), err)
    return texts


def newest_log(logs: Path) -> Path | None:
    """The most recent log, probably about the failure; None if all are empty."""
    with contextlib.suppress(OSError):
        written = [path for path in logs.iterdir() if path.is_file() and path.stat().st_size]
        return max(written, key=lambda path: path.stat().st_mtime, default=None)
    return None


def processor_seconds() -> float:
    """CPU time of ended child processes: of the load tool, if no other process ends."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Deliver signals after the block: inside it a signal would be lost, or leave a new program running."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for received in came:
            signal.raise_signal(received)


def _start(command: Command, directory: Path, stdout: IO[bytes]) -> subprocess.Popen[bytes]:
    # If the instrument is killed by a signal it cannot catch, the kernel kills the load tool.
    guard = []
    if setpriv := shutil.which("setpriv"):
        guard = [setpriv, "--pdeathsig", "KILL", "--"]
    return subprocess.Popen(
        [*guard, *command.argv],
        cwd=directory,
        env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C", "HOME": str(directory), **command.env},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _wait(
    process: subprocess.Popen[bytes], limit_s: float, interrupt_after_s: float | None, enough: threading.Event | None
) -> int | None:
    """The exit status, or None at the limit."""
    if interrupt_after_s is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(interrupt_after_s)
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + limit_s
    while enough and process.poll() is None and time.monotonic() < deadline:
        if enough.wait(POLL_S):
            process.send_signal(signal.SIGINT)
            break
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes] | None, reader: threading.Thread | None) -> None:
    """Kill the load tool and its children, if still running."""
    if process and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    if process:
        process.wait()
    if reader:
        reader.join()


def _failure(name: str, status: int | None, limit_s: float, texts: tuple[str, str]) -> str:
    if status is None:
        return f"{name} was not done after {limit_s:g} s and was stopped"
    last = (texts[1].strip() or texts[0].strip() or "nothing").splitlines()[-1].strip()
    return f"{name} exited with status {status}; it said: {last[:200]}"


@contextlib.contextmanager
def _open_files(wanted: int) -> Iterator[None]:
    """Allow programs started inside the block so many open files; the servers keep their limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted
        if hard != resource.RLIM_INFINITY:
            limit = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
