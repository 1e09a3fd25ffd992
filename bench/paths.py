"""Where things are in a checkout."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bench.errors import BenchError

PROJECT = Path(__file__).resolve().parent.parent
DEPLOY = PROJECT / "deploy"
VAR = PROJECT / "var"
RESULTS = PROJECT / "results"
MANAGE = PROJECT / "manage.py"

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
