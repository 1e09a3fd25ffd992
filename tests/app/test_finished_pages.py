"""Finished pages in memcached and in uWSGI's memory: found by path, gone after a write, never brought back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.test import Client

from benchapp.caching import uwsgipages
from benchapp.caching.finishedpages import Store, has_key
from benchapp.caching.memcachedpages import MemcachedPages
from benchapp.caching.staleness import Stale, everything
from tests.app.conftest import Rows
from tests.app.test_memcached import memcached, pytestmark, socket  # noqa: F401

Site = Callable[..., AbstractContextManager[None]]


def fake_uwsgi() -> SimpleNamespace:
    """The few functions of the module that only workers of uWSGI have."""
    held: dict[str, bytes] = {}

    def update(key: str, value: bytes, seconds: int, cache: str) -> bool:
        held[key] = value
        return True

    def add(key: str, value: bytes, seconds: int, cache: str) -> bool | None:
        return None if key in held else update(key, value, seconds, cache)

    return SimpleNamespace(
        held=held,
        cache_get=lambda key, cache: held.get(key),
        cache_update=update,
        cache_set=add,
        cache_del=lambda key, cache: held.pop(key, None),
        cache_keys=lambda cache: [key.encode() for key in held],
        lock=lambda: None,
        unlock=lambda: None,
    )


@pytest.fixture(params=["memcached", "uwsgi"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Callable]]:
    """A store, and how its server finds a page."""
    if request.param == "uwsgi":
        module = fake_uwsgi()
        monkeypatch.setattr(uwsgipages, "uwsgi", module)
        yield uwsgipages.UwsgiPages(60), module.held.get
        return
    path = request.getfixturevalue("socket")
    with memcached(path):
        pages = MemcachedPages(f"unix:{path}", 60)
        yield pages, lambda url: pages.client.get(f"page:{url}")
        pages.client.close()


def keep(store: Store, *paths: str) -> None:
    for path in paths:
        store.put(path, path.encode(), store.generation() or "")


def test_a_page_is_found_by_its_path(store: tuple[Store, Callable]):
    pages, find = store
    keep(pages, "/", "/posts/5/")
    assert [find("/"), find("/posts/5/"), find("/posts/")] == [b"/", b"/posts/5/", None]


def test_a_purge_removes_paths_and_all_below_prefixes(store: tuple[Store, Callable]):
    pages, find = store
    kept = ["/posts/", "/posts/55/", "/posts/55/page/2/", "/comments/page/20/page/"]
    gone = ["/", "/posts/5/", "/posts/5/page/2/", "/comments/page/2/"]
    keep(pages, *kept[:3], *gone)
    pages.purge(Stale(frozenset({"/"}), frozenset({"/posts/5/", "/comments/page/"})))
    assert [find(path) for path in gone] == [None] * 4
    assert all(find(path) for path in kept[:3])


def test_a_wide_prefix_removes_everything_below(store: tuple[Store, Callable]):
    pages, find = store
    keep(pages, "/", "/posts/", "/posts/5/")
    pages.purge(everything())
    assert [find(path) for path in ("/", "/posts/", "/posts/5/")] == [None] * 3


def test_a_rendering_from_before_a_purge_is_not_kept(store: tuple[Store, Callable]):
    pages, find = store
    before = pages.generation()
    pages.purge(Stale(frozenset({"/posts/"})))
    pages.put("/", b"old", before or "")
    assert find("/") is None


@pytest.mark.parametrize(
    "path", ["/posts//", "/posts", "/posts/ä/", "/a b/", "/a%20b/", "/../", "/" + 200 * "a" + "/", "/a\n/", "/a/\n"]
)
def test_only_plain_paths_have_a_key(path: str):
    assert not has_key(path)


def test_pages_of_anonymous_readers_are_put_into_memcached(rows: Rows, site_with: Site, socket: Path):  # noqa: F811
    with memcached(socket), site_with(BENCHAPP_MEMCACHED_PAGES=f"unix:{socket}"):
        pages = MemcachedPages(f"unix:{socket}", 60)
        html = Client().get("/posts/").content
        assert pages.client.get("page:/posts/") == html
        for path, extra in (("/authors/", {"HTTP_COOKIE": "sessionid=x"}), ("/login/", {}), ("/comments/?a=1", {})):
            Client().get(path, **extra)
            assert pages.client.get(f"page:{path.partition('?')[0]}") is None
        pages.client.close()


def test_memcached_that_is_down_breaks_no_page(rows: Rows, site_with: Site, tmp_path: Path):
    with site_with(BENCHAPP_MEMCACHED_PAGES=f"unix:{tmp_path}/none.sock"):
        assert Client().get("/posts/").status_code == 200


def test_a_kept_page_answers_no_host_that_is_not_ours(rows: Rows, site_with: Site, tmp_path: Path):
    with site_with(BENCHAPP_STATICGENERATOR_ROOT=str(tmp_path / "pages")):
        assert Client().get("/posts/").status_code == 200
        assert Client().get("/posts/", headers={"host": "other.example"}).status_code == 400
