"""What Caddy, HAProxy and Varnish answer in production themselves, and how they pass a project's stream on."""

from __future__ import annotations

import http.client
import time
import zlib
from pathlib import Path

import pytest

from bench.project.under_test import open_project
from bench.serve import deployment
from tests.cases import resolved
from tests.deploy.production_host import NAME, Host, SecureConnection, ask_plain, make_certificate, serving
from tests.deploy.running import ONE, get, runnable
from tests.deploy.test_edge import FOREIGN, SECURE, curl

pytestmark = pytest.mark.servers

SAID = """
[tool.benchapp]
health = "/health/"
public = ["/", "/events/"]
"""
URLS = """
import time

from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path


def pieces():
    for number in range(6):
        yield f"data: {number}\\n\\n" * 40
        time.sleep(0.3)


urlpatterns = [
    path("", lambda request: HttpResponse("home")),
    path("health/", lambda request: HttpResponse(request.get_host())),
    path("events/", lambda request: StreamingHttpResponse(pieces(), content_type="text/event-stream")),
]
"""
# What is in no table of types, or in those of some machines alone.
STATIC_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "js.br": "application/octet-stream",
    "js.gz": "application/gzip",
    "js.map": "application/json",
    "webmanifest": "application/manifest+json",
}


@pytest.mark.usefixtures("own_var")
@pytest.mark.parametrize(
    ("stack", "layer", "listener"),
    [("caddy-gunicorn", "none", "tls"), ("haproxy-gunicorn", "none", "tls"), ("gunicorn", "varnish", "behind")],
)
def test_a_front_in_production(new_project, tmp_path, stack, layer, listener):
    folder = new_project(said=SAID)
    (folder / "shop" / "urls.py").write_text(URLS)
    for name in ("host", "certificate"):
        (tmp_path / name).mkdir()
    certificate = make_certificate(tmp_path / "certificate")
    made = Host(stack, layer, tmp_path / "host", certificate, open_project(folder), listener=listener)
    for ending in STATIC_TYPES:
        (Path(made.places.static_root) / f"a.{ending}").write_bytes(b"x")
    with serving(made):
        # The first request of an address, and the next one.
        assert [first_piece_s(made) < 0.5 for _ in range(2)] == [True, True]
        by_address(made)
        foreign(made)
        if stack == "caddy-gunicorn":
            # Not the application server's name.
            assert curl(made, "/").headers["server"] == "Caddy"
            static_files(made)


def first_piece_s(made: Host) -> float:
    """Seconds from the request for a stream to its first event, for a client that takes gzip."""
    port, behind = made.places.port, made.values.names["listener"] == "behind"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20) if behind else SecureConnection(port, NAME)
    headers = {"Host": NAME, "Accept-Encoding": "gzip", "X-Forwarded-Proto": "https"}
    begun = time.monotonic()
    connection.request("GET", "/events/", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200
    gzip = zlib.decompressobj(31) if answer.getheader("Content-Encoding") == "gzip" else None
    got = b""
    while not got.startswith(b"data: 0\n"):
        piece = answer.read1(1000)
        assert piece, "the stream has ended"
        got += gzip.decompress(piece) if gzip else piece
    took_s = time.monotonic() - begun
    answer.read()
    connection.close()
    return took_s


def by_address(made: Host) -> None:
    """A health check is answered whatever its Host, and the application is told the site's name."""
    for host in ("10.1.2.3", "10.1.2.3:8000", FOREIGN):
        answer = curl(made, "/health/", *SECURE, "-H", f"Host: {host}")
        assert (answer.status, answer.body.decode()) == (200, NAME)


def foreign(made: Host) -> None:
    """All other requests for a host that is not ours are refused, with the headers that every answer has."""
    for path in ("/", "/static/a.js", "/health/x"):
        answer = curl(made, path, *SECURE, "-H", "Host: 10.1.2.3")
        assert answer.status == 400
        has_static_headers(answer.headers)
    if made.values.names["listener"] == "tls":
        assert ask_plain(made, "/", FOREIGN) == (400, None)
        assert ask_plain(made, "/", NAME) == (301, f"https://{NAME}/")


def has_static_headers(headers: dict[str, str]) -> None:
    assert (headers["x-content-type-options"], headers["strict-transport-security"]) == ("nosniff", "max-age=300")


def static_files(made: Host) -> None:
    """Files have their types, whatever tables of types the machine has."""
    found = {}
    for ending in STATIC_TYPES:
        answer = curl(made, f"/static/a.{ending}")
        has_static_headers(answer.headers)
        found[ending] = answer.headers.get("content-type")
    assert found == STATIC_TYPES
    # A ready-made compressed file has the type of what is in it.
    answer = curl(made, "/static/a.js", "-H", "Accept-Encoding: br")
    assert (answer.headers["content-encoding"], answer.headers["content-type"]) == ("br", STATIC_TYPES["js"])
    missing = curl(made, "/static/nosuch.js")
    assert (missing.status, missing.headers.get("cache-control")) == (404, None)
    has_static_headers(missing.headers)


@pytest.mark.parametrize("stack", ["caddy-gunicorn", "haproxy-gunicorn"])
def test_strict_names_are_served_by_name(stack, site_url):
    runnable(stack)
    changes = {**ONE, "listener": "tls", "strict_sni": "on"}
    with deployment.deployed(resolved(stack, database_url=site_url, changes=changes)) as running:
        assert get(f"{running.url}/healthz").status_code == 200
