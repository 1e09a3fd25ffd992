"""Machine and programs of a run: environment.json."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import re
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from bench import paths, programs
from bench.measure.records.records import Environment, LoadTool
from bench.serve.machine import ports
from bench.serve.machine.cpu_affinity import affinity

GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
SYSCTL = Path("/proc/sys")
# Extras of pyproject.toml whose packages are in no measured process.
OF_DEVELOPERS = ("completion", "debug", "dev", "docs", "hosts")
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
    """The current state of this machine.

    `programs` are the versions of servers and services by name, `affinity` the pinned cores of each part.
    """
    commit, dirty = git_state(paths.KIT)
    return Environment(
        cpu_model=cpu_model(),
        cores=cores(),
        memory_bytes=memory_bytes(),
        kernel=f"{platform.system()} {platform.release()}",
        os=distribution(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=packages(),
        programs=programs,
        load_tool=load_tool,
        commit=commit,
        dirty=dirty,
        # Unknown on most virtual machines.
        governor=_read(GOVERNOR).strip() or None,
        limits=limits(),
        affinity=dict(affinity or {}) or None,
    )


def memory_bytes() -> int:
    """Memory of the machine, in bytes."""
    return psutil.virtual_memory().total


def cores() -> int:
    """Processor cores available to this process, possibly fewer than the machine has."""
    return len(affinity())


def cpu_model(path: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor's name as the kernel reports it, or None."""
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", _read(path), re.MULTILINE)
    if not match:
        return None
    return match[1].strip()


def limits() -> dict[str, str]:
    """Limits of this process and the kernel that bound load, as far as readable."""
    texts = {}
    for kind, limit in zip(("soft", "hard"), resource.getrlimit(resource.RLIMIT_NOFILE), strict=True):
        texts[f"open files ({kind})"] = str(limit)
        if limit == resource.RLIM_INFINITY:
            texts[f"open files ({kind})"] = "unlimited"
    for name in KERNEL_LIMITS:
        if numbers := _read(SYSCTL / name.replace(".", "/")).split():
            texts[name] = " ".join(numbers)
    return texts


def _read(path: Path) -> str:
    """The text of a file of the kernel; empty if missing."""
    with contextlib.suppress(OSError):
        return path.read_text("utf-8", "replace")
    return ""


def config_hashes(folder: Path, own_paths: Mapping[str, str]) -> dict[str, str]:
    """File of a folder -> SHA-256 of its text, without parts that differ from run to run.

    Removed are the paths in `own_paths` (path -> placeholder) and the ports in use.
    """
    names = {str(port): "PORT" for port in ports.listening() if port >= 10_000}
    hashes = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_text("utf-8", "surrogateescape")
        for own, name in sorted(own_paths.items(), key=lambda item: -len(item[0])):
            text = text.replace(own, name)
        text = re.sub(r"\d+", lambda match: names.get(match[0], match[0]), text)
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        hashes[str(path.relative_to(folder))] = digest
    return hashes


def distribution() -> str | None:
    """The operating system's name for people, or None if unknown."""
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    return None


def packages() -> dict[str, str]:
    """The installed version of every package of the instrument and of the servers."""
    installed = {}
    for extra, lines in programs.requirements().items():
        names = [programs.package(line) for line in lines if extra not in OF_DEVELOPERS]
        versions = {name: programs.distribution_version(name) for name in names}
        installed.update({name: version for name, version in versions.items() if version})
    return installed


def git_state(folder: Path) -> tuple[str | None, bool | None]:
    """The commit of the checkout and whether the checkout has changes; (None, None) outside of a checkout."""
    # A wheel may be installed below the checkout of another project.
    if not (folder / ".git").exists():
        return None, None
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _git(folder, "status", "--porcelain")
    if changes is None:
        return commit, None
    return commit, bool(changes)


def _git(folder: Path, *words: str) -> str | None:
    argv = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return done.stdout.strip()
