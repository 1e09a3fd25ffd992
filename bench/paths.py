"""Folders of the kit: in a clone, or in an installed wheel."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.errors import BenchError

# The instrument.
PACKAGE = Path(__file__).resolve().parent
# In a wheel the rest of the kit is a folder of this package, with the names that the clone has.
_INSTALLED = PACKAGE / "kit"
IS_CLONE = not _INSTALLED.is_dir()


def _state() -> Path:
    """The folder for the kit's own data: databases, environments, collected files, logs."""
    if named := os.environ.get("BENCHAPP_STATE"):
        return Path(named).absolute()
    if IS_CLONE:
        return KIT / "var"
    # https://specifications.freedesktop.org/basedir/latest/: a relative path there is ignored.
    above = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not above.is_absolute():
        above = Path.home() / ".local" / "state"
    return above / "benchapp"


# Read-only: the site, the servers' files, and the overlay for other projects.
KIT = PACKAGE.parent if IS_CLONE else _INSTALLED
DEPLOY = KIT / "deploy"
STATE = _state()
RESULTS = Path("results")

# The interpreter is taken as it was called: resolving the link would leave the virtual environment.
PYTHON = Path(sys.executable)
VENV = Path(sys.prefix)


def copy_of_kit(source: Path, target: Path, *left_out: str) -> None:
    """Copy a folder of the kit, without names matching the patterns and folders of results.

    The copy is writable, even if a package manager protects the kit's own files.
    """
    by_name = shutil.ignore_patterns("__pycache__", *left_out)

    def ignored(where: str, names: list[str]) -> set[str]:
        return {*by_name(where, names), *results_among(where, names)}

    shutil.copytree(source, target, ignore=ignored)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def entries_below(folder: Path) -> Iterator[Path]:
    """All files and folders below a folder from which others may remove some meanwhile."""
    # Path.rglob raises FileNotFoundError for a folder that disappears.
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(parent, name)


def results_among(where: str, names: list[str]) -> list[str]:
    """Return the names in a folder that are folders of results: a copy may be made inside one of them."""
    return [name for name in names if (Path(where) / name / "run.json").is_file()]


def must_be_plain(*folders: Path) -> None:
    """Raise BenchError for a path that some server cannot have in its configuration, quoted or not."""
    for path in folders:
        if odd := odd_characters(path):
            raise BenchError(
                f"{path.absolute()}: not every server can work in a folder with {odd} in its name; use another"
            )


def odd_characters(path: Path) -> str:
    """Characters in a path that some server does not support, in words; or empty."""
    odd = dict.fromkeys(re.sub(r"[\w./+@~=-]", "", str(path.absolute())))
    return " ".join("a space" if character.isspace() else character for character in odd)
