"""What Apache answers by itself: static files, requests for other hosts, its own error pages."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import brotli
import pytest

from tests.deploy.production_host import NAME, Host, ask_plain, serving
from tests.deploy.test_edge import FOREIGN, Answer, curl

pytestmark = pytest.mark.servers

STACK, HASH, DATA = "apache-modwsgi", "0123456789ab", b"0123456789" * 100
TEXT = "; charset=utf-8"
TYPES = {
    "a.css": f"text/css{TEXT}",
    "a.js": f"text/javascript{TEXT}",
    "a.mjs": f"text/javascript{TEXT}",
    "a.json": f"application/json{TEXT}",
    "a.txt": f"text/plain{TEXT}",
    "a.svg": "image/svg+xml",
    "a.webp": "image/webp",
    "a.avif": "image/avif",
    "a.gif": "image/gif",
    "a.wasm": "application/wasm",
    "a.webmanifest": "application/manifest+json",
    "a.woff2": "font/woff2",
    "a.pdf": "application/pdf",
    "a.tar.gz": "application/gzip",
}
GZIP, BROTLI = ("-H", "Accept-Encoding: gzip"), ("-H", "Accept-Encoding: gzip, br")


@pytest.fixture(scope="module")
def host(tmp_path_factory, certificate):
    """A host of production's that serves TLS to whoever asks, its files written."""
    made = Host(STACK, "none", tmp_path_factory.mktemp("host"), certificate, strict_sni="off")
    static = Path(made.places.static_root)
    for name in TYPES:
        (static / name).write_bytes(DATA)
        stem, _, suffix = name.partition(".")
        hashed = static / f"{stem}.{HASH}.{suffix}"
        hashed.write_bytes(DATA)
        hashed.with_name(f"{hashed.name}.gz").write_bytes(gzip.compress(DATA))
        hashed.with_name(f"{hashed.name}.br").write_bytes(brotli.compress(DATA))
    with serving(made):
        yield made


OTHER = """
def application(environ, start_response):
    if environ.get("HTTP_IF_NONE_MATCH") == '"x"':
        start_response("304 Not Modified", [("ETag", '"x"')])
        return []
    start_response("200 OK", [("ETag", '"x"'), ("Content-Type", "text/html")])
    return [environ["HTTP_HOST"].encode() * 100]
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory, certificate):
    """A host with an application that answers with the host that it was asked for, and an ETag."""
    made = Host(STACK, "none", folder := tmp_path_factory.mktemp("other"), certificate, strict_sni="off")
    (folder / "wsgi.py").write_text(OTHER)
    conf = Path(made.places.conf, "httpd.conf")
    conf.write_text(conf.read_text().replace(f"{made.places.project}/config", str(folder)))
    with serving(made):
        yield made


def secured(answer: Answer) -> bool:
    headers = answer.headers
    return (headers["x-content-type-options"], headers["strict-transport-security"]) == ("nosniff", "max-age=300")


@pytest.mark.parametrize("name", TYPES)
def test_a_static_file_has_its_type_also_where_it_was_compressed_ahead(host, name):
    hashed = name.replace(".", f".{HASH}.", 1)
    for path, accepts, coding in (
        (name, GZIP, None),
        (hashed, (), None),
        (hashed, GZIP, "gzip"),
        (hashed, BROTLI, "br"),
        (hashed, ("-H", "Accept-Encoding: br;q=0"), None),
    ):
        answer = curl(host, f"/static/{path}", *accepts)
        assert (answer.status, answer.headers["content-type"]) == (200, TYPES[name])
        assert answer.headers.get("content-encoding") == coding
        assert secured(answer)


def test_a_compressed_file_that_is_asked_for_by_name_is_a_file(host):
    answer = curl(host, f"/static/a.{HASH}.css.gz", *GZIP)
    assert "content-encoding" not in answer.headers
    assert answer.headers["content-type"].startswith("application/gzip")
    assert gzip.decompress(answer.body) == DATA


@pytest.mark.parametrize("accepts", [(), GZIP, BROTLI])
def test_several_ranges_are_one_answer_with_one_type(host, accepts, tmp_path):
    head = tmp_path / "head"
    curl(host, f"/static/a.{HASH}.css", "-r", "0-1,5-6", "-D", str(head), *accepts)
    types = [line for line in head.read_text().lower().splitlines() if line.startswith("content-type:")]
    assert head.read_text().split()[1] == "206"
    assert len(types) == 1 and "multipart/byteranges" in types[0]


def test_its_own_error_pages_have_the_security_headers(host):
    for status, path, *words in (
        (400, "/", "-H", f"Host: {FOREIGN}"),
        (403, "/static/staticfiles.json"),
        (404, "/static/nosuch.css"),
        (405, "/", "-X", "TRACE"),
        (411, "/login/", "--http1.1", "-H", "Transfer-Encoding: chunked", "-d", "x"),
        (413, "/login/", "--http1.1", "-H", "Content-Length: 999999999", "-d", "x"),
        (414, f"/{'x' * 9000}"),
    ):
        answer = curl(host, path, *words)
        assert answer.status == status
        assert secured(answer), status


def test_an_offer_of_http2_is_made_in_the_handshake_alone(host):
    assert curl(host, "/healthz", "--http2").version == "HTTP/2"
    for more in ((), ("-H", "Connection: Upgrade", "-H", "Upgrade: h2")):
        answer = curl(host, "/healthz", "--http1.1", *more)
        assert (answer.status, answer.version) == (200, "HTTP/1.1")
        assert "upgrade" not in answer.headers


def test_a_balancer_asks_for_health_by_address(host):
    for name in (FOREIGN, f"127.0.0.1:{host.places.port}"):
        asked = ("-H", f"Host: {name}")
        assert curl(host, "/healthz", *asked).status == 200
        assert [curl(host, path, *asked).status for path in ("/", "/static/a.css", "/healthz/x")] == [400] * 3
        assert ask_plain(host, "/healthz", name)[0] == 400


def test_a_path_reaches_the_application_as_it_was_sent(host):
    # Its own answer: Apache's has no such header.
    for path in ("/posts%2Fx",):
        answer = curl(host, path)
        assert (answer.status, answer.headers["x-frame-options"]) == (404, "DENY")


def test_a_redirect_over_plain_http_does_not_speak_of_https_alone(host):
    url = f"http://{NAME}:{host.http_port}/"
    resolve = f"{NAME}:{host.http_port}:127.0.0.1"
    done = subprocess.run(["curl", "-si", "--resolve", resolve, url], capture_output=True, text=True)
    assert " 301 " in done.stdout and "strict-transport-security" not in done.stdout.lower()


def test_a_compressed_page_with_an_etag_is_not_sent_again(other):
    page = curl(other, "/", *GZIP)
    assert (page.status, page.headers["content-encoding"]) == (200, "gzip")
    assert curl(other, "/", *GZIP, "-H", f"If-None-Match: {page.headers['etag']}").status == 304
