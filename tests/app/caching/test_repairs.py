"""Pages in each cache that CACHE_URL can name: cached, invalidated, and never in the way of a visitor."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from socket import create_server
from socket import socket as Socket

import pytest
from django.core.cache import caches
from django.core.cache.backends.filebased import FileBasedCache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchapp.caching import resilience
from benchapp.caching.private_apis.django_backends import AtomicAddFileCache
from benchapp.caching.private_apis.pymemcache_client import ThreadSafeClient
from benchapp.caching.resilience import CircuitBreaker
from benchapp.models import Comment
from tests import clock
from tests.app.caching.services import memcached, redis
from tests.app.conftest import Rows
from tests.waiting import stop, until

Site = Callable[..., AbstractContextManager[None]]

SERVICES = [pytest.param(kind, marks=pytest.mark.servers) for kind in ("memcached", "redis")]


@contextmanager
def service(kind: str, path: Path) -> Iterator[tuple[str, subprocess.Popen]]:
    """A real memcached or Redis on this socket: its CACHE_URL and its process."""
    program, scheme, start = {
        "memcached": ("memcached", "memcache", memcached),
        "redis": ("redis-server", "redis", redis),
    }[kind]
    if not shutil.which(program):
        pytest.skip(f"program not installed: {program}")
    with start(path) as process:
        yield f"{scheme}://{path}", process


@pytest.fixture(params=[*SERVICES, "locmem", "database", "file"])
def cache_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A CACHE_URL of each kind, its service running."""
    plain = {
        "locmem": f"locmemcache://{tmp_path.name}",
        "database": "dbcache://cached_parts",
        "file": f"filecache://{tmp_path}/c",
    }
    if request.param in plain:
        yield plain[request.param]
        return
    with service(request.param, request.getfixturevalue("socket")) as (url, _):
        yield url
        caches["default"].close()


def queries_of_rows() -> int:
    """The home page's queries of the site's tables; a cache in the database has separate queries."""
    with CaptureQueriesContext(connection) as captured:
        assert Client().get("/").status_code == 200
    return len([query for query in captured if "benchapp_" in query["sql"]])


@pytest.mark.django_db(transaction=True)
def test_pages_are_cached_and_invalidated_in_every_cache(rows: Rows, site_with: Site, cache_url: str):
    with site_with(CACHING_PAGE_CACHE="1", CACHE_URL=cache_url):
        assert queries_of_rows() == 14
        assert queries_of_rows() == 0
        Comment.objects.create(post=rows.post, name="Zed", body="Brand new.", rating=2)
        assert queries_of_rows() == 14
        assert b"61 comments" in Client().get("/").content
        assert queries_of_rows() == 0


@pytest.mark.parametrize("kind", SERVICES)
def test_a_cache_that_is_down_breaks_no_page(
    rows: Rows, site_with: Site, socket: Path, kind: str, caplog: pytest.LogCaptureFixture
):
    with service(kind, socket) as (url, _), site_with(CACHING_PAGE_CACHE="1", CACHE_URL=url):
        assert [queries_of_rows() for _ in range(2)] == [14, 0]
        bare = Client().get("/").content
    with site_with(CACHING_PAGE_CACHE="1", CACHE_URL=url):
        assert [queries_of_rows() for _ in range(2)] == [14, 14]
        assert Client().get("/").content == bare
        assert kind != "redis" or "redis: " in caplog.text
        with service(kind, socket):
            until(lambda: queries_of_rows() == 0, "a hit")
        caches["default"].close()


def test_one_of_several_concurrent_adds_wins_in_the_file_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    looks = FileBasedCache.has_key

    def slowly(self: FileBasedCache, *args: object, **kwargs: object) -> bool:
        there = looks(self, *args, **kwargs)
        time.sleep(0.05)
        return there

    monkeypatch.setattr(FileBasedCache, "has_key", slowly)
    cache = AtomicAddFileCache(str(tmp_path / "c"), {})
    with ThreadPoolExecutor(6) as pool:
        added = list(pool.map(lambda number: cache.add("turn", number), range(6)))
    assert added.count(True) == 1
    assert cache.get("turn") == added.index(True)


@contextmanager
def hanging(process: subprocess.Popen) -> Iterator[None]:
    """A service that takes connections and sends nothing while the block lasts."""
    stop(process.pid)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.mark.servers
def test_a_redis_that_hangs_is_waited_for_once(site_with: Site, socket: Path, monkeypatch: pytest.MonkeyPatch):
    with service("redis", socket) as (url, process), site_with(CACHE_URL=url):
        caches["default"].set("a", 1)
        assert caches["default"].get("a") == 1
        with hanging(process), counted_waits(monkeypatch) as waits:
            assert [caches["default"].get("a") for _ in range(2)] == [None, None]
            assert len(waits) == 1
        until(lambda: caches["default"].get("a") == 1, "a hit")


def test_a_redis_that_takes_no_connection_is_waited_for_once(site_with: Site, monkeypatch: pytest.MonkeyPatch):
    with create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        address = full.getsockname()
        # The kernel gives no response to more connections than wait to be accepted.
        for _ in range(3):
            client = waiting.enter_context(Socket())
            client.setblocking(False)
            client.connect_ex(address)
        with site_with(CACHE_URL=f"redis://127.0.0.1:{address[1]}"), counted_waits(monkeypatch) as waits:
            assert [caches["default"].get("a") for _ in range(2)] == [None, None]
            assert len(waits) == 1


@contextmanager
def counted_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CircuitBreaker]]:
    """The vain waits for caches while the clock of their circuit breakers stands still, however slow the machine is."""
    waits: list[CircuitBreaker] = []
    trip, now = CircuitBreaker.trip, time.monotonic()

    def noted(breaker: CircuitBreaker) -> None:
        waits.append(breaker)
        trip(breaker)

    with monkeypatch.context() as patch:
        clock.change(patch, resilience, monotonic=lambda: now)
        patch.setattr(CircuitBreaker, "trip", noted)
        yield waits


@pytest.mark.servers
def test_set_many_returns_the_keys_that_a_hanging_memcached_did_not_take(socket: Path):
    client = ThreadSafeClient([f"unix:{socket}"], default_noreply=False, timeout=0.2)
    with service("memcached", socket) as (_, process):
        assert client.set_many({"a": "1", "b": "1"}) == []
        with hanging(process):
            assert sorted(client.set_many({"a": "2", "b": "2"})) == ["a", "b"]
        # It may take up an older write only now, from another connection.
        until(lambda: client.set_many({"a": "3"}) == [] and client.get("a") == b"3", "the last write")
    assert client.set_many({"a": "4"}) == ["a"]
    client.close()


@pytest.mark.servers
def test_the_first_write_after_a_restart_of_memcached_is_taken(socket: Path):
    client = ThreadSafeClient([f"unix:{socket}"], default_noreply=False)
    for number in range(2):
        with service("memcached", socket):
            assert client.set_many({"a": number}) == []
            assert client.get("a") == str(number).encode()
    client.close()


@pytest.mark.parametrize("kind", SERVICES)
@pytest.mark.django_db(transaction=True)
def test_a_hanging_cache_delays_a_page_once_and_returns_without_stale_ones(
    rows: Rows,
    site_with: Site,
    socket: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
):
    with service(kind, socket) as (url, process), site_with(CACHING_PAGE_CACHE="1", CACHE_URL=url):
        assert [queries_of_rows() for _ in range(2)] == [14, 0]
        with hanging(process):
            # Each of its many questions would wait a second for a response; a page waits for one or two of them.
            with counted_waits(monkeypatch) as waits:
                assert queries_of_rows() == 14
            assert 1 <= len(waits) <= 2
            Comment.objects.create(post=rows.post, name="Zed", body="Brand new.", rating=2)
            assert b"61 comments" in Client().get("/").content
        # A hit comes from the cache itself, which shows the write as soon as it is invalidated.
        until(lambda: not queries_of_rows() and b"61 comments" in Client().get("/").content, "a fresh hit")
        caches["default"].close()


@pytest.mark.parametrize("kind", SERVICES)
def test_an_invalidation_is_tried_while_reads_skip_a_cache_that_hung(site_with: Site, socket: Path, kind: str):
    with service(kind, socket) as (url, process), site_with(CACHING_PAGE_CACHE="1", CACHE_URL=url):
        cache = caches["default"]
        cache.set("a", 1)
        with hanging(process):
            assert cache.get("a", default=0) == 0
        assert cache.set_many({"a": 2}) == []
        until(lambda: cache.get("a") == 2, "reads again")
        cache.close()


def test_threads_that_find_memcached_down_at_once_get_nothing(tmp_path: Path):
    client = ThreadSafeClient([str(tmp_path / "m.sock")])
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(client.get, ["key"] * 400)) == [None] * 400
    assert client.set_many({"a": 1}) == ["a"]
