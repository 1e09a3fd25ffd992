"""Told of writes and one rendering for many, through every layer of this project that keeps pages by itself."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.core.cache import caches
from django.core.cache.backends.dummy import DummyCache
from django.core.handlers.exception import convert_exception_to_response
from django.db import transaction
from django.http import HttpResponse
from django.test import Client, RequestFactory

from benchapp.caching import generations, render_lock
from benchapp.caching.django_cache import FetchFromCache, UpdateCache, cache_public_page
from benchapp.caching.invalidation import StalePages, invalidate, pages_invalidated
from benchapp.caching.stores import memcached as memcached_store
from benchapp.caching.stores import uwsgi
from benchapp.caching.stores.files import FileLocks, StoreInFiles
from benchapp.caching.stores.memcached import StoreInMemcached
from benchapp.caching.stores.uwsgi import StoreInUwsgi
from benchapp.middleware import render_id
from tests.app.caching.services import fake_uwsgi, memcached
from tests.app.conftest import Rows

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


def test_many_at_once_cost_one_rendering(layer: Callable[[View], View]):
    counting = Counting()
    view = layer(counting)
    with ThreadPoolExecutor(12) as readers:
        pages = [readers.submit(get, view) for _ in range(12)]
        counting.begun.acquire()
        counting.may_end.set()
        assert {page.result() for page in pages} == {"rendering 1"}
    assert counting.count == 1


def test_nobody_waits_for_what_is_not_for_keeping(layer: Callable[[View], View]):
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


def test_a_failed_rendering_keeps_nobody_waiting(layer: Callable[[View], View], monkeypatch: pytest.MonkeyPatch):
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


def test_a_holder_that_died_delays_others_only_for_a_while(
    layer: Callable[[View], View], monkeypatch: pytest.MonkeyPatch
):
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


@pytest.mark.parametrize("stale", [StalePages(frozenset({"/posts/5/"})), StalePages(prefixes=frozenset({"/posts/"}))])
def test_a_write_is_told_and_a_slow_rendering_brings_nothing_back(layer: Callable[[View], View], stale: StalePages):
    title = "old"

    def page(request: object) -> HttpResponse:
        return HttpResponse(title, content_type=HTML)

    assert get(layer(page)) == "old"
    title = "new"
    if not hasattr(layer, "open_store"):  # a server in front would answer those, not the middleware
        assert get(layer(page)) == "old", "it is kept"
    pages_invalidated.send(sender=StalePages, stale=stale)
    assert get(layer(page)) == "new"

    def slow(request: object) -> HttpResponse:
        pages_invalidated.send(sender=StalePages, stale=stale)
        return HttpResponse("from before the write", content_type=HTML)

    pages_invalidated.send(sender=StalePages, stale=stale)
    assert get(layer(slow)) == "from before the write"
    assert get(layer(page)) == "new"


def test_a_kept_page_is_nothing_for_a_host_that_is_not_ours(rows: Rows, layer: Callable[[View], View]):
    assert Client().get("/posts/").status_code == 200
    assert Client().get("/posts/", headers={"Host": "other.test"}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_nothing_is_told_of_a_write_that_is_rolled_back():
    cache = caches["default"]
    before = generations.generation(cache, "/posts/5/")
    with pytest.raises(RuntimeError), transaction.atomic():
        invalidate(StalePages(prefixes=frozenset({"/posts/5/"})))
        raise RuntimeError
    assert generations.generation(cache, "/posts/5/") == before


@pytest.mark.parametrize(
    ("stale", "concerns"),
    [
        (StalePages(frozenset({"/"})), {"/"}),
        (StalePages(frozenset({"/posts/"})), {"/posts/"}),
        (
            StalePages(prefixes=frozenset({"/"})),
            {"/", "/posts/", "/posts/5/", "/posts/5/page/2/", "/posts/6/", "/authors/"},
        ),
        (StalePages(prefixes=frozenset({"/posts/"})), {"/posts/", "/posts/5/", "/posts/5/page/2/", "/posts/6/"}),
        (StalePages(prefixes=frozenset({"/posts/5/"})), {"/posts/5/", "/posts/5/page/2/"}),
        (StalePages(prefixes=frozenset({"/posts/5/page/2/"})), {"/posts/5/", "/posts/5/page/2/"}),
    ],
)
def test_a_write_gives_new_generations_to_what_it_concerns(stale: StalePages, concerns: set[str]):
    cache = caches["default"]
    cache.clear()
    paths = ["/", "/posts/", "/posts/5/", "/posts/5/page/2/", "/posts/6/", "/authors/"]
    before = {path: generations.generation(cache, path) for path in paths}
    generations.renew("default", stale)
    assert {path for path in paths if generations.generation(cache, path) != before[path]} == concerns
    cache.clear()


def test_what_was_begun_before_a_cache_was_emptied_is_not_found_after_it():
    cache = caches["default"]
    cache.clear()
    before = generations.generation(cache, "/posts/5/")
    assert generations.generation(cache, "/posts/5/") == before
    generations.renew("default", StalePages(prefixes=frozenset({"/posts/5/"})))
    # A service that is started again; another layer that empties the memcached they share.
    cache.clear()
    assert generations.generation(cache, "/posts/5/") != before
    cache.clear()


def test_a_cache_that_holds_nothing_lets_all_render():
    class Deaf(DummyCache):
        """A cache that is down."""

        def add(self, *args: object, **kwargs: object) -> bool:
            return False

    page, turn = render_lock.wait_or_lock(Deaf("", {}), "turn", lambda: None)
    assert (page, turn) == (None, None)


def test_marks_in_files_are_out_of_date_by_themselves(tmp_path: Path):
    marks = FileLocks(tmp_path / "locks")
    assert marks.add("turn:a", "busy", 60)
    assert not marks.add("turn:a", "busy", 60)
    assert marks.get("turn:a") == "busy"
    marks.set("turn:a", "alone", -1)
    assert marks.get("turn:a") is None
    assert [marks.add("turn:a", "busy", 60) for _ in range(2)] == [False, True]


def test_nobody_waits_for_marks_that_cannot_be_kept(monkeypatch: pytest.MonkeyPatch):
    class Full:
        """No room for another mark, as in uWSGI's cache when pages fill it."""

        def add(self, key: str, value: str, seconds: int) -> bool:
            return False

        def get(self, key: str) -> None:
            return None

    monkeypatch.setattr(render_lock.time, "sleep", lambda seconds: pytest.fail("waited for nothing"))
    assert render_lock.wait_or_lock(Full(), "turn", lambda: None) == (None, None)
