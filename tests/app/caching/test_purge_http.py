"""Purging a cache over HTTP, and marking a rendering across a purge."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from benchapp import views
from benchapp.caching.invalidation import StalePages, pages_invalidated
from benchapp.caching.purge import http, outdated
from tests.app.conftest import Rows

STALE = StalePages(frozenset({"/", "/posts/"}), frozenset({"/posts/5/"}))


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


def test_paths_are_purged_and_prefixes_banned(purged: tuple[str, list[tuple[str, str]]]):
    url, received = purged
    http.send(url, STALE)
    assert received == [("PURGE", "/"), ("PURGE", "/posts/"), ("BAN", "/posts/5/")]


def test_a_cache_that_is_down_is_logged(caplog: pytest.LogCaptureFixture):
    http.send("http://127.0.0.1:9/", STALE)
    assert "http://127.0.0.1:9/: " in caplog.text


def test_a_rendering_across_a_purge_is_marked(
    rows: Rows,
    site_with: Callable[..., AbstractContextManager[None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    file = tmp_path / "purged"
    with site_with(CACHING_APACHE_CACHE_GENERATION_FILE=str(file)):
        assert "X-Outdated" not in Client().get("/")
        slow = views.Home

        def written_meanwhile() -> views.Home:
            outdated.renew_generation("apache-cache")
            return slow()

        monkeypatch.setattr(views, "Home", written_meanwhile)
        assert Client().get("/")["X-Outdated"] == "1"


def test_a_streaming_response_is_marked(settings: object, tmp_path: Path):
    settings.CACHING_LAYERS = {"apache-cache": {"generation_file": tmp_path / "purged"}}
    for response, marked in ((HttpResponse("whole"), False), (StreamingHttpResponse(["in ", "pieces"]), True)):
        answer = outdated.MarkOutdated(lambda request, response=response: response)(RequestFactory().get("/"))
        assert answer.has_header("X-Outdated") is marked


def test_each_purge_is_sent_twice(
    purged: tuple[str, list[tuple[str, str]]],
    site_with: Callable[..., AbstractContextManager[None]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    later: list[Callable[[], None]] = []

    def when_the_test_says_so(seconds: float, call: Callable[..., None], *args: object) -> None:
        later.append(lambda: call(*args))

    monkeypatch.setattr(http, "later", when_the_test_says_so)
    url, received = purged
    with site_with(CACHING_VARNISH_PURGE_URL=url, CACHING_VARNISH_GENERATION_FILE=str(tmp_path / "purged")):
        pages_invalidated.send(sender=StalePages, stale=STALE)
        once = list(received)
        assert len(later) == 1
        later[0]()
    assert once and received == [*once, *once]


def full_disk(file: Path, content: bytes) -> None:
    file.touch()
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("writable", [True, False])
def test_a_full_disk_does_not_stop_a_purge(
    writable: bool, settings: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "purged"
    settings.CACHING_LAYERS = {"apache-cache": {"generation_file": file}}
    outdated.renew_generation("apache-cache")
    before = file.read_bytes()
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    if not writable:
        monkeypatch.setattr(Path, "open", lambda file, *args, **kwargs: full_disk(file, b""))
    outdated.renew_generation("apache-cache")
    monkeypatch.undo()
    # In its place, or none at all: another key for each page in both cases.
    assert (file.read_bytes() != before) if writable else not file.exists()
    assert [path.name for path in tmp_path.iterdir()] == (["purged"] if writable else [])
