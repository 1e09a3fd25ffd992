"""The visitor who follows pages to their static files."""

from __future__ import annotations

import pytest

from bench.faults import follow
from bench.faults.follow import Follower
from bench.machine.http import VisitError
from tests.waiting import until

LINE = b"<!-- visit code=a template=a account=nobody rendered=1 static=/static/r.css -->\n"


@pytest.mark.parametrize(("status", "missing"), [(200, False), (404, True), (502, False), (None, False)])
def test_files_that_are_not_there_are_counted(monkeypatch, status, missing):
    monkeypatch.setattr(follow.http, "get", lambda url, path: LINE)
    monkeypatch.setattr(follow.http, "status", lambda url, path: status if path == "/static/r.css" else None)
    with Follower("http://x", "/page/", 0.001) as follower:
        until(lambda: follower.pages > 2, "pages")
    assert follower.missing == (follower.pages if missing else 0)


def test_pages_that_fail_are_left_to_others(monkeypatch):
    asked = []

    def get(url, path):
        asked.append(path)
        if len(asked) % 2:
            raise VisitError("status 502")
        return b"<p>another page"

    monkeypatch.setattr(follow.http, "get", get)
    with Follower("http://x", "/page/", 0.001) as follower:
        until(lambda: len(asked) > 4, "requests")
    assert (follower.pages, follower.missing) == (0, 0)
