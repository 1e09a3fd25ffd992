"""On what machine and with which programs a run was made: environment.json."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import platform
import re
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from bench import paths
from bench.machine import ports
from bench.machine.pin import affinity
from bench.records.records import Environment, LoadTool

REQUIREMENTS = paths.PROJECT / "requirements.txt"


SYSCTL = Path("/proc/sys")
# Limits of connections and queues, by their names in sysctl(8).
KERNEL_LIMITS = (
    "net.core.somaxconn",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_tw_reuse",
    "fs.file-max",
    "vm.swappiness",
)


def environment(
    programs: dict[str, str], load_tool: LoadTool, affinity: Mapping[str, tuple[int, ...]] | None = None
) -> Environment:
    """This machine as it is now.

    `programs` are the versions of servers and services by name, `affinity` the cores that parts are pinned to.
    """
    commit, dirty = git_state(paths.PROJECT)
    return Environment(
        cpu_model=cpu_model(),
        cores=cores(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=f"{platform.system()} {platform.release()}",
        os=distribution(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=packages(REQUIREMENTS),
        programs=programs,
        load_tool=load_tool,
        commit=commit,
        dirty=dirty,
        governor=governor(),
        limits=limits(),
        affinity=dict(affinity) if affinity else None,
    )


def cores() -> int:
    """Processor cores this process may use, which can be fewer than the machine has."""
    return len(affinity())


def cpu_model(path: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor's name as the kernel reports it, or None."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return platform.processor() or None
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else None


def governor(path: Path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) -> str | None:
    """The governor of the processor's frequency, or None where it is unknown, as on most virtual machines."""
    try:
        return path.read_text("utf-8").strip() or None
    except OSError:
        return None


def limits() -> dict[str, str]:
    """Limits of this process and the kernel that bound load, those that can be read."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = {"open files (soft)": _limit(soft), "open files (hard)": _limit(hard)}
    for name in KERNEL_LIMITS:
        with contextlib.suppress(OSError):
            found[name] = " ".join((SYSCTL / name.replace(".", "/")).read_text("utf-8").split())
    return found


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def config_hashes(folder: Path, own_paths: Mapping[str, str]) -> dict[str, str]:
    """File of a folder -> SHA-256 of its text, with what differs from run to run taken out.

    That is the paths of `own_paths` (path -> what stands for it) and the numbers of ports in use.
    """
    in_use = {str(port) for port in ports.listening() if port >= 10_000}
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_text("utf-8", "surrogateescape")
        for own, name in sorted(own_paths.items(), key=lambda item: -len(item[0])):
            text = text.replace(own, name)
        text = re.sub(r"\d+", lambda match: "PORT" if match[0] in in_use else match[0], text)
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        found[str(path.relative_to(folder))] = digest
    return found


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
