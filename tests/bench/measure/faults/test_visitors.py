"""Requests of visitors, and their rate."""

from __future__ import annotations

import pytest

from bench.measure.faults import visitors
from bench.measure.faults.visitors import CLOSE, NOBODY, job, pages, parse_page_marker, rate_of, watch_static_links
from tests.waiting import until

ACCOUNTS = [("me", "sessionid=1"), ("you", "sessionid=2")]


def test_pages_of_nobody_of_two_accounts_and_files_are_requested():
    requested = pages("t", ACCOUNTS, "/static/x.css")
    assert {page.account for page in requested} == {NOBODY, "me", "you", None}
    assert len({page.path for page in requested if page.account == NOBODY}) == visitors.ANONYMOUS
    # An account requests the same page as visitors without an account: a layer may confuse them.
    assert {page.path for page in requested if page.cookie} == {requested[0].path}
    assert all(page.cookie == dict(ACCOUNTS).get(page.account, "") for page in requested)


def test_pages_of_the_project_are_requested_beside_them():
    own = [visitors.RequestedPage("/prices/", ttl_s=30)]
    assert own[0] in (requested := pages("t", ACCOUNTS, "/static/x.css", own)) and len(requested) % 2


@pytest.mark.parametrize("accounts", [ACCOUNTS, ACCOUNTS[:1], []])
def test_each_page_is_requested_on_new_and_on_kept_connections(accounts):
    requested = pages("t", accounts, "/static/x.css")
    visitor_job = job("http://127.0.0.1:1", requested, 10, 50)
    closing = {
        (path, headers.replace(CLOSE, "")): set()
        for path, headers in zip(visitor_job.paths, visitor_job.headers, strict=True)
    }
    for path, headers in zip(visitor_job.paths, visitor_job.headers, strict=True):
        closing[path, headers.replace(CLOSE, "")].add(CLOSE in headers)
    assert set(map(frozenset, closing.values())) == {frozenset({True, False})}
    assert visitor_job.mark and not job("http://127.0.0.1:1", requested, 10, None).mark


@pytest.mark.parametrize(("capacity", "rate"), [(3, 5), (90, 30), (10_000, 200)])
def test_they_visit_at_a_third_of_the_capacity_within_bounds(capacity, rate):
    assert rate_of(capacity) == rate


def test_nobody_waits_for_a_connection_while_the_site_hangs():
    assert job("http://127.0.0.1:1", pages("t", ACCOUNTS, "/static/x.css"), 10, rate_of(10_000)).connections > (
        rate_of(10_000) * visitors.PATIENCE_S
    )


def test_what_a_page_says_is_read_at_its_end_only():
    line = "<!-- visit code=a template=b account=c rendered=1.5 static=/s -->"
    assert parse_page_marker(f"<html></html>\n{line}\n") == ("a", "b", "c", "1.5", "/s")
    assert parse_page_marker(f"{line}<p>more") is None
    assert parse_page_marker("<html></html>") is None


LINE = b"<!-- visit code=a template=a account=nobody rendered=1 static=/static/r.css -->\n"


@pytest.mark.parametrize(("status", "missing"), [(200, False), (404, True), (502, False), (None, False)])
def test_static_files_that_are_not_there_are_counted(monkeypatch, status, missing):
    monkeypatch.setattr(visitors.http, "get", lambda url, path: LINE)
    monkeypatch.setattr(visitors.http, "status", lambda url, path: status if path == "/static/r.css" else None)
    with watch_static_links("http://x", "/page/", 0.001) as seen:
        until(lambda: len(seen) > 2, "pages")
    assert set(seen) == {missing}
