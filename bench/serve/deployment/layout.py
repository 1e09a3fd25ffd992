"""The places of a deployment's files: its directories on this machine, and the places that templates name."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import BenchError, DeploymentError
from bench.serve.machine.identity import Identity
from bench.serve.machine.supervise import MAX_SOCKET_FOLDER, Address
from bench.serve.project.opened import UnderTest

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class HostPaths:
    """The paths and addresses of a running deployment; see `[places]` of deploy/values/production.toml.

    name     the first word in the names of units and commands
    inner_port  the port of the first inner server without a Unix socket; the others have the next ports
    metrics_bind  the loopback address of the servers' figures, with the port that is usual for each
    shared   services and doors of servers for other hosts, by name: their addresses
    here     True for this machine, with programs wherever they are installed; False for a host, with Debian's paths
    private  each server has a directory below `run` for its own files, which no other user writes into
    """

    project: str
    venv: str
    static_root: str
    conf: str
    run: str
    logs: str
    store: str
    tls: str
    data: str
    media_root: str
    user: str
    web_user: str
    cache_user: str
    group: str
    tls_group: str
    bind: str
    port: int
    name: str = "benchapp"
    inner_port: int = 8001
    metrics_bind: str = LOOPBACK
    shared: Mapping[str, Address] = field(default_factory=dict)
    private: bool = False
    here: bool = False

    @property
    def names(self) -> dict[str, Any]:
        """The places as templates name them, with the interpreter of `venv`."""
        named = {name: value for name, value in vars(self).items() if name not in ("shared", "private", "here")}
        return {**named, "python": f"{self.venv}/bin/python"}

    def run_of(self, server: str) -> str:
        """The directory for files that a server writes while running, except for the sockets for others."""
        if self.private:
            return f"{self.run}/{server}"
        return self.run

    def address(self, name: str, socket: str) -> Address:
        """The address of a service or a door: for other hosts, too, or at the Unix socket of that name."""
        return self.shared.get(name) or Address(path=f"{self.run}/{socket}.sock")


@dataclass(frozen=True)
class Layout:
    """The directories of a deployment on this machine.

    run_dir    holds all of them, except `sockets` if its path is too long for a Unix socket
    sockets    Unix sockets; also the working and home directory of the programs
    temporary  whether `run_dir` is removed with the deployment
    """

    run_dir: Path
    sockets: Path
    temporary: bool = False

    @property
    def conf(self) -> Path:
        """The rendered configuration files."""
        return self.run_dir / "conf"

    @property
    def logs(self) -> Path:
        return self.run_dir / "logs"

    def log_of(self, program: str) -> Path:
        """The log of a program's output."""
        return self.logs / f"{program}.log"

    @property
    def store(self) -> Path:
        """The directory of pages that servers cache in files."""
        return self.run_dir / "store"

    @property
    def tls(self) -> Path:
        """The private key and the certificate of a TLS listener."""
        return self.run_dir / "tls"

    @property
    def scratch(self) -> Path:
        """The directory to remove after the instrument was killed."""
        if self.temporary:
            return self.run_dir
        return self.sockets

    def make(self, identity: Identity) -> None:
        """Make the directories, for `identity` to write to."""
        for folder in (self.conf, self.logs, self.store, self.sockets):
            folder.mkdir(parents=True, exist_ok=True)
            identity.give(folder)

    def empty_store(self) -> None:
        """Remove all files from the servers' caches."""
        empty(self.store)

    def places(self, project: UnderTest, identity: Identity, port: int) -> HostPaths:
        """The places of a deployment on this port of the loopback interface."""
        return HostPaths(
            project=str(project.folder),
            venv=str(project.venv),
            static_root=str(project.static_root),
            conf=str(self.conf),
            run=str(self.sockets),
            logs=str(self.logs),
            store=str(self.store),
            tls=str(self.tls),
            data=str(project.var),
            media_root=str(project.media_root),
            user=identity.user,
            web_user=identity.user,
            cache_user=identity.user,
            group=str(identity.gid),
            tls_group=str(identity.gid),
            bind=LOOPBACK,
            port=port,
            here=True,
        )


@contextmanager
def directories(project: UnderTest, run_dir: Path | None, name: str) -> Iterator[Layout]:
    """The directories of a deployment, made; a temporary `run_dir` for None. The sockets go at the end.

    The logs of a temporary one survive a DeploymentError, under var/logs/`name`.
    """
    with ExitStack() as cleanup:
        temporary = run_dir is None
        if run_dir is None:
            run_dir = Path(tempfile.mkdtemp(prefix="benchapp-"))
            cleanup.callback(shutil.rmtree, run_dir, ignore_errors=True)
        run_dir = run_dir.absolute()
        fresh_directory(run_dir)
        project.worker().give(run_dir)
        sockets = run_dir / "run"
        if len(str(sockets)) > MAX_SOCKET_FOLDER:
            sockets = Path(tempfile.mkdtemp(prefix="benchapp-run-", dir="/tmp"))
        layout = Layout(run_dir, sockets, temporary)
        cleanup.callback(shutil.rmtree, layout.sockets, ignore_errors=True)
        layout.make(project.worker(run_dir))
        try:
            yield layout
        except DeploymentError as error:
            if not temporary:
                raise
            raise _with_saved_logs(error, layout.logs, project.var / "logs" / name) from None


def empty(folder: Path) -> None:
    """Remove everything in a directory."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _with_saved_logs(error: DeploymentError, logs: Path, target: Path) -> DeploymentError:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(logs, target)
    if error.log and error.log.parent == logs:
        return error.moved(target)
    return error


def fresh_directory(target: Path) -> bool:
    """Make `target` an empty directory; returns whether the directory existed.

    Raises BenchError for a directory with content, or one that cannot be made or read.
    """
    try:
        if was_there := target.is_dir():
            if any(target.iterdir()):
                raise BenchError(f"{target}: not empty; name a new or empty directory")
        elif target.exists():
            raise BenchError(f"{target}: is a file; name a new or empty directory")
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{target}: cannot be made: {error.strerror}; name another directory") from None
    return was_there
