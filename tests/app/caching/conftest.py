"""Where the tests of the stores put sockets and pages."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from benchapp.caching.stores.files import FileStore


@pytest.fixture
def socket() -> Iterator[Path]:
    """Where a service that runs as nobody may put its socket."""
    # The directories that pytest makes are closed to others, and their names too long for a socket.
    short = Path(tempfile.mkdtemp(prefix="benchapp-", dir="/tmp"))
    short.chmod(0o777)
    yield short / "m.sock"
    shutil.rmtree(short)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "pages"


@pytest.fixture
def pages(root: Path) -> FileStore:
    return FileStore(root)


@pytest.fixture
def staticgenerator(site_with: Callable[..., AbstractContextManager[None]], root: Path) -> Iterator[None]:
    """The site with the layer on."""
    with site_with(CACHING_STATICGENERATOR_ROOT=str(root)):
        yield
