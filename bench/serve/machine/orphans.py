"""A register of running deployments, so that the next command cleans up after a killed instrument."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import uuid
from pathlib import Path
from typing import Any

import psutil

from bench import paths
from bench.serve.machine import cgroups, small_disk, supervise
from bench.serve.machine.cgroups import Group


class Register:
    """The entry of one deployment under `var/run/`: its owner, its control group, and every process."""

    def __init__(self, scratch: Path):
        folder = paths.STATE / "run"
        folder.mkdir(parents=True, exist_ok=True)
        self._entry = folder / f"{uuid.uuid4().hex}.json"
        self._processes: list[tuple[int, float]] = []
        self._record: dict[str, Any] = {
            "owner": _stamp(os.getpid()),
            "scratch": str(scratch),
            "processes": self._processes,
        }
        self._write()

    def __enter__(self) -> Register:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the entry: all of the deployment is stopped."""
        self._entry.unlink(missing_ok=True)

    def add(self, pid: int) -> None:
        """Register a process just started, the leader of a new session."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._processes.append(_stamp(pid))
            self._write()

    def add_group(self, group: Group) -> None:
        """Register a control group that is about to be made."""
        self._record["group"] = {"folders": [str(folder) for folder in group.folders], "version": group.version}
        self._write()

    def _write(self) -> None:
        temporary = self._entry.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._record), "utf-8")
        temporary.replace(self._entry)


def clean() -> int:
    """Kill the leftover processes of killed instruments' deployments, and remove their mounts and temporary files.

    Returns the number of such deployments.
    """
    cleaned = 0
    for entry in sorted((paths.STATE / "run").glob("*.json")):
        try:
            record = json.loads(entry.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if _runs(*record["owner"]):
            continue
        for pid, since in record["processes"]:
            # The kernel does not reuse a process number that is a session's, so members without their leader are ours;
            # a leader with another start time is not.
            if _runs(pid, since) or not psutil.pid_exists(pid):
                supervise.kill_session(pid)
        if recorded_group := record.get("group"):
            group = cgroups.existing(recorded_group["folders"], recorded_group["version"])
            if group:
                group.remove()
        small_disk.unmount(Path(record["scratch"]))
        shutil.rmtree(record["scratch"], ignore_errors=True)
        entry.unlink(missing_ok=True)
        cleaned += 1
    return cleaned


def owner() -> str:
    """A unique identifier of this process: host name, boot, process number and the process's start."""
    pid, since = _stamp(os.getpid())
    return f"{socket.gethostname()} {_boot()} {pid} {since:.2f}"


def is_gone(owner: str) -> bool:
    """True if the process with this identifier has ended; False for one of another machine, and if in doubt."""
    parts = owner.split(" ")
    if len(parts) != 4 or not is_of_this_host(owner):
        return False
    _, boot, pid, since = parts
    try:
        return boot != _boot() or not _runs(int(pid), float(since))
    except ValueError:
        return False


def is_of_this_host(owner: str) -> bool:
    """True if the process with this identifier runs, or ran, on this machine."""
    return owner.partition(" ")[0] == socket.gethostname()


def _boot() -> str:
    """An identifier of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def _stamp(pid: int) -> tuple[int, float]:
    return pid, psutil.Process(pid).create_time()


def _runs(pid: int, since: float) -> bool:
    try:
        process = psutil.Process(pid)
        # A zombie has ended; only its parent has not collected it.
        return abs(process.create_time() - since) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
