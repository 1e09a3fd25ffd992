"""What real projects need of every stack: streamed answers, uploads, content types, health checks by address."""

from __future__ import annotations

import shutil
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import brotli
import httpx
import pytest

from bench.catalog import catalog
from tests import once
from tests.deploy.running import Up, get, runnable
from tests.projects import start_project

# One instance of the servers asks for everything.
pytestmark = [pytest.mark.servers]

SAID = """
[project]
name = "shop"
dependencies = ["Django"]

[tool.benchapp]
health = "/health/"
public = ["/"]
"""
SETTINGS = """
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
STATICFILES_DIRS = [BASE_DIR / "assets"]
STATIC_ROOT = BASE_DIR / "collected"
MEDIA_URL = "/media/"
MEDIA_ROOT = BASE_DIR / "uploads"
"""
URLS = """
import time

from django.core.files.storage import default_storage
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt


def events(request):
    def pieces():
        for number in range(6):
            yield f"piece {number}\\n" * 40
            time.sleep(0.3)

    return StreamingHttpResponse(pieces(), content_type="text/plain")


@csrf_exempt
def upload(request):
    file = request.FILES["file"]
    return HttpResponse(default_storage.save(file.name, file))


urlpatterns = [
    path("", lambda request: HttpResponse("home")),
    path("events/", events),
    path("health/", lambda request: HttpResponse(request.get_host())),
    path("upload/", upload),
]
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
STACKS = [name for name, stack in catalog.read().stacks.items() if not stack.era]
# Layers that might hold a streamed answer back.
LAYERED = [
    ("nginx-gunicorn", "nginx-microcache"),
    ("nginx-uwsgi", "uwsgi-cache"),
    ("nginx-gunicorn", "site-middleware"),
    ("apache-modwsgi", "apache-cache"),
    ("gunicorn", "varnish"),
]


@dataclass(frozen=True)
class Served:
    """A stack that serves the project: its name, where, and whether a web server sends files."""

    stack: str
    url: str
    sends_files: bool


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("needs") / "shop"
    shutil.copytree(once.made(tmp_path_factory, "shop", start_project), folder)
    with (folder / "shop" / "settings.py").open("a", encoding="utf-8") as file:
        file.write(SETTINGS)
    (folder / "shop" / "urls.py").write_text(URLS)
    (folder / "pyproject.toml").write_text(SAID)
    assets = folder / "assets"
    assets.mkdir()
    for kind in KINDS:
        (assets / f"one.{kind}").write_bytes(b"x" * 300)
    (assets / HASHED).write_bytes(b"body { color: red }" * 30)
    (assets / f"{HASHED}.br").write_bytes(BROTLI)
    return folder


@pytest.fixture(scope="module", params=STACKS)
def served(request, shop) -> Iterator[Served]:
    stack = request.param
    runnable(stack)
    with Up(stack, "--project", str(shop), "--set", "compress_pages=on") as up:
        assert up.line.startswith("ready "), up.process.communicate()[1]
        yield Served(stack, up.url, catalog.read().stack(stack).env.get("BENCHAPP_WHITENOISE") == "0")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_the_first_piece_of_a_streamed_answer_arrives_at_once(served, encoding):
    assert first_piece_s(served.url, encoding) < 4 * PIECE_S


@pytest.mark.parametrize(("stack", "layer"), LAYERED)
def test_no_layer_holds_a_streamed_answer_back(shop, stack, layer):
    runnable(stack, layer)
    with Up(stack, "--layer", layer, "--project", str(shop)) as up:
        assert up.line.startswith("ready "), up.process.communicate()[1]
        assert first_piece_s(up.url, "identity") < 4 * PIECE_S


def first_piece_s(url: str, encoding: str) -> float:
    """Seconds until the whole first piece of an answer is there, of which each of six takes `PIECE_S` to make."""
    decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    found, began = b"", time.monotonic()
    with httpx.stream("GET", f"{url}events/", headers={"Accept-Encoding": encoding}, timeout=10) as answer:
        assert answer.status_code == 200
        compressed = answer.headers.get("Content-Encoding") == "gzip"
        for chunk in answer.iter_raw():
            found += decoder.decompress(chunk) if compressed else chunk
            if b"piece 0\n" in found:
                return time.monotonic() - began
    raise AssertionError(f"no first piece in {found[:100]!r}")


def test_a_static_file_has_the_type_of_its_kind(served):
    wrong = {}
    for kind, types in KINDS.items():
        answer = get(f"{served.url}static/one.{kind}")
        found = answer.headers.get("Content-Type", "").partition(";")[0]
        if answer.status_code != 200 or found not in types or answer.headers.get("X-Content-Type-Options") != "nosniff":
            wrong[kind] = (answer.status_code, found)
    assert wrong == {}


def test_a_compressed_file_that_was_made_ahead_keeps_its_type(served):
    answer = get(f"{served.url}static/{HASHED}", headers={"Accept-Encoding": "gzip, br"})
    assert answer.headers["Content-Type"].partition(";")[0] == "text/css"
    if answer.headers.get("Content-Encoding") == "br":
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert int(answer.headers["Content-Length"]) == len(BROTLI)


def test_an_upload_is_taken_and_served_but_never_run(served):
    name = f"{served.stack}.jpg"
    photograph = b"\xff\xd8" + b"p" * 3_000_000
    assert httpx.post(f"{served.url}upload/", files={"file": (name, photograph)}, timeout=30).status_code == 200
    page = httpx.post(f"{served.url}upload/", files={"file": (f"{served.stack}.html", b"<script>1</script>")})
    assert page.status_code == 200
    answer = get(f"{served.url}media/{name}")
    if not served.sends_files:
        # `doctor` says so.
        assert answer.status_code == 404
        return
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/jpeg")
    assert len(answer.content) == len(photograph)
    for path in (name, f"{served.stack}.html"):
        headers = get(f"{served.url}media/{path}").headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in headers["Content-Security-Policy"]
        assert "immutable" not in headers.get("Cache-Control", "")


def test_a_balancer_may_ask_for_health_by_address_and_for_nothing_else(served):
    assert get(f"{served.url}health/", headers={"Host": "10.1.2.3"}).text == "127.0.0.1"
    assert get(f"{served.url}", headers={"Host": "10.1.2.3"}).status_code == 400
