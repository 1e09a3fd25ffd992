"""Each check passes on the real site, and fails by name on the site with its mutation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from bench.serve.deployment import connections
from bench.serve.machine import http
from bench.verify import hits, rows, suite
from bench.verify.check import ACCOUNT, BEHAVIOUR
from bench.verify.checks import freshness, lasting, privacy, request_costs, stampede, stored_files, web
from bench.verify.site import MAX_PAGES
from bench.verify.suite import all_checks
from tests.bench.verify import mutations, test_broken
from tests.bench.verify.conftest import KEPT, verified
from tests.bench.verify.mutant import FakeRunning

# Each sends requests to a separate process, and takes some seconds in all.
pytestmark = pytest.mark.servers

# Check -> the mutations to be noticed.
NOTICED = {
    "status": "error-everywhere",
    "content": "other-content other-charset",
    "render-id": "no-render-id same-render-id",
    "no-cookies": "cookie-on-pages token-on-pages",
    "references": "octets no-picture",
    "repeat": "same-render-id other-content kept-other",
    "hit": "keeps-nothing",
    "kept-headers": "kept-bare",
    "encodings": "gzip-varies-not",
    "not-found": "plain-404 soft-404",
    "out-of-range": "last-page-for-any",
    "server-error": "bare-500 soft-500 tells-500",
    "head": "head-with-body head-without-type head-other-length",
    "conditional": "tags tags+always-304",
    "redirects": "port-lost",
    "static-files": "short-small chunks-for-1.0",
    "static-types": "octets",
    "static-content": "gzip-other-file plain-css",
    "static-lifetime": "short-lived plain-immutable unhashed",
    "static-conditional": "no-validator never-304",
    "static-manifest": "serves-manifest",
    "static-range": "no-ranges wrong-total odd-range-fails",
    "path-escapes": "escapes soft-404 serves-beside leads-beside",
    "odd-paths": "odd-breaks odd-injects",
    "broken-escapes": "percent-dropped percent-leads",
    "unknown-host": "error-for-hosts",
    "no-host": "any-host",
    "health-by-address": "health-by-name",
    "forged-headers": "believes-host believes-prefix prefixes-links",
    "forged-names": "passes-underscores+believes-host",
    "interpreter": "other-python as-root",
    "client": "believes-address no-probe probe-garbled",
    "forwarded-for": "believes-first passes-forwarded-for",
    "odd-cookies": "odd-session-breaks",
    "odd-bytes": "bytes-kill",
    "underscores": "passes-underscores+believes-proto",
    "underscores-dropped": "passes-underscores",
    "many-headers": "many-headers-close many-headers-break",
    "keep-alive": "forgets-after-first",
    "pipelining": "drops-pipelined",
    "http-1.0": "chunks-for-1.0 open-after-1.0 more-after-1.0",
    "slow-request": "impatient",
    "slow-reader": "cuts-large",
    "protocol-word": "repeats-protocol",
    "plain-http2": "takes-http2 upgrades",
    "websocket": "breaks-on-upgrade upgrades",
    "concurrency": "busy other-charset",
    "login-page": "shared-token",
    "post-without-token": "no-csrf",
    "login": "login-fails cookie-for-scripts login-elsewhere",
    "own-name": "nameless not-private shown-after-logout",
    "no-foreign-name": "anonymous-for-all first-for-all session-on-pages",
    "comment": "comment-lost late-for-others no-form",
    "comment-needs-login": "anonymous-comments",
    "comment-without-token": "no-csrf",
    "logout": "session-lives",
    "login-limit": (
        "logins-unlimited login-unlimited admin-unlimited limit-without-time limits-the-form limits-the-admin"
    ),
    "login-spellings": "spaces-unlimited",
    "login-addresses": "logins-unlimited believes-first",
    "length-body": "body-left",
    "chunked-body": "chunks-ignored chunks-dropped",
    "chunked-in-pieces": "chunks-dropped",
    "chunked-smuggling": "chunks-ignored length-wins",
    "two-lengths": "keeps-two-lengths",
    "broken-chunk": "chunk-breaks",
    "upload": "upload-breaks reset-upload",
    "large-upload": "refuses-uploads",
    "database-connections": "connections-run-out",
    "log-bytes": "logs-hosts logs-paths",
    "accounts-apart": "nameless first-of-a-process",
    "told-of-writes": (
        "second-not-told told-before-commit forgets-home forgets-later-pages updates-not-told "
        "shows-rolled-back rows-unanswered"
    ),
    "rows-counted": "miscounts counts-what-moved",
    "told-of-old-pages": "old-not-told",
    "told-of-authors": "forgets-posts",
    "told-of-commands": "commands-not-told",
    "told-of-deploys": "commands-not-told",
    "read-your-write": "not-told",
    "slow-rendering": "keeps-late",
    "time-to-live": "never-expires old-for-the-first keeps-what-is-gone",
    "stampede": "each-renders breaks",
    "stampede-slow": "uncacheable-wait",
    "whole-pages": "tears hoards",
    "keeps-pages": "keeps-nothing kept-cut kept-other",
    "keeps-site": "kept-cut",
    "other-statuses": "keeps-statuses",
    "cache-control": "keeps-spelt keeps-elsewhere",
    "own-lifetime": "keeps-early keeps-without-age",
    "set-cookie": "keeps-cookies",
    "vary": "keeps-vary-star keeps-variants reads-first-vary",
    "authorization": "keeps-authorized answers-authorized",
    "nonce": "keeps-nonces keeps-nonces-in-tags keeps-nonces-with-lifetime",
    "partial-requests": "keeps-pieces keeps-made-up keeps-origins",
    "read-cookies": "kept-coded",
    "depends-address": "shares-addresses first-address",
    "depends-host": "shares-hosts first-host",
    "depends-token": "shares-cookies first-cookies",
    "depends-cookies": "shares-cookies first-cookies",
    "depends-headers": "shares-headers first-headers chooses-language shows-session+first-headers",
    "time-kept": "lasts-double lasts-half lasts-as-said",
    "purge-door": "purges-for-all",
    "reloads": "renders-reloads",
    "coded-hits": "keeps-no-coded",
    "not-public": "names-public+keeps-beside-public",
    "named-public": "keeps-beside-public keeps-nothing",
    "other-methods": "keeps-posts keeps-bodies",
    "streaming": "keeps-streams",
    "broken-off": "keeps-broken",
    "shared-cache": "keeps-nothing not-told",
    "orders": "keeps-sessions nameless session-on-pages",
    "cold-pages": "keeps-private+keeps-sessions+keeps-cookies",
    "signed-in-not-kept": "keeps-sessions first-cookie-only",
    "forged-internal": "believes-internal+keeps-private",
    "own-token-works": "keeps-sessions",
    "personal-at-once": "shared-token",
    "hit-ratio": "some-cookies-variants keeps-nothing",
    "parameters": "query-sorted",
    "junk-queries": "keeps-queries keeps-nothing",
    "junk-cookies": "cookie-variants",
    "junk-hosts": "any-host hosts-flood keeps-hosts keeps-ports",
    "public-pages": "keeps-nothing cookie-variants keeps-cookies+cookie-on-pages",
    "codings": "gzip-not kept-coded",
    "head-first": "keeps-heads head-other-length",
    "ranges": "keeps-parts other-parts refuses-ranges",
    "conditions": "keeps-unmodified always-304",
    "headers-kept": "loses-headers adds-age says-its-second+keeps-its-second",
    "large-page": "cuts-large-pages kept-other",
    "odd-names": "lower-keys odd-breaks",
    "long-names": "short-keys",
    "raw-names": "cuts-raw raw-names-break",
    "other-files": "serves-own-files serves-own-keys",
    "absolute-target": "follows-target target-poisons",
    "odd-websockets": "breaks-on-upgrade traces-handshakes handshake-kills",
    "odd-lines": "splits-lines sends-controls",
    "odd-framing": "loose-lengths",
    "copied-header": "many-headers-break",
    "chunked-limit": "endless-chunks",
    "server-names": "tells-capitals any-host",
    "cache-deception": "keeps-disguised",
    "stored-errors": "stores-errors",
    "parameter-cloaking": "reads-semicolons",
    "cve-2014-1418": "strips-for-old",
    "cve-2020-24584": "open-folders",
    "cve-2026-25674": "open-files",
    "cve-2026-113593": "keeps-variants",
    "cve-2026-42544": "handshake-kills",
    "cve-2026-134820": "loose-lengths",
    "cve-2026-33034": "endless-chunks",
}
PAIRS = [(name, wrong) for name, every in NOTICED.items() for wrong in every.split()]
# Differences between right servers; without any, the right layer's site below gets the same requests.
RIGHT = ("closes-silently", "closes+refuses-chunks+absolute")
# Each client gets a separate page, from no cache, by its address or by the mere name of its session's cookie.
OF_EACH = {"shows-address": "depends-address", "shows-session": "depends-headers"}
# Numbers of requests, and fixed waits of checks.
SMALLER = (
    (request_costs, {"CLIENTS": 8}),
    (connections, {"LEFT_S": 0.1}),
    (freshness, {"OWN_WRITES": 2, "SHORT_TTL_S": 0.4, "OLD_TTL_S": 1.2}),
    (lasting, {"TTL_S": 2.0, "EARLIER_S": 0.6}),
    (stampede, {"VERY_SLOW_MS": 300, "MANY_CLIENTS": 12, "UNCACHEABLE_CLIENTS": 6}),
    (stored_files, {"CLIENTS": 16, "WRITING_S": 0.4, "SHORT_TTL_S": 0.4}),
    (web, {"FLOOD": 60, "SAMPLE": 10, "MAX_ADDED": 5}),
)
# Time limits for a site to become right: a wrong one takes all of it, a right one on a busy machine may.
SHORTER = (
    (http, {"TIMEOUT_S": 3.0}),
    (rows, {"INVALIDATED_S": 0.4, "SLACK_S": 0.4}),
    (stampede, {"UNCACHEABLE_S": 1.0}),
    (stored_files, {"SWEPT_S": 1.0}),
    (privacy, {"COLD_S": 0.3}),
)
# The suite's own limits, which a busy machine would exceed.
PATIENT = ((suite, {"SUITE_LIMIT_S": 600.0, "LAYER_LIMIT_S": 900.0}),)


def values(monkeypatch, *tables):
    for module, given in [row for table in tables for row in table]:
        for name, value in given.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    values(monkeypatch, SMALLER, PATIENT)


def outcomes_of(mutant, site, names=(), layer=KEPT, running=None, **more):
    """The outcomes by check; checks with an account need the `login` check."""
    stages = {item.name: item.stage for item in all_checks()}
    needed = ["login"] if any(stages[name] == ACCOUNT for name in names) else []
    if names != ["database-connections"]:  # whose number is known of PostgreSQL only
        running = running or FakeRunning(mutant)
    outcomes = verified(mutant.url, site, layer, checks=[*needed, *names], running=running, **more)
    return {item.check: item for item in outcomes}


@pytest.mark.parametrize("manner", RIGHT)
def test_a_right_site_passes_every_check(mutant, site, manner):
    mutant.reset(*manner.split("+"))
    outcomes = outcomes_of(mutant, site, layer="none", groups=[BEHAVIOUR])
    assert {name: (item.expected, item.got) for name, item in outcomes.items() if not item.ok} == {}


def test_a_right_layer_passes_every_check_and_no_row_is_left(mutant, site):
    mutant.reset(caches=True)
    outcomes = outcomes_of(mutant, site)
    assert {name: (item.expected, item.got) for name, item in outcomes.items() if not item.ok} == {}
    assert mutant.rows_left == 0


@pytest.mark.parametrize(("manner", "name"), OF_EACH.items())
def test_a_separate_page_for_each_client_passes(mutant, site, manner, name):
    mutant.reset(manner, caches=True)
    item = outcomes_of(mutant, site, [name])[name]
    assert (item.ok, item.skipped) == (True, None)


def test_of_many_pages_those_are_compared_first_that_a_cache_may_store(mutant, site):
    mutant.reset("shares-cookies", caches=True)
    shows = [f"cookie {site.token_cookie}"]
    private = {"shows": shows, "headers": [["Cache-Control", "private"]]}
    pages = [hits.path_with_response(**private) for _ in range(MAX_PAGES)]
    shared = hits.path_with_response(shows=shows)
    own = replace(site, description=structs.replace(site.description, public=(*pages, shared)))
    item = outcomes_of(mutant, own, ["depends-token"])["depends-token"]
    assert shared in item.expected and pages[-1] in item.skipped


def test_a_name_that_the_site_refuses_is_no_proof_of_its_pages(mutant, site):
    mutant.reset(caches=True)
    running = FakeRunning(mutant)
    running.case.settings["server_names"] = "127.0.0.1 shop.example"
    item = outcomes_of(mutant, site, ["depends-host"], running=running)["depends-host"]
    assert item.ok and "shop.example" in item.skipped


@pytest.mark.parametrize(("name", "wrong"), PAIRS)
def test_a_mutation_is_noticed_by_its_check(mutant, site, monkeypatch, name, wrong):
    values(monkeypatch, SHORTER)
    (group,) = (item.group for item in all_checks() if item.name == name)
    caches = group != BEHAVIOUR or name in ("hit", "kept-headers") or wrong in mutations.RULES
    mutant.reset(*wrong.split("+"), caches=caches)
    on_write = None if wrong == "commands-not-told" else site.on_write
    item = outcomes_of(mutant, replace(site, on_write=on_write), [name], KEPT if caches else "none")[name]
    assert not item.ok, f"{name} does not notice {wrong}: {item.skipped}"
    assert item.expected and item.got
    assert mutant.rows_left == 0


def test_every_check_has_a_mutation_that_it_notices():
    # test_tls.py has those of TLS; some advisories are rows of other checks.
    assert sorted([*NOTICED, "tls"]) == sorted(item.name for item in all_checks() if not item.proved_by)


def test_every_mutation_is_noticed_by_a_check():
    used = {part for wrong in (*RIGHT, *(wrong for _, wrong in PAIRS)) for part in wrong.split("+")}
    used.update(mutations.ALWAYS, OF_EACH, *test_broken.NOTICED.values())
    assert (mutations.AFTER.keys() | mutations.RULES.keys()) <= used
