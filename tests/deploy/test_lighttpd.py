"""lighttpd as production configures it, before a small application: files, headers, streams, hosts."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import http.client
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest

from bench import paths
from bench.catalog import catalog
from bench.machine import ports, supervise
from bench.production import host as one_host
from bench.serve import render
from tests.cases import for_files, kit
from tests.deploy.production_host import NAME, make_certificate, wait_for
from tests.deploy.running import runnable

pytestmark = pytest.mark.servers

STACK = "lighttpd-fastcgi"
NOSNIFF, HSTS = "X-Content-Type-Options", "Strict-Transport-Security"
TEXT = b"a { color: red }\n" * 100
PIECES, PIECE_S = 6, 0.3
LARGE = 40_000_000

APPLICATION = f"""
import time

def application(environ, start_response):
    path = environ["PATH_INFO"]
    status = "404 Not Found" if path == "/missing" else "200 OK"
    start_response(status, [("Content-Type", "text/html; charset=utf-8")])
    if path == "/stream":
        return pieces()
    if path == "/large":
        return [b"x" * {LARGE}]
    return [environ["HTTP_HOST"].encode()]

def pieces():
    for number in range({PIECES}):
        yield b"piece %d\\n" % number
        time.sleep({PIECE_S})
"""


class Site:
    """lighttpd with TLS and a port that redirects to it, before an application with one worker."""

    def __init__(self, folder: Path, **changes: str):
        runnable(STACK)
        self.folder, self.port, self.http_port = folder, ports.free_port(), ports.free_port()
        self.identity = kit().worker(folder)
        chosen = catalog.read().values["production"]
        moved = {name: str(folder / name) for name in ("conf", "run", "logs", "store", "tls", "static", "acme")}
        for name in moved:
            (folder / name).mkdir(exist_ok=True)
        # What `serve` has in a file of its own, and the redirect beside it.
        own = {"http_port": self.http_port, "acme_webroot": moved.pop("acme"), "bind6": "off", "access_log": "off"}
        own |= {"maintenance_file": f"{moved['conf']}/maintenance"}
        moved |= {"static_root": moved.pop("static"), "bind": "127.0.0.1", "port": self.port}
        values = dataclasses.replace(chosen.changed(own | changes), places={**chosen.places, **moved})
        self.case, places, wiring = one_host.in_production(for_files(STACK, values=values), "127.0.0.1")
        lighttpd = self.case.servers[-1]
        self.socket = wiring.listens["uwsgi"][0]
        self.static = Path(places.static_root)
        render.write_files(self.case, places, wiring, Path(places.conf), [lighttpd])
        self.start = render.argv(lighttpd.start, render.context_of(lighttpd, self.case, places, wiring), "lighttpd")

    def connection(self, port: int = 0) -> http.client.HTTPConnection:
        """To the site, or to another port without TLS."""
        if port:
            return http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=ssl._create_unverified_context())

    def get(
        self, path: str, host: str = NAME, port: int = 0, method: str = "GET", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        with contextlib.closing(self.connection(port)) as connection:
            connection.request(method, path, headers={"Host": host, **headers})
            answer = connection.getresponse()
            return answer, answer.read()


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("lighttpd")
    made = Site(folder)
    certificate = make_certificate(folder / "tls")
    assert certificate == folder / "tls"
    (folder / "app.py").write_text(APPLICATION)
    uwsgi = [str(paths.VENV / "bin" / "uwsgi"), "--fastcgi-socket", made.socket.path, "--chmod-socket=666"]
    uwsgi += ["--wsgi-file", str(folder / "app.py"), "--master", "--die-on-term", "--need-app"]
    made.identity.give_tree(folder)
    processes = []
    try:
        for name, argv in (("uwsgi", uwsgi), ("lighttpd", made.start)):
            log, env = folder / "logs" / f"{name}.log", {"PATH": "/usr/bin:/bin"}
            processes.append(supervise.start(name, argv, env=env, cwd=folder, log=log, identity=made.identity))
        wait_for(lambda: made.get("/")[0].status, 200, processes)
        yield made
    finally:
        supervise.stop(processes)


@pytest.mark.parametrize(
    ("ending", "content_type"),
    [
        ("js", "text/javascript; charset=utf-8"),
        ("mjs", "text/javascript; charset=utf-8"),
        ("css", "text/css; charset=utf-8"),
        ("html", "text/html; charset=utf-8"),
        ("txt", "text/plain; charset=utf-8"),
        ("svg", "image/svg+xml"),
        ("png", "image/png"),
        ("jpeg", "image/jpeg"),
        ("gif", "image/gif"),
        ("webp", "image/webp"),
        ("avif", "image/avif"),
        ("woff2", "font/woff2"),
        ("wasm", "application/wasm"),
        ("webmanifest", "application/manifest+json"),
        ("json", "application/json"),
        ("pdf", "application/pdf"),
        ("nosuch", "application/octet-stream"),
    ],
)
def test_a_static_file_has_the_type_of_its_ending(site, ending, content_type):
    (site.static / f"file.{ending}").write_text("x")
    answer, _ = site.get(f"/static/file.{ending}")
    assert answer.status == 200
    assert answer.getheader("Content-Type").replace("; ", ";") == content_type.replace("; ", ";")
    assert (answer.getheader(NOSNIFF), answer.getheader(HSTS)) == ("nosniff", "max-age=300")


def compressed_ahead(site: Site, name: str) -> dict[str, bytes]:
    """A static file with the compressed ones beside it, as collectstatic makes them; written once, for its ETag."""
    ahead = {"gzip": gzip.compress(TEXT, mtime=7), "br": brotli.compress(TEXT, quality=1)}
    if not (site.static / name).exists():
        for ending, body in (("", TEXT), (".gz", ahead["gzip"]), (".br", ahead["br"])):
            (site.static / f"{name}{ending}").write_bytes(body)
    return ahead


@pytest.mark.parametrize("name", ["app.css", "app.0123456789ab.mjs"])
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
def test_a_file_that_was_compressed_ahead_is_sent_to_who_takes_it(site, name, accepted, coding):
    ahead = compressed_ahead(site, name)
    answer, body = site.get(f"/static/{name}", **{"Accept-Encoding": accepted})
    assert (answer.status, answer.getheader("Content-Encoding")) == (200, coding)
    # The very file, not one that lighttpd compressed by itself.
    assert body == ahead.get(coding, TEXT)
    assert answer.getheader("Content-Type").startswith("text/css" if name.endswith("css") else "text/javascript")
    assert answer.getheader("Vary") == "Accept-Encoding"
    again, _ = site.get(f"/static/{name}", **{"If-None-Match": answer.getheader("ETag"), "Accept-Encoding": accepted})
    assert again.status == 304


def test_a_file_that_was_not_compressed_ahead_is_compressed(site):
    (site.static / "alone.js").write_bytes(TEXT)
    answer, body = site.get("/static/alone.js", **{"Accept-Encoding": "gzip"})
    assert (answer.getheader("Content-Encoding"), gzip.decompress(body)) == ("gzip", TEXT)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/static/nosuch.0123456789ab.css", {}, 404),
        ("/static/staticfiles.json", {}, 403),
        ("/", {"method": "POST", "Content-Length": "99999999"}, 413),
        ("/", {"host": "other.example"}, 400),
    ],
)
def test_an_error_of_its_own_has_the_security_headers_and_is_not_cached(site, path, headers, status):
    (site.static / "staticfiles.json").write_text("{}")
    answer, _ = site.get(path, **headers)
    assert answer.status == status
    assert (answer.getheader(NOSNIFF), answer.getheader(HSTS)) == ("nosniff", "max-age=300")
    assert "max-age" not in (answer.getheader("Cache-Control") or "")


@pytest.mark.parametrize("accepted", ["identity", "gzip, br"])
def test_a_stream_is_sent_while_it_arrives(site, accepted):
    with contextlib.closing(site.connection()) as connection:
        begun = time.monotonic()
        connection.request("GET", "/stream", headers={"Host": NAME, "Accept-Encoding": accepted})
        answer = connection.getresponse()
        first = answer.read1(100)
        assert first == b"piece 0\n"
        assert time.monotonic() - begun < 0.5
        rest = answer.read()
    assert (first + rest).count(b"piece") == PIECES
    assert time.monotonic() - begun > PIECE_S * (PIECES - 1)


def test_a_client_that_does_not_read_holds_no_worker(site):
    with socket.create_connection(("127.0.0.1", site.port)) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with ssl._create_unverified_context().wrap_socket(opened, server_hostname=NAME) as slow:
            slow.sendall(f"GET /large HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
            assert slow.recv(100).startswith(b"HTTP/1.1 200")
            begun = time.monotonic()
            assert site.get("/")[0].status == 200
            assert time.monotonic() - begun < 2


@pytest.mark.parametrize("host", [NAME, f"{NAME}:8443", "127.0.0.1", "other.example", f"{NAME}.other.example"])
def test_only_health_is_answered_whatever_the_host(site, host):
    ours = host.partition(":")[0] == NAME
    for health in ("/healthz", "/readyz"):
        answer, body = site.get(health, host)
        # The application gets a name that it knows.
        assert (answer.status, body.decode()) == (200, host if ours else NAME)
    (site.static / "style.css").write_bytes(TEXT)
    for path in ("/", "/static/style.css", "/healthz/", "/missing"):
        assert site.get(path, host)[0].status == (400 if not ours else 404 if path == "/missing" else 200)


def test_plain_http_redirects_our_own_hosts_alone(site):
    answer, _ = site.get("/posts/?a=b", f"{NAME}:{site.http_port}", site.http_port)
    assert (answer.status, answer.getheader("Location")) == (301, f"https://{NAME}/posts/?a=b")
    for path in ("/", "/healthz", "/.well-known/acme-challenge/token"):
        answer, _ = site.get(path, "other.example", site.http_port)
        assert (answer.status, answer.getheader("Location")) == (400, None)


def test_a_certificate_authority_is_answered_during_maintenance(site):
    challenges = site.folder / "acme" / ".well-known" / "acme-challenge"
    challenges.mkdir(parents=True)
    (challenges / "token").write_text("token.thumbprint")
    switch = site.folder / "conf" / "maintenance"
    switch.touch()
    try:
        assert site.get("/")[0].status == 503
        answer, body = site.get("/.well-known/acme-challenge/token", NAME, site.http_port)
        assert (answer.status, body) == (200, b"token.thumbprint")
    finally:
        switch.unlink()


def test_lighttpd_accepts_its_file_in_every_form(tmp_path):
    tls = make_certificate(tmp_path)
    for number, changes in enumerate(
        (
            {"listener": "plain"},
            {"listener": "behind"},
            {"http2": "off", "strict_sni": "off", "redirect": "off", "maintenance_file": "off"},
        )
    ):
        (tmp_path / str(number)).mkdir()
        made = Site(tmp_path / str(number), **changes)
        for name in ("fullchain.pem", "privkey.pem"):
            (made.folder / "tls" / name).write_bytes((tls / name).read_bytes())
        done = subprocess.run([made.start[0], "-tt", *made.start[2:]], capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), changes
