"""Real memcached and Redis servers, and a stand-in for the module that only uWSGI's workers have."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from tests.skips import needs
from tests.waiting import until


@contextmanager
def memcached(path: Path) -> Iterator[subprocess.Popen]:
    """A memcached on a Unix socket, ready when the block begins and gone after it."""
    command = ["memcached", "-u", "nobody", "-U", "0", "-s", str(path), "-a", "0777", "-m", "16"]
    with _on_socket(command, path) as process:
        yield process


@contextmanager
def redis(path: Path) -> Iterator[subprocess.Popen]:
    """A Redis on a Unix socket, ready when the block begins and gone after it."""
    command = ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(path.parent)]
    with _on_socket(command, path) as process:
        yield process


@contextmanager
def _on_socket(command: list[str], path: Path) -> Iterator[subprocess.Popen]:
    needs(command[0])
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: _accepts(path), f"{command[0]} listens")
            yield process
        finally:
            # It has nothing to save. Told to end, memcached takes a second.
            process.kill()


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def fake_uwsgi(full: Container[str] = ()) -> SimpleNamespace:
    """The few functions of the module `uwsgi` that the store uses, and what its caches hold.

    full  the caches that take no entry; like uWSGI's, they take no new value either
    """
    held: dict[str, dict[str, bytes]] = {"pages": {}, "guards": {}}
    lock, adding = threading.Lock(), threading.Lock()

    def update(key: str, value: bytes, seconds: int, cache: str) -> bool | None:
        if cache in full:
            return None
        held[cache][key] = value
        return True

    def add(key: str, value: bytes, seconds: int, cache: str) -> bool | None:
        with adding:
            return None if key in held[cache] else update(key, value, seconds, cache)

    return SimpleNamespace(
        held=held,
        cache_get=lambda key, cache: held[cache].get(key),
        cache_update=update,
        cache_set=add,
        cache_del=lambda key, cache: held[cache].pop(key, None),
        cache_keys=lambda cache: [key.encode() for key in held[cache]],
        lock=lock.acquire,
        unlock=lock.release,
    )
