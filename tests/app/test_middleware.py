"""Bodies, addresses and headers between the web server and the views."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from benchapp.middleware import MAX_DRAINED_BYTES, Compression, well_formed
from benchapp.serving.client_address import any_host_for_health, no_forwarding, real_address, whole_path
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


def test_an_answer_to_head_has_headers_alone_in_any_project():
    page = at_once(lambda _: HttpResponse("page", headers={"Content-Length": "4"}))
    head = page(RequestFactory().head("/"))
    assert (head.content, head["Content-Length"]) == (b"", "4")
    assert page(RequestFactory().get("/")).content == b"page"
    stream = at_once(lambda _: StreamingHttpResponse(iter([b"first", b"second"])))
    assert list(stream(RequestFactory().head("/"))) == []
    assert list(stream(RequestFactory().get("/"))) == [b"first", b"second"]


def served(method: str = "GET", body: object = b"", **meta: str) -> tuple[int, str, object]:
    """Status and text of the answer to a request as a server hands it over, and what is left of its body."""
    stream = io.BytesIO(body) if isinstance(body, bytes) else body
    environ = {"REQUEST_URI": "/", "HTTP_HOST": "example.org", "CONTENT_LENGTH": "0", **meta, "wsgi.input": stream}
    request = RequestFactory().generic(
        method, "/", **{name: text for name, text in environ.items() if text is not None}
    )
    response = well_formed(reached)(request)
    return response.status_code, response.content.decode(), stream


@pytest.mark.parametrize(
    ("meta", "status", "says"),
    [
        ({"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}, 411, "not chunked"),
        ({"HTTP_TRANSFER_ENCODING": "gzip, Chunked", "CONTENT_LENGTH": ""}, 411, "not chunked"),
        ({"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": "5"}, 400, "not both"),
        ({"REQUEST_URI": "/%"}, 400, "two hexadecimal digits"),
        ({"REQUEST_URI": "/a%4/"}, 400, "two hexadecimal digits"),
        ({"HTTP_HOST": None}, 400, "needs a Host header"),
        ({"HTTP_HOST": None, "SERVER_PROTOCOL": "HTTP/1.0"}, 200, "reached"),
        *(({"REQUEST_URI": path}, 200, "reached") for path in ("/%41/", "/a?b=%", "/100%25/")),
    ],
)
def test_a_malformed_request_is_refused_in_one_line(meta: dict[str, str], status: int, says: str):
    got, text, _ = served(**meta)
    assert (got, text.count("\n")) == (status, 0 if status == 200 else 1)
    assert says in text


def test_several_lines_of_vary_become_one():
    class Twice(HttpResponse):
        def items(self) -> list[tuple[str, str]]:
            return [*super().items(), ("Vary", "*")]

    response = well_formed(lambda request: Twice(headers={"Vary": "Cookie"}))(RequestFactory().get("/", HTTP_HOST="x"))
    assert [value for name, value in response.items() if name == "Vary"] == ["Cookie, *"]


def test_head_has_no_body():
    assert served("HEAD")[:2] == (200, "")


def test_the_unread_rest_of_a_body_is_read_but_not_an_endless_one():
    assert served("POST", b"x" * 300_000, CONTENT_LENGTH="300000")[2].read() == b""
    assert served("POST", b"x", CONTENT_LENGTH=str(MAX_DRAINED_BYTES + 1))[2].read() == b"x"


def test_a_client_that_goes_away_while_it_is_read_is_no_error():
    class Gone(io.BytesIO):
        def read(self, size: int) -> bytes:
            raise OSError("client gone")

    assert served("POST", Gone(), CONTENT_LENGTH="10")[0] == 200


@pytest.mark.parametrize(("https", "secure"), [({}, False), ({"HTTPS": "on"}, True)])
def test_a_scheme_that_uwsgi_took_from_a_forged_header_is_not_believed(https: dict[str, str], secure: bool):
    request = RequestFactory().get("/", **https, **{"uwsgi.version": b"2.0.30", "wsgi.url_scheme": "https"})
    no_forwarding(reached)(request)
    assert request.is_secure() is secure


@pytest.mark.parametrize(("uri", "status"), [("/%", 400), ("/%zz/?a=1", 400), ("/%41%c3%a9/?a=%", 200), ("", 200)])
def test_a_path_of_which_uwsgi_drops_a_part_is_refused(uri: str, status: int):
    request = RequestFactory().get("/", REQUEST_URI=uri, **{"uwsgi.version": b"2.0.30"})
    assert whole_path(reached)(request).status_code == status


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
def test_headers_of_a_proxy_are_trusted_where_there_is_one(
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
def test_health_is_asked_by_address(client: Client, site_with: Site, db: None, host: str, path: str, status: int):
    with site_with(ALLOWED_HOSTS=".example.org", BENCHAPP_HTTPS="1"):
        assert client.get(path, headers={"Host": host}).status_code == status


def test_a_health_check_has_a_host_that_the_projects_own_middleware_knows(rf, settings):
    settings.BENCHAPP_HEALTH_PATHS, settings.BENCHAPP_OWN_HOSTS = ("/up/",), ["shop.example"]
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    asked = any_host_for_health(lambda request: (request.META["HTTP_HOST"], request.get_host()))
    assert asked(rf.get("/up/", headers={"host": "127.0.0.1:8000"})) == ("shop.example", "shop.example")
    assert asked(rf.get("/", headers={"host": "127.0.0.1:8000"})) == ("127.0.0.1:8000", "127.0.0.1:8000")


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
