"""Two processes of a server on one address: the new one serves before the old one finishes the requests under way.

A server inherits a held socket, as from systemd in production (server.socket.j2), or shares the port with a second
process, or makes a separate socket file, and a link leads to the newer file.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

from bench.errors import DeploymentError
from bench.serve.catalog.server import Server
from bench.serve.machine.identity import Identity
from bench.serve.machine.supervise import Address

# The first inherited descriptor is 3, for the process of that number only: sd_listen_fds(3).
INHERITING = ("/bin/sh", "-c", 'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@" 3<&0 0</dev/null', "sh")
# The variable of benchapp/serving/loaded.py. No more processes come when none came for so long (benchapp-loaded.j2).
LOADED, QUIET_S = "BENCHAPP_LOADED", 2.0
POLL_S = 0.05


def is_possible(server: Server, address: Address) -> bool:
    """True if a second application server can take connections at the address of the first."""
    return bool(server.inherits or server.shares or _can_move(server, address))


def _can_move(server: Server, address: Address) -> bool:
    """True if a second server may have another socket file: the command names the file, not a configuration file."""
    return bool(address.path) and any("listen" in word for word in server.start)


def own_address(server: Server, address: Address, turn: int) -> Address:
    """The address of one of the two: a separate socket file, or the shared address."""
    if server.inherits or not _can_move(server, address):
        return address
    path = Path(address.path)
    return Address(path=str(path.with_name(f"{path.stem}.{turn % 2}{path.suffix}")))


def lead(address: Address, own: Address) -> None:
    """Link the shared address to the address of one of the two, in one step."""
    if own != address:
        beside = Path(f"{address.path}.new")
        beside.symlink_to(own.path)
        beside.replace(address.path)


def words(server: Server, turn: int) -> tuple[str, ...]:
    """Words added to the command: for the held socket, or for a shared port by turns."""
    if isinstance(server.inherits, tuple):
        return server.inherits
    if isinstance(server.shares, tuple) and turn % 2:
        return server.shares
    return ()


def listening_socket(address: Address, backlog: int, identity: Identity) -> socket.socket:
    """A listening socket for processes of this user. Raises DeploymentError without one."""
    listening = socket.socket(address.family)
    try:
        if address.path:
            address.clear()
            listening.bind(address.path)
            Path(address.path).chmod(0o660)
            identity.give(Path(address.path))
        else:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((address.host, address.port))
        listening.listen(backlog)
    except OSError as error:
        listening.close()
        raise DeploymentError(f"cannot listen on {address.text}: {error.strerror}") from None
    return listening


def wait_loaded(folder: Path, processes: int, died: Callable[[], DeploymentError | None], timeout_s: float) -> None:
    """Return once so many processes have loaded the application, or once some have and no more come. Each makes a file
    in the folder.

    Raises DeploymentError if the server ends, or without a file within the time limit.
    """
    deadline = time.monotonic() + timeout_s
    seen, since = 0, time.monotonic()
    while seen < processes and not (seen and time.monotonic() > since + QUIET_S):
        if error := died():
            raise error
        if time.monotonic() > deadline:
            raise DeploymentError(f"no process has loaded the application within {timeout_s:g} s")
        time.sleep(POLL_S)
        if (now := len(list(folder.iterdir()))) != seen:
            seen, since = now, time.monotonic()
