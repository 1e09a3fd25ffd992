"""The WSGI middleware, called as an application server calls it."""

from __future__ import annotations

import io

import pytest

from config.wsgi_middleware import MAX_DRAINED_BYTES, NormalizeRequests, join_vary


def environ(**more):
    return {
        "REQUEST_METHOD": "GET",
        "REQUEST_URI": "/",
        "PATH_INFO": "/",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "example.org",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        **more,
    }


class Application:
    """Answers 200 with a body, and remembers what it was asked."""

    def __init__(self):
        self.asked = None
        self.closed = False

    def __call__(self, environ, start_response):
        self.asked = dict(environ)
        start_response("200 OK", [("Content-Length", "4")])
        return self

    def __iter__(self):
        return iter([b"body"])

    def close(self):
        self.closed = True


def ask(gateway, asked):
    """Status, headers and body, the answer closed as a server closes it."""
    seen = {}

    def start_response(status, headers, exc_info=None):
        seen.update(status=status, headers=dict(headers))

    answer = gateway(asked, start_response)
    body = b"".join(answer)
    if hasattr(answer, "close"):
        answer.close()
    return seen["status"], seen["headers"], body


@pytest.fixture
def application():
    return Application()


def test_a_good_request_passes(application):
    status, headers, body = ask(NormalizeRequests(application, False), environ())
    assert (status, headers["Content-Length"], body) == ("200 OK", "4", b"body")


@pytest.mark.parametrize(
    ("more", "status", "says"),
    [
        (
            {"HTTP_TRANSFER_ENCODING": "chunked"},
            "411 Length Required",
            b"send the body with Content-Length, not chunked",
        ),
        ({"HTTP_TRANSFER_ENCODING": "gzip, Chunked"}, "411 Length Required", b"not chunked"),
        ({"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": "5"}, "400 Bad Request", b"not both"),
        ({"REQUEST_URI": "/%"}, "400 Bad Request", b"two hexadecimal digits"),
        ({"REQUEST_URI": "/a%4/"}, "400 Bad Request", b"two hexadecimal digits"),
        ({"HTTP_HOST": None}, "400 Bad Request", b"needs a Host header"),
    ],
)
def test_a_broken_request_is_refused_in_one_line(application, more, status, says):
    asked = {key: value for key, value in environ(**more).items() if value is not None}
    got, headers, body = ask(NormalizeRequests(application, True), asked)
    assert got == status
    assert says in body
    assert body.count(b"\n") == 1
    assert headers["Content-Length"] == str(len(body))
    assert application.asked is None


@pytest.mark.parametrize("path", ["/%41/", "/a?b=%", "/100%25/"])
def test_good_escapes_pass(application, path):
    assert ask(NormalizeRequests(application, False), environ(REQUEST_URI=path))[0] == "200 OK"


def test_http_1_0_needs_no_host(application):
    asked = environ(SERVER_PROTOCOL="HTTP/1.0")
    del asked["HTTP_HOST"]
    assert ask(NormalizeRequests(application, False), asked)[0] == "200 OK"


def test_head_has_the_headers_and_no_body(application):
    _, headers, body = ask(NormalizeRequests(application, False), environ(REQUEST_METHOD="HEAD"))
    assert (headers["Content-Length"], body) == ("4", b"")
    assert application.closed


def test_several_lines_of_vary_become_one():
    headers = [("Vary", "Cookie"), ("Content-Length", "4"), ("vary", "*")]
    assert join_vary(headers) == [("Content-Length", "4"), ("Vary", "Cookie, *")]
    assert join_vary(headers[:2]) == headers[:2]


def test_the_unread_rest_of_a_body_is_read(application):
    asked = environ(REQUEST_METHOD="POST", CONTENT_LENGTH="300000", **{"wsgi.input": io.BytesIO(b"x" * 300_000)})
    ask(NormalizeRequests(application, False), asked)
    assert asked["wsgi.input"].read() == b""


def test_an_endless_body_is_not_read(application):
    length = MAX_DRAINED_BYTES + 1
    asked = environ(REQUEST_METHOD="POST", CONTENT_LENGTH=str(length), **{"wsgi.input": io.BytesIO(b"x")})
    ask(NormalizeRequests(application, False), asked)
    assert asked["wsgi.input"].read() == b"x"


def test_a_client_that_goes_away_while_it_is_read_is_no_error(application):
    class Gone:
        def read(self, size):
            raise OSError("client gone")

    asked = environ(REQUEST_METHOD="POST", CONTENT_LENGTH="10", **{"wsgi.input": Gone()})
    assert ask(NormalizeRequests(application, False), asked)[0] == "200 OK"


FORGED = {"HTTP_X_FORWARDED_PROTO": "https", "HTTP_X_FORWARDED_FOR": "10.0.0.1", "HTTP_X_FORWARDED_SSL": "on"}


def test_forged_headers_are_dropped_without_a_proxy(application):
    ask(NormalizeRequests(application, False), environ(**FORGED))
    assert not application.asked.keys() & FORGED.keys()


def test_the_headers_of_a_trusted_proxy_stay(application):
    ask(NormalizeRequests(application, True), environ(**FORGED))
    assert application.asked.keys() >= FORGED.keys()


@pytest.mark.parametrize(("https", "scheme"), [({}, "http"), ({"HTTPS": "on"}, "https")])
def test_a_scheme_that_uwsgi_took_from_a_forged_header_is_restored(application, https, scheme):
    asked = environ(**FORGED, **https, **{"uwsgi.version": b"2.0.30", "wsgi.url_scheme": "https"})
    ask(NormalizeRequests(application, False), asked)
    assert application.asked["wsgi.url_scheme"] == scheme
