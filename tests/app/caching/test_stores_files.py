"""Finished pages as files: which are stored, where, for how long, and races."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from benchapp.caching.invalidation import StalePages
from benchapp.caching.stores.files import FileStore, StoreInFiles
from benchapp.models import Comment, Post
from tests.app.caching.stored import HTML, files, layer_settings, put
from tests.app.conftest import Rows, account


def answer(root: Path, response: HttpResponse, request: HttpRequest | None = None) -> list[str]:
    """The files after a request that the site answers with `response`."""
    with layer_settings(root):
        request = request or RequestFactory().get("/posts/")
        assert StoreInFiles(lambda _: response)(request) is response
    return files(root)


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
    assert files(root) == []


def test_pages_of_accounts_are_not_stored(staticgenerator: None, rows: Rows, root: Path):
    reader = account("margaret")
    for path in ["/", "/posts/", f"/posts/{rows.post.pk}/"]:
        assert b"margaret" in reader.get(path).content
    assert files(root) == []
    reader.cookies["sessionid"] = "forged"
    reader.get("/posts/")
    assert files(root) == []


def test_cookies_that_the_site_never_reads_do_not_matter(staticgenerator: None, rows: Rows, client: Client, root: Path):
    client.cookies["_ga"] = "GA1.2.3"
    client.get("/posts/")
    assert files(root) == ["posts/index.html"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Cache-Control": "private"},
        {"Cache-Control": "max-age=60, PRIVATE"},
        {"Cache-Control": "No-Store"},
        {"Cache-Control": "no-cache"},
        {"Cache-Control": 'private="Set-Cookie, X"'},
        {"Cache-Control": "max-age = 0"},
        {"Cache-Control": "s-maxage=0"},
        {"Vary": "*"},
        {"Vary": "Cookie, Accept-Language"},
        {"Vary": "Cookie , *"},
        {"Set-Cookie": "a=b"},
        {"Content-Encoding": "gzip"},
        {"Content-Type": "text/plain; charset=utf-8"},
        {"Content-Type": "text/html; charset=latin-1"},
        {"Content-Type": "application/json"},
        # A file says what all pages say, no more and nothing else.
        {"Cache-Control": "public, max-age=60"},
        {"ETag": '"a"'},
        {"Content-Language": "fr"},
        {"Content-Security-Policy": "default-src 'none'"},
        {"X-Frame-Options": "SAMEORIGIN"},
    ],
)
def test_headers_that_forbid_storing(root: Path, headers: dict[str, str]):
    assert answer(root, HttpResponse(HTML, headers=headers)) == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Vary": "Cookie"},
        {"Vary": "cookie"},
        {"Content-Type": "text/html;charset=UTF-8"},
        {"X-Frame-Options": "DENY"},
    ],
)
def test_headers_that_allow_storing(root: Path, headers: dict[str, str]):
    assert answer(root, HttpResponse(HTML, headers=headers)) == ["posts/index.html"]


@pytest.mark.parametrize("status", [201, 204, 206, 301, 304, 404, 500])
def test_other_statuses_are_not_stored(root: Path, status: int):
    assert answer(root, HttpResponse(HTML, status=status)) == []


def test_streams_and_cookies_are_not_stored(root: Path):
    assert answer(root, StreamingHttpResponse([HTML.encode()])) == []
    response = HttpResponse(HTML)
    response.set_cookie("a", "b")
    assert answer(root, response) == []


def test_a_page_above_a_megabyte_is_stored_whole(root: Path):
    body = "x" * 1_200_000
    assert answer(root, HttpResponse(body)) == ["posts/index.html"]
    assert (root / "posts" / "index.html").stat().st_size == 1_200_000


@pytest.mark.parametrize(("name", "stored"), [("sessionid", []), ("csrftoken", ["posts/index.html"])])
def test_a_session_forbids_storing(root: Path, name: str, stored: list[str]):
    request = RequestFactory(headers={"Cookie": f"{name}=x"}).get("/posts/")
    assert answer(root, HttpResponse(HTML), request) == stored


def test_an_unusable_root_costs_no_visitor_the_page(tmp_path: Path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with layer_settings(blocked / "pages"):
        response = StoreInFiles(lambda _: HttpResponse(HTML))(RequestFactory().get("/posts/"))
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


def test_purge_removes_exact_paths_and_everything_below_prefixes(pages: FileStore, root: Path):
    put(pages, "/", "/posts/", "/posts/page/2/", "/posts/1/", "/posts/1/page/2/", "/posts/10/", "/comments/")
    pages.purge(StalePages(frozenset({"/", "/posts/"}), frozenset({"/posts/page/", "/posts/1/"})))
    assert files(root) == ["comments/index.html", "posts/10/index.html"]


def test_purge_of_everything_keeps_the_root_usable(pages: FileStore, root: Path):
    put(pages, "/", "/posts/", "/posts/page/2/")
    pages.purge(StalePages(prefixes=frozenset({"/"})))
    assert files(root) == []
    put(pages, "/posts/")
    assert files(root) == ["posts/index.html"]


def test_purge_of_pages_that_are_not_stored_is_no_error(pages: FileStore, root: Path):
    pages.purge(StalePages(frozenset({"/posts/1/"}), frozenset({"/posts/page/", "/", "/../"})))
    assert files(root) == []


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


def test_nothing_is_written_when_the_layer_is_off(
    rows: Rows, client: Client, root: Path, django_capture_on_commit_callbacks: Callable
):
    client.get("/")
    with django_capture_on_commit_callbacks(execute=True):
        Comment.objects.create(post=rows.post, name="Z", body="z", rating=3)
    assert not root.exists()


def test_a_full_disk_leaves_no_temporary_file(pages: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch):
    generation = pages.generation()

    def full(file: Path, *content: object) -> None:
        file.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "write_bytes", full)
    for write in (
        lambda: pages.write("/a/", b"a page", generation),
        lambda: pages.locks.add("key", "rendering", 10),
        lambda: pages.locks.set("key", "uncacheable", 10),
    ):
        with pytest.raises(OSError, match="No space"):
            write()
    assert list(root.rglob(".tmp-*")) == []
