"""Control groups: programs that share a limit of memory and CPU time, and how many of them the kernel killed.

The kernel's interface is files, in version 2 and in version 1 alike, so this module writes them itself: with a tool
around them it would still have to read these files for kills and removal. A user who may not write them gets a
group from systemd: `systemd-run --user --scope -p Delegate=yes COMMAND`.

https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError

PREFIX = "benchapp-"
PERIOD_US = 100_000
POLL_S = 0.02
REMOVE_TIMEOUT_S = 5
EMPTY_TIMEOUT_S = 1
HOW = "run it as root, or by `systemd-run --user --scope -p Delegate=yes python -m bench ...`"
# Joins the groups whose process lists come before `--`, then becomes the command behind it.
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'


class Unavailable(BenchError):
    """Why groups cannot be made here, and what would help."""


@dataclass(frozen=True)
class Limits:
    """What the programs of a group may use together.

    guaranteed_bytes  memory that the kernel takes from other processes first
    burstable_bytes   memory that may be used at most; the kernel kills a process of the group that goes beyond
    cpus              CPU time, in cores
    """

    guaranteed_bytes: int
    burstable_bytes: int
    cpus: float

    @property
    def quota_us(self) -> int:
        """CPU time in each period."""
        return round(self.cpus * PERIOD_US)


@dataclass(frozen=True)
class Group:
    """One group: a directory in version 2, one for each controller in version 1. Not made before `create`.

    folders  its directories, that of the memory controller first
    version  1 or 2
    """

    folders: tuple[Path, ...]
    version: int

    @property
    def join(self) -> tuple[str, ...]:
        """Words to put before a command so that it and all that it starts are in the group from the beginning."""
        files = (str(folder / "cgroup.procs") for folder in self.folders)
        return ("/bin/sh", "-c", JOIN, "join", *files, "--")

    def create(self, limits: Limits) -> None:
        """Make the group with its limits. Raises Unavailable when the kernel refuses."""
        try:
            for folder in self.folders:
                folder.mkdir(exist_ok=True)
            for name, value in _settings(self.version, limits):
                _set(self.folders, name, value)
        except OSError as error:
            self.remove()
            raise Unavailable(f"no control group here: {error.filename}: {error.strerror}; {HOW}") from None

    def oom_kills(self) -> int | None:
        """How many of its processes the kernel has killed at the memory limit; None when it does not say."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _entry(self.folders[0] / name, "oom_kill")

    def memory_limit(self) -> int | None:
        """How many bytes its programs may use together; None when the kernel does not say."""
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        words = _words(self.folders[0] / name)
        return next((int(word) for word in words if word.isdecimal()), None)

    def pids(self) -> set[int]:
        """The processes in it now."""
        return {pid for folder in self.folders for pid in _pids(folder)}

    def remove(self) -> None:
        """Kill what is left in it and remove it; nothing happens when it is gone already."""
        deadline = time.monotonic() + REMOVE_TIMEOUT_S
        for folder in self.folders:
            while not _removed(folder) and time.monotonic() < deadline:
                for pid in {pid for inner in _tree(folder) for pid in _pids(inner)}:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(POLL_S)


def group(root: Path = Path("/")) -> Group:
    """A new group, not made yet, where this machine has room for one; `root` holds `proc` and `sys`.

    Raises Unavailable with the reason and what would help. A group of the second version is preferred; one of the first
    is made below the instrument's own, so that the limits of that one hold too.
    """
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    mounts = _mounts(root)
    own = _own_groups(root)
    if unified := mounts.get("cgroup2"):
        controllers = _words(unified / "cgroup.controllers")
        if {"memory", "cpu"} <= controllers:
            return Group((_unified_parent(unified, own.get("", "/")) / name,), 2)
    if not {"memory", "cpu"} <= mounts.keys():
        raise Unavailable("no control groups for memory and cpu in this kernel or container; run it on the host itself")
    parents = [_beneath(mounts[controller], own.get(controller, "/")) for controller in ("memory", "cpu")]
    # Controllers that are mounted together share one directory.
    parents = list(dict.fromkeys(parents))
    for parent in parents:
        if not os.access(parent, os.W_OK):
            raise Unavailable(f"{parent}: not writable by this user; run it as root")
    return Group(tuple(parent / name for parent in parents), 1)


def existing(folders: Iterable[str], version: int) -> Group | None:
    """The group that was made in these directories; None when the instrument did not make them."""
    paths = tuple(Path(folder) for folder in folders)
    return Group(paths, version) if paths and all(path.name.startswith(PREFIX) for path in paths) else None


def remove_empty(*names: str, root: Path = Path("/")) -> None:
    """Remove groups of these names that other programs made below the instrument's own, in which nothing runs.

    What has just been killed has a moment to go.
    """
    mount = _mounts(root).get("cgroup2")
    if mount is None:
        return
    own = _beneath(mount, _own_groups(root).get("", "/"))
    deadline = time.monotonic() + EMPTY_TIMEOUT_S
    for name in names:
        while not _removed(own / name) and time.monotonic() < deadline:
            time.sleep(POLL_S)


def _settings(version: int, limits: Limits) -> list[tuple[str, str]]:
    """Files and what to write, in an order that the kernel takes; names with `?` are left out where there are none."""
    if version == 2:
        return [
            ("memory.max", str(limits.burstable_bytes)),
            ("memory.low", str(limits.guaranteed_bytes)),
            ("memory.swap.max?", "0"),
            # One process is killed, not all of the group.
            ("memory.oom.group?", "0"),
            ("cpu.max", f"{limits.quota_us} {PERIOD_US}"),
        ]
    return [
        ("memory.limit_in_bytes", str(limits.burstable_bytes)),
        # Memory and swap together, which may not be less than memory alone.
        ("memory.memsw.limit_in_bytes?", str(limits.burstable_bytes)),
        ("memory.soft_limit_in_bytes", str(limits.guaranteed_bytes)),
        ("cpu.cfs_period_us", str(PERIOD_US)),
        ("cpu.cfs_quota_us", str(limits.quota_us)),
    ]


def _set(folders: tuple[Path, ...], name: str, value: str) -> None:
    """Write to the folder of the file's controller."""
    plain = name.removesuffix("?")
    folder = folders[0] if plain.startswith("memory.") else folders[-1]
    if plain != name and not (folder / plain).exists():
        return
    (folder / plain).write_text(value)


# ------------------------------------------------------------------------------------------ where groups are


def _mounts(root: Path) -> dict[str, Path]:
    """Where hierarchies are mounted: `cgroup2`, and each controller of version 1."""
    found: dict[str, Path] = {}
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        where = root / before.split()[4].lstrip("/")
        if kind == "cgroup2":
            found.setdefault(kind, where)
        elif kind == "cgroup":
            for controller in options.split(","):
                found.setdefault(controller, where)
    return found


def _own_groups(root: Path) -> dict[str, str]:
    """The group of this process by controller; by an empty name in version 2."""
    found: dict[str, str] = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _beneath(mount: Path, path: str) -> Path:
    """The directory of a group; that of the mount where a container does not show it."""
    folder = mount / path.lstrip("/")
    return folder if folder.is_dir() else mount


def _unified_parent(mount: Path, path: str) -> Path:
    """The directory in which a group can be made, its children allowed both controllers.

    Only the root group may have both processes and children. Any other group is emptied first: its processes move
    into a child.
    """
    own = _beneath(mount, path)
    # The true root has no file of events; that of a container has.
    is_root = not (mount / "cgroup.events").exists()
    parent = mount if is_root and os.access(mount, os.W_OK) else own
    if not os.access(parent, os.W_OK) or not os.access(parent / "cgroup.subtree_control", os.W_OK):
        raise Unavailable(f"{parent}: not writable by this user; {HOW}")
    missing = {"memory", "cpu"} - _words(parent / "cgroup.subtree_control")
    if not missing:
        return parent
    if absent := missing - _words(parent / "cgroup.controllers"):
        names = " and ".join(sorted(absent))
        raise Unavailable(f"{parent}: no controller {names} is passed on to this user; see docs/stability.md, or {HOW}")
    try:
        if not (is_root and parent == mount):
            _step_aside(parent)
        (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(missing)))
    except OSError as error:
        why = "other programs run in it" if error.errno == errno.EBUSY else error.strerror
        raise Unavailable(f"{parent}: its controllers cannot be passed on: {why}; {HOW}") from None
    return parent


def _step_aside(parent: Path) -> None:
    """Move the processes of a group that was given to us into a child of it."""
    aside = parent / f"{PREFIX}instrument"
    aside.mkdir(exist_ok=True)
    for pid in _pids(parent):
        with contextlib.suppress(ProcessLookupError):
            (aside / "cgroup.procs").write_text(str(pid))


# ------------------------------------------------------------------------------------------ reading its files


def _lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [line for line in path.read_text().splitlines() if line.strip()]
    return []


def _words(path: Path) -> set[str]:
    return {word for line in _lines(path) for word in line.split()}


def _entry(path: Path, name: str) -> int | None:
    return next((int(line.split()[1]) for line in _lines(path) if line.split()[0] == name), None)


def _pids(folder: Path) -> set[int]:
    return {int(line) for line in _lines(folder / "cgroup.procs")}


def _tree(folder: Path) -> list[Path]:
    """The directories of a group and of the groups in it, such as those of a systemd, the innermost first."""
    return [Path(inner) for inner, _, _ in os.walk(folder, topdown=False)]


def _removed(folder: Path) -> bool:
    try:
        for inner in _tree(folder):
            inner.rmdir()
    except FileNotFoundError:
        return not folder.exists()
    except OSError:
        return False
    return True
