"""Request coalescing and invalidation, through every layer whose pages this project stores itself."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.cache.backends import base, filebased
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpResponse
from django.test import RequestFactory

from benchapp.caching import render_lock
from benchapp.caching.invalidation import StalePages, pages_invalidated
from benchapp.caching.stores.files import FileLocks
from tests import clock
from tests.app.caching.layers import HTML, ActiveLayer

View = Callable[..., HttpResponse]


def get(view: View, path: str = "/posts/5/") -> str:
    return view(RequestFactory().get(path)).content.decode()


class Counting:
    """A view that counts its renderings; each waits until it may end."""

    def __init__(self, **headers: str) -> None:
        self.begun, self.may_end = threading.Semaphore(0), threading.Event()
        self.headers, self.count, self.lock = headers, 0, threading.Lock()

    def __call__(self, request: object) -> HttpResponse:
        with self.lock:
            self.count += 1
            number = self.count
        self.begun.release()
        assert self.may_end.wait(60)
        return HttpResponse(f"rendering {number}", content_type=HTML, headers=self.headers)


def test_concurrent_requests_share_one_rendering(inside: ActiveLayer):
    counting = Counting()
    view = inside.over(counting)
    with ThreadPoolExecutor(12) as readers:
        pages = [readers.submit(get, view) for _ in range(12)]
        counting.begun.acquire()
        counting.may_end.set()
        assert {page.result() for page in pages} == {"rendering 1"}
    assert counting.count == 1


def test_requests_for_an_uncacheable_page_do_not_wait(inside: ActiveLayer):
    counting = Counting(**{"Cache-Control": "no-store"})
    view = inside.over(counting)
    counting.may_end.set()
    get(view)
    counting.may_end.clear()
    with ThreadPoolExecutor(3) as readers:
        pages = [readers.submit(get, view) for _ in range(3)]
        # All three are being rendered while none has ended.
        for _ in range(4):
            assert counting.begun.acquire(timeout=60)
        counting.may_end.set()
        assert len({page.result() for page in pages}) == 3


def test_a_failed_rendering_releases_the_lock(inside: ActiveLayer, monkeypatch: pytest.MonkeyPatch):
    waits: list[float] = []
    clock.change(monkeypatch, render_lock, sleep=waits.append)

    def failing(request: object) -> HttpResponse:
        raise RuntimeError("broken")

    # As Django does between any two middlewares.
    view = inside.over(convert_exception_to_response(failing))
    with contextlib.suppress(RuntimeError):
        get(view)
    assert get(inside.over(lambda request: HttpResponse("good", content_type=HTML))) == "good"
    assert waits == []


def test_waiting_for_a_dead_holder_ends(inside: ActiveLayer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(render_lock, "WAIT_S", 0.1)
    counting = Counting()
    view = inside.over(counting)
    with ThreadPoolExecutor(2) as readers:
        stuck = readers.submit(get, view)
        counting.begun.acquire()
        other = readers.submit(get, view)
        assert counting.begun.acquire(timeout=60), "the other renders it too"
        counting.may_end.set()
        assert {stuck.result(), other.result()} == {"rendering 1", "rendering 2"}


def test_the_lock_of_a_holder_that_died_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    locks = FileLocks(tmp_path, {})
    assert render_lock.wait_or_lock(locks, "key", lambda: None)[1]
    later = time.time() + render_lock.LOCK_TTL_S
    for module in (base, filebased):
        clock.change(monkeypatch, module, time=lambda: later)
    waits: list[float] = []
    clock.change(monkeypatch, render_lock, sleep=waits.append)
    assert render_lock.wait_or_lock(locks, "key", lambda: None)[1]
    assert waits == []


@pytest.mark.parametrize("stale", [StalePages(frozenset({"/posts/5/"})), StalePages(prefixes=frozenset({"/posts/"}))])
def test_a_slow_rendering_does_not_bring_an_invalidated_page_back(inside: ActiveLayer, stale: StalePages):
    title, written_meanwhile = "old", False

    def page(request: object) -> HttpResponse:
        read = title
        if written_meanwhile:
            pages_invalidated.send(sender=StalePages, stale=stale)
        return HttpResponse(read, content_type=HTML)

    view = inside.over(page)
    assert get(view) == "old"
    title = "new"
    assert get(view) == "old", "it is cached"
    pages_invalidated.send(sender=StalePages, stale=stale)
    assert get(view) == "new"
    title, written_meanwhile = "from before the write", True
    pages_invalidated.send(sender=StalePages, stale=stale)
    assert get(view) == "from before the write"
    title, written_meanwhile = "newest", False
    assert get(view) == "newest"


def test_requests_do_not_wait_when_the_lock_store_is_full(monkeypatch: pytest.MonkeyPatch):
    class Full:
        """No room for another lock, as in uWSGI's cache when pages fill it."""

        def add(self, key: str, value: str, seconds: int) -> bool:
            return False

        def get(self, key: str) -> None:
            return None

    clock.change(monkeypatch, render_lock, sleep=lambda seconds: pytest.fail("waited for nothing"))
    assert render_lock.wait_or_lock(Full(), "key", lambda: None) == (None, False)
