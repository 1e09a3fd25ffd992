"""Caches of other programs: what they are told to store, and purging them over HTTP."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.test import Client

from benchapp.caching.external import cacheable_header, http
from benchapp.caching.invalidation import StalePages, pages_invalidated
from tests.app.caching.layers import OUTSIDE, ActiveLayer, rendering
from tests.app.conftest import Rows

Layers = Callable[[str], AbstractContextManager[ActiveLayer]]
STALE = StalePages(frozenset({"/", "/posts/"}), frozenset({"/posts/5/"}))
NGINX = "s-maxage=30, stale-while-revalidate=30, stale-if-error=30"


@pytest.fixture
def purged() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server that records the purges, with its URL."""
    received: list[tuple[str, str]] = []

    class Cache(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def note(self) -> None:
            received.append((self.command, self.path))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PURGE = do_BAN = note

        def log_message(self, *args: object) -> None:
            """Nothing to standard error."""

    with HTTPServer(("127.0.0.1", 0), Cache) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", received
        server.shutdown()
        thread.join()


def test_paths_are_purged_and_prefixes_banned_whatever_their_names(purged: tuple[str, list[tuple[str, str]]]):
    url, received = purged
    http.send(url, StalePages(frozenset({"/", "/caf\u00e9/"}), frozenset({"/a'b/", "/\u00fcber/", "/z/"})))
    assert received == [("PURGE", "/"), ("PURGE", "/caf%C3%A9/"), ("BAN", "/%C3%BCber/"), ("BAN", "/z/")]


def test_a_cache_that_is_down_is_logged(caplog: pytest.LogCaptureFixture):
    http.send("http://127.0.0.1:9/", STALE)
    assert "http://127.0.0.1:9/: " in caplog.text


@pytest.mark.parametrize("left", [{"f_bavail": 0}, {"f_favail": 0}])
def test_on_a_full_disk_nginx_gets_nothing_to_cache(
    rows: Rows, active_layer: Callable, monkeypatch, left: dict[str, int]
):
    free = {"f_bavail": 10**6, "f_frsize": 4096, "f_files": 10**6, "f_favail": 10**6}
    with active_layer("nginx-microcache"):
        monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**free | left))
        assert not {cacheable_header.MARK, "Cache-Control"} & set(Client().get("/").headers)
        # A file system without a limit of files counts none.
        monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**free | {"f_files": 0, "f_favail": 0}))
        assert Client().get("/").headers["Cache-Control"] == NGINX


@pytest.mark.parametrize(
    ("control", "stored"), [("max-age=600", False), ("public, Max-Age=600", False), ("s-maxage=600", True)]
)
def test_nginx_gets_no_page_whose_age_a_browser_would_have_to_know(active_layer: Layers, control: str, stored: bool):
    with active_layer("nginx-microcache") as layer:
        assert layer.stores(rendering({"Cache-Control": control})) is stored
    with active_layer("varnish") as layer:
        assert layer.stores(rendering({"Cache-Control": control}))


def test_each_purge_is_sent_twice(
    purged: tuple[str, list[tuple[str, str]]],
    site_with: Callable[..., AbstractContextManager[None]],
    scheduled: list[Callable],
    tmp_path: Path,
):
    url, received = purged
    with site_with(CACHING_VARNISH_PURGE_URL=url, CACHING_VARNISH_GENERATION_FILE=str(tmp_path / "purged")):
        pages_invalidated.send(sender=StalePages, stale=STALE)
        once = list(received)
        (second,) = scheduled
        second()
    assert once and received == [*once, *once]


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room only for the words that are there."""
    there = os.open

    def opened(file: Path, flags: int, *mode: int) -> int:
        return there("/dev/full" if "purged" in str(file) else file, flags, *mode)

    monkeypatch.setattr(cacheable_header.os, "open", opened)


def test_a_generation_is_renewed_in_place_or_removed(settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "purged"
    settings.CACHING_LAYERS = {"apache-cache": {"generation_file": file}}
    cacheable_header.renew_generation("apache-cache")
    before, inode = file.read_bytes(), file.stat().st_ino
    cacheable_header.renew_generation("apache-cache")
    # In its place, for which a full disk has room.
    assert len(before) == len(file.read_bytes()) and before != file.read_bytes()
    assert (file.stat().st_ino, list(tmp_path.iterdir())) == (inode, [file])
    full_disk(monkeypatch)
    cacheable_header.renew_generation("apache-cache")
    assert not file.exists(), "another key for each page, too"


@pytest.mark.parametrize("name", OUTSIDE)
def test_if_no_generation_can_be_written_nothing_is_marked(rows: Rows, active_layer: Layers, name: str, monkeypatch):
    with active_layer(name):
        full_disk(monkeypatch)
        assert cacheable_header.MARK not in Client().get("/")
        monkeypatch.undo()
        assert Client().get("/")[cacheable_header.MARK] == "1"
