"""The file by which granian calls the application: the client never loses a response to a body that nobody reads."""

from __future__ import annotations

import io
import sys
from types import ModuleType
from wsgiref.util import setup_testing_defaults

import pytest

from bench.serve.catalog.server import SERVERS

LIMIT_MB = 1
MB = 1048576


class Response:
    """A response that is not read from the body, or a stream of its first bytes."""

    def __init__(self, environ, streaming: bool) -> None:
        self.environ, self.streaming = environ, streaming

    def __iter__(self):
        yield self.environ["wsgi.input"].read(4) if self.streaming else b"no"


@pytest.fixture
def post(monkeypatch):
    """Call the file with a body; return the response, and what of the body is left when it is sent."""

    def call(body: bytes, *, streaming: bool = False, **headers: str) -> tuple[bytes, bytes]:
        def project(environ, start_response):
            start_response("403 Forbidden", [("Content-Type", "text/plain")])
            return Response(environ, streaming)

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
        response = served["application"](environ, lambda *arguments: bytes)
        left = body[unread.tell() :]
        return b"".join(response), left

    return call


@pytest.mark.parametrize("headers", [{"CONTENT_LENGTH": "8"}, {"HTTP_TRANSFER_ENCODING": "chunked"}])
def test_the_rest_of_a_body_is_read_before_the_response_is_sent(post, headers):
    assert post(b"any body", **headers) == (b"no", b"")


def test_a_stream_may_be_made_from_the_body(post):
    assert post(b"body and", streaming=True, CONTENT_LENGTH="8") == (b"body", b"body and")


def test_a_body_is_read_up_to_the_limit(post):
    _, left = post(bytes(2 * LIMIT_MB * MB), CONTENT_LENGTH=str(2 * LIMIT_MB * MB))
    assert len(left) == LIMIT_MB * MB


def test_nothing_is_read_for_a_request_without_a_body(post):
    assert post(b"next request") == (b"no", b"next request")
