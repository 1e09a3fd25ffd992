"""Finished pages in every store that a server reads: found by path, gone after a purge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.http import HttpResponse
from django.test import Client

from benchapp.caching.invalidation import StalePages, all_pages
from benchapp.caching.names import as_written, can_be_served, page_name
from benchapp.caching.pages import PageStore
from benchapp.caching.stores import uwsgi
from benchapp.caching.stores.files import FileStore
from benchapp.caching.stores.memcached import MemcachedStore
from tests.app.caching.services import fake_uwsgi, memcached
from tests.app.caching.test_stores_memcached import pytestmark as needs_memcached
from tests.app.conftest import Rows

Site = Callable[..., AbstractContextManager[None]]


@pytest.fixture(params=[pytest.param("memcached", marks=needs_memcached), "uwsgi", "files"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[PageStore, Callable]]:
    """A store, and how its server finds a page."""
    if request.param == "files":
        root = request.getfixturevalue("root")
        yield FileStore(root), lambda url: _content(root / url[1:] / "index.html")
        return
    if request.param == "uwsgi":
        module = fake_uwsgi()
        monkeypatch.setattr(uwsgi, "uwsgi", module)
        yield uwsgi.UwsgiStore(60), module.held["pages"].get
        return
    path = request.getfixturevalue("socket")
    with memcached(path):
        pages = MemcachedStore(f"unix:{path}", 60)
        yield pages, lambda url: pages.client.get(f"page:{url}")
        pages.client.close()


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def test_a_page_is_found_by_its_path_until_a_purge(store: tuple[PageStore, Callable]):
    pages, find = store
    gone = ["/", "/posts/5/", "/posts/5/page/2/", "/comments/page/2/"]
    stay = ["/posts/", "/posts/55/", "/posts/55/page/2/", "/comments/"]
    everything = [*gone, *stay]

    def put() -> None:
        for path in everything:
            assert pages.write(path, path.encode(), pages.generation())
        assert [find(path) for path in everything] == [path.encode() for path in everything]

    put()
    pages.purge(StalePages(frozenset({"/", "/none/"}), frozenset({"/posts/5/", "/comments/page/", "/none/below/"})))
    assert [path for path in everything if find(path)] == stay
    put()
    pages.purge(all_pages())
    assert not any(map(find, everything))
    put()


@pytest.mark.parametrize("size", [1_000_000, 1_200_000])
def test_a_large_page_is_stored_whole_or_not_at_all(store: tuple[PageStore, Callable], size: int):
    pages, find = store
    stored = pages.write("/large/", b"x" * size, pages.generation())
    assert find("/large/") == (b"x" * size if stored else None)
    assert stored or not isinstance(pages, FileStore)


NAMELESS = ["", "posts", "/posts//", "/../", "/posts/../../etc/", "/./", "/.x/", "/a\\..\\b/", "/\ud800/", "/a b/"]
NAMELESS += ["/a\n/", "/a/\n", "/a\r\nb/", "/a\0b/", "/%41/", "/%c3%a4/", "/a%2Fb/", f"/{200 * 'a'}/", "/" + "a/" * 500]


@pytest.mark.parametrize("name", NAMELESS)
def test_a_name_that_is_none_is_stored_nowhere(name: str):
    assert not can_be_served(name)


@pytest.mark.parametrize("name", ["/", "/a", "/a/", "/a.b/c-1.0", "/@x/~y_z/", "/a%20b/", "/%C3%A4/"])
def test_names_of_pages(name: str):
    assert can_be_served(name)
    assert page_name(unquote(name)) == as_written(name) == as_written(unquote(name)) == name


def test_memcached_that_is_down_breaks_no_page(rows: Rows, site_with: Site, tmp_path: Path):
    with site_with(CACHING_NGINX_MEMCACHED_ADDRESS=f"unix:{tmp_path}/none.sock"):
        assert Client().get("/posts/").status_code == 200


def test_a_full_uwsgi_cache_does_not_keep_a_rendering_from_before_a_purge(monkeypatch: pytest.MonkeyPatch):
    full: list[str] = ["pages"]
    monkeypatch.setattr(uwsgi, "uwsgi", fake_uwsgi(full))
    pages = uwsgi.UwsgiStore(60)
    before = pages.generation()
    pages.purge(all_pages())
    full.clear()  # the purge made room
    assert not pages.write("/", b"old", before)
    assert pages.write("/", b"new", pages.generation())


def test_a_worker_of_uwsgi_that_starts_empties_the_pages_of_the_version_before(
    site_with: Site, monkeypatch: pytest.MonkeyPatch
):
    module = fake_uwsgi()
    monkeypatch.setattr(uwsgi, "uwsgi", module)
    pages = uwsgi.UwsgiStore(60)
    before = pages.generation()
    assert pages.write("/", b"old", before)
    with site_with(CACHING_UWSGI_CACHE="1"):
        uwsgi.middleware(lambda request: HttpResponse())
    assert not module.held["pages"]
    assert not pages.write("/", b"old", before)


def test_a_generation_that_uwsgi_does_not_take_ends_the_one_before(monkeypatch: pytest.MonkeyPatch):
    full: list[str] = []
    monkeypatch.setattr(uwsgi, "uwsgi", fake_uwsgi(full))
    pages = uwsgi.UwsgiStore(60)
    before = pages.generation()
    full.append("guards")
    pages.purge(all_pages())
    assert not pages.write("/", b"old", before)
    with pytest.raises(OSError, match="does not take the generation"):
        pages.generation()
    with pytest.raises(OSError, match="is full"):
        pages.locks.set("key", "value", 1)
