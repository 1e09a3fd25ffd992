"""Request coalescing and invalidation, through every layer whose pages this project stores itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.core.cache import caches
from django.core.cache.backends.dummy import DummyCache
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpResponse
from django.test import Client, RequestFactory

from benchapp.caching import lock_holder, render_lock
from benchapp.caching.django_cache import FetchFromCache, UpdateCache, cache_public_page
from benchapp.caching.invalidation import StalePages, pages_invalidated
from benchapp.caching.rendering import render_id
from benchapp.caching.stores import memcached as memcached_store
from benchapp.caching.stores import uwsgi
from benchapp.caching.stores.files import StoreInFiles
from benchapp.caching.stores.memcached import StoreInMemcached
from benchapp.caching.stores.uwsgi import StoreInUwsgi
from tests.app.caching.services import fake_uwsgi, memcached
from tests.app.conftest import Rows
from tests.waiting import until

View = Callable[..., HttpResponse]
HTML = "text/html; charset=utf-8"


def site_middleware(view: View) -> View:
    return UpdateCache(FetchFromCache(render_id(view)))


LAYERS = {
    "site-middleware": ("CACHING_SITE_MIDDLEWARE", "1", site_middleware),
    "view-cache": ("CACHING_VIEW_CACHE", "1", cache_public_page),
    "staticgenerator": ("CACHING_STATICGENERATOR_ROOT", "{folder}", StoreInFiles),
    "nginx-memcached": ("CACHING_NGINX_MEMCACHED_ADDRESS", "unix:{socket}", StoreInMemcached),
    "uwsgi-cache": ("CACHING_UWSGI_CACHE", "1", StoreInUwsgi),
}


@pytest.fixture(params=LAYERS)
def layer(
    request: pytest.FixtureRequest,
    site_with: Callable[..., AbstractContextManager[None]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Callable[[View], View]]:
    """Lays one layer over a view."""
    name, value, over = LAYERS[request.param]
    places = {"folder": tmp_path / "pages", "socket": ""}
    if request.param == "uwsgi-cache":
        monkeypatch.setattr(uwsgi, "uwsgi", fake_uwsgi())
    if request.param == "nginx-memcached":
        places["socket"] = request.getfixturevalue("socket")
        request.getfixturevalue("memcached_there")
    with site_with(**{name: value.format(**places)}):
        caches["default"].clear()
        yield over
        caches["default"].clear()
    if request.param == "nginx-memcached":
        memcached_store._store(value.format(**places), 60).client.close()


@pytest.fixture
def memcached_there(socket: Path) -> Iterator[None]:
    with memcached(socket):
        yield


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
        assert self.may_end.wait(20)
        return HttpResponse(f"rendering {number}", content_type=HTML, headers=self.headers)


def test_concurrent_requests_share_one_rendering(layer: Callable[[View], View]):
    counting = Counting()
    view = layer(counting)
    with ThreadPoolExecutor(12) as readers:
        pages = [readers.submit(get, view) for _ in range(12)]
        counting.begun.acquire()
        counting.may_end.set()
        assert {page.result() for page in pages} == {"rendering 1"}
    assert counting.count == 1


def test_requests_for_an_uncacheable_page_do_not_wait(layer: Callable[[View], View]):
    counting = Counting(**{"Cache-Control": "no-store"})
    view = layer(counting)
    counting.may_end.set()
    get(view)
    counting.may_end.clear()
    with ThreadPoolExecutor(3) as readers:
        pages = [readers.submit(get, view) for _ in range(3)]
        # All three are being rendered while none has ended.
        for _ in range(4):
            assert counting.begun.acquire(timeout=20)
        counting.may_end.set()
        assert len({page.result() for page in pages}) == 3


def test_a_failed_rendering_releases_the_lock(layer: Callable[[View], View], monkeypatch: pytest.MonkeyPatch):
    waits: list[float] = []
    monkeypatch.setattr(render_lock.time, "sleep", waits.append)

    def failing(request: object) -> HttpResponse:
        raise RuntimeError("broken")

    # As Django does between any two middlewares.
    view = layer(failing) if layer is cache_public_page else layer(convert_exception_to_response(failing))
    with contextlib.suppress(RuntimeError):
        get(view)
    assert get(layer(lambda request: HttpResponse("good", content_type=HTML))) == "good"
    assert waits == []


def test_waiting_for_a_dead_holder_ends(layer: Callable[[View], View], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(render_lock, "WAIT_S", 0.1)
    counting = Counting()
    view = layer(counting)
    with ThreadPoolExecutor(2) as readers:
        stuck = readers.submit(get, view)
        counting.begun.acquire()
        other = readers.submit(get, view)
        assert counting.begun.acquire(timeout=20), "the other renders it too"
        counting.may_end.set()
        assert {stuck.result(), other.result()} == {"rendering 1", "rendering 2"}


def test_a_lock_of_a_killed_process_is_taken_over_by_one_request(
    layer: Callable[[View], View], monkeypatch: pytest.MonkeyPatch
):
    # Whoever waits for the dead process fails by that, not by a clock.
    monkeypatch.setattr(render_lock, "WAIT_S", 1000)
    counting = Counting()
    view = layer(counting)
    with ThreadPoolExecutor(7) as readers:
        with subprocess.Popen(["sleep", "1000"]) as process, monkeypatch.context() as patched:
            killed = lock_holder.holder(process.pid)
            assert not lock_holder.has_ended(killed)
            patched.setattr(render_lock, "holder", lambda pid: killed)
            readers.submit(get, view)
            assert counting.begun.acquire(timeout=20)
            # Its process is a zombie: nobody has asked for its status yet.
            process.kill()
            until(lambda: lock_holder.has_ended(killed), "the process ends")
        waiting = [readers.submit(get, view) for _ in range(6)]
        assert counting.begun.acquire(timeout=20), "one request renders the page anew"
        counting.may_end.set()
        # The rendering of the killed process ends here, as it would not.
        assert {page.result(20) for page in waiting} <= {"rendering 1", "rendering 2"}
    assert counting.count == 2


def test_of_a_process_of_another_host_nothing_is_known():
    _, _, process = lock_holder.holder(os.getpid()).partition(".")
    assert not lock_holder.has_ended(f"another.{process}")
    assert not lock_holder.has_ended("another.999999999.1")
    assert not lock_holder.has_ended(render_lock.UNCACHEABLE)


def test_a_later_process_with_the_same_id_is_another_one():
    assert not lock_holder.has_ended(lock_holder.holder(os.getpid()))
    assert lock_holder.has_ended(f"{lock_holder.holder(os.getpid())}0")


@pytest.mark.parametrize("stale", [StalePages(frozenset({"/posts/5/"})), StalePages(prefixes=frozenset({"/posts/"}))])
def test_a_slow_rendering_does_not_bring_an_invalidated_page_back(layer: Callable[[View], View], stale: StalePages):
    title = "old"

    def page(request: object) -> HttpResponse:
        return HttpResponse(title, content_type=HTML)

    assert get(layer(page)) == "old"
    title = "new"
    if not hasattr(layer, "open_store"):  # a server in front would answer those, not the middleware
        assert get(layer(page)) == "old", "it is cached"
    pages_invalidated.send(sender=StalePages, stale=stale)
    assert get(layer(page)) == "new"

    def slow(request: object) -> HttpResponse:
        pages_invalidated.send(sender=StalePages, stale=stale)
        return HttpResponse("from before the write", content_type=HTML)

    pages_invalidated.send(sender=StalePages, stale=stale)
    assert get(layer(slow)) == "from before the write"
    assert get(layer(page)) == "new"


def test_a_cached_page_does_not_answer_a_foreign_host(rows: Rows, layer: Callable[[View], View]):
    assert Client().get("/posts/").status_code == 200
    assert Client().get("/posts/", headers={"Host": "other.test"}).status_code == 400


def test_without_a_lock_store_each_request_renders():
    class Deaf(DummyCache):
        """A cache that is down."""

        def add(self, *args: object, **kwargs: object) -> bool:
            return False

    page, lock = render_lock.wait_or_lock(Deaf("", {}), "key", lambda: None)
    assert (page, lock) == (None, None)


def test_requests_do_not_wait_when_the_lock_store_is_full(monkeypatch: pytest.MonkeyPatch):
    class Full:
        """No room for another lock, as in uWSGI's cache when pages fill it."""

        def add(self, key: str, value: str, seconds: int) -> bool:
            return False

        def get(self, key: str) -> None:
            return None

    monkeypatch.setattr(render_lock.time, "sleep", lambda seconds: pytest.fail("waited for nothing"))
    assert render_lock.wait_or_lock(Full(), "key", lambda: None) == (None, None)
