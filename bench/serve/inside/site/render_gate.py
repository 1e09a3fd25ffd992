"""Cross-process barriers, one directory each: requests block while the directory exists. All workers see them.

A gate is named after the database of its author: two sites on one machine have authors of the same number.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import time
import uuid
from pathlib import Path

from django.db import connection

# Requests wait this long at most: the request that opens the gate may have gone to the very worker that waits.
MAX_WAIT_S = 0.5
POLL_S = 0.005


def close(pk: int) -> None:
    """Close the gate of an author, even if a killed process has left an earlier gate."""
    reopen(pk)
    _folder(pk).mkdir(mode=0o700)


def waiting(pk: int) -> int:
    """The number of requests waiting at the gate."""
    return len(list(_folder(pk).glob("*")))


def reopen(pk: int) -> None:
    """Open the gate: the waiting requests go on."""
    folder = _folder(pk)
    # Renamed first: a request that arrives during the removal would keep the directory alive.
    gone = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def wait_at(pk: int) -> None:
    """Wait until the gate opens; return at once if open."""
    folder, deadline = _folder(pk), time.monotonic() + MAX_WAIT_S
    with contextlib.suppress(FileNotFoundError):
        (folder / uuid.uuid4().hex).touch()
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(POLL_S)


def _folder(pk: int) -> Path:
    """The directory that exists while the gate is closed."""
    database = [str(connection.settings_dict.get(name)) for name in ("NAME", "HOST", "PORT")]
    digest = hashlib.sha256("\0".join(database).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"benchapp-gate-{digest}-{pk}")
