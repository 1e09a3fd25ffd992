"""Pythons other than the instrument's, which serve the same site, each in a separate environment, made once.

A stack served by one is a variant, `STACK@python=3.13`, in plans, results and reports.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench import paths, programs
from bench.errors import BenchError
from bench.serve.project import venv_overlay
from bench.serve.project.venv_overlay import VenvOverlay

OLDEST = (3, 11)
ADVICE = "name another with --python"
VERSIONS = (
    "import platform, django; print(platform.python_implementation(), platform.python_version() + ', Django',"
    " django.get_version())"
)


def choose(words: Iterable[str]) -> tuple[str, ...]:
    """The versions of the interpreters that a user names, as `3.13` or by a path, each found and new enough.

    Raises BenchError for a missing one, an old one, or two of the same version.
    """
    versions = []
    for word in words:
        python = _by_word(word)
        if python is None:
            where = f"no python{word} runs on PATH; give the path of an interpreter"
            if os.sep in word:
                where = "no such file"
            raise BenchError(f"--python {word}: {where}")
        version = venv_overlay.query_interpreter(python, ADVICE).version
        if tuple(map(int, version.split("."))) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise BenchError(f"--python {word}: Python {version} is too old for the site; use {oldest} or newer")
        if version in versions:
            raise BenchError(f"--python {word}: Python {version} is named twice; name one of each version")
        if os.sep in word:
            # From now on the version means this interpreter: the environment made of it is looked for first.
            environment(version, python)
        versions.append(version)
    return tuple(versions)


def _by_word(word: str) -> Path | None:
    """The interpreter of a path, or the first of a version that runs."""
    if os.sep in word:
        if not Path(word).is_file():
            return None
        return Path(word).absolute()
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", word):
        return None
    return next((python for python in _candidates(word) if os.access(python, os.X_OK) and _runs(python)), None)


def _candidates(version: str) -> Iterator[Path]:
    """Possible places of a version: the environment made for it earlier, PATH, and those of a pyenv on PATH."""
    yield paths.STATE / programs.SERVERS / version / "bin" / "python"
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    yield from (folder / f"python{version}" for folder in folders)
    # Its shims run only the versions that are chosen for a folder. https://github.com/pyenv/pyenv#understanding-shims
    for shims in (folder for folder in folders if folder.name == "shims"):
        yield from sorted(shims.parent.glob(f"versions/{version}*/bin/python{version}"), reverse=True)


def _runs(python: Path) -> bool:
    with contextlib.suppress(BenchError):
        return bool(venv_overlay.query_interpreter(python, ADVICE))
    return False


@functools.cache
def environment(version: str, python: Path | None = None) -> VenvOverlay:
    """The environment of the servers for a version of Python: made if missing; the instrument's for its own.

    Raises BenchError without such a Python, or if the servers cannot be installed.
    """
    if version == programs.VERSION:
        return venv_overlay.kits()
    python = python or _by_word(version)
    if python is None:
        raise BenchError(f"python={version}: no python{version} runs on PATH; name one with --python PATH")
    venv = venv_overlay.kit_venv(venv_overlay.query_interpreter(python, ADVICE), python, ADVICE)
    facts = venv_overlay.query_interpreter(venv / "bin" / "python", ADVICE)
    return VenvOverlay(venv, venv, facts.sites, Path(facts.base_prefix))


def described(version: str) -> str:
    """The full version of a Python, and of its Django: `CPython 3.13.0, Django 6.1`."""
    python = environment(version).python
    done = subprocess.run([str(python), "-c", VERSIONS], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout.strip() or version
