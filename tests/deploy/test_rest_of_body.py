"""The file by which granian calls the application: the client never loses a response to a body that nobody reads."""

from __future__ import annotations

import io
import sys
from types import ModuleType
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from bench.serve.catalog.server import SERVERS

LIMIT_MB = 1
MB = 1048576


class Echo:
    """A response with the first bytes of the body, read when the response is sent."""

    def __init__(self, environ) -> None:
        self.environ, self.closed = environ, False

    def __iter__(self):
        yield self.environ["wsgi.input"].read(4)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def post(monkeypatch):
    """Call the file with a body for a project that echoes 4 bytes; return the echo, the rest, and the response."""

    def call(body: bytes, **headers: str) -> tuple[bytes, bytes, Echo]:
        made = []

        def project(environ, start_response):
            start_response("403 Forbidden", [("Content-Type", "text/plain")])
            made.append(Echo(environ))
            return made[0]

        module = ModuleType("their_wsgi")
        module.app = project
        monkeypatch.setitem(sys.modules, "their_wsgi", module)
        source = (SERVERS / "granian" / "rest_of_body.py.j2").read_text("utf-8")
        names = {"wsgi_module": "their_wsgi", "wsgi_name": "app", "max_body_mb * 1048576": str(LIMIT_MB * MB)}
        for name, value in names.items():
            source = source.replace(f"{{{{ {name} }}}}", value)
        served: dict = {}
        exec(source, served)

        unread = io.BytesIO(body)
        environ = {"REQUEST_METHOD": "POST", "QUERY_STRING": "", "wsgi.input": unread, **headers}
        setup_testing_defaults(environ)
        pieces = validator(served["application"])(environ, lambda *arguments: bytes)
        echo = b"".join(pieces)
        pieces.close()
        return echo, unread.read(), made[0]

    return call


@pytest.mark.parametrize("headers", [{"CONTENT_LENGTH": "9"}, {"HTTP_TRANSFER_ENCODING": "chunked"}])
def test_the_rest_of_a_body_is_read_after_the_response_is_made(post, headers):
    echo, rest, response = post(b"body and ", **headers)
    assert (echo, rest) == (b"body", b"")
    assert response.closed


def test_a_body_is_read_up_to_the_limit(post):
    _, rest, _ = post(bytes(2 * LIMIT_MB * MB), CONTENT_LENGTH=str(2 * LIMIT_MB * MB))
    assert 0 < len(rest) < LIMIT_MB * MB


def test_nothing_is_read_for_a_request_without_a_body(post):
    echo, rest, response = post(b"next request")
    assert (echo, rest) == (b"next", b" request")
    assert response.closed
