"""Two processes of a server on one address, so that new ones serve before old ones finish their requests.

A server either inherits a socket that is held for it, as systemd does in production (server.socket.j2), or shares its
port with a second one, or has a socket file with a name of its own, to which a link leads.
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

# The first inherited descriptor is 3, and it is for this process only: sd_listen_fds(3).
INHERITING = ("/bin/sh", "-c", 'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@" 3<&0 0</dev/null', "sh")
# The variable of benchapp/serving/loaded.py. No more processes come when none came for so long (benchapp-loaded.j2).
LOADED, QUIET_S = "BENCHAPP_LOADED", 2.0
POLL_S = 0.05


def is_possible(server: Server, address: Address) -> bool:
    """True if a second application server can take connections at the address of the first."""
    return bool(server.inherits or server.shares or address.path)


def own_address(server: Server, address: Address, turn: int) -> Address:
    """The address where one of the two listens: the socket file that it makes itself, or the address of both."""
    if server.inherits or not address.path:
        return address
    path = Path(address.path)
    return Address(path=str(path.with_name(f"{path.stem}.{turn % 2}{path.suffix}")))


def lead(address: Address, own: Address) -> None:
    """Have the address of both lead to that of one, in one step."""
    if own != address:
        beside = Path(f"{address.path}.new")
        beside.symlink_to(own.path)
        beside.replace(address.path)


def words(server: Server, turn: int) -> tuple[str, ...]:
    """Words added to the command: to take the held socket, or to share the port by turns."""
    if isinstance(server.inherits, tuple):
        return server.inherits
    return server.shares if isinstance(server.shares, tuple) and turn % 2 else ()


def held_socket(address: Address, backlog: int, identity: Identity) -> socket.socket:
    """A listening socket, to be inherited by processes of this user. Raises DeploymentError if it cannot be made."""
    found = socket.socket(socket.AF_UNIX if address.path else socket.AF_INET)
    try:
        if address.path:
            address.clear()
            found.bind(address.path)
            Path(address.path).chmod(0o660)
            identity.give(Path(address.path))
        else:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((address.host, address.port))
        found.listen(backlog)
    except OSError as error:
        found.close()
        raise DeploymentError(f"cannot listen on {address.text}: {error.strerror}") from None
    return found


def wait_loaded(folder: Path, processes: int, died: Callable[[], DeploymentError | None], timeout_s: float) -> None:
    """Return once so many processes have loaded the application, each of which makes a file in the folder then; or some
    of them, when no more come.

    Raises DeploymentError if the server ends, or if none has loaded it within the time limit.
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
