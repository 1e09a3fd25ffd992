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


def must_be_plain(path: Path) -> None:
    """Raise BenchError for a path that some server could not take in its configuration, whatever the quotes."""
    odd = dict.fromkeys(re.sub(r"[\w./+@~=-]", "", str(path.absolute())))
    if odd:
        signs = " ".join("a blank" if sign.isspace() else sign for sign in odd)
        raise BenchError(
            f"{path.absolute()}: not every server can work in a folder whose name has {signs}; use another"
        )
