"""The file by which servers that would send the body of a response to HEAD call the application."""

from __future__ import annotations

import sys
from types import ModuleType
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from bench.serve.catalog.server import SERVERS

HEADERS = [("Content-Type", "text/plain"), ("Content-Length", "9")]


class Pieces:
    """A body that notes which of its pieces were made, and that it was closed."""

    def __init__(self, begin) -> None:
        self.begin, self.left, self.closed = begin, [b"pie", b"ces", b"..."], False

    def __iter__(self):
        return self

    def __next__(self) -> bytes:
        self.begin()
        if not self.left:
            raise StopIteration
        return self.left.pop(0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def called(monkeypatch):
    """Call the file with a project that sends its headers at once, or with its first piece."""

    def call(method: str, *, late: bool) -> tuple[list, bytes, Pieces]:
        bodies, started = [], []

        def project(environ, start_response):
            sent = []

            def begin() -> None:
                if not sent:
                    sent.append(start_response("200 OK", HEADERS))

            if not late:
                begin()
            bodies.append(Pieces(begin))
            return bodies[0]

        module = ModuleType("their_wsgi")
        module.app = project
        monkeypatch.setitem(sys.modules, "their_wsgi", module)
        source = (SERVERS / "without_body.py.j2").read_text("utf-8")
        names: dict = {}
        exec(source.replace("{{ wsgi_module }}", "their_wsgi").replace("{{ wsgi_name }}", "app"), names)
        environ = {"REQUEST_METHOD": method, "QUERY_STRING": ""}
        setup_testing_defaults(environ)
        pieces = validator(names["application"])(environ, lambda *arguments: started.append(arguments[:2]) or bytes)
        body = b"".join(pieces)
        pieces.close()
        return started, body, bodies[0]

    return call


@pytest.mark.parametrize("late", [False, True], ids=["headers at once", "headers with the first piece"])
def test_a_response_to_head_has_the_headers_of_get_and_is_not_made(called, late):
    assert called("GET", late=late)[:2] == ([("200 OK", HEADERS)], b"pieces...")

    started, body, pieces = called("HEAD", late=late)
    assert (started, body) == ([("200 OK", HEADERS)], b"")
    assert pieces.closed
    assert len(pieces.left) == (2 if late else 3)
