"""Build a world, and remove all of it whatever happens: at the end, on a signal, or what a killed one left."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import programs
from bench.catalog.sizes import Size
from bench.errors import BenchError
from bench.machine import cgroups
from bench.machine.cgroups import Group
from bench.machine.lock import exclusive
from bench.production.inventory import WEB
from tests.bench.fleet.world import links, machines
from tests.bench.fleet.world.plan import NETWORK, ROOT, Member, must_be_possible

LOCK = Path("/run/benchapp-hosts.lock")
SSH_PORT = 22
# Beside the files of a host: its control group.
GROUP = "group.json"
BOOT_S = 60.0
POLL_S = 0.1
EMPTY_TIMEOUT_S = 1


@dataclass(frozen=True)
class World:
    """Hosts that run: the file of their inventory, and the process of each by its name."""

    inventory: Path
    members: tuple[Member, ...]
    machines: dict[str, subprocess.Popen[bytes]]


@contextmanager
def standing(members: Sequence[Member], rate: str, size: Size | None = None) -> Iterator[World]:
    """The world while the block lasts; raises BenchError when one cannot be built or stands already.

    rate  of each host's link, in each direction, as tc(8) writes it: 1gbit
    size  limits each web host
    """
    must_be_possible()
    with exclusive(LOCK, "another world of hosts", timeout_s=0), ExitStack() as cleanup:
        remove()
        cleanup.callback(remove)
        ROOT.mkdir(mode=0o700)
        _make_keys()
        machines.memory()
        links.make(members, rate)
        running = {member.name: cleanup.enter_context(_running(member, size)) for member in members}
        for member in members:
            _wait(member, running[member.name])
        yield World(_write_inventory(members, rate, size), tuple(members), running)


def remove() -> None:
    """Remove what there is of a world; its hosts have ended with the process that built it."""
    for path in ROOT.glob(f"*/{GROUP}"):
        folders, version = json.loads(path.read_text("utf-8"))
        if group := cgroups.existing(folders, version):
            group.remove()
    _remove_groups_of_containers()
    machines.remove()
    links.remove()


def _remove_groups_of_containers() -> None:
    """Those that systemd-nspawn makes for all of its containers that have no unit of their own, once they are empty."""
    mount = cgroups._mounts(Path("/")).get("cgroup2")
    if mount is None:
        return
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = cgroups._beneath(mount, next((line[3:] for line in lines if line.startswith("0::")), "/"))
    # What has just been killed has a moment to go.
    deadline = time.monotonic() + EMPTY_TIMEOUT_S
    for name in ("payload", "supervisor"):
        while not cgroups._removed(own / name) and time.monotonic() < deadline:
            time.sleep(POLL_S)


@contextmanager
def _running(member: Member, size: Size | None) -> Iterator[subprocess.Popen[bytes]]:
    with ExitStack() as cleanup:
        group = None
        if size and member.group == WEB:
            group = cgroups.group()
            cleanup.callback(group.remove)
            _register(group, member)
            group.create(size.limits)
        sshd = programs.find(["sshd"])
        assert sshd is not None
        machines.prepare(member, sshd)
        machine = machines.boot(member, group)
        cleanup.callback(machines.stop, machine)
        yield machine


def _register(group: Group, member: Member) -> None:
    """Write down the control group of a host, so that the next world removes that of a killed one."""
    member.folder.mkdir(parents=True, exist_ok=True)
    path = member.folder / GROUP
    path.write_text(json.dumps([[str(folder) for folder in group.folders], group.version]), "utf-8")


def _wait(member: Member, machine: subprocess.Popen[bytes]) -> None:
    """Return once its sshd takes connections; raises BenchError with what its console said."""
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and machine.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((member.address, SSH_PORT), timeout=1):
            return
        time.sleep(POLL_S)
    raise BenchError(f"{member.name} does not boot: {machines.why(member)}")


def _make_keys() -> None:
    """A key for whoever uses the world, and one for its hosts, which ssh thus knows."""
    for name in ("key", "host_key"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a world of hosts", "-f", str(ROOT / name)]
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    public = (ROOT / "host_key.pub").read_text("utf-8")
    (ROOT / "known_hosts").write_text(f"{NETWORK}.* {public}", "utf-8")


def _write_inventory(members: Sequence[Member], rate: str, size: Size | None) -> Path:
    groups = dict.fromkeys(member.group for member in members)
    lines = []
    for group in groups:
        # Its kernel shows a container all cores of the machine.
        cores = f" cores={size.cpus:g}" if size and group == WEB else ""
        own = (f"{item.name} ansible_host={item.address}{cores}\n" for item in members if item.group == group)
        lines.append(f"[{group}]\n{''.join(own)}")
    known = f"-o UserKnownHostsFile={ROOT}/known_hosts -o StrictHostKeyChecking=yes"
    variables: dict[str, object] = {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": ROOT / "key",
        "ansible_ssh_common_args": f"'{known}'",
        "ansible_python_interpreter": "auto_silent",
    }
    if known_rate := links.mbit(rate):
        variables["link_mbit"] = f"{known_rate:g}"
    lines.append("[all:vars]\n" + "".join(f"{name}={value}\n" for name, value in variables.items()))
    path = ROOT / "hosts.ini"
    path.write_text("\n".join(lines), "utf-8")
    return path
