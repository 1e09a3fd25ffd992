"""The network of a world: a namespace for each host, joined to a bridge by a link that has a rate in both directions.

https://man7.org/linux/man-pages/man8/tc-tbf.8.html
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from bench.errors import BenchError
from tests.bench.fleet.world.plan import BRIDGE, NETWORK, PREFIX, Member

# How much may pass at once, and how long a packet waits for its turn: beyond that it is dropped, as by a switch.
BURST = "burst 256kb latency 50ms"


def make(members: Iterable[Member], rate: str) -> None:
    """Make bridge, namespaces and links; raises BenchError with the kernel's reason."""
    _ip(f"link add {BRIDGE} type bridge", f"addr add {NETWORK}.1/24 dev {BRIDGE}", f"link set {BRIDGE} up")
    for member in members:
        name = member.namespace
        _ip(
            f"netns add {name}",
            f"link add {name} type veth peer name eth0 netns {name}",
            f"link set {name} master {BRIDGE} up",
        )
        inside = ("link set lo up", f"addr add {member.address}/24 dev eth0", "link set eth0 up")
        _run(["ip", "-n", name, "-batch", "-"], inside)
        _run(["tc", "-batch", "-"], (f"qdisc add dev {name} root tbf rate {rate} {BURST}",))
        _run(["tc", "-n", name, "-batch", "-"], (f"qdisc add dev eth0 root tbf rate {rate} {BURST}",))


def remove() -> None:
    """Remove all of it that is there."""
    for path in Path("/run/netns").glob(f"{PREFIX}*"):
        subprocess.run(["ip", "netns", "delete", path.name], capture_output=True, check=False)
    # Links go with their namespaces, but not before the last program there has ended.
    for path in Path("/sys/class/net").glob(f"{PREFIX}*"):
        subprocess.run(["ip", "link", "delete", path.name], capture_output=True, check=False)


def mbit(rate: str) -> float | None:
    """A rate in Mbit/s, as inventories have it; None in units of tc that are not those of links."""
    found = re.fullmatch(r"([\d.]+)([kmg])bit", rate.lower())
    return float(found[1]) * {"k": 1e-3, "m": 1.0, "g": 1e3}[found[2]] if found else None


def _ip(*lines: str) -> None:
    _run(["ip", "-batch", "-"], lines)


def _run(argv: list[str], lines: Iterable[str]) -> None:
    done = subprocess.run(argv, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise BenchError(f"the network of the hosts cannot be made: {said[0]}")
