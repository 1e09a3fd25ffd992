"""Layers in memcached: they work, share nothing by accident, and survive its death."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pymemcache.client.base import Client as Client_

from benchapp.caching.invalidation import StalePages
from benchapp.caching.stores.memcached import MemcachedStore
from tests.app.caching.services import memcached
from tests.app.conftest import Rows
from tests.waiting import stop, until

Site = Callable[..., AbstractContextManager[None]]

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not shutil.which("memcached"), reason="program not installed: memcached"),
]


def queries() -> int:
    with CaptureQueriesContext(connection) as captured:
        assert Client().get("/").status_code == 200
    return len(captured)


def test_a_warm_page_of_many_fragments_asks_memcached_once(
    rows: Rows, site_with: Site, socket: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []

    def noted(name: str) -> Callable[..., object]:
        method = getattr(Client_, name)

        def call(self: Client_, *args: object, **kwargs: object) -> object:
            asked.append(name)
            return method(self, *args, **kwargs)

        return call

    with site_with(CACHING_FRAGMENTS="1", CACHE_URL=f"memcache://{socket}"), memcached(socket):
        queries()
        for name in ("get", "get_many", "_connect"):
            monkeypatch.setattr(Client_, name, noted(name))
        assert queries() == 0
        # The words of the generation, and all parts under the last one.
        assert asked == ["get_many"]


def test_a_memcached_that_hangs_during_a_write_comes_back_without_the_page(socket: Path):
    with memcached(socket) as process:
        pages = MemcachedStore(f"unix:{socket}", seconds=60)
        assert pages.write("/posts/5/", b"old", pages.generation())
        stop(process.pid)
        try:
            pages.purge(StalePages(prefixes=frozenset({"/posts/5/"})))
        finally:
            process.send_signal(signal.SIGCONT)
        until(lambda: pages.read("/posts/5/") is None, "the page is gone")
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
        pages.client.close()


@pytest.mark.parametrize("days", [11, 365])
def test_a_long_time_to_live_is_not_taken_for_a_date(socket: Path, days: int):
    path = "/posts/5/page/2/"
    with memcached(socket):
        pages = MemcachedStore(f"unix:{socket}", seconds=days * 24 * 3600)
        assert pages.write(path, b"page", pages.generation())
        assert pages.read(path) == b"page"
        # It is found by the index of what is below a directory, which lasts longer.
        pages.purge(StalePages(prefixes=frozenset({"/posts/5/"})))
        assert pages.read(path) is None
        pages.client.close()


def test_a_page_that_no_index_lists_is_not_stored(socket: Path, monkeypatch: pytest.MonkeyPatch):
    with memcached(socket):
        pages = MemcachedStore(f"unix:{socket}", 60)
        assert pages.write("/posts/5/", b"page", pages.generation())
        monkeypatch.setattr(Client_, "append", lambda *args, **kwargs: False)
        with pytest.raises(OSError, match="does not list"):
            pages.write("/posts/5/page/2/", b"page", pages.generation())
        assert pages.read("/posts/5/page/2/") is None
        pages.client.close()
