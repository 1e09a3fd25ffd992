"""Each check passes on a right site and fails on a site with the mistakes that it must notice."""

from __future__ import annotations

import socket
from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec import structs

from bench.errors import BenchError
from bench.machine.ports import free_port
from bench.serve import connections
from bench.serve.connections import Connections
from bench.verify import slow, suite, wire
from bench.verify.check import BEHAVIOUR
from bench.verify.checks import database
from bench.verify.suite import all_checks
from tests.bench.verify.conftest import KEPT, verified
from tests.bench.verify.fake_http import serving
from tests.bench.verify.fake_site import FakeSite, commands

# Check -> the mistakes of the fake site that it must notice.
MISTAKES = {
    "status": ["error-page", "soft-404"],
    "content": ["other-content", "other-charset", "token-on-pages", "no-image"],
    "render-id": ["no-render-id", "same-render-id"],
    "no-cookies": ["cookie-on-pages", "token-on-pages"],
    "references": ["no-css", "octets"],
    "repeat": ["keeps", "keeps kept-other-bytes"],
    "hit": [],
    "kept-headers": [],
    "encodings": ["gzip-not", "gzip-varies-not"],
    "not-found": ["plain-404", "soft-404"],
    "out-of-range": ["last-page-for-any", "plain-404"],
    "server-error": ["bare-500", "soft-500", "tells-500"],
    "head": ["head-with-body", "head-without-type", "head-other-length"],
    "conditional": ["never-304", "always-304"],
    "redirects": ["port-lost", "open-redirect"],
    "static-files": ["short-small", "octets", "chunks-for-1.0"],
    "static-content": ["gzip-other-file", "gzip-varies-not", "plain-css"],
    "static-lifetime": ["short-lived", "plain-immutable", "unhashed"],
    "static-conditional": ["no-validator", "never-304"],
    "static-manifest": ["serves-manifest"],
    "static-range": ["no-ranges", "wrong-total", "odd-range-fails"],
    "path-escapes": ["escapes", "soft-404"],
    "odd-paths": ["odd-breaks", "odd-injects", "soft-404"],
    "broken-escapes": ["percent-breaks", "percent-dropped"],
    "unknown-host": ["any-host"],
    "no-host": ["any-host"],
    "forged-headers": ["believes-proto", "believes-host", "believes-script-name"],
    "forged-names": ["believes-underscores"],
    "interpreter": ["other-python", "as-root", "no-probe"],
    "client": ["no-address", "believes-address", "believes-proto", "no-probe", "probe-garbled"],
    "odd-cookies": ["odd-session-breaks"],
    "odd-bytes": ["bytes-kill"],
    "underscores": ["believes-underscored-proto"],
    "underscores-dropped": ["passes-underscores"],
    "many-headers": ["many-headers-close", "many-headers-break"],
    "keep-alive": ["forgets-after-first"],
    "pipelining": ["drops-pipelined", "forgets-after-first"],
    "http-1.0": ["chunks-for-1.0", "open-after-1.0"],
    "slow-request": ["impatient"],
    "slow-reader": ["cuts-large"],
    "protocol-word": ["repeats-protocol"],
    "plain-http2": ["takes-http2", "upgrades"],
    "login-page": ["shared-token"],
    "post-without-token": ["no-csrf", "any-token"],
    "login": ["login-fails", "cookie-for-scripts", "login-elsewhere"],
    "own-name": ["nameless", "varies-not"],
    "no-foreign-name": ["leaks", "anonymous-for-all", "first-for-all"],
    "comment": ["comment-lost", "late-for-author", "late-for-others", "no-form"],
    "comment-needs-login": ["anonymous-comments"],
    "comment-without-token": ["no-csrf"],
    "logout": ["session-lives"],
    "concurrency": ["busy", "other-charset"],
    "slow-bodies": [],
    "slow-headers": [],
    "login-limit": ["logins-unlimited", "limit-without-time", "limits-the-form"],
    "length-body": ["body-left"],
    "chunked-body": ["chunks-ignored", "chunks-dropped"],
    "chunked-in-pieces": ["chunks-ignored", "chunks-dropped"],
    "chunked-smuggling": ["chunks-ignored", "length-wins"],
    "two-lengths": ["keeps-two-lengths"],
    "broken-chunk": ["chunk-breaks"],
    "upload": ["upload-breaks", "reset-upload"],
    "database-connections": ["connections-run-out"],
    "database-hangs": [],
    "database-stops": [],
    "log-bytes": [],
    "accounts-apart": ["leaks", "anonymous-for-all", "nameless"],
}
# Ways in which servers differ and are all right.
RIGHT = ["", "closes", "closes-silently", "refuses-chunks", "absolute"]


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return FakeSite(tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="module")
def url(stub):
    with serving(stub) as url:
        yield url


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(wire, "TIMEOUT_S", 0.6)
    monkeypatch.setattr(database, "CLIENTS", 8)
    monkeypatch.setattr(connections, "LEFT_S", 0.1)
    monkeypatch.setattr(slow, "OTHERS_S", 0.1)


def failed(stub, url, only=(), layer="none"):
    """The outcomes of the checks that fail."""
    outcomes = verified(url, stub.site(), layer, checks=only, groups=[BEHAVIOUR])
    return [item for item in outcomes if not item.ok]


@pytest.mark.parametrize("manner", RIGHT)
def test_a_right_site_passes_every_check(stub, url, manner):
    stub.reset(*manner.split())
    assert failed(stub, url) == []


def test_a_right_site_with_cached_pages_passes_every_check(stub, url):
    stub.reset("keeps")
    assert failed(stub, url, layer=KEPT) == []


@pytest.mark.parametrize(("name", "mistake"), [(name, mistake) for name in MISTAKES for mistake in MISTAKES[name]])
def test_a_wrong_site_fails_the_check(stub, url, name, mistake):
    stub.reset(*mistake.split())
    # The checks with an account need the `login` check.
    (stage,) = (item.stage for item in all_checks() if item.name == name)
    only = ["login", name] if stage == "account" else [name]
    found = {item.check: item for item in failed(stub, url, only)}
    assert name in found, f"{name} does not notice {mistake}"
    assert found[name].expected
    assert found[name].got


def test_every_check_has_a_mistake_that_it_notices():
    assert list(MISTAKES) == [item.name for item in all_checks() if item.group == BEHAVIOUR]


def test_a_layer_that_caches_nothing_fails_the_hit_check(stub, url):
    stub.reset()
    (outcome,) = failed(stub, url, ["hit"], layer=KEPT)
    assert outcome.got.startswith("33 renderings for 33 requests")
    assert outcome.request.startswith("curl -i --path-as-is ")
    assert outcome.request.endswith(" http://127.0.0.1:8000/")


def test_cached_pages_without_their_security_headers_fail(stub, url):
    stub.reset("keeps", "kept-bare")
    outcomes = {item.check: item for item in failed(stub, url, ["hit", "kept-headers"], layer=KEPT)}
    assert list(outcomes) == ["kept-headers"]
    assert outcomes["kept-headers"].expected.startswith("GET /, a hit: X-Frame-Options: DENY")


def test_a_layer_of_fragments_alone_need_not_hit(stub, url):
    stub.reset()
    assert failed(stub, url, ["hit"], layer="fragments") == []


def test_a_hit_with_other_bytes_fails_the_repeat_check(stub, url):
    stub.reset("keeps", "kept-other-bytes")
    (outcome,) = failed(stub, url, ["repeat"], layer=KEPT)
    assert "a hit: the same bytes" in outcome.expected


def test_a_stale_anonymous_page_is_right_only_with_a_layer(stub, url):
    stub.reset("keeps")
    assert failed(stub, url, ["status", "login", "comment"], layer=KEPT) == []
    stub.reset("keeps")
    (outcome,) = failed(stub, url, ["status", "login", "comment"], layer="none")
    assert outcome.check == "comment"


def test_the_account_and_its_comment_are_removed_after_a_failure_too(stub, url):
    for mistake, posts in (("", ["--post", "1"]), ("login-fails", [])):
        stub.reset(*mistake.split())
        verified(url, stub.site(), checks=["login", "comment"])
        made, removed = commands(stub.folder)[-2:]
        assert made[:2] == ["verifyaccount", "create"]
        assert removed == ["verifyaccount", "delete", "verify-0-7f3a", *posts]


def test_no_account_is_made_when_no_check_needs_one(stub, url):
    stub.reset()
    before = commands(stub.folder)
    assert failed(stub, url, ["status", "head"]) == []
    assert commands(stub.folder) == before


def test_a_declared_check_is_not_run_and_has_its_reason(stub, url):
    stub.reset("never-304")
    outcomes = verified(url, stub.site(), declared={"conditional": "no validators"}, checks=["conditional"])
    assert [(item.ok, item.declared, item.got) for item in outcomes] == [(True, "no validators", None)]


def test_an_unknown_check_is_reported_with_the_known_ones(stub, url):
    with pytest.raises(BenchError, match=r"^no check is called 'heads'; did you mean head\?$"):
        verified(url, stub.site(), checks=["heads"])


@pytest.mark.parametrize(("threads", "fails"), [(7, True), (8, False)])
def test_a_stack_holds_as_many_database_connections_as_threads(stub, url, monkeypatch, threads, fails):
    stub.reset()
    monkeypatch.setattr(Connections, "count", lambda self: 30)
    case = SimpleNamespace(threads=4 * threads)
    running = SimpleNamespace(case=case, env={"DATABASE_URL": "postgresql:///site"})
    (outcome,) = verified(url, stub.site(), checks=["database-connections"], running=running)
    assert outcome.ok is not fails
    assert outcome.figures == {"database_connections": 30, "database_connections_left": 30}
    if fails:
        assert outcome.got == "30 connections; 30 connections"


@pytest.mark.parametrize("name", ["slow-bodies", "slow-headers"])
@pytest.mark.parametrize("mistake", ["", pytest.param("one-thread", marks=pytest.mark.servers)])
def test_slow_clients_hold_up_nobody(stub, url, name, mistake):
    stub.reset(mistake)
    running = SimpleNamespace(case=SimpleNamespace(threads=1), env={})
    (outcome,) = verified(url, stub.site(), checks=[name], running=running)
    assert outcome.ok is not bool(mistake)


@pytest.mark.parametrize("mistake", ["", "logs-hosts"])
def test_a_malformed_request_costs_little_log(stub, url, tmp_path, mistake):
    stub.reset(mistake)
    stub.log = tmp_path / "site.log"
    running = SimpleNamespace(log_bytes=lambda: stub.log.stat().st_size if stub.log.exists() else 0, env={})
    (outcome,) = verified(url, stub.site(), checks=["log-bytes"], running=running)
    assert outcome.ok is not bool(mistake)
    assert outcome.figures["log_bytes_foreign_host"] == (2000 if mistake else 0)


@pytest.mark.parametrize("strict", [True, False])
def test_the_log_of_a_project_may_name_an_address_unless_it_is_strict(stub, url, tmp_path, strict):
    stub.reset("logs-paths")
    stub.log = tmp_path / "site.log"
    running = SimpleNamespace(log_bytes=lambda: stub.log.stat().st_size if stub.log.exists() else 0, env={})
    site = stub.site()
    site = replace(site, description=structs.replace(site.description, strict=strict))
    (outcome,) = verified(url, site, checks=["log-bytes"], running=running)
    assert outcome.ok is not strict
    assert outcome.figures["log_bytes_broken_escape"] == 2014


def test_a_missing_server_fails_every_check(stub):
    stub.reset()
    outcomes = verified(f"http://127.0.0.1:{free_port()}", stub.site())
    assert [item.check for item in outcomes if item.ok] == [
        "hit",
        "kept-headers",
        "slow-bodies",
        "slow-headers",
        "database-hangs",
        "database-stops",
        "log-bytes",
    ]
    assert {item.expected for item in outcomes if not item.ok and item.check == "status"} == {"a complete answer"}


def test_the_suite_gives_up_a_silent_server(stub, monkeypatch):
    stub.reset()
    monkeypatch.setattr(suite, "SUITE_LIMIT_S", 0.5)
    monkeypatch.setattr(wire, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        outcomes = verified(url, stub.site(), checks=["status", "head", "redirects"])
    assert not any(item.ok for item in outcomes)
    assert outcomes[-1].got == "not tried: the suite has taken 0.5 s already"
