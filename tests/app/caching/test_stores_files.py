"""Finished pages as files: which are stored, where, for how long, and races."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from benchapp.caching.stores.files import FileStore, middleware
from benchapp.models import Comment, Post
from tests.app.caching.stored import HTML, files, layer_settings, put
from tests.app.conftest import Rows, account


def test_pages_are_stored_as_they_were_sent(staticgenerator: None, rows: Rows, client: Client, root: Path):
    paths = ["/", "/posts/", "/posts/page/2/", f"/posts/{rows.post.pk}/", f"/posts/{rows.post.pk}/page/2/"]
    for path in paths:
        response = client.get(path)
        file = root.joinpath(*path.strip("/").split("/"), "index.html")
        assert file.read_bytes() == response.content, path
    assert len(files(root)) == len(paths)


def test_uncacheable_pages_are_not_stored(staticgenerator: None, rows: Rows, client: Client, root: Path):
    client.get("/posts/?page=2")
    client.head("/posts/")
    client.post("/posts/")
    client.get("/posts/page/1/")
    client.get("/posts/page/99/")
    client.get("/posts/jump/?page=2")
    client.get("/login/")
    client.get("/healthz")
    client.get("/static/small.txt").close()
    client.get("/posts/", headers={"Authorization": "Basic eDp5"})
    reader = account("margaret")
    for path in ["/", "/posts/", f"/posts/{rows.post.pk}/"]:
        assert b"margaret" in reader.get(path).content
    assert files(root) == []


def test_an_unusable_root_costs_no_visitor_the_page(tmp_path: Path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with layer_settings(blocked / "pages"):
        response = middleware(lambda _: HttpResponse(HTML))(RequestFactory().get("/posts/"))
    assert response.content.decode() == HTML
    assert "pages cannot be stored: " in caplog.text


HOSTILE = [
    "",
    "posts/",
    "//",
    "/posts//",
    "/../",
    "/posts/../../etc/",
    "/./",
    "/posts/./",
    "/.../",
    "/.generation/",
    "/.tmp-1/",
    "/a\0b/",
    "/a\nb/",
    "/a\r\nb/",
    "/a\\..\\b/",
    "/\ud800/",
    "/index.html/",
    "/posts/index.html/",
    f"/{'a' * 201}/",
    f"/{'é' * 101}/",
    "/" + "a/" * 500,
]


@pytest.mark.parametrize("path", HOSTILE)
def test_names_that_get_no_file(pages: FileStore, path: str):
    assert pages.file_of(path) is None


@pytest.mark.parametrize("path", ["/..%2f..%2fetc/", "/%2e%2e/x/", "/a%00b/", "/a%0d%0ab/", "/" + "a" * 255 + "/"])
def test_hostile_urls_are_answered_and_leave_no_file(
    staticgenerator: None, db: None, client: Client, root: Path, path: str
):
    assert client.get(path).status_code == 404
    assert files(root) == []
    assert [entry.name for entry in root.parent.iterdir() if entry != root] == []


def test_names_below_the_root_and_no_two_alike(pages: FileStore, root: Path):
    paths = ["/", "/a", "/a/", "/A/", "/a/b", "/a/b/", "/a%20b/", "/%C3%A9/", "/-/", "/a.b/", f"/{'a' * 198}/", "/~/"]
    found = [pages.file_of(path) for path in paths]
    assert len(set(found)) == len(paths)
    for file in found:
        assert file.resolve().is_relative_to(root)
    put(pages, *paths)
    assert len(files(root)) == len(paths)


def test_a_comment_purges_its_pages(
    staticgenerator: None, rows: Rows, client: Client, root: Path, django_capture_on_commit_callbacks: Callable
):
    other = Post.objects.exclude(pk=rows.post.pk).latest("id")
    for path in ["/", "/posts/", "/comments/", "/comments/page/2/", f"/posts/{rows.post.pk}/", f"/posts/{other.pk}/"]:
        client.get(path)
    assert len(files(root)) == 6
    with django_capture_on_commit_callbacks(execute=True):
        Comment.objects.create(post=rows.post, name="Z", body="Fresh words.", rating=3)
    assert files(root) == [f"posts/{other.pk}/index.html", "posts/index.html"]
    client.get("/comments/")
    assert "Fresh words." in (root / "comments" / "index.html").read_text()


def test_a_full_disk_leaves_no_temporary_file(pages: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    generation = pages.generation()

    def full(file: Path, *content: object) -> None:
        file.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        pages.write("/a/", b"a page", generation)
    assert list(root.rglob(".tmp-*")) == []
