"""Needs of real projects of every stack: streamed responses, WebSockets, uploads, content types and health by address.

Requests about which servers differ mean the same to every project, or are refused, or the server declares it: bodies in
chunks and bodies that nobody reads, HEAD, broken escapes, and double and encoded slashes in a path, so that the
application's views and a web server's rules never judge two different paths.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import brotli
import httpx2
import pytest

from bench.serve.catalog import catalog, compatibility
from bench.serve.deployment import deployment
from bench.serve.deployment.case import must_resolve
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest, open_project
from tests.deploy import few
from tests.deploy.running import ONE, PATIENCE_S, client_of, get, runnable
from tests.projects import write

pytestmark = pytest.mark.servers

DESCRIPTION = """
[project]
name = "shop"
dependencies = ["Django"]

[tool.benchapp]
health = "/health/"
public = ["/", "/open/"]
"""
SETTINGS = """
STATICFILES_DIRS = [BASE_DIR / "assets"]
STATIC_ROOT = BASE_DIR / "collected"
MEDIA_URL = "/media/"
MEDIA_ROOT = BASE_DIR / "uploads"
"""
URLS = """
import asyncio
import time

from django.core.files.storage import default_storage
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path, re_path
from django.views.decorators.csrf import csrf_exempt


def events(request):
    def pieces():
        for number in range(6):
            yield f"piece {number}\\n" * 40
            time.sleep(0.3)

    return StreamingHttpResponse(pieces(), content_type="text/plain")


def awaited(request):
    async def pieces():
        for number in range(6):
            yield f"piece {number}\\n" * 40
            await asyncio.sleep(0.3)

    return StreamingHttpResponse(pieces(), content_type="text/plain")


@csrf_exempt
def form(request):
    return HttpResponse("form of " + request.POST.get("name", "nobody"))


@csrf_exempt
def upload(request):
    file = request.FILES["file"]
    return HttpResponse(default_storage.save(file.name, file))


urlpatterns = [
    path("", lambda request: HttpResponse("home " * 4000)),
    path("form/", form),
    path("scheme/", lambda request: HttpResponse(request.scheme)),
    path("events/", events),
    path("awaited/", awaited),
    path("health/", lambda request: HttpResponse(request.get_host())),
    path("upload/", upload),
    re_path("open", lambda request: HttpResponse("saw " + request.path)),
]
"""
# What speaks WebSockets at one path.
ECHO = """
from django.core.asgi import get_asgi_application

django = get_asgi_application()


async def application(scope, receive, send):
    if scope.get("path") != "/chat/":
        return await django(scope, receive, send)
    await receive()
    await send({"type": "websocket.accept"})
    said = await receive()
    await send({"type": "websocket.send", "text": scope["path"] + " " + said["text"]})
"""
PIECE_S = 0.3
JAVASCRIPT = ("text/javascript", "application/javascript")
# The ending of a file, and what it may be sent as: each is another kind to a browser that is told `nosniff`.
KINDS = {
    "css": ("text/css",),
    "js": JAVASCRIPT,
    "mjs": JAVASCRIPT,
    "json": ("application/json",),
    "svg": ("image/svg+xml",),
    "png": ("image/png",),
    "jpg": ("image/jpeg",),
    "jpeg": ("image/jpeg",),
    "gif": ("image/gif",),
    "webp": ("image/webp",),
    "avif": ("image/avif",),
    "ico": ("image/x-icon", "image/vnd.microsoft.icon"),
    "woff": ("font/woff", "application/font-woff"),
    "woff2": ("font/woff2",),
    "ttf": ("font/ttf",),
    "wasm": ("application/wasm",),
    "webmanifest": ("application/manifest+json",),
    "pdf": ("application/pdf",),
    "mp4": ("video/mp4",),
    "txt": ("text/plain",),
    "xml": ("text/xml", "application/xml"),
}
HASHED = "app.0123456789ab.css"
BROTLI = brotli.compress(b"body { color: red }")
STACKS = [(name, "none") for name in catalog.read().stacks]
# The servers of historic stacks know less of this.
CURRENT = [case for case in STACKS if not catalog.read().stacks[case[0]].era]
ASGI = [case for case in STACKS if catalog.read().stacks[case[0]].servers[0].interface == "asgi"]
# What a server responds if nobody speaks WebSockets. 403 is that of ASGI for a server that knows no other.
NO_CHAT = {"daphne": 403, "gunicorn-asgi": 403}
MASK = b"\1\2\3\4"
# Layers that judge paths, or might hold a streamed response back.
LAYERED = [
    ("nginx-gunicorn", "nginx-microcache"),
    ("nginx-gunicorn", "nginx-memcached"),
    ("nginx-gunicorn", "staticgenerator"),
    ("nginx-gunicorn", "page-cache"),
    ("apache-modwsgi", "apache-cache"),
    ("lighttpd-fastcgi", "staticgenerator"),
    ("caddy-gunicorn", "varnish"),
    ("uwsgi", "uwsgi-cache"),
]
# What the application sees of each path, as WSGI and ASGI have it: escapes decoded, slashes as they came.
SEEN = {
    "/open//a/": "/open//a/",
    "//open/a/": "//open/a/",
    "/open/a//": "/open/a//",
    "/open%2Fa/": "/open/a/",
    "/open/a%2f/": "/open/a//",
    "/open/%2F%2Fa/": "/open///a/",
}
REFUSED = (400, 404)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UNREAD_BYTES = 1_000_000
TIMES = 4
# What a server does by itself and has no setting for.
OWN = {
    # Makes one slash of those at the beginning.
    "waitress": {"//open/a/": "/open/a/"},
    "nginx-waitress": {"//open/a/": "/open/a/"},
    # Leaves an encoded slash as it is.
    "nginx-cherrypy": {path: path.replace("%2f", "%2F") for path in SEEN if "%" in path},
}


@dataclass(frozen=True)
class Served:
    """A stack that serves the project: its name, where, whether a web server sends files, and its logs."""

    stack: str
    url: str
    sends_files: bool
    logs: Path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> UnderTest:
    folder = write(tmp_path_factory.mktemp("needs") / "shop", tmp_path_factory, SETTINGS, DESCRIPTION, URLS)
    (folder / "shop" / "asgi.py").write_text(ECHO)
    assets = folder / "assets"
    assets.mkdir()
    for kind in KINDS:
        (assets / f"one.{kind}").write_bytes(b"x" * 300)
    (assets / HASHED).write_bytes(b"body { color: red }" * 30)
    (assets / f"{HASHED}.br").write_bytes(BROTLI)
    opened = open_project(folder)
    # Each deployment runs some commands.
    commands.warm_up(opened)
    return opened


@pytest.fixture(scope="module")
def served(request, shop) -> Iterator[Served]:
    """One deployment of the servers gets all requests."""
    stack, layer = request.param
    runnable(stack, layer)
    changes = ONE | ({"compress_pages": "on"} if layer == "none" else {})
    case = must_resolve(shop, stack, layer, changes=changes)
    with deployment.deployed(case) as running:
        yield Served(stack, f"{running.url}/", case.web_server_has_static_files, running.logs)


def over(cases: list[tuple[str, str]], shows: few.Facts = few.of_stack) -> pytest.MarkDecorator:
    """On these deployments: with layers on all, without one on those that have all that stacks show between them."""
    layered = [case for case in cases if case[1] != "none"]
    chosen = [*layered, *few.covering([case for case in cases if case not in layered], lambda case: shows(case[0]))]
    params = [pytest.param(case, marks=[] if case in chosen else pytest.mark.matrix) for case in cases]
    return pytest.mark.parametrize("served", params, indirect=True, ids=["-".join(case) for case in cases])


current = over(CURRENT)


@current
@pytest.mark.parametrize(("page", "encoding"), [("events/", "identity"), ("events/", "gzip"), ("awaited/", "gzip")])
def test_the_first_piece_of_a_streamed_response_arrives_at_once(served, page, encoding):
    assert after_first_piece_s(served.url, page, encoding) > 2 * PIECE_S


@over(LAYERED)
def test_no_layer_holds_a_streamed_response_back(served):
    assert after_first_piece_s(served.url, "events/", "identity") > 2 * PIECE_S


@over([*STACKS, *LAYERED])
def test_slashes_mean_the_same_or_are_refused(served):
    for path, seen in SEEN.items():
        status, page = response_of(served.url, path)
        expected = OWN.get(served.stack, {}).get(path, seen)
        assert status in REFUSED or (status, page) == (200, f"saw {expected}"), path


def response_of(url: str, path: str) -> tuple[int, str]:
    """Status and page for a path as it stands, which httpx2 would change."""
    parts = httpx2.URL(url)
    connection = http.client.HTTPConnection(parts.host, parts.port, timeout=60)
    connection.request("GET", path)
    got = connection.getresponse()
    page = got.read().decode("utf-8", "replace")
    connection.close()
    return got.status, page


def after_first_piece_s(url: str, page: str, encoding: str) -> float:
    """Seconds from the first piece of a response to its end: each of six takes `PIECE_S` to make, on any machine."""
    decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    body, first = b"", None
    with httpx2.stream("GET", url + page, headers={"Accept-Encoding": encoding}, timeout=PATIENCE_S) as response:
        assert response.status_code == 200
        compressed = response.headers.get("Content-Encoding") == "gzip"
        for chunk in response.iter_raw():
            body += decoder.decompress(chunk) if compressed else chunk
            if first is None and b"piece 0\n" in body:
                first = time.monotonic()
    assert first is not None, f"no first piece in {body[:100]!r}"
    return time.monotonic() - first


@current
def test_a_static_file_has_the_type_of_its_kind(served):
    wrong = {}
    for kind, types in KINDS.items():
        response = get(f"{served.url}static/one.{kind}")
        media_type = response.headers.get("Content-Type", "").partition(";")[0]
        if (
            response.status_code != 200
            or media_type not in types
            or response.headers.get("X-Content-Type-Options") != "nosniff"
        ):
            wrong[kind] = (response.status_code, media_type)
    assert wrong == {}


@current
def test_a_compressed_file_that_was_made_ahead_keeps_its_type(served):
    response = get(f"{served.url}static/{HASHED}", headers={"Accept-Encoding": "gzip, br"})
    assert response.headers["Content-Type"].partition(";")[0] == "text/css"
    if response.headers.get("Content-Encoding") == "br":
        assert response.headers["Vary"] == "Accept-Encoding"
        assert int(response.headers["Content-Length"]) == len(BROTLI)


@current
def test_an_upload_is_taken_and_served_but_never_run(served):
    name = f"{served.stack}.jpg"
    photograph = b"\xff\xd8" + b"p" * 3_000_000
    assert httpx2.post(f"{served.url}upload/", files={"file": (name, photograph)}, timeout=30).status_code == 200
    page = httpx2.post(
        f"{served.url}upload/", files={"file": (f"{served.stack}.html", b"<script>1</script>")}, timeout=30
    )
    assert page.status_code == 200
    response = get(f"{served.url}media/{name}")
    if not served.sends_files:
        # `doctor` says so.
        assert response.status_code == 404
        return
    assert (response.status_code, response.headers["Content-Type"]) == (200, "image/jpeg")
    assert len(response.content) == len(photograph)
    for path in (name, f"{served.stack}.html"):
        headers = get(f"{served.url}media/{path}").headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in headers["Content-Security-Policy"]
        assert "immutable" not in headers.get("Cache-Control", "")


@current
def test_a_balancer_may_request_health_by_address_and_nothing_else(served):
    assert get(f"{served.url}health/", headers={"Host": "10.1.2.3"}).text == "127.0.0.1"
    assert get(f"{served.url}", headers={"Host": "10.1.2.3"}).status_code == 400


def undeclared(check: str) -> list[tuple[str, str]]:
    """The stacks that do not declare a check as not supported, by themselves or by a server."""
    pairs = []
    for name, stack in catalog.read().stacks.items():
        if check not in {item.check for item in compatibility.declared((), stack)}:
            pairs.append((name, "none"))
    return pairs


@over(undeclared("chunked-body"))
def test_a_form_in_chunks_arrives_whole_or_is_refused(served):
    sent = httpx2.post(f"{served.url}form/", content=iter([b"name=", b"somebody"]), headers=FORM, timeout=30)
    assert sent.status_code in (400, 411) or sent.text == "form of somebody"


@over(undeclared("upload"))
def test_a_body_that_no_view_reads_is_refused_by_the_project(served):
    """Django refuses a form without a token before anything reads it; the client sees that."""
    for _ in range(TIMES):
        assert httpx2.post(served.url, content=b"x" * UNREAD_BYTES, timeout=30).status_code == 403


@over(STACKS)
def test_a_response_to_head_leaves_nothing_for_the_next_request(served):
    with client_of(served.url) as client:
        for _ in range(TIMES):
            assert (client.head("/").status_code, client.get("/scheme/").text) == (200, "http")


@over(STACKS)
def test_a_broken_escape_is_never_the_home_page(served):
    for path in ("/%", "/%zz/"):
        status, _ = response_of(served.url, path)
        assert status in REFUSED, path


@over(STACKS)
def test_no_header_of_a_client_says_that_it_came_over_tls(served):
    for name in ("X-Forwarded-Proto", "X_Forwarded_Proto"):
        assert get(f"{served.url}scheme/", headers={name: "https"}).text == "http"


@over(ASGI, shows=lambda name: {name})
def test_a_websocket_reaches_a_project_that_speaks_it_and_is_refused_by_others(served):
    before = tracebacks(served.logs)
    with shaken(served.url, "/chat/") as opened:
        assert status_of(opened) == 101
        opened.sendall(frame(b"hello"))
        # A text in one frame that is not masked: its kind, its length, its bytes.
        assert opened.recv(100).startswith(b"\x81\x0c/chat/ hello")
    with shaken(served.url, "/") as opened:
        assert status_of(opened) == NO_CHAT.get(served.stack, 400)
    assert tracebacks(served.logs) == before


def tracebacks(logs: Path) -> int:
    return sum(path.read_text().count("Traceback") for path in logs.rglob("*.log"))


def shaken(url: str, path: str) -> socket.socket:
    """A connection on which the handshake of a WebSocket was sent."""
    parts = httpx2.URL(url)
    opened = socket.create_connection((parts.host, parts.port), timeout=60)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade")
    opened.sendall("\r\n".join((*lines, f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", "")).encode())
    return opened


def status_of(opened: socket.socket) -> int:
    """The status of the response to a handshake, of which only the headers are read."""
    response = b""
    while not response.endswith(b"\r\n\r\n"):
        piece = opened.recv(1)
        assert piece, response
        response += piece
    return int(response.split()[1])


def frame(text: bytes) -> bytes:
    """A text as a client sends it: masked."""
    masked = bytes(byte ^ MASK[index % len(MASK)] for index, byte in enumerate(text))
    return b"\x81" + bytes([0x80 | len(text)]) + MASK + masked


VIEWS = """
from django.http import HttpResponse
from django.urls import path


def upload(request, name):
    if "mine" not in request.GET:
        return HttpResponse(status=403)
    return HttpResponse(headers={"X-Accel-Redirect": f"/protected/{name}"}, content_type="text/plain")


urlpatterns = [path("", lambda request: HttpResponse("home")), path("media/<path:name>", upload)]
"""


def test_uploads_that_a_view_protects_are_sent_when_it_says_so_only(new_project):
    runnable("nginx-gunicorn")
    media = "MEDIA_URL, MEDIA_ROOT = '/media/', BASE_DIR / 'uploads'"
    folder = new_project(media, '[tool.benchapp]\nprotected = "/protected/"\n')
    (folder / "shop" / "urls.py").write_text(VIEWS)
    (folder / "uploads").mkdir()
    (folder / "uploads" / "a.html").write_text("secret")
    with deployment.deployed(must_resolve(open_project(folder), "nginx-gunicorn", changes=ONE)) as running:
        for path, status in (("/media/a.html", 403), ("/protected/a.html", 404)):
            assert get(f"{running.url}{path}").status_code == status
        sent = get(f"{running.url}/media/a.html?mine")
        assert (sent.text, sent.headers["Content-Type"]) == ("secret", "text/plain")
        assert "sandbox" in sent.headers["Content-Security-Policy"]
