"""Responses of the web servers' own in production: another project's files, other hosts, error pages."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import brotli
import pytest

from bench import paths
from bench.serve.project.opened import open_project
from tests.deploy.production_host import NAME, Host, plain_response_of, refused_by_servers, refused_by_systemd, serving
from tests.deploy.test_edge import FOREIGN, Response, curl
from tests.projects import write

# One instance of the servers gets all requests.
pytestmark = pytest.mark.servers

# One stack for each server that terminates TLS, and the cache that needs another server for it.
STACKS = [
    ("nginx-gunicorn", "none"),
    ("apache-modwsgi", "none"),
    ("lighttpd-fastcgi", "none"),
    ("caddy-gunicorn", "none"),
    ("haproxy-gunicorn", "none"),
    ("gunicorn", "varnish"),
]
# Those whose web server sends files.
SENDS_FILES = [
    pair for pair in STACKS if pair[0] in ("nginx-gunicorn", "apache-modwsgi", "lighttpd-fastcgi", "caddy-gunicorn")
]
DESCRIPTION = """
[project]
name = "shop"
dependencies = ["Django"]

[tool.benchapp]
health = "/health/"
public = ["/"]
"""
URLS = """
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import etag

urlpatterns = [
    path("", lambda request: HttpResponse("home")),
    path("health/", lambda request: HttpResponse(request.get_host())),
    path("large/", lambda request: HttpResponse(b"x" * 10_000_000)),
    path("typed/", lambda request: HttpResponse("typed", content_type=request.GET["type"])),
    path("tagged/", etag(lambda request: "x")(lambda request: HttpResponse("tagged " * 100))),
]
"""
TEXT = b"a { color: red }\n" * 100
HASHED = "a.0123456789ab.css"
# What is in no table of types, or only in those of some machines; test_needs.py has the types of the usual ones.
TYPES = {
    "js": ("text/javascript", "application/javascript"),
    "js.map": ("application/json", "application/octet-stream"),
    "tar.gz": ("application/gzip", "application/x-gtar-compressed", "application/octet-stream"),
    "webmanifest": ("application/manifest+json",),
}
# What others refuse before they know whose request it is, or not at all.
NGINX_AND_APACHE = (
    ((400,), "/", "--http1.1", "-H", "Content-Length: x"),
    ((414,), f"/{'x' * 9000}", "--http1.1"),
)
APACHE = (((405,), "/", "-X", "TRACE"), ((411,), "/", "--http1.1", "-H", "Transfer-Encoding: chunked", "-d", "x"))
GZIP, BROTLI = ("-H", "Accept-Encoding: gzip"), ("-H", "Accept-Encoding: gzip, br")


@pytest.fixture(scope="module", params=STACKS, ids="~".join)
def host(request, tmp_path_factory, certificate) -> Iterator[Host]:
    """A host of production's that serves TLS to everybody, with files to send."""
    stack, layer = request.param
    folder = tmp_path_factory.mktemp("web") / "shop"
    write(folder, tmp_path_factory, "SECURE_SSL_REDIRECT = True", DESCRIPTION, URLS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "STATE", folder.parent / "var")
        place = folder.parent / "host"
        place.mkdir()
        production_host = Host(stack, layer, place, certificate, open_project(folder), listener="tls", strict_sni="off")
        write_files(Path(production_host.places.static_root))
        with serving(production_host):
            yield production_host


def write_files(static: Path) -> None:
    """A file of each type, and one with the compressed ones beside it, as collectstatic makes them."""
    for ending in (*TYPES, "css", "txt"):
        (static / f"a.{ending}").write_bytes(TEXT)
    for ending, body in (("", TEXT), (".gz", gzip.compress(TEXT)), (".br", brotli.compress(TEXT))):
        (static / f"{HASHED}{ending}").write_bytes(body)
    (static / "staticfiles.json").write_text("{}")


def test_servers_and_systemd_accept_the_files_of_another_project(host):
    assert (refused_by_servers(host), refused_by_systemd(host)) == ({}, [])
    # What its servers are built from there is with them, not in the project.
    locked = (Path(host.places.conf) / "requirements-modwsgi.lock").is_file()
    assert locked == (host.stack.name == "apache-modwsgi")


def secured(response: Response) -> bool:
    headers = response.headers
    return (headers["x-content-type-options"], headers["strict-transport-security"]) == ("nosniff", "max-age=300")


files = pytest.mark.parametrize("host", SENDS_FILES, ids="~".join, indirect=True)


@files
def test_a_static_file_has_its_type_and_the_security_headers(host):
    for ending, kinds in TYPES.items():
        response = curl(host, f"/static/a.{ending}")
        assert response.status == 200 and secured(response)
        assert response.headers["content-type"].partition(";")[0] in kinds


@files
@pytest.mark.parametrize("ending", ["css", "js", "txt"])
def test_a_static_text_file_is_in_utf8(host, ending):
    kind = curl(host, f"/static/a.{ending}").headers["content-type"]
    assert kind.lower().partition("charset=")[2] == "utf-8"


@pytest.mark.parametrize("named", ["text/html", "text/plain", "text/css", "text/html; charset=iso-8859-1"])
def test_a_response_of_the_application_keeps_the_type_that_it_names(host, named):
    response = curl(host, f"/typed/?type={quote(named)}")
    assert (response.status, response.headers["content-type"]) == (200, named)


@files
@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("br, gzip", "br"),
        ("gzip, br;q=0", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("gzip;q=0, deflate", None),
        ("brotli, xgzip", None),
        ("", None),
    ],
)
def test_a_file_that_was_compressed_ahead_is_sent_to_who_takes_it(host, accepted, coding):
    accepts = ("-H", f"Accept-Encoding: {accepted}")
    response = curl(host, f"/static/{HASHED}", *accepts)
    assert (response.status, response.headers.get("content-encoding")) == (200, coding)
    assert {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}[coding](response.body) == TEXT
    assert response.headers["content-type"].startswith("text/css")
    assert curl(host, f"/static/{HASHED}", *accepts, "-H", f"If-None-Match: {response.headers['etag']}").status == 304


@files
def test_a_compressed_file_that_is_named_is_a_file(host):
    response = curl(host, f"/static/{HASHED}.gz", *GZIP)
    assert "content-encoding" not in response.headers
    assert gzip.decompress(response.body) == TEXT


@files
@pytest.mark.parametrize("accepts", [(), GZIP, BROTLI], ids=["plain", "gzip", "br"])
def test_several_ranges_are_one_response_with_one_type(host, accepts, tmp_path):
    """Of several parts, or one that has them all, or the whole file."""
    head = tmp_path / "head"
    curl(host, f"/static/{HASHED}", "--http1.1", "-r", "0-1,5-6", "-D", str(head), *accepts)
    types = [line for line in head.read_text().lower().splitlines() if line.startswith("content-type:")]
    assert head.read_text().split()[1] in ("200", "206")
    assert len(types) == 1 and ("multipart/byteranges" in types[0] or "text/css" in types[0])


@files
def test_its_own_error_pages_have_the_security_headers_and_are_not_cached(host):
    for statuses, path, *words in (
        ((404,), "/static/nosuch.0123456789ab.css"),
        ((403, 404), "/static/staticfiles.json"),
        ((400,), "/", "-H", f"Host: {FOREIGN}"),
        ((413,), "/", "--http1.1", "-X", "POST", "-H", "Content-Length: 999999999"),
        *(NGINX_AND_APACHE if host.case.servers[-1].name in ("nginx", "apache") else ()),
        *(APACHE if host.case.servers[-1].name == "apache" else ()),
    ):
        response = curl(host, path, *words)
        assert response.status in statuses, path
        assert secured(response), path
        assert "max-age" not in response.headers.get("cache-control", "")


def test_clients_that_do_not_read_hold_no_worker(host):
    """More of them than the site has threads; one less if the stack declares that so many stop it."""
    threads = host.case.threads
    slow_clients = threads - 1 if "slow-readers" in host.case.breaks else threads + 1
    with contextlib.ExitStack() as opened:
        for _ in range(slow_clients):
            plain = opened.enter_context(socket.create_connection(("127.0.0.1", host.places.port)))
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            context = ssl._create_unverified_context()
            slow = opened.enter_context(context.wrap_socket(plain, server_hostname=NAME))
            slow.sendall(f"GET /large/ HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
            assert slow.recv(100).startswith(b"HTTP/1.1 200")
        begun = time.monotonic()
        assert curl(host, "/health/").status == 200
        assert time.monotonic() - begun < 10


def test_only_health_gets_a_response_whatever_the_host(host):
    """The application gets a name that it knows; what is refused has the headers that every response has."""
    for name in ("10.1.2.3", "10.1.2.3:8000", FOREIGN, f"{NAME}.{FOREIGN}"):
        response = curl(host, "/health/", "-H", f"Host: {name}")
        assert (response.status, response.body.decode()) == (200, NAME)
        for path in ("/", "/static/a.css", "/health/x"):
            response = curl(host, path, "-H", f"Host: {name}")
            assert response.status == 400 and secured(response)
        assert plain_response_of(host, "/", name) == (400, None)
        # Although the project redirects plain HTTP.
        assert plain_response_of(host, "/health/", name) == (200, None)


def test_an_offer_of_http2_is_made_in_the_handshake_only(host):
    assert curl(host, "/health/", "--http2").version == "HTTP/2"
    response = curl(host, "/health/", "--http1.1", "-H", "Connection: Upgrade", "-H", "Upgrade: h2")
    assert (response.status, response.version, response.headers.get("upgrade")) == (200, "HTTP/1.1", None)


def test_a_redirect_over_plain_http_does_not_speak_of_https_only(host):
    connection = http.client.HTTPConnection("127.0.0.1", host.http_port, timeout=30)
    connection.request("GET", "/", headers={"Host": NAME})
    response = connection.getresponse()
    connection.close()
    assert (response.status, response.getheader("Strict-Transport-Security")) == (301, None)


def test_a_compressed_page_with_an_etag_is_not_sent_again(host):
    page = curl(host, "/tagged/", *GZIP)
    # The others leave it to the project, or do not touch what has an ETag.
    compresses = host.case.servers[-1].name in ("nginx", "apache", "caddy", "haproxy")
    assert (page.status, page.headers.get("content-encoding")) == (200, "gzip" if compresses else None)
    assert curl(host, "/tagged/", *GZIP, "-H", f"If-None-Match: {page.headers['etag']}").status == 304


def test_caddy_names_only_itself(host):
    if host.case.servers[-1].name == "caddy":
        assert curl(host, "/").headers["server"] == "Caddy"
