"""The plain files of the static benchmark, and the responses of /static/."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from django.conf import settings as site
from django.http import HttpResponse
from django.test import RequestFactory
from whitenoise.compress import Compressor

from config.static_files import ChangedFiles, StaticFiles, Storage

STATIC = Path(site.BASE_DIR) / "static"


@pytest.mark.parametrize(("name", "size"), [("small.txt", 99), ("large.txt", 1_500_000)])
def test_the_files_of_the_benchmark_have_its_sizes(name: str, size: int):
    assert (STATIC / name).stat().st_size == size


@pytest.fixture
def folder(tmp_path: Path, settings) -> Path:
    """The target of collectstatic, with its manifest and a file."""
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STATIC_ROOT.mkdir()
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = False
    collect(settings.STATIC_ROOT, "first.0123456789ab.css", at_s=1)
    return settings.STATIC_ROOT


def collect(folder: Path, name: str, at_s: int) -> None:
    """Write a file as collectstatic does, and then the manifest."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("p {}")
    manifest = folder / "staticfiles.json"
    manifest.write_text("{}")
    os.utime(manifest, (at_s, at_s))


@pytest.fixture
def collected(folder: Path) -> StaticFiles:
    """WhiteNoise over that folder; other requests get a 404."""
    return StaticFiles(lambda request: HttpResponse(status=404))


def status_of(collected: StaticFiles, path: str) -> int:
    request = RequestFactory().get("/")
    request.path_info = path
    response = collected(request)
    response.close()
    return response.status_code


NEW = "probes/new.0123456789ab.css"
pytestmark = pytest.mark.django_db  # the end of a response looks after the database's connections


def test_a_file_that_is_collected_later_is_served(collected: StaticFiles, folder: Path):
    assert status_of(collected, f"/static/{NEW}") == 404
    (folder / "probes").mkdir()
    (folder / f"{NEW}.gz").write_bytes(b"compressed")
    collect(folder, NEW, at_s=2)
    response = collected(RequestFactory().get(f"/static/{NEW}"))
    assert (response.status_code, b"".join(response.streaming_content)) == (200, b"p {}")
    assert "immutable" in response.headers["Cache-Control"]
    response.close()


def test_files_are_added_again_only_after_collectstatic(collected: StaticFiles, folder: Path, monkeypatch):
    added = []
    monkeypatch.setattr(collected, "add_files", lambda root, prefix: added.append(root))
    for _ in range(3):
        assert status_of(collected, "/static/first.0123456789ab.css") == 200
    assert added == []
    collect(folder, NEW, at_s=2)
    for _ in range(3):
        status_of(collected, "/static/first.0123456789ab.css")
    assert added == [folder]


def test_a_file_that_is_gone_while_files_are_added_is_no_error(collected: StaticFiles, folder: Path, monkeypatch):
    """The next collectstatic has begun: files are added again after it."""

    def gone(root: Path, prefix: str) -> None:
        raise FileNotFoundError(root)

    collect(folder, NEW, at_s=2)
    with monkeypatch.context() as patched:
        patched.setattr(collected, "add_files", gone)
        assert status_of(collected, "/static/first.0123456789ab.css") == 200
    assert status_of(collected, f"/static/{NEW}") == 200


def test_before_collectstatic_files_come_from_their_sources(tmp_path: Path, settings):
    settings.STATIC_ROOT = tmp_path / "none"
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = True
    sources = StaticFiles(lambda request: HttpResponse(status=404))
    assert (status_of(sources, "/static/small.txt"), status_of(sources, "/static/none.txt")) == (200, 404)
    # The manifest is no file of the site's, in whichever way files are looked for.
    settings.STATIC_ROOT.mkdir()
    collect(settings.STATIC_ROOT, NEW, at_s=1)
    assert (status_of(sources, f"/static/{NEW}"), status_of(sources, "/static/staticfiles.json")) == (200, 404)


def test_a_file_that_collectstatic_has_not_seen_keeps_its_plain_name(tmp_path: Path, settings):
    (tmp_path / "staticfiles.json").write_text('{"version": "1.1", "paths": {"a.css": "a.0123456789ab.css"}}')
    storage = Storage(location=tmp_path, base_url="/static/")
    assert (storage.url("a.css"), storage.url("new.css")) == ("/static/a.0123456789ab.css", "/static/new.css")


@pytest.mark.parametrize(
    "path",
    [
        "/static/staticfiles.json",
        "/static/../secret.0123456789ab.txt",
        "/static/probes/../../secret.0123456789ab.txt",
        "/static//first.0123456789ab.css",
        "/static/folder.0123456789ab.css",
        "/static/a\0b.0123456789ab.css",
        f"/static/{'x' * 300}.0123456789ab.css",
    ],
)
def test_nothing_else_is_served(collected: StaticFiles, folder: Path, path: str):
    (folder.parent / "secret.0123456789ab.txt").write_text("secret")
    (folder / "folder.0123456789ab.css").mkdir()
    collect(folder, NEW, at_s=2)
    assert status_of(collected, path) == 404


def test_only_what_has_changed_is_compressed_again(tmp_path: Path):
    file, expected = tmp_path / "a.css", [f"{tmp_path}/a.css.br", f"{tmp_path}/a.css.gz"]
    file.write_text("a { color: red }\n" * 100)
    compressor, compressed = ChangedFiles(quiet=True), []
    compressor.compress_gzip = lambda data: compressed.append(data) or b"x"
    for changed, times in ((False, 1), (False, 1), (True, 2)):
        if changed:
            os.utime(file, (1, 1))
        assert (compressor.compress(str(file)), len(compressed)) == (expected, times)


def test_a_content_with_two_names_is_compressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    contents: list[bytes] = []
    for name in ("compress_brotli", "compress_gzip"):
        monkeypatch.setattr(Compressor, name, staticmethod(lambda data: contents.append(data) or b"x"))
    content = "a { color: red }"
    compressor = ChangedFiles(quiet=True)
    for name in ("a.css", "a.0123456789ab.css"):
        (tmp_path / name).write_text(content)
        compressor.compress(str(tmp_path / name))
    assert contents == [content.encode()] * 2
    assert {path.read_bytes() for path in tmp_path.glob("*.css.*")} == {b"x"}
    assert len(list(tmp_path.glob("*.css.*"))) == 4


def test_no_content_is_kept_in_memory(tmp_path: Path):
    content = "a { color: red }" * 100_000
    (tmp_path / "a.css").write_text(content)
    compressor = ChangedFiles(quiet=True)
    tracemalloc.start()
    try:
        assert len(compressor.compress(str(tmp_path / "a.css"))) == 2
        assert tracemalloc.get_traced_memory()[0] < len(content) / 10
    finally:
        tracemalloc.stop()
