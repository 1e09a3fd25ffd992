"""The folders of sockets and pages for the tests of the stores."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from django.core.cache import caches

from benchapp.caching import resilience
from benchapp.caching.external import http, nginx_files
from benchapp.caching.stores import memcached as memcached_store
from benchapp.caching.stores import uwsgi
from benchapp.caching.stores.files import FileStore
from tests.app.caching.layers import INSIDE, OUTSIDE, ActiveLayer
from tests.app.caching.services import fake_uwsgi, memcached


@pytest.fixture
def socket() -> Iterator[Path]:
    """A folder for the socket of a service that runs as nobody."""
    # The directories that pytest makes are closed to others, and their names too long for a socket.
    short = Path(tempfile.mkdtemp(prefix="benchapp-", dir="/tmp"))
    short.chmod(0o777)
    yield short / "m.sock"
    shutil.rmtree(short)


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """The delayed calls, to be made by the test."""
    calls: list[Callable[[], object]] = []
    for module in (resilience, http, nginx_files):
        monkeypatch.setattr(module, "later", lambda seconds, action, *args: calls.append(partial(action, *args)))
    return calls


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


@pytest.fixture(params=INSIDE)
def inside(request: pytest.FixtureRequest) -> Iterator[ActiveLayer]:
    """Each layer inside of Django, on and empty."""
    with _active(request.param, request) as layer:
        yield layer


@pytest.fixture(params=[*INSIDE, *OUTSIDE])
def layer(request: pytest.FixtureRequest) -> Iterator[ActiveLayer]:
    """Each layer that caches whole pages, on and empty."""
    with _active(request.param, request) as layer:
        yield layer


@pytest.fixture
def active_layer(request: pytest.FixtureRequest) -> Callable[[str], AbstractContextManager[ActiveLayer]]:
    """Turns on the layer of a name."""
    return lambda name: _active(name, request)


@contextmanager
def _active(name: str, request: pytest.FixtureRequest) -> Iterator[ActiveLayer]:
    places = {"folder": request.getfixturevalue("tmp_path"), "socket": ""}
    if name == "uwsgi-cache":
        request.getfixturevalue("monkeypatch").setattr(uwsgi, "uwsgi", fake_uwsgi())
    if name == "nginx-memcached":
        places["socket"] = request.getfixturevalue("socket")
        request.getfixturevalue("memcached_there")
    variables = {key: value.format(**places) for key, value in (INSIDE | OUTSIDE)[name].items()}
    # The instrument names each rendering, by which a test tells a stored page.
    with request.getfixturevalue("site_with")(BENCHAPP_PROBES="1", **variables):
        caches["default"].clear()
        yield ActiveLayer(name)
        caches["default"].clear()
    if name == "nginx-memcached":
        memcached_store._store(f"unix:{places['socket']}", 60, "").client.close()


@pytest.fixture
def memcached_there(socket: Path) -> Iterator[None]:
    with memcached(socket):
        yield
