"""A world of hosts on one machine: real systemd and sshd in containers, each in a network namespace, joined by links of
a limited rate. Only one world exists at a time; all of its programs end with their builder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench import programs
from tests.deploy.machine import ENVIRONMENT, boot_only, control_group, mount
from tests.skips import needs

ROOT = Path("/run/benchapp-hosts")
PREFIX, BRIDGE, NETWORK = "bh-", "bh-bridge", "10.213.0"
SSH_PORT = 22
BOOT_S, STOP_S = 300.0, 10.0
NEEDED = ("ansible-playbook", "ip", "tc", "systemd-nspawn", "dbus-daemon", "setpriv", "unshare", "ssh-keygen", "sshd")
SSHD = """[Unit]
After=network.target
[Service]
ExecStartPre=/usr/bin/mkdir -p -m 0755 /run/sshd
# This machine's own configuration is for other purposes.
ExecStart={sshd} -D -f /dev/null -o HostKey=/etc/ssh/ssh_host_ed25519_key -o UsePAM=no -o UseDNS=no \\
    -o AuthorizedKeysFile=/etc/ssh/authorized_keys -o PermitRootLogin=prohibit-password \\
    -o "Subsystem=sftp internal-sftp"
Restart=always
"""
BOOT = (
    # The kernel ends a process namespace with its first process. A killed systemd-nspawn would leave its host behind.
    *("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
    *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-users=no", "--link-journal=no"),
    # A host must not see root's home on this machine, and has a separate firewall.
    *("--tmpfs=/root:mode=0700", "--capability=CAP_NET_ADMIN"),
)
# Maximum burst of a link, and maximum delay of a packet before it is dropped (tc-tbf(8)).
BURST = "burst 256kb latency 50ms"
INVENTORY = f"""[all:vars]
ansible_user=root
ansible_ssh_private_key_file={ROOT}/key
ansible_ssh_common_args='-o UserKnownHostsFile={ROOT}/known_hosts -o StrictHostKeyChecking=yes'
ansible_python_interpreter=auto_silent
link_mbit="""


@dataclass(frozen=True)
class Member:
    """A host of a world: name, groups, and address."""

    name: str
    groups: tuple[str, ...]
    address: str

    @property
    def link(self) -> str:
        """The host's link here, also the name of its network namespace."""
        return f"{PREFIX}{self.name}"

    @property
    def root(self) -> Path:
        """Its file system."""
        return ROOT / self.name


def members(**groups: Sequence[str]) -> tuple[Member, ...]:
    """Hosts by their groups: `members(front=["front1"], load=["db1"], db=["db1"])`."""
    names = dict.fromkeys(name for of_group in groups.values() for name in of_group)
    return tuple(
        Member(name, tuple(group for group, of_group in groups.items() if name in of_group), f"{NETWORK}.{number}")
        for number, name in enumerate(names, 11)
    )


def require_possible(*needed: str) -> None:
    """Skip the test if no world can be built, or a needed program is missing."""
    if os.geteuid() != 0:
        pytest.skip("only root builds a world of hosts")
    needs(*NEEDED, *needed)


@contextmanager
def standing(hosts: Sequence[Member], mbit: int) -> Iterator[str]:
    """The inventory of the world, which exists during the block; `mbit` is the rate of each host's link in each
    direction, in Mbit/s."""
    with ExitStack() as cleanup:
        # Another test, of another checkout too, waits until this world is gone.
        fcntl.flock(cleanup.enter_context(ROOT.with_suffix(".lock").open("w")), fcntl.LOCK_EX)
        remove()
        cleanup.callback(remove)
        (ROOT / "memory").mkdir(parents=True, mode=0o700)
        mount("tmpfs", "-o", "mode=0700", "tmpfs", ROOT / "memory")
        _make_keys()
        _run(
            f"ip link add {BRIDGE} type bridge", f"ip addr add {NETWORK}.1/24 dev {BRIDGE}", f"ip link set {BRIDGE} up"
        )
        for host in hosts:
            _make_link(host, mbit)
            _make_files(host)
        running = {host.name: cleanup.enter_context(_running(host)) for host in hosts}
        for host in hosts:
            _wait(host, running[host.name])
        yield inventory_of(hosts, mbit)


def inventory_of(hosts: Sequence[Member], mbit: int) -> str:
    """The inventory in Ansible's INI format."""
    groups = dict.fromkeys(group for host in hosts for group in host.groups)
    lines = [f"{host.name} ansible_host={host.address}" for host in hosts]
    for group in groups:
        lines += [f"[{group}]", *(host.name for host in hosts if group in host.groups)]
    return "\n".join([*lines, f"{INVENTORY}{mbit}", ""])


def remove() -> None:
    """Remove the parts of a world, also after a kill of its builder."""
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for path in reversed([path for path in mounted if Path(path).is_relative_to(ROOT)]):
        subprocess.run(["umount", "--lazy", path], capture_output=True)
    shutil.rmtree(ROOT, ignore_errors=True)
    for path in Path("/run/systemd/nspawn/propagate").glob(f"{PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in Path("/run/netns").glob(f"{PREFIX}*"):
        subprocess.run(["ip", "netns", "delete", path.name], capture_output=True)
    # Links go with their namespaces, but not before the last program there has ended.
    for path in Path("/sys/class/net").glob(f"{PREFIX}*"):
        subprocess.run(["ip", "link", "delete", path.name], capture_output=True)


def _make_keys() -> None:
    """A key for the user of the world, and one for its hosts, known to ssh."""
    for name in ("key", "host_key"):
        _run(f"ssh-keygen -q -t ed25519 -C world -f {ROOT / name} -N", last="")
    (ROOT / "known_hosts").write_text(f"{NETWORK}.* {(ROOT / 'host_key.pub').read_text()}")


def _make_link(host: Member, mbit: int) -> None:
    """A namespace, joined to the bridge by a link with a limited rate in both directions."""
    name, rate = host.link, f"root tbf rate {mbit}mbit {BURST}"
    _run(
        f"ip netns add {name}",
        f"ip link add {name} type veth peer name eth0 netns {name}",
        f"ip link set {name} master {BRIDGE} up",
        f"ip -n {name} link set lo up",
        f"ip -n {name} addr add {host.address}/24 dev eth0",
        f"ip -n {name} link set eth0 up",
        f"tc qdisc add dev {name} {rate}",
        f"tc -n {name} qdisc add dev eth0 {rate}",
    )


def _make_files(host: Member) -> None:
    """This machine's files, with the host's own name, the world's keys, and little to boot; changes stay in memory."""
    changed = ROOT / "memory" / host.name
    for folder in (changed / "upper", changed / "work", host.root):
        folder.mkdir(parents=True)
    mount("overlay", "overlay", "-o", f"lowerdir=/,upperdir={changed}/upper,workdir={changed}/work", host.root)
    system, keys = host.root / "etc/systemd/system", host.root / "etc/ssh"
    boot_only(host.root, "basic.target", "dbus.socket", "ssh.service")
    for name in ("ssh.service", "sshd.service", "ssh.socket"):
        (system / name).unlink(missing_ok=True)
    (system / "ssh.service").write_text(SSHD.format(sshd=programs.find(["sshd"])))
    (host.root / "etc/hostname").write_text(f"{host.name}\n")
    # The host has no network to look for newer packages.
    updated = host.root / "var/lib/apt/periodic/update-success-stamp"
    updated.parent.mkdir(parents=True, exist_ok=True)
    updated.touch()
    for old in keys.glob("ssh_host_*"):
        old.unlink()
    shutil.copy(ROOT / "host_key", keys / "ssh_host_ed25519_key")
    shutil.copy(ROOT / "host_key.pub", keys / "ssh_host_ed25519_key.pub")
    shutil.copy(ROOT / "key.pub", keys / "authorized_keys")


@contextmanager
def _running(host: Member) -> Iterator[subprocess.Popen[bytes]]:
    words = [f"--directory={host.root}", f"--machine={host.link}", f"--network-namespace-path=/run/netns/{host.link}"]
    with control_group(host.link) as inside, (ROOT / f"{host.name}.console").open("wb") as console:
        machine = subprocess.Popen(
            [*inside, *BOOT, *words],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )
        try:
            yield machine
        finally:
            # Nothing there is worth an orderly end.
            machine.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                machine.wait(STOP_S)


def _wait(host: Member, machine: subprocess.Popen[bytes]) -> None:
    """Wait until the host's sshd accepts connections."""
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and machine.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host.address, SSH_PORT), timeout=1):
            return
        time.sleep(0.1)
    console = re.sub(r"\x1b\[[\d;]*m", "", (ROOT / f"{host.name}.console").read_text(errors="replace"))
    raise AssertionError(f"{host.name} does not boot:\n{console[-2000:]}")


def _run(*commands: str, last: str | None = None) -> None:
    for command in commands:
        argv = [*command.split(), *([] if last is None else [last])]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{command}: {done.stderr}"
