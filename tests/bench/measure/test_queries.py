"""How many queries a request takes, and none where a cache answers."""

from __future__ import annotations

from types import SimpleNamespace

from bench.measure import queries
from tests.bench.measure.numbered_site import site
from tests.cases import kit


def test_queries_are_weighed_by_the_workload_and_0_for_a_cache_hit(monkeypatch):
    def answer(handler):
        rendered = "same" if handler.path == "/cached/" else str(handler.number)
        headers = {} if handler.path == "/file/" else {"X-Render-Id": rendered}
        return b"x", {"Content-Length": "1", "Content-Type": "text/html; charset=utf-8", **headers}

    counted = {page: {"cold": 10, "warm": 4} for page in ("/", "/cached/", "/file/")}
    monkeypatch.setattr(queries, "count", lambda project, env, pages: counted)
    counter = queries.QueryCounter()
    addresses = ("/", "/", "/cached/", "/file/", "/static/a.css")
    with site(answer) as target:
        running = SimpleNamespace(url=target.url, env={}, case=SimpleNamespace(project=kit()))
        assert counter.per_request(running, "one", "none", addresses) == 8 / 5
        asked = target.server.asked.total()
        assert counter.per_request(running, "one", "none", addresses) == 8 / 5
        assert target.server.asked.total() == asked, "what is known is not asked again"
        assert counter.per_request(running, "one", "none", ("/static/a.css",)) == 0


def test_unknown_queries_are_not_measured(monkeypatch):
    running = SimpleNamespace(
        url="http://127.0.0.1:9", env={"DATABASE_URL": "sqlite:////nowhere/at/all"}, case=SimpleNamespace(project=kit())
    )
    counter = queries.QueryCounter()
    monkeypatch.setattr(queries, "count", lambda project, env, pages: {"/": {"cold": 1, "warm": 1}})
    assert counter.per_request(running, "one", "none", ("/",)) is None, "nobody answers"
