"""Where things are: in a clone, or where the wheel is installed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from bench.errors import BenchError

_PACKAGE = Path(__file__).resolve().parent
# In a wheel the kit is a folder of this package, with the names that the clone has.
_INSTALLED = _PACKAGE / "kit"
IS_CLONE = not _INSTALLED.is_dir()


def _state() -> Path:
    """The folder of all that the kit makes: databases, environments, collected files, logs."""
    if named := os.environ.get("BENCHAPP_STATE"):
        return Path(named).absolute()
    if IS_CLONE:
        return KIT / "var"
    # https://specifications.freedesktop.org/basedir/latest/: a relative path there is ignored.
    above = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not above.is_absolute():
        above = Path.home() / ".local" / "state"
    return above / "benchapp"


# Nothing is written there: the site, what servers read, and what is laid over other projects.
KIT = _PACKAGE.parent if IS_CLONE else _INSTALLED
DEPLOY = KIT / "deploy"
STATE = _state()
RESULTS = Path("results")

# The interpreter is taken as it was called: resolving the link would leave the virtual environment.
PYTHON = Path(sys.executable)
VENV = Path(sys.prefix)


def must_be_plain(*folders: Path) -> None:
    """Raise BenchError for a path that some server cannot have in its configuration, quoted or not."""
    for path in folders:
        if odd := odd_characters(path):
            raise BenchError(
                f"{path.absolute()}: not every server can work in a folder with {odd} in its name; use another"
            )


def odd_characters(path: Path) -> str:
    """What some server cannot have in a path, in words; empty where there is nothing."""
    odd = dict.fromkeys(re.sub(r"[\w./+@~=-]", "", str(path.absolute())))
    return " ".join("a space" if character.isspace() else character for character in odd)
