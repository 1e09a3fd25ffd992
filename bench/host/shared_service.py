"""A service that keeps its data: one of it for all who use it at once.

Its data can be served by one program only. The first who needs it starts it under a keeper (bench/keeper.py), others
join, and the last to leave waits until it is stopped. Three files in the service's folder under `var/` say who is who:
`door` is locked by whoever comes or goes, `users` is locked, shared, by all who are in, and `running.json` says what
was started. The kernel unlocks the files of a process that is killed, so that its leaving needs no clean-up.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

from bench import paths
from bench.errors import BenchError, DeploymentError
from bench.host import service_guardian
from bench.host.identity import Identity
from bench.host.supervise import LONGEST_SOCKET_FOLDER, last_line

POLL_S = 0.02
GONE_TIMEOUT_S = service_guardian.STOP_TIMEOUT_S + 5


class Kept:
    """One instrument's use of the service `name`, whose folder under `var/` belongs to `identity`.

    pid     the keeper, root of the service's process tree; 0 while not in
    alone   whether nobody else may be in, because the limits of a size are put on it too
    joined  whether somebody else had started it
    run     the directory of its sockets
    """

    def __init__(self, name: str, identity: Identity, *, alone: bool = False):
        self.name = name
        self.alone = alone
        self.pid = 0
        self.joined = False
        self.folder = paths.VAR / name
        self.folder.mkdir(parents=True, exist_ok=True)
        identity.give(self.folder)
        self.log = self.folder / "log"
        self.run = Path()
        self._identity = identity
        self._state = self.folder / "running.json"
        self._users = _opened(self.folder / "users")
        self._since = 0.0
        self._popen: subprocess.Popen | None = None

    @contextmanager
    def entering(self) -> Iterator[bool]:
        """The door held, and from now on counted as a user; says whether the service runs already.

        If it does not, the block must start it. Whoever comes meanwhile waits until the block has ended.
        Raises BenchError when a size keeps the two apart.
        """
        with _door(self.folder, f"{self.name}: another stack is starting or stopping it; waiting"):
            # A keeper that is stopping the service holds this lock alone until it is done.
            fcntl.flock(self._users, fcntl.LOCK_SH)
            limited = self._read()
            self.joined = bool(self.pid)
            if self.joined and (self.alone or limited):
                raise BenchError(
                    f"{self.name}: another stack that is up uses it, and a size limits one stack with its database; "
                    "stop that one first, or name another database with --database"
                )
            if not self.joined:
                self.run = self._new_run_folder()
            yield self.joined

    def start(self, argv: list[str], stop_signal: str, env: dict[str, str]) -> None:
        """Start the service by `argv` under a keeper, which outlives this instrument if others use it then."""
        guard = ["setpriv", "--pdeathsig", stop_signal, "--"] if shutil.which("setpriv") else []
        words = [str(paths.PYTHON), "-I", "-S", service_guardian.__file__, str(self.folder / "users"), stop_signal]
        with self.log.open("wb") as output:
            self._identity.give(self.log)
            self._popen = subprocess.Popen(
                [*self._identity.lasting, *words, *guard, *argv],
                env=env,
                cwd=self.run,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid, self._since = self._popen.pid, psutil.Process(self._popen.pid).create_time()
        state = {"pid": self.pid, "since": self._since, "run": str(self.run), "alone": self.alone}
        self._state.write_text(json.dumps(state), "utf-8")

    def died(self) -> DeploymentError | None:
        """Why the service no longer runs, or None while it does."""
        if _runs(self.pid, self._since):
            return None
        return DeploymentError(f"{self.name} has ended: {last_line(self.log)}", self.log)

    def leave(self) -> None:
        """Use it no longer; the last to leave returns when it is stopped and its sockets are gone."""
        if self._users.closed:
            return
        with _door(self.folder, ""), self._users:
            fcntl.flock(self._users, fcntl.LOCK_UN)
            if self.pid and self._nobody_left():
                self._wait_gone()
                shutil.rmtree(self.run, ignore_errors=True)
                self._state.unlink(missing_ok=True)

    def _nobody_left(self) -> bool:
        """Whether no other instrument is in. Nobody comes or goes meanwhile, since the door is held."""
        if _locked(self._users, fcntl.LOCK_EX):
            # Nobody is in, and the keeper has not seen it yet: let it.
            fcntl.flock(self._users, fcntl.LOCK_UN)
            return True
        # Either the keeper was faster and has the lock alone, or others share it.
        return not _locked(self._users, fcntl.LOCK_SH)

    def _wait_gone(self) -> None:
        deadline = time.monotonic() + GONE_TIMEOUT_S
        while _runs(self.pid, self._since):
            if self._popen is not None:
                self._popen.poll()
            if time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
            time.sleep(POLL_S)

    def _read(self) -> bool:
        """Take over what the one who started it wrote down, if it still runs; remove what it left if not.

        Returns whether it runs for that one alone.
        """
        try:
            state = json.loads(self._state.read_text("utf-8"))
            pid, since, run, alone = state["pid"], state["since"], Path(state["run"]), state["alone"]
        except (OSError, ValueError, KeyError):
            return False
        if not _runs(pid, since):
            shutil.rmtree(run, ignore_errors=True)
            return False
        self.pid, self._since, self.run = pid, since, run
        return alone

    def _new_run_folder(self) -> Path:
        folder = self.folder / "run"
        if len(str(folder)) > LONGEST_SOCKET_FOLDER:
            folder = Path(tempfile.mkdtemp(prefix="benchapp-run-", dir="/tmp"))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self._identity.give(folder)
        return folder


@contextmanager
def only_one(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock of the file `path`; prints `waiting`, unless empty, when somebody else has it."""
    with _opened(path) as handle:
        if not _locked(handle, fcntl.LOCK_EX):
            if waiting:
                print(waiting, file=sys.stderr, flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _door(folder: Path, waiting: str) -> contextlib.AbstractContextManager[None]:
    return only_one(folder / "door", waiting)


def _opened(path: Path) -> IO[str]:
    """The file, made if need be; readable by the keeper, who is another user when root started it."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_CREAT, 0o644))


def _locked(handle: IO[str], how: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _runs(pid: int, since: float) -> bool:
    """Whether the process is there and no zombie."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - since) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
