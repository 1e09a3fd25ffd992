"""The suite besides its checks: selects, cleans up, reports skips and measures."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import threading
from dataclasses import fields, replace
from types import SimpleNamespace

import pytest
from msgspec import structs

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.deployment import connections
from bench.serve.deployment.connections import Connections
from bench.serve.machine import http
from bench.serve.machine.http import Sent
from bench.serve.machine.ports import free_port
from bench.verify import rows, suite
from bench.verify.changing import Changed
from bench.verify.check import BEHAVIOUR, Check, check, excused, require_strict
from bench.verify.checks import client_connections as visits
from bench.verify.checks import freshness, request_costs
from bench.verify.context import Accounts, Context
from bench.verify.mismatch import NEEDS_OWN, NEEDS_PROBES, Figure, Mismatch
from bench.verify.suite import LEFT_OUT, all_checks
from tests.bench.verify.conftest import KEPT, verified
from tests.bench.verify.mutant import FakeRunning, MutantSite

ALL = all_checks()
# Each sends requests to a separate process.
pytestmark = pytest.mark.servers


def outcomes_of(mutant, site, *names, layer=KEPT, running=None, **more):
    outcomes = verified(mutant.url, site, layer, checks=names, running=running, **more)
    return {item.check: item for item in outcomes}


def test_a_fragments_layer_need_not_hit(mutant, site):
    mutant.reset()
    assert outcomes_of(mutant, site, "hit", layer="fragments")["hit"].ok


def test_a_stale_anonymous_page_is_right_with_a_layer(mutant, site):
    mutant.reset("not-told", caches=True)
    assert all(item.ok for item in outcomes_of(mutant, site, "status", "login", "comment").values())


def test_the_accounts_are_removed_after_a_failure_too(mutant, site):
    MutantSite.removed.clear()
    mutant.reset("login-fails")
    outcomes_of(mutant, site, "login", "comment", layer="none")
    assert MutantSite.removed == [[account.username for account in site.accounts]]


def test_no_account_is_made_when_no_check_needs_one(mutant, site, monkeypatch):
    monkeypatch.setattr(MutantSite, "create_accounts", None)
    mutant.reset()
    assert all(item.ok for item in outcomes_of(mutant, site, "status", "head", layer="none").values())


def test_a_declared_check_is_not_run_and_has_its_reason(mutant, site, monkeypatch):
    monkeypatch.setattr(suite, "all_checks", lambda: [item for item in ALL if item.name == "not-found"])
    mutant.reset("soft-404")
    (item,) = verified(mutant.url, site, declared={"not-found": "it has none"})
    assert (item.word, item.known_limitation, item.got) == ("known limitation", "it has none", None)


def test_a_declared_check_that_is_named_is_seen_to_fail_or_is_wrong(mutant, site):
    mutant.reset("soft-404")
    item = outcomes_of(mutant, site, "not-found", declared={"not-found": "it has none"})["not-found"]
    assert (item.word, "status 200" in item.got) == ("known limitation", True)
    mutant.reset()
    item = outcomes_of(mutant, site, "not-found", declared={"not-found": "it has none"})["not-found"]
    assert (item.word, item.known_limitation) == ("failed", None)


def test_nothing_that_hands_one_visitor_s_page_to_another_can_be_declared(site):
    leaks = {item.name for item in all_checks() if not item.excusable}
    assert {"set-cookie", "authorization", "read-cookies", "vary", "nonce", "cache-control"} <= leaks
    assert {item.name for item in all_checks() if item.group in ("privacy", "advisories")} <= leaks
    assert not {"stampede", "told-of-writes", "hit-ratio", "whole-pages"} & leaks
    for name in sorted(leaks):
        with pytest.raises(BenchError) as raised:
            verified("http://127.0.0.1:1", site, KEPT, declared={name: "it cannot"})
        assert str(raised.value).startswith(f"{name}: ")


def test_a_run_leaves_out_what_an_unsafe_layer_is_known_to_fail(mutant, site):
    mutant.reset()
    unsafe = structs.replace(KEPT, unsafe="it gives pages to others")
    options = {"layer": unsafe, "unsafe": False}
    item = outcomes_of(mutant, site, "nonce", "orders", **options)["nonce"]
    assert (item.word, item.skipped) == ("skipped", "kept: it gives pages to others")
    for words in ({"layer": unsafe}, {"layer": KEPT, "unsafe": False}):
        assert outcomes_of(mutant, site, "nonce", **words)["nonce"].skipped is None


def test_django_s_own_caches_of_pages_say_that_they_are_unsafe_and_what_to_take():
    layers = catalog.read().layers
    unsafe = [name for name, layer in layers.items() if layer.unsafe]
    assert unsafe == ["site-middleware", "view-cache"]
    assert all("page-cache is recommended" in layers[name].unsafe for name in unsafe)


def test_no_stack_and_no_layer_declares_such_a_check():
    known = {item.name: item for item in ALL}
    parts = [*catalog.read().stacks.values(), *catalog.read().layers.values()]
    declared = {(part.name, item.check) for part in parts for item in part.declares}
    assert [(part, name) for part, name in declared if not known[name].excusable] == []


@pytest.mark.parametrize(("threads", "fails"), [(7, True), (8, False)])
def test_a_stack_holds_as_many_database_connections_as_threads(mutant, site, monkeypatch, threads, fails):
    mutant.reset()
    monkeypatch.setattr(request_costs, "CLIENTS", 8)
    monkeypatch.setattr(connections, "LEFT_S", 0.1)
    monkeypatch.setattr(Connections, "count", lambda self: 30)
    running = FakeRunning(mutant, threads=4 * threads)
    running.env = {"DATABASE_URL": "postgresql:///site"}
    item = outcomes_of(mutant, site, "database-connections", running=running)["database-connections"]
    assert item.ok is not fails
    assert item.figures == {"database_connections": 30, "database_connections_left": 30}
    assert item.got == ("30 connections; 30 connections" if fails else None)


@pytest.mark.parametrize(
    ("strict", "outcomes"),
    [
        (True, [("excused", False, None), ("silent", False, None), ("unmade", False, None)]),
        (False, [("excused", False, "it may"), ("silent", True, None), ("unmade", True, "not here")]),
    ],
)
def test_an_excuse_stands_in_place_of_what_another_project_may_do(site, strict, outcomes):
    def wrong(excuse):
        return Mismatch("this", "that", excuse=excuse)

    def mismatches(context):
        yield wrong("may")
        yield wrong("")

    checks = [
        check("excused")(excused({"may": "it may"})(mismatches)),
        check("silent")(excused({"may": ""})(lambda context: [wrong("may")])),
        check("unmade", require_strict("not here"))(lambda context: [wrong("")]),
    ]
    own = replace(site, description=structs.replace(site.description, strict=strict))
    context = Context(http.Target.parse("http://127.0.0.1:1"), own, (), Accounts(own, {}))
    results = [suite.outcome(context, item, suite.findings(item, context)) for item in checks]
    assert [(item.check, item.ok, item.skipped) for item in results] == outcomes


def test_an_excuse_that_a_check_does_not_declare_is_a_mistake(site):
    item = check("some")(lambda context: [Mismatch("this", "that", excuse="unknown")])
    own = replace(site, description=structs.replace(site.description, strict=False))
    context = Context(http.Target.parse("http://127.0.0.1:1"), own, (), Accounts(own, {}))
    assert not suite.outcome(context, item, suite.findings(item, context)).ok


@pytest.mark.parametrize("mistake", ["logs-paths", "logs-hosts"])
def test_what_a_project_logs_is_its_own(mutant, site, mistake):
    mutant.reset(mistake)
    own = replace(site, description=structs.replace(site.description, strict=False))
    item = outcomes_of(mutant, own, "log-bytes", running=FakeRunning(mutant))["log-bytes"]
    assert item.ok and "own logging" in item.skipped


def test_its_own_error_for_an_unknown_host_is_the_projects(mutant, site):
    mutant.reset("error-for-hosts")
    own = replace(site, description=structs.replace(site.description, strict=False))
    why = outcomes_of(mutant, own, "unknown-host")["unknown-host"].skipped
    assert "its own 500" in why


def test_a_health_check_that_responds_for_any_host_is_no_page_of_visitors(mutant, site):
    mutant.reset("any-host")
    path = site.urls["list"]
    own = replace(site, description=structs.replace(site.description, health=path, public=("/",)))
    wrong = [outcomes_of(mutant, it, "unknown-host")["unknown-host"].expected for it in (site, own)]
    # Three requests, for as many foreign hosts.
    assert [text.rpartition("; ")[2] for text in wrong] == ["and 9 more", "and 6 more"]


def test_a_missing_server_fails_every_check_but_those_of_caches(site):
    outcomes = verified(f"http://127.0.0.1:{free_port()}", site, groups=[BEHAVIOUR])
    assert {item.check for item in outcomes if item.ok and not item.skipped} <= {"hit", "kept-headers", "log-bytes"}
    (status,) = (item for item in outcomes if item.check == "status")
    assert status.expected == "a complete response"


def test_the_suite_gives_up_a_silent_server(site, monkeypatch):
    monkeypatch.setattr(suite, "SUITE_LIMIT_S", 0.1)
    monkeypatch.setattr(suite, "THREADS", 1)
    monkeypatch.setattr(http, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        first, *rest = verified(url, site, checks=["status", "head", "redirects"])
    assert not first.ok
    assert {item.skipped for item in rest} == {"the checks that failed have taken 0.1 s already"}


def test_a_slow_server_that_responds_rightly_is_tested_to_the_end(mutant, site, monkeypatch):
    monkeypatch.setattr(suite, "SUITE_LIMIT_S", 0.0)
    mutant.reset()
    outcomes = verified(mutant.url, site, checks=["status", "head", "redirects"])
    assert [item.word for item in outcomes] == ["passed"] * 3


def test_uploads_are_no_fault_of_a_stack_that_sends_no_files(mutant, site):
    mutant.reset("no-picture")
    uploads = replace(site, static_url="/elsewhere/", media_url=site.static_url)
    assert not outcomes_of(mutant, uploads, "references")["references"].ok
    unsent = outcomes_of(mutant, replace(uploads, sends_uploads=False), "references")["references"]
    assert unsent.ok and unsent.word == "skipped"


def test_a_file_that_a_page_names_and_nobody_has_is_no_fault_of_a_stack(mutant, site, tmp_path):
    mutant.reset("no-picture")
    other = replace(site, description=structs.replace(site.description, strict=False))
    assert not outcomes_of(mutant, other, "references")["references"].ok
    shutil.copytree(
        site.static, tmp_path / "static", ignore=shutil.ignore_patterns("*.svg", "*.png", "*.ico", "*.webp")
    )
    without = outcomes_of(mutant, replace(other, static=tmp_path / "static"), "references")["references"]
    assert without.ok and without.word == "skipped"
    # The same file as an upload, which is there, and which is not.
    uploads = replace(other, static_url="/elsewhere/", media_url=site.static_url, media=site.static)
    assert not outcomes_of(mutant, uploads, "references")["references"].ok
    assert outcomes_of(mutant, replace(uploads, media=tmp_path / "static"), "references")["references"].ok


class RedirectingSite(MutantSite):
    """A project that redirects any path to one with a slash."""

    def rendered_now(self, *paths, often=False):
        page = next(iter(self.pages.values()))
        return {path: replace(page, status=301) for path in paths}


@pytest.mark.parametrize(("check", "mistake"), [("path-escapes", "leads-beside"), ("broken-escapes", "percent-leads")])
def test_a_redirect_of_the_project_itself_is_neither_a_file_nor_another_page(mutant, site, check, mistake):
    mutant.reset(mistake)
    assert not outcomes_of(mutant, site, check)[check].ok
    values = {item.name: getattr(site, item.name) for item in fields(site)}
    assert outcomes_of(mutant, RedirectingSite(**values), check)[check].ok


def test_slow_pages_are_requested_by_fewer_clients_at_once():
    assert [visits.crowd(seconds) for seconds in (0.001, 0.5, 60)] == [100, 30, 10]


def test_left_out_thorough_checks_do_not_count_as_passed(mutant, site):
    mutant.reset(caches=True)
    outcomes = {item.check: item for item in verified(mutant.url, site, KEPT, groups=["web"], thorough=False)}
    assert {name for name, item in outcomes.items() if item.skipped == LEFT_OUT} == {
        *("junk-queries", "junk-cookies", "junk-hosts", "parameter-cloaking")
    }
    assert outcomes["junk-hosts"].word == "skipped" and outcomes["hit-ratio"].word == "passed"


def test_hit_ratios_are_figures(mutant, site):
    for mistake, ratio in (("", 1.0), ("cookie-variants", 0.0)):
        mutant.reset(mistake, caches=True)
        figures = outcomes_of(mutant, site, "hit-ratio")["hit-ratio"].figures
        assert (figures["hit_ratio_no_cookie"], figures["hit_ratio_analytics_cookies"]) == (1.0, ratio)


def test_a_running_site_without_probe_views_is_not_tried(mutant, site):
    mutant.reset("no-probe")
    outcomes = outcomes_of(mutant, site, "cache-control", "render-id", "keeps-site", "hit", "public-pages")
    assert {item.skipped for item in outcomes.values()} == {NEEDS_PROBES}


def test_a_busy_machine_hides_no_stale_page(mutant, site, monkeypatch):
    """The time of an invalidation is over before the page is requested for the first time."""
    monkeypatch.setattr(rows, "INVALIDATED_S", -1.0)
    mutant.reset("keeps-late", caches=True)
    assert not outcomes_of(mutant, site, "slow-rendering", running=FakeRunning(mutant))["slow-rendering"].ok


def test_a_layer_without_invalidation_is_right_after_its_ttl(mutant, site, monkeypatch):
    monkeypatch.setattr(freshness, "SHORT_TTL_S", 0.4)
    mutant.reset("not-told", caches=True)
    expiring = structs.replace(KEPT, invalidation="")
    names = ("told-of-writes", "time-to-live")
    outcomes = outcomes_of(mutant, site, *names, layer=expiring, running=FakeRunning(mutant))
    assert outcomes["told-of-writes"].skipped == "no write invalidates kept: see time-to-live"
    assert outcomes["time-to-live"].ok
    assert {"old_p50_ms", "old_max_ms"} <= outcomes["time-to-live"].figures.keys()


def test_a_request_to_a_deployment_with_other_values_is_repeated_with_them(mutant, site, monkeypatch):
    monkeypatch.setattr(freshness, "SHORT_TTL_S", 0.4)
    monkeypatch.setattr(rows, "SLACK_S", 0.4)
    mutant.reset("not-told", "never-expires", caches=True)
    expiring = structs.replace(KEPT, invalidation="")
    item = outcomes_of(mutant, site, "time-to-live", layer=expiring, running=FakeRunning(mutant))["time-to-live"]
    assert item.serve == "python -m bench up stub --layer kept --set cache_seconds=0.4 --port 8000"
    assert "http://127.0.0.1:8000/" in item.request


def test_a_request_to_a_deployment_with_more_environment_is_repeated_with_it(mutant, site):
    mutant.reset("keeps-beside-public", caches=True)
    item = outcomes_of(mutant, site, "named-public", running=FakeRunning(mutant))["named-public"]
    words = shlex.split(item.serve)
    assert words[words.index("--env") + 1] == 'BENCHAPP_PUBLIC=["/__probe__/"]'


def test_a_request_is_repeated_at_the_printed_address_only(mutant, site):
    sent = Sent("http://127.0.0.1:271", "GET", "/", (("Origin", "http://127.0.0.1:271"),), host="127.0.0.1:2715")
    target, running = http.Target.parse("http://127.0.0.1:271"), FakeRunning(mutant)
    context = Context(target, site, (), Accounts(site, {}), stack="stub", running=running)
    item = suite.outcome(context, all_checks()[0], [Mismatch("this", "that", sent)])
    assert shlex.split(item.request)[-5:] == [
        *("-H", "Host: 127.0.0.1:2715", "-H", "Origin: http://127.0.0.1:8000", "http://127.0.0.1:8000/")
    ]


def test_checks_that_need_a_deployment_are_not_tried_on_a_target(mutant, site):
    mutant.reset(caches=True)
    names = (
        "time-to-live",
        "whole-pages",
        "cve-2020-24584",
        "log-bytes",
    )
    assert {item.skipped for item in outcomes_of(mutant, site, *names).values()} == {NEEDS_OWN}


def test_other_pages_that_change_by_themselves_are_found_before_a_layer_stores_them(monkeypatch):
    order = []
    monkeypatch.setattr(suite, "changed", lambda site: order.append("changed") or Changed())
    pages = {"/": SimpleNamespace(varies=True), "/clock/": SimpleNamespace(varies=False)}
    site = SimpleNamespace(has_database=True, pages=pages)
    checks = [Check("one", lambda _: order.append("one") or (), "")]
    suite._Suite(Context(None, site, (), None), checks, None).run()
    assert order == ["changed", "one"]


def test_checks_that_only_request_run_at_the_same_time_before_the_exclusive_ones():
    order, both = [], threading.Barrier(2, timeout=10)
    context = Context(None, SimpleNamespace(has_database=False), (), None)

    def request(name):
        order.append(name)
        if name != "alone":
            both.wait()
        return ()

    def purging(context):
        order.append("purging")
        if not context.is_exclusive:
            both.wait()
        context.require_exclusive()
        yield Figure("pages", 1)

    checks = [
        Check("one", lambda _: request("one"), ""),
        Check("alone", lambda _: request("alone"), "", is_exclusive=True),
        Check("purging", purging, ""),
    ]
    by_name = suite._Suite(context, checks, None).run()
    # That which turns out to need all of the site is made once more, in its place.
    assert (sorted(order[:2]), order[2:]) == (["one", "purging"], ["alone", "purging"])
    assert {name: len(findings) for name, findings in by_name.items()} == {"one": 0, "alone": 0, "purging": 1}


def test_an_advisory_is_proved_by_other_checks(mutant, site):
    mutant.reset("keeps-vary-star", caches=True)
    (item,) = outcomes_of(mutant, site, "cve-2026-6907").values()
    assert (item.group, item.ok) == ("advisories", False)


def test_the_links_to_advisories_match_the_checks():
    text = (paths.KIT / "docs" / "cache-safety.md").read_text("utf-8")
    listed = [name.lower() for name in re.findall(r"\[(CVE-[0-9-]+)\]", text)]
    assert sorted(listed) == sorted(item.name for item in all_checks() if item.group == "advisories")


def test_a_second_server_with_a_separate_cache_does_not_share_it(mutant, site):
    from bench.verify.checks.cached_responses import served_by

    first = Context(http.Target.parse(mutant.url), site, (KEPT,), Accounts(site, {}))
    other = replace(first)
    mutant.reset(caches=True)
    assert list(served_by(first, other)) == []
    other.get = lambda path, **how: SimpleNamespace(
        render_id=None, status=200, content=b"", paragraphs={}, wrong=lambda *words: words
    )
    ((expected, _),) = served_by(first, other)
    assert expected == "at the second server, the page that the first stored"
