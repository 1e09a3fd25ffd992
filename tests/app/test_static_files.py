"""The plain files of the static benchmark, and what /static/ answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.conf import settings as site
from django.http import HttpResponse
from django.test import RequestFactory

from config.static_files import ChangedFiles, StaticFiles

STATIC = Path(site.BASE_DIR) / "static"


@pytest.mark.parametrize(("name", "size"), [("small.txt", 99), ("large.txt", 1_500_000)])
def test_the_files_of_the_benchmark_have_its_sizes(name: str, size: int):
    assert (STATIC / name).stat().st_size == size


@pytest.fixture
def collected(tmp_path, settings) -> StaticFiles:
    """WhiteNoise over a directory of collected files that was empty when it began; other answers are 404."""
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STATIC_ROOT.mkdir()
    settings.WHITENOISE_USE_FINDERS = False
    return StaticFiles(lambda request: HttpResponse(status=404))


# Names that collectstatic makes: a hash of twelve digits before the ending.
NEW = "probes/new.0123456789ab.css"


@pytest.mark.django_db  # the end of an answer looks after the database's connections
def test_a_file_that_is_collected_later_is_served(collected: StaticFiles, tmp_path: Path):
    get = RequestFactory().get
    assert collected(get(f"/static/{NEW}")).status_code == 404
    file = tmp_path / "static" / NEW
    file.parent.mkdir()
    file.write_text("p {}")
    Path(f"{file}.gz").write_bytes(b"compressed")
    answer = collected(get(f"/static/{NEW}"))
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, b"p {}")
    assert "immutable" in answer.headers["Cache-Control"]
    answer.close()


@pytest.mark.django_db
def test_files_that_are_replaced_meanwhile_keep_no_worker_from_starting(collected: StaticFiles, tmp_path: Path):
    """A deploy collects static files while processes start: a file can be gone between its listing and its reading."""
    for name in ("kept.css", "replaced.css"):
        (tmp_path / "static" / name).write_text("p {}")
    look, lost = collected.add_file_to_dictionary, iter([True])

    def add(url: str, path: str, stat_cache=None) -> None:
        if path.endswith("replaced.css") and next(lost, False):
            raise FileNotFoundError(path)
        look(url, path, stat_cache)

    collected.add_file_to_dictionary = add
    collected.add_files(str(tmp_path / "static"), "static/")
    assert {"/static/kept.css", "/static/replaced.css"} <= set(collected.files)


@pytest.mark.parametrize(
    "path",
    [
        "/static/plain.css",
        "/static/staticfiles.json",
        "/static/../secret.0123456789ab.txt",
        "/static/probes/../../secret.0123456789ab.txt",
        "/static//probes/x.0123456789ab.css",
        "/static/folder.0123456789ab.css",
        "/static/a\0b.0123456789ab.css",
        f"/static/{'x' * 300}.0123456789ab.css",
    ],
)
def test_nothing_else_is_served_later(collected: StaticFiles, tmp_path: Path, path: str):
    (tmp_path / "secret.0123456789ab.txt").write_text("secret")
    root = tmp_path / "static"
    (root / "folder.0123456789ab.css").mkdir()
    for name in ("plain.css", "staticfiles.json"):
        (root / name).write_text("{}")
    request = RequestFactory().get("/")
    request.path_info = path
    assert collected(request).status_code == 404


def test_only_what_has_changed_is_compressed_anew(tmp_path: Path):
    file, made = tmp_path / "a.css", [f"{tmp_path}/a.css.br", f"{tmp_path}/a.css.gz"]
    file.write_text("a { color: red }\n" * 100)
    compressor, compressed = ChangedFiles(quiet=True), []
    compressor.compress_gzip = lambda data: compressed.append(data) or b"x"
    for changed, times in ((False, 1), (False, 1), (True, 2)):
        if changed:
            os.utime(file, (1, 1))
        assert (compressor.compress(str(file)), len(compressed)) == (made, times)
