"""Finished pages as files: which are stored, where, for how long, and races."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory, override_settings

from benchapp.caching.invalidation import StalePages
from benchapp.caching.stores.files import GENERATION, LOCKS, FileLocks, FileStore, StoreInFiles
from benchapp.management.commands import expirepages
from benchapp.models import Comment, Post
from tests.app.conftest import Rows, account

HTML = "<!doctype html><p>page</p>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "pages"


@pytest.fixture
def pages(root: Path) -> FileStore:
    return FileStore(root)


@pytest.fixture
def layer(site_with: Callable[..., AbstractContextManager[None]], root: Path) -> Iterator[None]:
    """The site with the layer on."""
    with site_with(CACHING_STATICGENERATOR_ROOT=str(root)):
        yield


def files(root: Path) -> list[str]:
    """The stored pages and all other files below the root except the generation and the locks."""
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if str(path) != GENERATION and path.parts[0] != LOCKS)


def put(pages: FileStore, *paths: str, body: bytes = b"page") -> None:
    for path in paths:
        assert pages.put(path, body, pages.generation())


def layer_settings(root: Path) -> override_settings:
    return override_settings(CACHING_LAYERS={"staticgenerator": {"root": root}})


def answer(root: Path, response: HttpResponse, request: HttpRequest | None = None) -> list[str]:
    """The files after a request that the site answers with `response`."""
    with layer_settings(root):
        request = request or RequestFactory().get("/posts/")
        assert StoreInFiles(lambda _: response)(request) is response
    return files(root)


# -- which pages are stored ------------------------------------------------------------------------------------


def test_pages_are_stored_as_they_were_sent(layer: None, rows: Rows, client: Client, root: Path):
    paths = ["/", "/posts/", "/posts/page/2/", f"/posts/{rows.post.pk}/", f"/posts/{rows.post.pk}/page/2/"]
    for path in paths:
        response = client.get(path)
        file = root.joinpath(*path.strip("/").split("/"), "index.html")
        assert file.read_bytes() == response.content, path
    assert len(files(root)) == len(paths)


def test_uncacheable_pages_are_not_stored(layer: None, rows: Rows, client: Client, root: Path):
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


def test_pages_of_accounts_are_not_stored(layer: None, rows: Rows, root: Path):
    reader = account("margaret")
    for path in ["/", "/posts/", f"/posts/{rows.post.pk}/"]:
        assert b"margaret" in reader.get(path).content
    assert files(root) == []
    reader.cookies["sessionid"] = "forged"
    reader.get("/posts/")
    assert files(root) == []


def test_cookies_that_the_site_never_reads_do_not_matter(layer: None, rows: Rows, client: Client, root: Path):
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
        {"Vary": "Cookie, Accept-Encoding"},
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


# -- names -------------------------------------------------------------------------------------------

HOSTILE = [
    "",
    "/posts",
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
def test_hostile_urls_are_answered_and_leave_no_file(layer: None, db: None, client: Client, root: Path, path: str):
    assert client.get(path).status_code == 404
    assert files(root) == []
    assert [entry.name for entry in root.parent.iterdir() if entry != root] == []


def test_names_below_the_root_and_no_two_alike(pages: FileStore, root: Path):
    paths = ["/", "/a/", "/A/", "/a/b/", "/a b/", "/a%20b/", "/é/", "/a:b/", "/-/", f"/{'a' * 200}/", "/~/"]
    found = [pages.file_of(path) for path in paths]
    assert len(set(found)) == len(paths)
    for file in found:
        assert file.resolve().is_relative_to(root)
        assert file.name == "index.html"
    put(pages, *paths)
    assert len(files(root)) == len(paths)


# -- purging -----------------------------------------------------------------------------------------


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
    layer: None, rows: Rows, client: Client, root: Path, django_capture_on_commit_callbacks: Callable
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


# -- races -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stale", [StalePages(frozenset({"/posts/"})), StalePages(prefixes=frozenset({"/"}))])
def test_a_slow_rendering_does_not_bring_stale_data_back(root: Path, stale: StalePages):
    def slow(request: HttpRequest) -> HttpResponse:
        response = HttpResponse("old")
        FileStore(root).purge(stale)  # a write commits during this rendering
        return response

    with layer_settings(root):
        StoreInFiles(slow)(RequestFactory().get("/posts/"))
        assert files(root) == []
        StoreInFiles(lambda _: HttpResponse("new"))(RequestFactory().get("/posts/"))
    assert (root / "posts" / "index.html").read_text() == "new"


def test_a_root_emptied_by_hand_is_a_new_generation(pages: FileStore, root: Path):
    generation = pages.generation()
    (root / GENERATION).unlink()
    assert not pages.put("/posts/", b"old", generation)
    assert pages.generation() != generation
    assert files(root) == []


def test_a_directory_purged_under_a_writer_takes_the_page_with_it(pages: FileStore, root: Path, monkeypatch):
    put(pages, "/posts/page/2/")
    generation, write_bytes = pages.generation(), Path.write_bytes

    def write_and_lose(self: Path, data: bytes) -> int:
        written = write_bytes(self, data)
        pages.purge(StalePages(prefixes=frozenset({"/posts/"})))
        return written

    monkeypatch.setattr(Path, "write_bytes", write_and_lose)
    assert not pages.put("/posts/page/3/", b"old", generation)
    assert files(root) == []


def test_readers_never_see_part_of_a_page(pages: FileStore, root: Path):
    """Eight readers, two writers and a purger on one page for a while."""
    file = pages.file_of("/posts/")
    bodies = {letter.encode() * 200_000 for letter in "abcd"}
    stop, seen, wrong = threading.Event(), set(), []

    def read() -> None:
        while not stop.is_set():
            try:
                body = file.read_bytes()
            except FileNotFoundError:
                continue
            seen.add(body[:1])
            if body not in bodies:
                wrong.append(len(body))

    def write() -> None:
        while not stop.is_set():
            for body in bodies:
                pages.put("/posts/", body, pages.generation())

    def purge() -> None:
        while not stop.is_set():
            pages.purge(StalePages(prefixes=frozenset({"/posts/"})))
            stop.wait(0.01)

    threads = [threading.Thread(target=target) for target in [read] * 8 + [write] * 2 + [purge]]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 20
    while len(seen) < 4 and time.monotonic() < deadline:
        stop.wait(0.05)
    stop.wait(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(seen) == 4
    assert [name for name in files(root) if name != "posts/index.html"] == []


WRITER = """
import sys
from pathlib import Path
import django
django.setup()
from benchapp.caching.stores.files import FileStore
pages = FileStore(Path(sys.argv[1]))
print("writing", flush=True)
while True:
    for number in range(1, 50):
        pages.put(f"/posts/{number}/", b"x" * 300_000, pages.generation())
"""


def test_a_killed_writer_leaves_whole_pages_only(root: Path, pages: FileStore):
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, str(root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=settings.BASE_DIR) as writer:
            assert writer.stdout.readline() == b"writing\n"
            deadline = time.monotonic() + 20
            while not (root / "posts" / "9" / "index.html").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            writer.send_signal(signal.SIGKILL)
        whole = list(root.rglob("index.html"))
        assert whole
        assert {file.stat().st_size for file in whole} == {300_000}
        # The lock died with its holder.
        pages.purge(StalePages(prefixes=frozenset({"/"})))
    # What a killed writer left half done goes with time.
    pages.expire(seconds=-1)
    assert files(root) == []


# -- age ---------------------------------------------------------------------------------------------


def make_old(file: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(file, (moment, moment))


def test_old_pages_temporary_files_and_empty_directories_expire(pages: FileStore, root: Path):
    put(pages, "/", "/posts/", "/posts/page/2/", "/comments/page/9/")
    (root / "posts" / ".tmp-1").write_bytes(b"half")
    for name in ["posts/page/2/index.html", "comments/page/9/index.html", "posts/.tmp-1", GENERATION]:
        make_old(root / name, 61)
    generation = pages.generation()
    assert pages.expire(60) == (2, 2)
    assert files(root) == ["index.html", "posts/index.html"]
    assert not (root / "comments").exists()
    assert pages.generation() == generation


def test_expirepages_once(layer: None, rows: Rows, client: Client, root: Path, capsys):
    client.get("/posts/")
    client.get("/comments/")
    make_old(root / "posts" / "index.html", 61)
    call_command("expirepages", "--once")
    assert capsys.readouterr().out == f"1 removed, 1 stay in {root}\n"


def test_expirepages_without_the_layer_says_what_to_set(db: None):
    with pytest.raises(CommandError, match="the layer is off: set CACHING_STATICGENERATOR_ROOT"):
        call_command("expirepages", "--once")


def test_expirepages_removes_old_pages_until_sigterm(root: Path, pages: FileStore):
    put(pages, "/posts/")
    environment = os.environ | {"CACHING_STATICGENERATOR_ROOT": str(root), "BENCHAPP_CACHE_SECONDS": "1"}
    command = [sys.executable, "manage.py", "expirepages"]
    with subprocess.Popen(command, env=environment, cwd=settings.BASE_DIR, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 20
        while files(root) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert files(root) == []
        assert process.poll() is None
        process.terminate()
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("seconds", "interval"), [(60, 6), (86_400, 30)])
def test_expirepages_sweeps_often_even_with_a_long_time_to_live(
    pages: FileStore, monkeypatch: pytest.MonkeyPatch, seconds: int, interval: int
):
    waited: list[float] = []

    class Stop:
        """Set after the first wait."""

        def wait(self, seconds: float) -> bool:
            waited.append(seconds)
            return True

    monkeypatch.setattr(expirepages.threading, "Event", Stop)
    monkeypatch.setattr(expirepages.signal, "signal", lambda *_: None)
    expirepages.expire_until_stopped(pages, seconds)
    assert waited == [interval]


def test_the_oldest_pages_above_the_limit_are_removed(pages: FileStore, root: Path):
    put(pages, "/a/", "/b/", "/c/", body=b"x" * 1000)
    for number, name in enumerate("abc"):
        os.utime(root / name / "index.html", (time.time() - 30 + number,) * 2)
    assert pages.expire(60, max_bytes=2500) == (1, 2)
    assert files(root) == ["b/index.html", "c/index.html"]


def test_the_temporary_file_of_a_killed_writer_expires(pages: FileStore, root: Path):
    killed = """
import os, pathlib, signal, sys
from benchapp.caching.stores.files import FileStore
def half(path, body):
    with open(path, "wb") as file:
        file.write(body[: len(body) // 2])
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path.write_bytes = half
pages = FileStore(pathlib.Path(sys.argv[1]))
pages.put("/a/", b"page" * 1000, pages.generation())
"""
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": "sqlite://:memory:"}
    prelude = "import django; django.setup()"
    done = subprocess.run([sys.executable, "-c", prelude + killed, str(root)], cwd=settings.BASE_DIR, env=env)
    assert done.returncode == -signal.SIGKILL
    assert not (root / "a" / "index.html").exists()
    assert [path.stat().st_size for path in (root / "a").iterdir()] == [2000]
    pages.expire(0)
    assert not (root / "a").exists()


# -- render locks -------------------------------------------------------------------------------------


def test_locks_in_files_expire(tmp_path: Path):
    locks = FileLocks(tmp_path / "locks")
    assert locks.add("lock:a", "rendering", 60)
    assert not locks.add("lock:a", "rendering", 60)
    assert locks.get("lock:a") == "rendering"
    locks.set("lock:a", "uncacheable", -1)
    assert locks.get("lock:a") is None
    assert [locks.add("lock:a", "rendering", 60) for _ in range(2)] == [False, True]
