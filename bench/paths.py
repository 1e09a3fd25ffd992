"""Where things are in a checkout."""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
DEPLOY = PROJECT / "deploy"
VAR = PROJECT / "var"
RESULTS = PROJECT / "results"
MANAGE = PROJECT / "manage.py"

# The interpreter is taken as it was called: resolving the link would leave the virtual environment.
PYTHON = Path(sys.executable)
VENV = Path(sys.prefix)
