"""The described write, on a site with one stale page in a cache."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from bench.serve.machine.http import Target
from bench.verify.checks.freshness import becomes_fresh
from bench.verify.in_process import ExpectedPage
from bench.verify.mismatch import Figure, Mismatch
from bench.verify.wire import PageResponse

HTML = "text/html;charset=utf-8"
# A page in two languages, and the address of its row, renamed by the write.
BEFORE = {"/en/a/": '<a href="/row/old/">old</a>', "/de/a/": "alt", "/row/old/": "old"}
AFTER = {"/en/a/": '<a href="/row/new/">new</a>', "/de/a/": "neu", "/row/new/": "new"}
BOUND_S = 0.1


class Site:
    """A site whose cache keeps some pages for ever."""

    def __init__(self, kept: str) -> None:
        self.kept, self.pages = kept, BEFORE
        self.site, self.env, self.bypass, self.has_database = self, {}, {}, True
        self.target, self.static_url, self.media_url = Target("http", "127.0.0.1", 80), "/static/", ""
        self.description = SimpleNamespace(write=SimpleNamespace(page="/en/a/", command="rename"))

    def require_writes(self) -> None:
        pass

    def run_write(self, words: list[str], env: Any) -> None:
        self.pages = AFTER

    def rendered_now(self, *paths: str) -> dict[str, ExpectedPage]:
        return {path: self.rendered(path, self.pages) for path in paths}

    def rendered(self, path: str, pages: dict[str, str]) -> ExpectedPage:
        return ExpectedPage(200, HTML, pages[path]) if path in pages else ExpectedPage(404, HTML, "not here")

    def get(self, path: str, headers: Any = ()) -> PageResponse:
        page = self.rendered(path, BEFORE if path == self.kept else self.pages)
        return PageResponse(page.status, "1.1", (("Content-Type", HTML),), page.body.encode())

    def first(self, path: str) -> PageResponse:
        return PageResponse(200, "1.1", (), json.dumps({"languages": ["en", "de"]}).encode())


@pytest.mark.parametrize("kept", ["/en/a/", "/de/a/", "/row/old/"])
def test_a_stale_version_and_an_old_address_are_found(kept):
    results = list(becomes_fresh(Site(kept), BOUND_S))  # type: ignore[arg-type]
    assert [type(item) for item in results] == [Mismatch]
    assert kept in results[0].expected


def test_a_site_that_shows_the_write_everywhere_is_right():
    results = list(becomes_fresh(Site("/none/"), BOUND_S))  # type: ignore[arg-type]
    assert [type(item) for item in results] == [Figure]
