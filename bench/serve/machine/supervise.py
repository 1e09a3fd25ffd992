"""Starting programs in the foreground, waiting until they serve, and stopping all of them."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.errors import DeploymentError
from bench.serve.machine import http
from bench.serve.machine.identity import Identity

POLL_S = 0.02
# Between two looks at all processes of the machine, which take milliseconds of a core.
SCAN_S = 0.1
HEALTH_TIMEOUT_S = 5
# So long an application may return 500 while it starts.
BROKEN_S = 5
# How long a program has to end before the stop signal is sent again.
RESEND_S = 1.2
# A warning of Python, with the line of the source that it shows: no reason of an error.
WARNING = re.compile(r"^\S+:\d+: \w*Warning: .*\n(?: {2}\S.*\n)?", re.M)
# What a program wrote within so many seconds of its end belongs to it.
LAST_WORDS_S = 10
# The longest path of a Unix socket is 107 bytes (unix(7)); names of sockets take the rest.
MAX_SOCKET_FOLDER = 80
# Django's error for settings with which an application does not start.
REFUSED_SETTINGS = "ImproperlyConfigured: "


@dataclass(frozen=True)
class Address:
    """The address of a listener: a TCP `host` and `port`, or the `path` of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def text(self) -> str:
        """`unix:/run/x.sock` or `127.0.0.1:8000`, the form most servers read."""
        if self.path:
            return f"unix:{self.path}"
        return f"{self.host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """`/run/x.sock` or `127.0.0.1:8000`, the form of servers that recognise a path by its slash."""
        return self.path or self.text

    @property
    def url(self) -> str:
        """`unix:/run/x.sock` or `http://127.0.0.1:8000`, for HTTP clients."""
        if self.path:
            return self.text
        return f"http://{self.text}"

    @property
    def sockets(self) -> list[str]:
        """The path of a Unix socket, or nothing: templates loop over this."""
        if not self.path:
            return []
        return [self.path]

    @property
    def family(self) -> socket.AddressFamily:
        if self.path:
            return socket.AF_UNIX
        return socket.AF_INET

    def clear(self) -> None:
        """Remove the socket file of a killed server: some servers do not start on one."""
        if self.path:
            Path(self.path).unlink(missing_ok=True)

    def accepts(self) -> bool:
        """True if a connection can be opened now."""
        with socket.socket(self.family, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            return probe.connect_ex(self.path or (self.host, self.port)) == 0


class Process:
    """A program under supervision, in a separate process group.

    log_begins  the number of bytes in the log before the start
    """

    def __init__(
        self, name: str, popen: subprocess.Popen[bytes], log: Path, stop_signal: str = "TERM", log_begins: int = 0
    ):
        self.name = name
        self.popen = popen
        self.log = log
        self.stop_signal = getattr(signal, f"SIG{stop_signal}")
        self._log_begins = log_begins
        self._death: DeploymentError | None = None

    @property
    def pid(self) -> int:
        return self.popen.pid

    def died(self) -> DeploymentError | None:
        """The reason why the process ended, with its last output, or None while running."""
        status = self.popen.poll()
        if self._death is None and status is not None:
            how = f"exited with status {status}"
            if status < 0:
                how = f"was killed by {signal.Signals(-status).name}"
            # A program says why it ends or aborts. What another signal kills writes nothing at its end.
            if status >= 0 or status == -signal.SIGABRT:
                how = ": ".join(filter(None, [how, self._last_words()]))
            self._death = DeploymentError(f"{self.name} {how}", self.log)
        return self._death

    def _last_words(self) -> str:
        """The last line of the log if written just now; an older line has another cause."""
        with contextlib.suppress(OSError):
            if time.time() - self.log.stat().st_mtime < LAST_WORDS_S:
                return last_line(self.log, "", self._log_begins)
        return ""


def start(
    argv: list[str],
    log: Path,
    identity: Identity,
    *,
    stop_signal: str = "TERM",
    stdin: int = subprocess.DEVNULL,
    **how: Any,
) -> Process:
    """Start `argv` as `identity`, its output appended to `log`, a file named after the program; the kernel stops the
    process when the instrument is killed.

    how  for subprocess.Popen: env, cwd, and pass_fds

    Raises DeploymentError if `argv` cannot be executed.
    """
    name = log.stem
    with log.open("ab") as output:
        log_begins = output.tell()
        # A server that opens its standard error by name must be allowed to.
        identity.give(log)
        try:
            popen = subprocess.Popen(
                [*identity.ending_by(stop_signal).prefix, *argv],
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **how,
            )
        except OSError as error:
            raise DeploymentError(f"{name}: cannot start {argv[0]}: {error.strerror}", log) from None
    return Process(name, popen, log, stop_signal, log_begins)


def wait_accepting(process: Process, address: Address, timeout_s: float) -> None:
    """Return once `address` accepts connections; raises DeploymentError when the process ends or the time is up."""
    _wait([process], address.accepts, lambda: f"did not listen on {address.text}", timeout_s)


def wait_command(process: Process, argv: list[str], env: dict[str, str], timeout_s: float) -> None:
    """Return once `argv` exits with 0; raises DeploymentError when the process ends or the time is up."""

    def passes() -> bool:
        return subprocess.run(argv, env=env, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0

    _wait([process], passes, lambda: f"failed the probe {Path(argv[0]).name}", timeout_s)


def wait_healthy(processes: Iterable[Process], url: str, path: str, timeout_s: float) -> None:
    """Return once GET `path` has a 2xx response at `url`; raises DeploymentError with the death or the response.

    An application that returns 500 for some seconds is not starting but broken. A server may let a request wait for the
    application, so each request may wait as long as all before together.
    """
    processes = list(processes)
    status: int | None = None
    begun, broken_since = time.monotonic(), math.inf

    def is_healthy() -> bool:
        nonlocal status, broken_since
        waited_s = time.monotonic() - begun
        status = http.status(url, path, max(HEALTH_TIMEOUT_S, min(waited_s, timeout_s - waited_s)))
        if status != 500:
            broken_since = math.inf
            return status in http.HEALTHY
        broken_since = min(broken_since, time.monotonic())
        if time.monotonic() - broken_since > BROKEN_S:
            raise _failed(processes, f"returns status 500 to GET {path}")
        return False

    _wait(processes, is_healthy, lambda: f"returned {status or 'nothing'} to GET {path}", timeout_s)


def _wait(
    processes: Iterable[Process], ready: Callable[[], bool], failing: Callable[[], str], timeout_s: float
) -> None:
    """Return once `ready`; raises DeploymentError when a process ends, or with the last failure, `failing`."""
    processes = list(processes)
    deadline = time.monotonic() + timeout_s
    while not ready():
        for process in processes:
            if error := process.died():
                raise error
        if time.monotonic() > deadline:
            raise _failed(processes, f"{failing()} within {timeout_s:g} s")
        time.sleep(POLL_S)


def _failed(processes: list[Process], how: str) -> DeploymentError:
    """The outermost program failed like this; the innermost, the application, may have written why."""
    *_, last = processes
    of = next((process for process in processes if last_line(process.log, "")), last)
    return DeploymentError(f"{last.name} {how}; last in {of.log.name}: {last_line(of.log)}", of.log)


def wait_settled(processes: Iterable[Process], before: set[psutil.Process], quiet_s: float, timeout_s: float) -> None:
    """Return once no child of these processes came or went for `quiet_s`, or when the time is up.

    While one of the processes in `before` still exists the limit is six times as long: a server may replace workers one
    after another.
    """
    processes = list(processes)
    deadline = time.monotonic() + timeout_s
    seen, since = children(processes), time.monotonic()
    while True:
        quiet_for_s = quiet_s
        if seen & before:
            quiet_for_s = 6 * quiet_s
        if time.monotonic() >= min(since + quiet_for_s, deadline):
            return
        time.sleep(SCAN_S)
        if (now := children(processes)) != seen:
            seen, since = now, time.monotonic()


def children(processes: Iterable[Process]) -> set[psutil.Process]:
    """All processes below these."""
    descendants: set[psutil.Process] = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            descendants.update(psutil.Process(process.pid).children(recursive=True))
    return descendants


def finish(process: Process, graceful: str, timeout_s: float) -> None:
    """Drain and stop a process: send the named signal once and wait for its end, up to the time limit."""
    process.popen.send_signal(getattr(signal, f"SIG{graceful}"))
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.popen.wait(timeout_s)


def stop(processes: list[Process], timeout_s: float = 5) -> None:
    """Stop every process, the last started first, and the rest of their process groups.

    A killed master leaves its workers behind, so the rest of a group after `timeout_s` is killed.
    """
    for process in reversed(processes):
        process.popen.send_signal(process.stop_signal)
    deadline = time.monotonic() + timeout_s
    for process in reversed(processes):
        while process.popen.poll() is None and (left := deadline - time.monotonic()) > 0:
            try:
                process.popen.wait(min(RESEND_S, left))
            except subprocess.TimeoutExpired:
                # A server that is still starting may have ignored it.
                process.popen.send_signal(process.stop_signal)
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.popen.wait(1)
    deadline = time.monotonic() + 1
    while any(_group_lives(process.pid) for process in processes) and time.monotonic() < deadline:
        time.sleep(POLL_S)


@contextlib.contextmanager
def hung(process: Process) -> Iterator[None]:
    """Have a program with all its processes hang until the block ends: connections open, no response."""
    # Not its process group: a database gives each connection's process another one.
    main = psutil.Process(process.pid)
    main.suspend()
    tree = [main, *main.children(recursive=True)]
    try:
        for child in tree[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.suspend()
        yield
    finally:
        for one in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.resume()


def kill_session(leader: int) -> None:
    """Kill the rest of the session of a started program: its workers, in whatever process groups."""
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


def _group_lives(group: int) -> bool:
    """True if the process group has a member that is more than a zombie."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


def last_line(log: Path, otherwise: str = "it wrote nothing", begins: int = 0) -> str:
    """The last line of text after so many bytes of `log`, for an error message; if settings were refused, why."""
    with contextlib.suppress(OSError), log.open("rb") as text:
        text.seek(begins)
        written = WARNING.sub("", text.read().decode("utf-8", "replace"))
        lines = [line.strip() for line in written.splitlines()]
        for line in reversed(lines):
            # A server that gives up writes more lines after the reason.
            if REFUSED_SETTINGS in line:
                return line.partition(REFUSED_SETTINGS)[2]
        return next((line for line in reversed(lines) if line), otherwise)
    return otherwise
