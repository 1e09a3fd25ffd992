"""A host of a world: a real systemd in a container over this machine's files, in a network namespace of its own.

What the host changes stays in memory and goes with it. https://man7.org/linux/man-pages/man1/systemd-nspawn.1.html
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from bench.errors import BenchError
from bench.machine.cgroups import Group
from tests.bench.fleet.world.plan import PREFIX, ROOT, Member

# Only this is booted, not all that is installed here.
TARGET = """[Unit]
Requires=basic.target dbus.socket ssh.service
After=basic.target dbus.socket ssh.service
AllowIsolate=yes
"""
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
# Control groups of version 2, whatever the machine has; no filter of system calls around those of the units.
ENVIRONMENT = {"UNIFIED_CGROUP_HIERARCHY": "yes", "SYSTEMD_SECCOMP": "0"}
BOOT = (
    # All of its programs end with whoever builds the world, even if that is killed: the kernel ends a process namespace
    # with its first process. A killed systemd-nspawn alone would leave them.
    *("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
    *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-users=no", "--link-journal=no"),
    # What is in root's home here is no business of a host.
    "--tmpfs=/root:mode=0700",
    # It has a firewall of its own.
    "--capability=CAP_NET_ADMIN",
)
STOP_S = 10


def memory() -> None:
    """Make the place for what all hosts change; raises BenchError when it cannot be mounted."""
    (ROOT / "memory").mkdir()
    _mount("-t", "tmpfs", "-o", "mode=0700", "tmpfs", str(ROOT / "memory"))


def prepare(member: Member, sshd: Path) -> None:
    """The files of a host: this machine's, with its own name, the world's keys, and little to boot."""
    changed = ROOT / "memory" / member.name
    for folder in (changed / "upper", changed / "work", member.root):
        folder.mkdir(parents=True)
    options = f"lowerdir=/,upperdir={changed}/upper,workdir={changed}/work"
    _mount("-t", "overlay", "overlay", "-o", options, str(member.root))
    system = member.root / "etc/systemd/system"
    for wanted in system.glob("*.wants"):
        shutil.rmtree(wanted)
    for name in ("default.target", "ssh.service", "sshd.service", "ssh.socket"):
        (system / name).unlink(missing_ok=True)
    (system / "default.target").write_text(TARGET)
    (system / "ssh.service").write_text(SSHD.format(sshd=sshd))
    (member.root / "etc/hostname").write_text(f"{member.name}\n")
    # It has no network to look for newer packages.
    updated = member.root / "var/lib/apt/periodic/update-success-stamp"
    updated.parent.mkdir(parents=True, exist_ok=True)
    updated.touch()
    _keys(member.root)


def _keys(root: Path) -> None:
    """The world's key for the host, and its key for root there."""
    for old in (root / "etc/ssh").glob("ssh_host_*"):
        old.unlink()
    shutil.copy(ROOT / "host_key", root / "etc/ssh/ssh_host_ed25519_key")
    shutil.copy(ROOT / "host_key.pub", root / "etc/ssh/ssh_host_ed25519_key.pub")
    shutil.copy(ROOT / "key.pub", root / "etc/ssh/authorized_keys")


def boot(member: Member, group: Group | None) -> subprocess.Popen[bytes]:
    """Boot the host, its programs in that control group."""
    words = [f"--directory={member.root}", f"--machine={member.namespace}"]
    words += [f"--network-namespace-path=/run/netns/{member.namespace}"]
    with (member.folder / "console").open("wb") as console:
        return subprocess.Popen(
            [*(group.join if group else ()), *BOOT, *words],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )


def why(member: Member) -> str:
    """What its console says of a failure, the first such line, or else its last one."""
    said = (member.folder / "console").read_text("utf-8", errors="replace")
    lines = [line.strip() for line in re.sub(r"\x1b\[[\d;]*m", "", said).splitlines() if line.strip()]
    failures = [line for line in lines if line.startswith(("Failed", "Cannot"))]
    return (failures or lines[-1:] or ["nothing said"])[0]


def stop(machine: subprocess.Popen[bytes]) -> None:
    """End a host at once, with all of its programs: nothing there is worth an orderly end."""
    machine.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        machine.wait(STOP_S)


def remove() -> None:
    """Unmount and remove what is there of all hosts."""
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for path in reversed([path for path in mounted if Path(path).is_relative_to(ROOT)]):
        subprocess.run(["umount", "--lazy", path], capture_output=True, check=False)
    shutil.rmtree(ROOT, ignore_errors=True)
    # What a systemd-nspawn that was killed leaves.
    for folder in Path("/run/systemd/nspawn/propagate").glob(f"{PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"no host can be made here: {done.stderr.strip().splitlines()[-1]}")
