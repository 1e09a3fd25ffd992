"""The interpreter of a project: from its virtual environment, wherever its tools put it."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path

# The usual folders of a project's virtual environment.
FOLDERS = (".venv", "venv", "env")
# The variable by which uv is told another place, and the one of an environment that is active.
OF_UV, ACTIVE = "UV_PROJECT_ENVIRONMENT", "VIRTUAL_ENV"
# A file that says which tool manages the packages, and the tool's command that prints the interpreter.
QUERIES = {
    "poetry.lock": ("poetry", "env", "info", "--executable"),
    "Pipfile": ("pipenv", "--py"),
}
QUERY_TIMEOUT_S = 20
# What to do if there is no environment yet, by the file that lists the packages.
CREATED_BY = {
    "uv.lock": "run `uv sync` in {folder}",
    "poetry.lock": "run `poetry install` in {folder}",
    "Pipfile": "run `pipenv install` in {folder}",
    "requirements.txt": "run `{python} -m venv {venv} && {venv}/bin/pip install -r {folder}/requirements.txt`",
}
# The package with the apps for projects, and the way to have it.
OF_KIT = "benchapp"
INSTALL_OF_KIT = "the package is benchapp's own: its docs/caching.md says under Install how your Python finds it"
NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(\w+)[\w.]*'")


def interpreter(folder: Path) -> Path | None:
    """The interpreter of a project whose manage.py is in this folder; None if no environment is known."""
    around = _around(folder)
    names = [*FOLDERS]
    if place_of_uv := os.environ.get(OF_UV):
        names.append(place_of_uv)
    for place, name in itertools.product(around, names):
        python = place / name / "bin" / "python"
        if python.is_file():
            return python
    for place in around:
        for file in _listings(place):
            if file in QUERIES and (named := _queried(place, QUERIES[file])):
                return named
    return _active()


def lacks_package(folder: Path, error: str, own: Collection[str] = ()) -> bool:
    """True if an error says that a module is missing which is not one of the project in this folder.

    own  names of its other modules
    """
    missing = NO_MODULE.search(error)
    return missing is not None and missing[1] not in {*own, *(path.stem for path in folder.iterdir())}


def _around(folder: Path) -> list[Path]:
    """The folder and its parents inside the repository, because manage.py may be in a subfolder; without a
    repository, the folder and its parent, where tutorials have the environment."""
    around = [folder, *folder.parents]
    top = next((number for number, it in enumerate(around) if (it / ".git").exists()), 1)
    return around[: top + 1]


def _listings(folder: Path) -> list[str]:
    """The files of `CREATED_BY` in the folder. A library that poetry manages has no lock file, but a table."""
    names = [name for name in CREATED_BY if (folder / name).is_file()]
    with contextlib.suppress(OSError, ValueError):
        table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
        if "poetry" in table.get("tool", {}) and "poetry.lock" not in names:
            names.append("poetry.lock")
    return names


def _active() -> Path | None:
    """The interpreter of the active environment; None if that is the instrument's, or none is."""
    active = Path(os.environ.get(ACTIVE) or sys.prefix)
    python = active / "bin" / "python"
    is_own = active.resolve() == Path(sys.prefix).resolve()
    if python.is_file() and not is_own:
        return python
    return None


def _queried(folder: Path, command: tuple[str, ...]) -> Path | None:
    """The interpreter of a virtual environment that a tool names; None for a missing tool or environment."""
    if not shutil.which(command[0]):
        return None
    # The environment that is active is the instrument's.
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    env["PIPENV_IGNORE_VIRTUALENVS"] = "1"
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=QUERY_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    python = Path(done.stdout.strip().rpartition("\n")[2])
    if python.is_file() and (python.parents[1] / "pyvenv.cfg").is_file():
        return python
    return None


def remedy(folder: Path, python: Path, error: str = "") -> str:
    """The remedy if the interpreter chosen for the project in a folder lacks a package, by an error that names it."""
    missing = NO_MODULE.search(error)
    if missing and missing[1] == OF_KIT:
        return INSTALL_OF_KIT
    install = "install it there"
    if interpreter(folder) is None:
        for place in _around(folder):
            if files := _listings(place):
                words = {"folder": place, "venv": place / FOLDERS[0], "python": python}
                quoted = {name: shlex.quote(str(path)) for name, path in words.items()}
                install = CREATED_BY[files[0]].format(**quoted)
                break
    name_it = 'name the interpreter that has it: python = "..." in [tool.benchapp] of pyproject.toml'
    return f"{install}, or {name_it}; {python} was tried"
