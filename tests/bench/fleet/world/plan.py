"""Which hosts a world has, where things are while it stands, and what it takes to build one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bench import programs
from bench.errors import BenchError
from bench.production.inventory import CACHE, DB, FRONT, LOAD, WEB

# One world at a time, so that the next one finds what a killed one left.
ROOT = Path("/run/benchapp-hosts")
PREFIX = "bh-"
BRIDGE = "bh-bridge"
NETWORK = "10.213.0"
# The packages that bring what is needed, by the program.
NEEDED = {
    "ip": "iproute2",
    "tc": "iproute2",
    "systemd-nspawn": "systemd-container",
    "dbus-daemon": "dbus",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}


@dataclass(frozen=True)
class Member:
    """A host of a world: its name, its group and its address."""

    name: str
    group: str
    address: str

    @property
    def namespace(self) -> str:
        """Its network namespace, which is also what its link is called here."""
        return f"{PREFIX}{self.name}"

    @property
    def folder(self) -> Path:
        return ROOT / self.name

    @property
    def root(self) -> Path:
        """Its file system."""
        return self.folder / "root"


def members(web: int, load: int) -> tuple[Member, ...]:
    """One front, one cache and one database, with so many web and load hosts."""
    names = [(FRONT, "front1")]
    names += [(WEB, f"web{number}") for number in range(1, web + 1)]
    names += [(CACHE, "cache1"), (DB, "db1")]
    names += [(LOAD, f"load{number}") for number in range(1, load + 1)]
    return tuple(Member(name, group, f"{NETWORK}.{number}") for number, (group, name) in enumerate(names, 11))


def must_be_possible() -> None:
    """Raises BenchError that says all that is missing."""
    if os.geteuid() != 0:
        raise BenchError("a world of hosts is built by root alone; use sudo")
    missing = [name for name in NEEDED if programs.find([name]) is None]
    if missing:
        packages = " ".join(dict.fromkeys(NEEDED[name] for name in missing))
        raise BenchError(f"program not installed: {', '.join(missing)}; apt-get install {packages}")
