"""Files that all processes of a test run share, made once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The path at which `make` has made something to be copied: the first process makes it, others wait."""
    folder = _shared(tmp_path_factory)
    path = folder / f"once-{name}"
    with (folder / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            beside = folder / f"making-{name}"
            make(beside)
            beside.rename(path)
    return path


def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the run: each process has another one below that."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
