"""Layers in memcached: they work, share nothing by accident, and survive its death."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pymemcache.client.base import Client as Client_

from benchapp.caching.invalidation import StalePages
from benchapp.caching.stores.memcached import MemcachedStore
from tests.app.caching.services import memcached
from tests.waiting import stop, until

Site = Callable[..., AbstractContextManager[None]]

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not shutil.which("memcached"), reason="program not installed: memcached"),
]


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


def test_two_sites_with_one_memcached_share_no_page_and_no_purge_of_a_page(socket: Path):
    with memcached(socket):
        shop, blog = (MemcachedStore(f"unix:{socket}", 60, prefix) for prefix in ("shop", "blog"))
        for pages, body in ((shop, b"shop"), (blog, b"blog")):
            assert pages.write("/posts/5/", body, pages.generation())
        assert shop.client.get("shop:page:/posts/5/") == shop.read("/posts/5/") == b"shop"
        # The index of a directory takes a second page.
        for page in ("/posts/6/page/2/", "/posts/6/page/3/"):
            assert shop.write(page, b"later", shop.generation())
        shop.purge(StalePages(prefixes=frozenset({"/posts/6/"})))
        assert shop.read("/posts/6/page/2/") is shop.read("/posts/6/page/3/") is None
        before = blog.generation()
        shop.purge(StalePages(prefixes=frozenset({"/posts/5/"})))
        assert (shop.read("/posts/5/"), blog.read("/posts/5/"), blog.generation()) == (None, b"blog", before)
        for pages in (shop, blog):
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
