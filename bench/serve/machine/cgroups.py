"""Control groups: programs that share a limit of memory and CPU time, and the number that the kernel killed.

The kernel's interface is files. Version 2 is used if it has both controllers, else version 1. A user without write
access gets a group from systemd: `systemd-run --user --scope -p Delegate=yes COMMAND`.

https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench import PROGRAM
from bench.errors import BenchError

PREFIX = "benchapp-"
CONTROLLERS = {"memory", "cpu"}
PERIOD_US = 100_000
POLL_S = 0.02
REMOVE_TIMEOUT_S = 5
HOW = f"run it as root, or by `systemd-run --user --scope -p Delegate=yes {PROGRAM} ...`"
# Joins the groups whose process lists come before `--`, then becomes the command behind it.
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'
# A kernel that does not account for swap has no such files.
OPTIONAL = {"memory.swap.max", "memory.oom.group", "memory.memsw.limit_in_bytes"}


class Unavailable(BenchError):
    """The reason why groups cannot be made here, and a remedy."""


@dataclass(frozen=True)
class Limits:
    """Limits on the total usage of the programs in a group.

    guaranteed_bytes  memory that the kernel takes from other processes first
    burstable_bytes   the most memory; beyond it the kernel kills a process of the group
    cpus              CPU time, in cores
    """

    guaranteed_bytes: int
    burstable_bytes: int
    cpus: float

    def files(self, version: int) -> dict[str, str]:
        """The contents by file, in an order that the kernel accepts."""
        quota = str(round(self.cpus * PERIOD_US))
        if version == 2:
            return {
                "memory.max": str(self.burstable_bytes),
                "memory.low": str(self.guaranteed_bytes),
                "memory.swap.max": "0",
                # One process is killed, not all of the group.
                "memory.oom.group": "0",
                "cpu.max": f"{quota} {PERIOD_US}",
            }
        return {
            "memory.limit_in_bytes": str(self.burstable_bytes),
            # Memory and swap together, which may not be less than memory.
            "memory.memsw.limit_in_bytes": str(self.burstable_bytes),
            "memory.soft_limit_in_bytes": str(self.guaranteed_bytes),
            "cpu.cfs_period_us": str(PERIOD_US),
            "cpu.cfs_quota_us": quota,
        }


@dataclass(frozen=True)
class Group:
    """One group: a directory in version 2, one for each controller in version 1. Not made before `create`.

    folders  the directories, the memory controller's first
    version  1 or 2
    """

    folders: tuple[Path, ...]
    version: int

    @property
    def join(self) -> tuple[str, ...]:
        """The command prefix that starts a command and all its children inside the group."""
        files = (str(folder / "cgroup.procs") for folder in self.folders)
        return ("/bin/sh", "-c", JOIN, "join", *files, "--")

    def create(self, limits: Limits) -> None:
        """Make the group with its limits. Raises Unavailable if the kernel refuses."""
        try:
            for folder in self.folders:
                folder.mkdir(exist_ok=True)
            for name, value in limits.files(self.version).items():
                path = self.folders[-1] / name
                if name.startswith("memory."):
                    path = self.folders[0] / name
                if name not in OPTIONAL or path.exists():
                    path.write_text(value)
        except OSError as error:
            self.remove()
            raise Unavailable(f"no control group here: {error.filename}: {error.strerror}; {HOW}") from None

    def oom_kills(self) -> int | None:
        """The number of processes killed by the kernel at the memory limit; None if the kernel does not say."""
        file = "memory.oom_control"
        if self.version == 2:
            file = "memory.events"
        words = _words(self.folders[0] / file)
        if "oom_kill" not in words:
            return None
        return int(words[words.index("oom_kill") + 1])

    def remove(self) -> None:
        """Kill the remaining processes and remove the group with all nested groups."""
        deadline = time.monotonic() + REMOVE_TIMEOUT_S
        for folder in self.folders:
            while folder.exists() and time.monotonic() < deadline:
                for inner, _, _ in os.walk(folder, topdown=False):
                    for pid in _words(Path(inner) / "cgroup.procs"):
                        with contextlib.suppress(ProcessLookupError, PermissionError):
                            os.kill(int(pid), signal.SIGKILL)
                    # Its processes take a moment to end.
                    with contextlib.suppress(OSError):
                        Path(inner).rmdir()
                time.sleep(POLL_S)


def own_limits(root: Path = Path("/")) -> tuple[float | None, int | None]:
    """The processors and the bytes of memory of this process's control group; None without a limit.

    A container sees its own group as the root.
    """
    unified = _mounts(root).get("cgroup2")
    if unified is None:
        return None, None
    processors, memory = None, None
    folder = _beneath(unified, _own_paths(root).get("", "/"))
    for path in (folder, *folder.parents):
        quota = _words(path / "cpu.max")
        if quota and quota[0] != "max":
            processors = min(processors or math.inf, int(quota[0]) / int(quota[1]))
        limit = _words(path / "memory.max")
        if limit and limit[0] != "max":
            memory = min(memory or int(limit[0]), int(limit[0]))
        if path == unified:
            break
    return processors, memory


def _own_paths(root: Path) -> dict[str, str]:
    """The paths of this process's groups by controller of version 1; the path of version 2 has an empty name."""
    own: dict[str, str] = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    return own


def group(root: Path = Path("/")) -> Group:
    """A new group, not made yet, if this machine has room for one; `root` holds `proc` and `sys`.

    Raises Unavailable with the reason and a remedy. The group is made below the instrument's own if possible, so that
    the limits of both hold.
    """
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    mounts = _mounts(root)
    own = _own_paths(root)
    unified = mounts.get("cgroup2")
    if unified and set(_words(unified / "cgroup.controllers")) >= CONTROLLERS:
        return Group((_unified_parent(unified, own.get("", "/")) / name,), 2)
    if not mounts.keys() >= CONTROLLERS:
        raise Unavailable("no control groups for memory and cpu in this kernel or container; run it on the host itself")
    # Controllers that are mounted together share one directory.
    parents = dict.fromkeys(_beneath(mounts[each], own.get(each, "/")) for each in ("memory", "cpu"))
    for parent in parents:
        if not os.access(parent, os.W_OK):
            raise Unavailable(f"{parent}: not writable by this user; run it as root")
    return Group(tuple(parent / name for parent in parents), 1)


def existing(folders: Iterable[str], version: int) -> Group | None:
    """The group in these directories; None unless the instrument made them."""
    paths = tuple(Path(folder) for folder in folders)
    if paths and all(path.name.startswith(PREFIX) for path in paths):
        return Group(paths, version)
    return None


def _mounts(root: Path) -> dict[str, Path]:
    """Mount points of hierarchies: `cgroup2`, and each controller of version 1."""
    mounts: dict[str, Path] = {}
    for line in _lines(root / "proc/self/mounts"):
        _, where, kind, options = line.split()[:4]
        names = {"cgroup": options.split(","), "cgroup2": ["cgroup2"]}.get(kind, [])
        mounts = dict.fromkeys(names, root / where.lstrip("/")) | mounts
    return mounts


def _beneath(mount: Path, path: str) -> Path:
    """The directory of a group; the mount's directory if a container does not show the group."""
    folder = mount / path.lstrip("/")
    if folder.is_dir():
        return folder
    return mount


def _unified_parent(mount: Path, path: str) -> Path:
    """The directory for groups of version 2, its children allowed both controllers.

    Only the root group may have both processes and children. Any other group is emptied first: its processes move into
    a child.
    """
    # The true root has no file of events; that of a container has.
    is_root = not (mount / "cgroup.events").exists() and os.access(mount, os.W_OK)
    parent = mount
    if not is_root:
        parent = _beneath(mount, path)
    passed_on = parent / "cgroup.subtree_control"
    if not os.access(parent, os.W_OK) or not os.access(passed_on, os.W_OK):
        raise Unavailable(f"{parent}: not writable by this user; {HOW}")
    missing = sorted(CONTROLLERS - set(_words(passed_on)))
    if absent := [name for name in missing if name not in _words(parent / "cgroup.controllers")]:
        names = " and ".join(absent)
        where = f"{parent}: no controller {names} is passed on to this user"
        raise Unavailable(f"{where}; see docs/methodology.md, or {HOW}")
    try:
        if missing and not is_root:
            aside = parent / f"{PREFIX}instrument"
            aside.mkdir(exist_ok=True)
            for pid in _words(parent / "cgroup.procs"):
                with contextlib.suppress(ProcessLookupError):
                    (aside / "cgroup.procs").write_text(pid)
        if missing:
            passed_on.write_text(" ".join(f"+{name}" for name in missing))
    except OSError as error:
        why = error.strerror
        if error.errno == errno.EBUSY:
            why = "other programs run in it"
        raise Unavailable(f"{parent}: its controllers cannot be passed on: {why}; {HOW}") from None
    return parent


def _lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [line for line in path.read_text().splitlines() if line.strip()]
    return []


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()
