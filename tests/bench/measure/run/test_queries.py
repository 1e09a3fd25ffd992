"""A database that the servers cannot use is named, and queries of a request are counted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.errors import GlobalFault
from bench.measure.records.records import CaseRecord
from bench.measure.run import local, queries
from bench.serve.deployment.database import Database
from bench.serve.machine import http
from bench.serve.machine.identity import worker
from tests.cases import kit

CASE = CaseRecord("one~none~home", "one", "none", "home", "unlimited", "sqlite")


@pytest.mark.parametrize("name", ["site.sqlite3", "site.sqlite3-wal"])
def test_a_file_that_the_servers_may_not_write_is_named(tmp_path, name):
    (tmp_path / "site.sqlite3").touch()
    worker().give_tree(tmp_path)
    closed = tmp_path / name
    closed.unlink(missing_ok=True)
    closed.touch()
    closed.chmod(0o444)
    with pytest.raises(GlobalFault) as error:
        local.check_database(kit(), Database("sqlite", f"sqlite:///{tmp_path / 'site.sqlite3'}"))
    user = worker().user
    assert str(error.value) == (
        f"the database cannot be used: {closed}: not writable by user {user}, which the servers run as; "
        f"chown it to {user} or set BENCH_USER"
    )


def test_queries_are_weighed_by_the_workload_and_0_for_a_cache_hit(monkeypatch):
    visits = []

    def visited(url, page):
        visits.append(page)
        rendered = "same" if page == "/cached/" else str(len(visits))
        headers = (("Content-Type", "text/html; charset=utf-8"), ("X-Render-Id", rendered))
        return http.Response(200, "HTTP/1.1", headers[: 1 if page == "/file/" else 2], b"")

    counted = {page: {"cold": 10, "warm": 4} for page in ("/", "/cached/", "/file/")}
    monkeypatch.setattr(queries, "count_queries", lambda project, env, pages: counted)
    monkeypatch.setattr(http, "page", visited)
    addresses = ("/", "/", "/cached/", "/file/", "/static/a.css")
    running = SimpleNamespace(url="", env={}, case=SimpleNamespace(project=kit()))
    assert queries.per_request(running, CASE, addresses) == 8 / 5
    times = len(visits)
    assert queries.per_request(running, CASE, addresses) == 8 / 5
    assert len(visits) == times, "what is known is not requested again"
    assert queries.per_request(running, CASE, ("/static/a.css",)) == 0


def test_unknown_queries_are_not_measured(monkeypatch):
    running = SimpleNamespace(
        url="http://127.0.0.1:9", env={"DATABASE_URL": "sqlite:////nowhere/at/all"}, case=SimpleNamespace(project=kit())
    )
    monkeypatch.setattr(queries, "count_queries", lambda project, env, pages: {"/": {"cold": 1, "warm": 1}})
    assert queries.per_request(running, CASE, ("/",)) is None, "nobody responds"
