"""Each check of a layer passes on a right layer and fails on one with the mistakes that it must notice."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.verify import wire
from bench.verify.checks import privacy, web
from bench.verify.suite import LEFT_OUT, all_checks
from tests.bench.verify import conftest

# Each needs a second or more of requests or of other programs.
pytestmark = pytest.mark.servers

GROUPS = ("caching", "privacy", "web", "bytes", "names")
# They need deployments of their own, which a fake layer has not; test_shared.py has their mistakes.
OF_DEPLOYMENTS = ["shared-cache"]
# Check -> the mistakes of the fake layer that it must notice.
MISTAKES = {
    "keeps-pages": ["keeps-nothing", "kept-cut"],
    "keeps-site": ["keeps-nothing", "kept-cut"],
    "other-statuses": ["keeps-statuses"],
    "cache-control": ["keeps-private", "keeps-spelt"],
    "own-lifetime": ["keeps-early"],
    "set-cookie": ["keeps-cookies", "shares-token"],
    "vary": ["keeps-vary-star", "keeps-variants", "reads-first-vary"],
    "authorization": ["keeps-authorized answers-authorized", "answers-authorized"],
    "other-methods": ["keeps-posts"],
    "streaming": ["keeps-streams", "kept-cut keeps-streams"],
    "broken-off": ["keeps-broken"],
    "orders": ["keeps-sessions", "leaks", "nameless"],
    "cold-pages": ["keeps-sessions"],
    "signed-in-not-kept": ["keeps-sessions", "answers-signed-in", "first-cookie-only"],
    "own-token-works": ["keeps-sessions", "any-token", "comment-lost", "no-form"],
    "personal-at-once": ["shares-token"],
    "hit-ratio": ["cookie-variants", "some-cookies-variants", "keeps-nothing"],
    "parameters": ["query-ignored", "query-sorted"],
    "junk-queries": ["keeps-queries", "flooded", "keeps-nothing"],
    "junk-cookies": ["cookies-flood", "keeps-nothing"],
    "junk-hosts": ["any-host", "hosts-flood", "keeps-hosts"],
    "public-pages": ["keeps-nothing", "cookie-variants", "keeps-cookies cookie-on-pages"],
    "codings": ["gzip-not", "gzip-varies-not", "kept-coded"],
    "head-first": ["keeps-heads", "head-other-length"],
    "ranges": ["keeps-parts", "other-parts", "wrong-total"],
    "conditions": ["keeps-unmodified", "any-tag-matches"],
    "headers-kept": ["loses-headers", "adds-age", "kept-as-html"],
    "large-page": ["cuts-large-pages"],
    "odd-names": ["unquotes-keys", "lower-keys", "odd-names-break"],
    "long-names": ["short-keys"],
    "raw-names": ["cuts-raw", "raw-names-break"],
    "other-files": ["serves-own-files", "serves-own-keys", "soft-404"],
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(wire, "TIMEOUT_S", 2.0)
    monkeypatch.setattr(privacy, "COLD_S", 0.3)
    monkeypatch.setattr(web, "FLOOD", 60)
    monkeypatch.setattr(web, "SAMPLE", 10)
    monkeypatch.setattr(web, "MAX_ADDED", 5)


def verified(stub, url, only=(), **more):
    how = {"groups": GROUPS, "layer": "varnish"} | more
    return {item.check: item for item in conftest.verified(url, stub.site(), checks=only, **how)}


@pytest.mark.parametrize("manner", ["", "closes"])
def test_a_right_layer_passes_every_check(stub, url, manner):
    stub.reset(*manner.split())
    found = verified(stub, url).values()
    assert [item.check for item in found if not item.ok or item.not_tried] == OF_DEPLOYMENTS


@pytest.mark.parametrize(("name", "mistake"), [(name, mistake) for name in MISTAKES for mistake in MISTAKES[name]])
def test_a_wrong_layer_fails_the_check(stub, url, name, mistake):
    stub.reset(*mistake.split())
    found = verified(stub, url, [name])[name]
    assert not found.ok, f"{name} does not notice {mistake}"
    assert found.expected
    assert found.got


def test_every_check_has_a_mistake_that_it_notices():
    names = [item.name for item in all_checks() if item.group in GROUPS]
    assert list(MISTAKES) == [name for name in names if name not in OF_DEPLOYMENTS]


def test_without_a_layer_none_of_them_is_made(stub, url):
    stub.reset()
    assert verified(stub, url, layer="none") == {}


@pytest.mark.parametrize(("name", "mistake"), [("junk-queries", "keeps-queries"), ("junk-cookies", "cookie-variants")])
def test_a_flood_adds_no_entries(stub, url, tmp_path, name, mistake):
    running = SimpleNamespace(store=tmp_path, env={}, entries=lambda: 0)
    stub.reset()
    assert verified(stub, url, [name], running=running)[name].ok
    stub.reset(mistake)
    found = verified(stub, url, [name], running=running)[name]
    assert not found.ok
    assert found.figures["entries_added"] > 10
    assert "entries added to the store" in found.expected


def test_left_out_thorough_checks_do_not_count_as_passed(stub, url):
    stub.reset()
    found = verified(stub, url, groups=["web"], thorough=False)
    assert {name: item.not_tried for name, item in found.items()} == {
        "hit-ratio": None,
        "parameters": None,
        "junk-queries": LEFT_OUT,
        "junk-cookies": LEFT_OUT,
        "junk-hosts": LEFT_OUT,
        "public-pages": None,
    }
    assert found["junk-hosts"].word == "not tried"


def test_what_stops_a_page_from_being_cached_is_named(stub, url):
    stub.reset("cookie-on-pages")
    for name in ("keeps-site", "public-pages"):
        found = verified(stub, url, [name])[name]
        assert found.ok
        assert found.not_tried.startswith("/ is not cached: it sets the cookie seen; ")


def test_hit_ratios_are_figures(stub, url):
    stub.reset()
    assert verified(stub, url, ["hit-ratio"])["hit-ratio"].figures == {
        "hit_ratio_no_cookie": 1.0,
        "hit_ratio_csrf_cookie": 1.0,
        "hit_ratio_analytics_cookies": 1.0,
    }
    stub.reset("cookie-variants")
    assert verified(stub, url, ["hit-ratio"])["hit-ratio"].figures["hit_ratio_analytics_cookies"] == 0.0


def test_a_running_site_without_probe_views_is_not_tried(stub, url):
    stub.reset("no-probe")
    found = verified(stub, url, ["cache-control"])["cache-control"]
    assert (found.ok, found.not_tried) == (
        True,
        "it needs the probe views: start the site with the app `bench.inside`, see docs/cache-safety.md",
    )
