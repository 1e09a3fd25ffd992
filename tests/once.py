"""Files that are made once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The path at which `make` has made something to be copied: the first process that asks makes it, others wait."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Each process has a directory of its own below that of the run.
        folder = folder.parent
    path = folder / f"once-{name}"
    with (folder / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            beside = folder / f"making-{name}"
            make(beside)
            beside.rename(path)
    return path
