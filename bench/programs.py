"""Find installed programs and their versions."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from bench import paths

# Of the Python that runs the instrument.
VERSION = "{}.{}".format(*sys.version_info[:2])
# Distributions put servers outside of an ordinary user's PATH.
SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
VERSION_TIMEOUT_S = 10
# Beside the command of `install_extra`, which drops the extras that it does not name.
OTHER_EXTRAS = "with your other extras in the brackets"
# The extra of pyproject.toml with the site and the application servers.
SERVERS = "servers"
PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@functools.cache
def requirements() -> dict[str, tuple[str, ...]]:
    """The requirements of each extra in the kit's pyproject.toml; the instrument's under an empty name."""
    project = tomllib.loads((paths.KIT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    return {name: tuple(lines) for name, lines in extras.items()}


def package(requirement: str) -> str:
    """The name of the package at the beginning of a requirement."""
    match = PACKAGE.match(requirement)
    if not match:
        return ""
    return match[0]


def install_extra(name: str) -> str:
    """The command that installs benchapp with one of its extras, from the clone: no package index has benchapp.

    An extra may bring commands of its packages, such as Ansible's.
    """
    return f"pipx install --force --include-deps './benchapp[{name}]'"


@functools.cache
def servers_venv() -> Path:
    """The virtual environment with the servers for the instrument's Python: its own if it has them, otherwise a
    separate one, made at first use."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for line in requirements()[SERVERS]:
            importlib.metadata.distribution(package(line))
        return paths.VENV
    return paths.STATE / SERVERS / VERSION


def _own_venvs() -> tuple[Path, ...]:
    return tuple(dict.fromkeys((servers_venv(), paths.VENV)))


def find(names: Iterable[str], search: Iterable[str] = (), venvs: tuple[Path, ...] = ()) -> Path | None:
    """The first installed program of `names`, cached in a process.

    Searched are the virtual environments (by default of servers and instrument), PATH, the system's server directories,
    then the `search` globs (the newest match first).
    """
    return _find(tuple(names), tuple(search), os.environ.get("PATH", ""), venvs or _own_venvs())


@functools.cache
def _find(names: tuple[str, ...], search: tuple[str, ...], path: str, venvs: tuple[Path, ...]) -> Path | None:
    places = [str(venv / "bin") for venv in venvs]
    # An activated environment of the instrument would serve by the wrong Python, and none would say so.
    own = str(paths.VENV / "bin")
    places += [folder for folder in path.split(os.pathsep) if folder != own or paths.VENV in venvs]
    places += SYSTEM_DIRECTORIES
    for pattern in search:
        places += sorted(_glob(pattern), key=_numbers, reverse=True)
    for name in names:
        if program := shutil.which(name, path=os.pathsep.join(places)):
            return Path(program)
    return None


def module(globs: Iterable[str], venvs: tuple[Path, ...] = ()) -> str | None:
    """The first file found by a glob; `{{ venv }}` in a glob is each of the virtual environments."""
    places = venvs or _own_venvs()
    pairs = itertools.product(places, globs)
    return _module(tuple(pattern.replace("{{ venv }}", str(venv)) for venv, pattern in pairs))


@functools.cache
def _module(globs: tuple[str, ...]) -> str | None:
    for pattern in globs:
        if files := _glob(pattern):
            return min(files)
    return None


def _glob(pattern: str) -> list[str]:
    return [str(path) for path in Path("/").glob(pattern.lstrip("/"))]


def _numbers(directory: str) -> list[int]:
    return list(map(int, re.findall(r"\d+", directory)))


@functools.cache
def version(argv: tuple[str, ...]) -> str | None:
    """The first dotted number printed by `argv`, or None; cached in a process."""
    try:
        # Some programs make a temporary directory before reading their arguments, and leave it behind.
        with tempfile.TemporaryDirectory(prefix="benchapp-") as folder:
            done = subprocess.run(
                argv,
                env={**os.environ, "TMPDIR": folder},
                capture_output=True,
                text=True,
                timeout=VERSION_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
            )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    if not match:
        return None
    return match[0]


def distribution_version(name: str) -> str | None:
    """The version of a Python distribution in the virtual environment, without starting anything; None if missing."""
    sites = [str(site) for site in servers_venv().glob("lib/python*/site-packages")]
    distribution = next(iter(importlib.metadata.distributions(name=name, path=[*sites, *sys.path])), None)
    if not distribution:
        return None
    return distribution.version
