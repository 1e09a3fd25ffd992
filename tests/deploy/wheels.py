"""Packages as wheels, so that pip installs them on a machine without a network: those installed here, or for another
Python those that requirements.lock names."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.utils import canonicalize_name

from bench import paths

LOCK, MODWSGI = paths.KIT / "requirements.lock", paths.KIT / "requirements-modwsgi.lock"
# With which pip builds mod_wsgi on the host.
BUILDS = ("setuptools", "wheel")
# The rest of the head of a compiled module that nobody compares with its source (PEP 552): flags, and no hash.
UNCHECKED = (1).to_bytes(4, "little") + bytes(8)


def fetched(python: str, cache: Path) -> Path:
    """A folder below `cache` with all that the lock files name for a version of Python, once a machine; skips the test
    if it cannot be fetched, and says why."""
    digest = hashlib.sha256(LOCK.read_bytes() + MODWSGI.read_bytes()).hexdigest()[:12]
    folder = cache / f"wheels-{python}-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"wheels-{python}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(python, folder)
    return folder


def _fetch(python: str, folder: Path) -> None:
    # Another name for each folder: the dot of a version is no suffix, and two Pythons are fetched at once.
    part = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    wanted = part / "requirements.txt"
    wanted.write_text(_for_python(python))
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--dest={part}"]
    for words in (
        ["--only-binary=:all:", f"--python-version={python}", "--require-hashes", f"--requirement={wanted}"],
        ["--no-binary=:all:", "--require-hashes", f"--requirement={MODWSGI}"],
        BUILDS,
    ):
        done = subprocess.run([*pip, *words], capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["nothing said"]
            pytest.skip(f"no packages for Python {python} can be fetched: {lines[-1]}")
    part.rename(folder)


def _for_python(python: str) -> str:
    """The lock file without the packages of other Pythons: pip goes by the Python that it runs on."""
    lines = []
    for entry in _entries():
        named, _, hashes = entry.partition(" \\\n")
        requirement, _, marker = named.partition(" ; ")
        environment = {"python_version": python, "python_full_version": f"{python}.0"}
        if hashes and (not marker or Marker(marker).evaluate(environment)):
            lines.append(f"{requirement} \\\n{hashes}")
    return "".join(lines)


def only(*names: str) -> str:
    """The lock file with these distributions only."""
    wanted = {canonicalize_name(name) for name in names}
    return "".join(entry for entry in _entries() if entry.partition("==")[0] in wanted)


def _entries() -> list[str]:
    """The lock file, cut before each distribution."""
    return re.split(r"(?m)^(?=\w)", LOCK.read_text("utf-8"))


def lock(folder: Path, *names: str) -> str:
    """Pack the named distributions into `folder`; returns what a file of requirements with hashes says."""
    lines = []
    for name in names:
        wheel = pack(importlib.metadata.distribution(name), folder)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{name}=={importlib.metadata.version(name)} --hash=sha256:{digest}\n")
    return "".join(lines)


def pack(distribution: importlib.metadata.Distribution, folder: Path) -> Path:
    """The wheel of an installed distribution, made of the files that its RECORD lists."""
    files = [file for file in distribution.files or [] if ".." not in file.parts and "__pycache__" not in file.parts]
    *_, tag = [
        line.partition(": ")[2] for line in (distribution.read_text("WHEEL") or "").splitlines() if "Tag: " in line
    ]
    record = next(file for file in files if file.name == "RECORD")
    wheel = folder / f"{record.parts[0].removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for file in files:
            if file.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                packed.write(file.locate(), str(file))
                if compiled := _compiled(Path(file.locate())):
                    packed.writestr(cache_from_source(str(file)), compiled)
        listed = "".join(f"{name},,\n" for name in packed.namelist())
        packed.writestr(str(record), f"{listed}{record},,\n")
    return wheel


def _compiled(source: Path) -> bytes:
    """Python's compiled file of a module, if any, valid whatever time its source has."""
    compiled = Path(cache_from_source(str(source))) if source.suffix == ".py" else source
    if compiled == source or not compiled.is_file():
        return b""
    return MAGIC_NUMBER + UNCHECKED + compiled.read_bytes()[16:]
