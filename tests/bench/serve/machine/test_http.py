"""Pages fetched by the instrument's HTTP client; tests of `verify` have its other requests and responses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.serve.machine import http
from bench.serve.machine.ports import free_port


class Pages(BaseHTTPRequestHandler):
    """A page at /, for a client that ends its connection; another path cuts its response, or has none."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200 if self.path in ("/", "/cut") else 404)
        self.send_header("Content-Length", "20" if self.path == "/cut" else "4")
        self.send_header("X-Connection", self.headers["Connection"])
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_page_has_its_body_and_its_headers(url):
    assert http.get(url, "/") == b"page"
    assert http.page(url, "/").header("x-connection") == "close"


@pytest.mark.parametrize(
    ("path", "message"),
    [("/gone", "GET /gone: status 404, not 200"), ("/cut", "GET /cut: not a complete HTTP response: ")],
)
def test_a_wrong_or_broken_response_is_one_line(url, path, message):
    with pytest.raises(http.VisitError) as error:
        http.page(url, path)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_a_status_is_none_without_a_response(url):
    assert http.status(url, "/gone") == 404
    assert http.status(f"http://127.0.0.1:{free_port()}", "/") is None
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert http.status(silent_url, "/", 0.1) is None
        with pytest.raises(http.VisitError, match=r"^GET /: no response in 0.1 s$"):
            http.visit(http.Target.parse(silent_url), "/", 0.1)
