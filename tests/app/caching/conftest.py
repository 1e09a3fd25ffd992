from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def socket() -> Iterator[Path]:
    """Where a service that runs as nobody may put its socket."""
    # The directories that pytest makes are closed to others, and their names too long for a socket.
    short = Path(tempfile.mkdtemp(prefix="benchapp-", dir="/tmp"))
    short.chmod(0o777)
    yield short / "m.sock"
    shutil.rmtree(short)
