"""Finished pages as files: which are stored, where, for how long, and races."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from benchapp.caching.stores.files import FileStore, middleware
from tests.app.caching.stored import HTML, files, layer_settings, put


def test_an_unusable_root_costs_no_visitor_the_page(tmp_path: Path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with layer_settings(blocked / "pages"):
        response = middleware(lambda _: HttpResponse(HTML))(RequestFactory().get("/posts/"))
    assert response.content.decode() == HTML
    assert "pages cannot be stored: " in caplog.text


def test_names_below_the_root_and_no_two_alike(pages: FileStore, root: Path):
    paths = ["/", "/a", "/a/", "/A/", "/a/b", "/a/b/", "/a%20b/", "/%C3%A9/", "/-/", "/a.b/", f"/{'a' * 198}/", "/~/"]
    assert not any(map(pages.file_of, ["/index.html/", "/posts/index.html/", "/.generation/", "/.tmp-1/"]))
    page_files = [pages.file_of(path) for path in paths]
    assert len(set(page_files)) == len(paths)
    for file in page_files:
        assert file.resolve().is_relative_to(root)
    put(pages, *paths)
    assert len(files(root)) == len(paths)


def test_a_full_disk_leaves_no_temporary_file(pages: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    generation = pages.generation()

    def full(file: Path, *content: object) -> None:
        file.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        pages.write("/a/", b"a page", generation)
    assert list(root.rglob(".tmp-*")) == []
