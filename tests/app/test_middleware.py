"""Bodies, addresses and headers between the web server and the views."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from django.db.utils import ConnectionHandler
from django.http import BadHeaderError, HttpRequest, HttpResponse, StreamingHttpResponse
from django.middleware.csrf import CsrfViewMiddleware, get_token
from django.test import Client, RequestFactory

from benchapp.middleware import Compression
from benchapp.serving.client_address import any_host_for_health, real_address
from benchapp.serving.header_lines import sound
from benchapp.serving.health import own_checks
from benchapp.serving.sessions import private_sessions
from benchapp.serving.streaming import at_once

Site = Callable[..., AbstractContextManager[None]]


def reached(request: HttpRequest) -> HttpResponse:
    return HttpResponse("reached")


def test_pages_are_compressed_and_pieces_of_a_stream_are_passed_on_at_once():
    request = RequestFactory().get("/", headers={"Accept-Encoding": "gzip"})
    page = Compression(lambda _: HttpResponse("page" * 100))(request)
    assert page["Content-Encoding"] == "gzip"
    stream = Compression(lambda _: StreamingHttpResponse(iter([b"first", b"second"])))(request)
    assert list(stream) == [b"first", b"second"]


def test_over_wsgi_a_stream_is_not_made_for_head():
    started = []

    def pieces() -> Iterator[bytes]:
        started.append("synchronous")
        yield b"piece"

    async def asynchronous_pieces() -> AsyncIterator[bytes]:
        started.append("asynchronous")
        yield b"piece"

    for stream in (pieces, asynchronous_pieces):
        page = at_once(lambda _, stream=stream: StreamingHttpResponse(stream()))
        assert list(page(RequestFactory().head("/"))) == started == []
    page = at_once(lambda _: StreamingHttpResponse(asynchronous_pieces()))
    assert list(page(RequestFactory().get("/"))) == [b"piece"]


def test_the_site_repairs_no_request_of_a_server(client: Client, site_with: Site, db: None):
    """A request that servers differ about gets what Django makes of it; the servers' own files refuse it."""
    with site_with(BENCHAPP_SERVER="wsgi"):
        chunked = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
        assert client.get("/posts/", **chunked).status_code == 200
        assert client.get("/posts/", REQUEST_URI="/posts/%").status_code == 200


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        (" 2001:db8::1 ", "2001:db8::1"),
        ("", "from-socket"),
        ("203.0.113.9, 10.0.0.1", "from-socket"),
        ("<script>", "from-socket"),
    ],
)
def test_real_address_replaces_the_peer_when_it_is_one(header: str, expected: str):
    request = RequestFactory().get("/", headers={"X-Real-IP": header}, REMOTE_ADDR="from-socket")
    real_address(reached)(request)
    assert request.META["REMOTE_ADDR"] == expected


@pytest.mark.parametrize(
    ("variables", "seen"),
    [({}, (False, "127.0.0.1")), ({"BENCHAPP_BEHIND_PROXY": "1"}, (True, "203.0.113.9"))],
)
def test_headers_of_a_proxy_are_trusted_if_there_is_one(
    client: Client, site_with: Site, db: None, variables: dict[str, str], seen: tuple[bool, str]
):
    forwarded = {"X-Forwarded-Proto": "https", "X-Real-IP": "203.0.113.9", "X-Forwarded-Host": "evil.example"}
    with site_with(**variables):
        request = client.get("/posts/", headers={"Host": "testserver", **forwarded}).wsgi_request
        assert (request.is_secure(), request.META["REMOTE_ADDR"]) == seen
        assert request.get_host() == "testserver"


@pytest.mark.parametrize(
    ("peer", "named", "client_is"),
    [
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "192.0.2.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9:17085, 10.0.0.2:80", "203.0.113.9"),
        ("10.0.0.1", "[2001:db8:1::9]:443", "2001:db8:1::9"),
        ("10.0.0.1", "2001:db8:1::9", "2001:db8:1::9"),
        ("10.0.0.1", "[nonsense", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("203.0.113.7", "192.0.2.1", "203.0.113.7"),
        ("2001:db8::1", "192.0.2.1", "192.0.2.1"),
    ],
)
def test_a_balancer_names_the_client(client: Client, site_with: Site, db: None, peer: str, named: str, client_is: str):
    headers = {"X-Forwarded-For": named, "X-Forwarded-Proto": "https"}
    with site_with(BENCHAPP_TRUSTED_PROXIES="10.0.0.0/8 2001:db8::/64"):
        request = client.get("/posts/", headers=headers, REMOTE_ADDR=peer).wsgi_request
        assert request.META["REMOTE_ADDR"] == client_is
        assert request.is_secure() == (peer != "203.0.113.7")


def test_the_access_log_has_a_line_a_request(client: Client, site_with: Site, db: None, caplog):
    headers = {"Host": "testserver", "User-Agent": 'a"b\nc' + "x" * 5000, "Referer": "-"}
    with site_with(BENCHAPP_ACCESS_LOG="1"), caplog.at_level(logging.INFO, "benchapp.access"):
        logging.getLogger("benchapp.access").addHandler(caplog.handler)
        client.get("/healthz?a=b", headers=headers)
        logging.getLogger("benchapp.access").removeHandler(caplog.handler)
    (line,) = (record.getMessage() for record in caplog.records)
    start, _, rest = line.partition('"')
    assert re.fullmatch(r"127\.0\.0\.1 - - \[[^]]+ \+0000\] ", start)
    assert re.fullmatch(
        r'GET /healthz\?a=b HTTP/1\.1" 200 3 "-" "a\'b\\ncx+" testserver [0-9a-f]{32} \d+',
        rest,
    )
    assert len(line) < 500


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("10.0.0.1", "/healthz", 200),
        ("[::1]:8000", "/healthz", 200),
        ("10.0.0.1:80", "/readyz", 200),
        ("other.example", "/healthz", 200),
        ("10.0.0.1", "/posts/", 400),
    ],
)
def test_health_is_requested_by_address(client: Client, site_with: Site, db: None, host: str, path: str, status: int):
    with site_with(ALLOWED_HOSTS=".example.org", BENCHAPP_HTTPS="1"):
        assert client.get(path, headers={"Host": host}).status_code == status


def test_a_health_check_has_a_host_that_the_projects_own_middleware_knows(rf, settings):
    settings.BENCHAPP_HEALTH_PATHS, settings.BENCHAPP_OWN_HOSTS = ("/up/",), ["shop.example"]
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    hosts_of = any_host_for_health(lambda request: (request.META["HTTP_HOST"], request.get_host()))
    assert hosts_of(rf.get("/up/", headers={"host": "127.0.0.1:8000"})) == ("shop.example", "shop.example")
    assert hosts_of(rf.get("/", headers={"host": "127.0.0.1:8000"})) == ("127.0.0.1:8000", "127.0.0.1:8000")


def test_plain_http_is_sent_to_https_in_production_except_the_health_check(client: Client, site_with: Site, db: None):
    with site_with(BENCHAPP_HTTPS="1", BENCHAPP_BEHIND_PROXY="1"):
        response = client.get("/posts/")
        assert (response.status_code, response["Location"]) == (301, "https://testserver/posts/")
        assert client.get("/healthz").status_code == 200
        response = client.get("/login/", headers={"X-Forwarded-Proto": "https"})
        assert response["Strict-Transport-Security"].startswith("max-age=")
        assert response.cookies["csrftoken"]["secure"]


def test_pages_obey_their_own_content_security_policy(client: Client, db: None):
    for path in ["/", "/posts/", "/login/", "/nowhere/"]:
        html = client.get(path).content.decode()
        assert "style=" not in html
        assert "<style" not in html
        assert "<script>" not in html
        assert " on" not in [attribute[:3] for attribute in html.split("=")]


@pytest.mark.parametrize(
    ("host", "proto", "port"),
    [
        ("example.org:8443", "https", "8443"),
        ("example.org", "https", "443"),
        ("example.org", "http", "80"),
        ("[::1]:8000", "http", "8000"),
        ("[::1]", "http", "80"),
    ],
)
def test_the_port_is_the_one_the_client_used(host: str, proto: str, port: str):
    headers = {"Host": host, "X-Forwarded-Proto": proto}
    request = RequestFactory().get("/", headers=headers, SERVER_PORT="")
    real_address(reached)(request)
    assert request.get_port() == port


@pytest.mark.parametrize("control", ["", "public, max-age=600"])
def test_a_response_that_sets_a_cookie_is_private_to_caches_that_only_look_at_the_url(control: str):
    def view(request: HttpRequest) -> HttpResponse:
        if request.path == "/form/":
            get_token(request)
        return HttpResponse("x", headers={"Cache-Control": control} if control else {})

    laid = private_sessions(CsrfViewMiddleware(view))
    cache_control = laid(RequestFactory().get("/form/"))["Cache-Control"]
    assert "private" in cache_control and "public" not in cache_control
    assert laid(RequestFactory().get("/page/")).get("Cache-Control", "") == control


class WithLine(HttpResponse):
    """A response that brings a line past Django."""

    def __init__(self, name: str, value: str):
        super().__init__("page")
        self.line = (name, value)

    def items(self) -> list[tuple[str, str]]:
        return [*super().items(), self.line]


@pytest.mark.parametrize(
    "line",
    [
        *(
            ("X-A", f"a{odd}b")
            for odd in ("\0", "\1", "\r", "\n", "\r\nX-B: b", "\r\n b", "\x1b", "\x7f", "\u4f60", "\udc80")
        ),
        *((name, "a") for name in ("", "X A", "X\nA", "X:A", "X\0", "X\xe9")),
    ],
)
def test_a_header_that_no_server_may_send_is_an_error(line: tuple[str, str]):
    async def page(request: HttpRequest) -> HttpResponse:
        return WithLine(*line)

    with pytest.raises(BadHeaderError):
        sound(lambda _: WithLine(*line))(RequestFactory().get("/"))
    with pytest.raises(BadHeaderError):
        asyncio.run(sound(page)(RequestFactory().get("/")))


def with_split_reason(request: HttpRequest) -> HttpResponse:
    # Later versions of Django refuse it themselves.
    return HttpResponse(reason="OK\r\nX-B: b")


def with_split_cookie(request: HttpRequest) -> HttpResponse:
    response = HttpResponse()
    response.cookies["a"] = "b"
    response.cookies["a"]["path"] = "/\r\nX-B: b"
    return response


@pytest.mark.parametrize("view", [with_split_reason, with_split_cookie])
def test_neither_is_a_reason_or_a_cookie_that_no_server_may_send(view: Callable[[HttpRequest], HttpResponse]):
    with pytest.raises(BadHeaderError):
        sound(view)(RequestFactory().get("/"))


def test_unusual_headers_pass():
    page = HttpResponse("page", headers={"X-A": "a\tb", "X-B": "caf\xe9", "X-C": "", "X-Empty": " "})
    bare = HttpResponse(status=204)
    del bare["Content-Type"]
    for response in (page, bare):
        assert sound(lambda _, response=response: response)(RequestFactory().get("/")) is response


def test_a_project_without_health_pages_has_checks(settings, db, monkeypatch):
    settings.BENCHAPP_OWN_CHECKS = ("/.health", "/.ready")
    middleware = own_checks(reached)

    def statuses() -> list[int]:
        return [middleware(RequestFactory().get(path)).status_code for path in ("/.health", "/.ready")]

    assert statuses() == [200, 200]
    assert middleware(RequestFactory().get("/.ready/")).content == b"reached"
    sqlite = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/nonexistent/file"}}
    monkeypatch.setattr("benchapp.serving.health.connection", ConnectionHandler(sqlite)["default"])
    assert statuses() == [200, 503]
    monkeypatch.setattr("benchapp.serving.health.connection", ConnectionHandler({"default": {}})["default"])
    assert statuses() == [200, 200]
