"""The two drivers for PostgreSQL: psycopg2 of the site, and psycopg 3 in a folder beside the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import paths

PSYCOPG2, PSYCOPG3 = "psycopg2", "psycopg"
FOLDER = Path(f"{paths.VENV}-psycopg3")


def environment(driver: str) -> dict[str, str]:
    """The environment of a process in which Django takes this driver; without pytest's own variables.

    Django takes psycopg 3 as soon as it can be imported, so that only a process with this folder has it.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables["SECRET_KEY"] = "a key of tests, which a server needs: 0123456789 abcdefgh"
    if driver == PSYCOPG2:
        return variables
    if not FOLDER.is_dir():
        pytest.skip(f"program not installed: psycopg 3; run make {FOLDER.name}/.installed")
    return variables | {"PYTHONPATH": str(FOLDER)}
