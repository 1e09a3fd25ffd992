"""The suite against a Django project that is not the kit's, with only its description."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.catalog.names import NO_LAYER
from bench.serve.machine.http import Target
from bench.serve.project import run_command
from bench.serve.project.description import Description, Login, Write
from bench.serve.project.run_command import Interpreter
from bench.verify.checks.freshness import becomes_fresh
from bench.verify.context import Accounts, Context
from bench.verify.mismatch import Finding, NotTried
from bench.verify.site import Account, Site, prepare, with_urls
from tests.bench.verify import small_project
from tests.bench.verify.conftest import verified

pytestmark = pytest.mark.servers

WHY = "/ is not cached: it has a nonce, new for each visitor; /subscribe/ is not cached: it sets the cookie shop_csrf"
LOGIN = Login("/sign-in/", proof="Signed in as {name}.", page="/me/")
PUBLIC = ("/", "/notes/", "/subscribe/")
# The others need a server in front, which serves static files and checks what the application server does not.
# fmt: off
RIGHT = [
    "status", "content", "render-id", "references", "repeat", "encodings",
    "not-found", "server-error", "conditional", "redirects", "path-escapes", "odd-paths",
    "broken-escapes", "unknown-host", "odd-cookies", "many-headers", "slow-request", "protocol-word",
    "login-page", "post-without-token", "login", "own-name", "no-foreign-name", "two-lengths",
    "upload", "accounts-apart",
]
# fmt: on
MISSING = {
    "comment": "only the kit's own site has such pages",
    "out-of-range": "the project names no page beyond a last one",
    "no-cookies": "a project's pages may set cookies: see public-pages",
    "logout": "the page of an account has no form that logs out",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = small_project.make(tmp_path_factory)
    interpreter = Interpreter((), Path(sys.executable), folder / "manage.py")
    inherited = {name: os.environ[name] for name in run_command.INHERITED if name in os.environ}
    run_command.warm_up(interpreter, inherited | small_project.environment(folder))
    return folder


@pytest.fixture(scope="module")
def url(project):
    with small_project.served(project) as url:
        yield url


def prepared(project: Path, **fields: Any) -> Site:
    description = Description(**{"public": (*PUBLIC, "/leaky/"), "login": LOGIN, "settings": "shop.settings"} | fields)
    place = (project / "collected", "/static/", Interpreter((), Path(sys.executable), project / "manage.py"))
    env = small_project.environment(project)
    site = Site({}, {}, *place, env, description=description, may_write=True, is_copy=True)
    return prepare(with_urls(site))


@pytest.fixture(scope="module")
def site(project):
    """The project by its description, without the leaking page."""
    return saying(prepared(project), public=PUBLIC)


def saying(site: Site, **fields: Any) -> Site:
    """The same with another description."""
    return replace(site, description=structs.replace(site.description, **fields))


def test_what_a_project_has_is_compared_and_what_it_has_not_is_not_tried(site, url):
    by_check = {item.check: item for item in verified(url, site, checks=(*RIGHT, *MISSING))}
    assert {name: (item.expected, item.got) for name, item in by_check.items() if not item.ok} == {}
    assert {name: by_check[name].word for name in RIGHT} == dict.fromkeys(RIGHT, "passed")
    assert {name: by_check[name].skipped for name in MISSING} == MISSING


def test_a_view_that_leaks_is_caught_with_its_page_named(site, url):
    (wrong,) = verified(url, saying(site, public=(*PUBLIC, "/leaky/")), checks=["accounts-apart"])
    assert wrong.word == "failed"
    assert "GET /leaky/?visit=" in wrong.expected
    assert "Signed in as verify-" in wrong.got
    assert "/me/" not in wrong.expected


@pytest.fixture(scope="module")
def cached(project):
    with small_project.served(project, "page-cache") as url:
        yield url


def test_under_a_layer_it_is_private_and_says_why_a_page_is_not_cached(site, cached):
    checks = ["accounts-apart", "signed-in-not-kept", "set-cookie", "keeps-pages", "public-pages", "hit", "orders"]
    checks.append("cve-2014-0473")
    outcomes = verified(cached, site, "page-cache", checks=checks)
    (without,) = verified(cached, replace(site, token_cookie=""), "page-cache", checks=["cve-2014-0473"])
    assert without.skipped == "the project has no CsrfViewMiddleware, so that visitors get no token"
    reasons = {item.check: item.skipped for item in outcomes}
    assert [item for item in outcomes if not item.ok] == []
    assert reasons["public-pages"] == reasons["hit"] == WHY
    assert reasons["orders"] == "only the kit's own site has such pages"
    (ratio,) = (item.figures["hit_ratio_public_pages"] for item in outcomes if item.check == "public-pages")
    assert 0.2 < ratio < 0.4  # one page of three


def test_django_s_per_site_cache_keeps_accounts_of_a_project_apart_and_is_unsafe(site, project):
    with small_project.served(project, "site-middleware") as url:
        private = ["accounts-apart", "signed-in-not-kept", "personal-at-once", "keeps-pages"]
        outcomes = verified(url, site, "site-middleware", checks=[*private, "read-cookies", "nonce"])
    assert {item.check: item.word for item in outcomes if item.check in private} == dict.fromkeys(private, "passed")
    assert {item.check for item in outcomes if not item.ok} == {"read-cookies", "nonce"}


def written(site: Site, url: str, command: str, bound_s: float = 5.0, layer: str = NO_LAYER) -> list[Finding]:
    described = saying(site, write=Write(command, "/notes/"))
    layers = catalog.read().joined_layers(layer)
    return list(becomes_fresh(Context(Target.parse(url), described, layers, Accounts(described, {})), bound_s))


def test_the_described_write_shows_on_its_page(site, url):
    (figure,) = written(site, url, small_project.WRITE)
    assert (figure.name, figure.value < 5000) == ("fresh_after_write_ms", True)


def test_a_write_that_changes_nothing_is_named(site, url):
    with pytest.raises(NotTried, match=r"^`manage.py check` changes nothing on /notes/: correct write in its"):
        written(site, url, "check", 0.1)


def test_a_stale_page_after_the_described_write_is_wrong(site, cached):
    (stale,) = written(site, cached, small_project.WRITE, 0.3, "page-cache")
    assert stale.expected.startswith("GET /notes/ after the described write: ")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"login": None}, "the project describes no login: [tool.benchapp.login] in its pyproject.toml"),
        ({"login": Login("/notes/")}, "GET /notes/: no form with a name and a password"),
    ],
)
def test_a_login_that_cannot_be_tried_says_so(site, url, fields, reason):
    without = {kind: path for kind, path in site.urls.items() if kind != "login"}
    urls = without | ({"login": fields["login"].url} if fields["login"] else {})
    (outcome,) = verified(url, replace(saying(site, **fields), urls=urls), checks=["login"])
    assert reason in (outcome.skipped, outcome.got)


def test_named_accounts_are_taken_from_their_variables_and_never_removed(site, monkeypatch):
    named = saying(site, login=Login("/sign-in/", users_env=("FIRST", "SECOND")))
    with pytest.raises(BenchError, match=r"^FIRST: not set to NAME:PASSWORD; set it here or in env_file"):
        named.create_accounts(2)
    monkeypatch.setenv("FIRST", "ann:one:1")
    monkeypatch.setenv("SECOND", "bob:two")
    assert named.create_accounts(3) == [Account("ann", "one:1"), Account("bob", "two"), Account("ann", "one:1")]
    named.remove_accounts(named.create_accounts(2))  # no command is run: there is no such account


UNLIMITED = "the project looks at 20 wrong passwords for an account: it has no limit"


@pytest.mark.parametrize(
    ("login", "admin", "not_tried", "wrong"),
    [
        ("/sign-in/", "/staff/login/", "", ""),
        ("/sign-in/", "", "", ""),
        (None, "/staff/login/", "", ""),
        # An admin without a separate login form.
        ("/sign-in/", "/notes/", "", ""),
        ("/unlimited/", "", UNLIMITED, ""),
        ("/unlimited/", "/unlimited/", UNLIMITED, ""),
        ("/unlimited/", "/staff/login/", "", "POST /unlimited/ "),
        ("/sign-in/", "/unlimited/", "", "POST /unlimited/ "),
        (None, "", "the project describes no login: [tool.benchapp.login] in its pyproject.toml", ""),
    ],
)
def test_wrong_passwords_are_tried_at_the_login_page_and_the_admins(site, url, login, admin, not_tried, wrong):
    assert site.admin_login == "/staff/login/"
    urls = {kind: path for kind, path in site.urls.items() if kind != "login"} | ({"login": login} if login else {})
    (outcome,) = verified(url, replace(site, urls=urls, admin_login=admin), checks=["login-limit"])
    assert (outcome.skipped or "", outcome.ok) == (not_tried, not wrong)
    assert wrong in (outcome.expected or "")
    if not (wrong or not_tried):
        assert outcome.figures == {"login_failures_allowed": 5}


def test_nothing_is_written_to_a_database_that_is_not_ours(site, url):
    (outcome,) = verified(url, replace(site, may_write=False), checks=["accounts-apart"])
    assert outcome.skipped.startswith("it writes to the project's own database: give --allow-writes")


def test_superusers_are_made_in_a_copy_only(site, url):
    admin = saying(site, login=Login("/sign-in/", page="/me/", proof="Signed in as {name}.", superuser=True))
    (outcome,) = verified(url, replace(admin, is_copy=False), checks=["login"])
    assert outcome.skipped.startswith("superusers are made only in a copy of the database: name two accounts")
    (outcome,) = verified(url, admin, checks=["login"])
    assert outcome.ok and not outcome.skipped
