"""A booted machine: a real systemd in a container over this machine's files or a root of Debian's, with a separate
network."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import programs
from tests.deploy import roots
from tests.waiting import until

BOOT_S = 300
# The longest installs packages and compiles.
COMMAND_S = 1200
# At most so much is changed on its disk.
SIZE = "4g"
# Control groups of version 2, whatever the machine has; no filter of system calls around those of the units.
ENVIRONMENT = {"UNIFIED_CGROUP_HIERARCHY": "yes", "SYSTEMD_SECCOMP": "0"}
NSPAWN = (
    # A test that is killed leaves no machine behind.
    *("setpriv", "--pdeathsig", "TERM"),
    *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit"),
    *("--private-network", "--private-users=no", "--link-journal=no", "--timezone=off", "--resolv-conf=off"),
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Machine:
    """A machine that runs: `root` is its file system, `leader` the process of its systemd, `release` that of the Debian
    whose root it is, None if it has this machine's files."""

    def __init__(self, root: Path, leader: int, release: int | None):
        self.root, self.leader, self.release = root, leader, release

    def try_run(self, script: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        """The output of a shell script on the machine, with its errors."""
        argv = ["nsenter", "-t", str(self.leader), "-a", "env", "-i", f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8"]
        argv += ["runuser", "-u", user, "--"] if user != "root" else []
        return subprocess.run(
            [*argv, "sh", "-euc", f"cd /\n{script}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_S,
        )

    def run(self, script: str, user: str = "root") -> str:
        """The output of a script that must succeed."""
        done = self.try_run(script, user)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{self.journal()}"
        return done.stdout

    def journal(self) -> str:
        return self.try_run("journalctl -b -n 25 --no-pager -o cat").stdout

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """No room on any disk until the block ends."""
        memory = self.root.with_name("memory")
        filesystem = os.statvfs(memory)
        used = (filesystem.f_blocks - filesystem.f_bavail) * filesystem.f_frsize
        subprocess.run(["mount", "-o", f"remount,size={used + 65536}", memory], check=True)
        try:
            yield
        finally:
            subprocess.run(["mount", "-o", f"remount,size={SIZE}", memory], check=True)

    def main_process(self, unit: str) -> int:
        return int(self.run(f"systemctl show -P MainPID {unit}"))


@contextlib.contextmanager
def booted(folder: Path, release: int | None = None) -> Iterator[Machine]:
    """A machine over this machine's files, or over the root of a release of Debian, with its changes in `folder`; skips
    the test if none can be booted, and says why. It starts none of the services that are installed here."""
    if os.geteuid() != 0:
        pytest.skip("only root can boot a machine")
    for name in ("systemd-nspawn", "nsenter", "setpriv"):
        if programs.find([name]) is None:
            pytest.skip(f"program not installed: {name}")
    root = folder / "root"
    files = roots.debian(release) if release else Path("/")
    with _overlay(folder, files, root):
        if not release:
            boot_only(root, "basic.target", "dbus.socket")
        name = f"kit-{os.getpid()}"
        with control_group(name) as inside, (folder / "console").open("w") as console:
            started = subprocess.Popen(
                [*inside, *NSPAWN, f"--directory={root}", f"--machine={name}"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
            try:
                yield Machine(root, _leader(started, folder / "console"), release)
            finally:
                started.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    started.wait(60)
                started.kill()
                started.wait()


@contextlib.contextmanager
def control_group(name: str) -> Iterator[list[str]]:
    """The words before a command that start it in a control group of that name, which goes at the end.

    Machines in one group have a systemd each that removes and ends what belongs to units of the other's.
    """
    folders = [tree / name for tree in _control_groups()]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    enters = "".join(f"echo $$ > {folder}/cgroup.procs; " for folder in folders)
    try:
        yield ["sh", "-ec", f'{enters}exec "$@"', "sh"]
    finally:
        for folder in folders:
            subprocess.run(["find", folder, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], capture_output=True)


def _control_groups() -> list[Path]:
    """This process's control group in each hierarchy of systemd: that of version 2, and its own of version 1."""
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    folders = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2":
            folders.append(Path(place + own[""]))
        elif kind == "cgroup" and "name=systemd" in options.split(","):
            folders.append(Path(place + own["name=systemd"]))
    return folders


@contextlib.contextmanager
def _overlay(folder: Path, files: Path, root: Path) -> Iterator[None]:
    """The files at `root`; what is changed there stays in memory."""
    memory = folder / "memory"
    memory.mkdir()
    root.mkdir()
    mount("tmpfs", "-o", f"size={SIZE}", "tmpfs", memory)
    try:
        for name in ("upper", "work"):
            (memory / name).mkdir()
        options = f"lowerdir={files},upperdir={memory}/upper,workdir={memory}/work"
        mount("overlay", "overlay", "-o", options, root)
        try:
            yield
        finally:
            # A process of before, such as git's own tidying up, may be at work there for a moment.
            until(lambda: subprocess.run(["umount", "--recursive", root]).returncode == 0, f"{root} unmounted")
    finally:
        subprocess.run(["umount", memory], check=True)
        shutil.rmtree(folder)


def boot_only(root: Path, *units: str) -> None:
    """Have the machine with its files at `root` boot these units and what they need, not what is installed here."""
    system = root / "etc/systemd/system"
    for wanted in system.glob("*.wants"):
        shutil.rmtree(wanted)
    (system / "default.target").unlink(missing_ok=True)
    needed = " ".join(units)
    (system / "default.target").write_text(f"[Unit]\nRequires={needed}\nAfter={needed}\nAllowIsolate=yes\n")


def mount(kind: str, *words: str | Path) -> None:
    """Mount a file system; skips the test if that cannot be done, and says why."""
    done = subprocess.run(["mount", "-t", kind, *words], capture_output=True, text=True)
    if done.returncode:
        messages = done.stderr.strip().splitlines() or ["nothing said"]
        why = "root has no right to mount here: " if "permission denied" in messages[0] else ""
        pytest.skip(f"no machine can be booted: {why}{messages[0]}")


def _leader(started: subprocess.Popen[bytes], console: Path) -> int:
    """The process of the container's systemd, once it has booted."""
    deadline = time.monotonic() + BOOT_S
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    while started.poll() is None and time.monotonic() < deadline:
        for child in children.read_text().split():
            argv = ["nsenter", "-t", child, "-a", "systemctl", "is-active", "default.target"]
            if subprocess.run(argv, capture_output=True, text=True).stdout == "active\n":
                return int(child)
        time.sleep(0.1)
    lines = console.read_text(errors="replace").strip().splitlines() or ["nothing said"]
    return pytest.skip(f"no machine can be booted: {lines[-1]}")
