"""Gates that hold up whoever comes to one while it is closed: a directory each, which all workers see."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import uuid
from pathlib import Path

# A gate that nobody opens lets go after so many seconds: the request that would open it may have been given to the very
# worker that waits at it.
GATE_S = 0.5
POLL_S = 0.005


def close(pk: int) -> None:
    """Close the gate of an author, which is open."""
    _folder(pk).mkdir(mode=0o700)


def waiting(pk: int) -> int:
    """How many wait at it."""
    return len(list(_folder(pk).glob("*")))


def open_again(pk: int) -> None:
    """Let go whoever waits."""
    folder = _folder(pk)
    # Moved away first: removed where it is, it would stay when somebody arrives meanwhile.
    gone = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def wait_at(pk: int) -> None:
    """Wait until the gate is opened; not at all where it is open."""
    folder, deadline = _folder(pk), time.monotonic() + GATE_S
    with contextlib.suppress(FileNotFoundError):
        (folder / uuid.uuid4().hex).touch()
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(POLL_S)


def _folder(pk: int) -> Path:
    """The gate is closed while it exists."""
    return Path(tempfile.gettempdir(), f"benchapp-gate-{pk}")
