"""Files of Nginx's own cache are removed by the paths of their pages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import md5
from pathlib import Path

import pytest

from benchapp.caching.external import nginx_files
from benchapp.caching.invalidation import StalePages, pages_invalidated

PATHS = ["/", "/posts/", "/posts/5/", "/posts/5/page/2/", "/posts/55/"]


def put(root: Path, path: str) -> Path:
    """A file as Nginx writes it: a binary header, the key, the response."""
    name = md5(path.encode()).hexdigest()
    file = root / name[-1] / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bytes(range(256)) + b"\nKEY: " + path.encode() + b"\nHTTP/1.1 200 OK\r\n\r\n\nKEY: /posts/5/\n")
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in PATHS:
        put(tmp_path, path)
    return tmp_path


def left(root: Path) -> list[str]:
    return [path for path in PATHS if nginx_files._file(root, path).exists()]


@pytest.mark.parametrize(
    ("stale", "stays"),
    [
        (StalePages(frozenset({"/posts/"})), ["/", "/posts/5/", "/posts/5/page/2/", "/posts/55/"]),
        (StalePages(prefixes=frozenset({"/posts/5/"})), ["/", "/posts/", "/posts/55/"]),
        (StalePages(frozenset({"/none/"}), frozenset({"/authors/"})), PATHS),
        (StalePages(prefixes=frozenset({"/"})), []),
    ],
)
def test_only_the_files_of_stale_pages_are_removed(root: Path, stale: StalePages, stays: list[str]):
    nginx_files.remove_files(root, stale)
    assert left(root) == stays


def test_a_response_that_was_on_its_way_is_removed_by_the_second_purge(
    tmp_path: Path, site_with: Callable[..., AbstractContextManager[None]], scheduled: list[Callable]
):
    options = {"DIRECTORY": str(tmp_path / "pages"), "GENERATION_FILE": str(tmp_path / "purged")}
    with site_with(**{f"CACHING_NGINX_MICROCACHE_{name}": value for name, value in options.items()}):
        pages_invalidated.send(sender=StalePages, stale=StalePages(frozenset({"/posts/"})))
        file = put(tmp_path / "pages", "/posts/")
        (second,) = scheduled
        second()
        assert not file.exists()


def test_a_missing_cache_directory_is_no_error(tmp_path: Path):
    nginx_files.remove_files(tmp_path / "none", StalePages(frozenset({"/"}), frozenset({"/posts/"})))
