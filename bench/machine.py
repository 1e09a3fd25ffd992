"""On what machine and with which programs a run was made: environment.json."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

import psutil

from bench import paths
from bench.results import Environment, LoadTool

REQUIREMENTS = paths.PROJECT / "requirements.txt"


def environment(programs: dict[str, str], load_tool: LoadTool) -> Environment:
    """This machine as it is now; `programs` are the versions of servers and services by name."""
    commit, dirty = git_state(paths.PROJECT)
    return Environment(
        cpu_model=cpu_model(),
        cores=cores(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=f"{platform.system()} {platform.release()}",
        os=distribution(),
        hostname=None,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=packages(REQUIREMENTS),
        programs=programs,
        load_tool=load_tool,
        commit=commit,
        dirty=dirty,
    )


def cores() -> int:
    """Processor cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_model(path: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor's name as the kernel tells it, or None when it does not."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return platform.processor() or None
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else None


def distribution() -> str | None:
    """The operating system's name for people, or None when it does not say."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def packages(requirements: Path) -> dict[str, str]:
    """The installed version of every package that the requirements file names."""
    found = {}
    for line in requirements.read_text("utf-8").splitlines():
        if match := re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line):
            try:
                found[match[0]] = importlib.metadata.version(match[0])
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def git_state(folder: Path) -> tuple[str | None, bool | None]:
    """The commit of the checkout and whether it has changes; (None, None) when it is no checkout."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _git(folder, "status", "--porcelain")
    return commit, None if changes is None else bool(changes)


def _git(folder: Path, *words: str) -> str | None:
    argv = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
