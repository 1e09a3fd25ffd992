"""Advice: each finding for the fact that causes it, and none for a project that has nothing to change."""

import itertools
import re
from pathlib import Path

import msgspec
import pytest

from bench import paths
from bench.errors import BenchError
from bench.serve.project.description import Description, Project
from bench.serve.project.findings import RULES, Examination, documentation, examine
from bench.serve.project.findings.files import WHITENOISE
from bench.serve.project.findings.finding import DOCS, ERROR, WARNING
from bench.serve.project.findings.security import CSRF, GZIP, SECURITY, UPDATE_CACHE
from bench.serve.project.health import CORRECT, LET_IN
from bench.serve.project.inspection import DeploymentCheck, Facts, InspectedPage, Statement
from benchapp.caching.local_hosts import LOCAL

HEALTH = InspectedPage("/up/", 200, None, None, None, (), False, False, 0)
HTML = {"Content-Type": "text/html; charset=utf-8"}
HOME = msgspec.structs.replace(HEALTH, path="/")
LIST = msgspec.structs.replace(HOME, headers={"Content-Type": "text/html; charset=utf-8"})
GOOD = Facts(
    python="3.12.1",
    django="5.2.19",
    debug=False,
    allowed_hosts=("example.org", "127.0.0.1"),
    local_hosts=(*LOCAL, "*"),
    static_url="/static/",
    static_root="/srv/static",
    static_hashed=True,
    middleware=(),
    databases={"default": "django.db.backends.postgresql"},
    conn_max_age={"default": 0},
    caches={"default": "django.core.cache.backends.redis.RedisCache"},
    session_save_every_request=False,
    application={"wsgi": "shop.wsgi:application"},
    urls=("/",),
    checks=(),
    migrations_left=0,
    database_error=None,
    max_connections=100,
    pages=(HOME, HEALTH),
)


NEVER_STORED = [
    msgspec.structs.replace(HOME, status=status, headers=HTML, readers={"host": "shop.away"}) for status in (302, 405)
]
REFERRER = (SECURITY, CSRF)
MAIL = "django.core.mail.backends"
IN_DEBUG = {name: (Statement("shop/settings.py", 4, 4, in_debug=True),) for name in ("EMAIL_BACKEND", "TEMPLATES")}
IN_MEMORY = {"default": "django.core.cache.backends.locmem.LocMemCache"}
OLDER_STORAGE = {"STATICFILES_STORAGE": (Statement("shop/settings.py", 4, 4),)}
RESET = {"urls": ("/", "/accounts/password_reset/")}
SESSION_BACKENDS = "django.contrib.sessions.backends"
SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"


def project(folder=Path("/srv/shop"), **fields):
    description = Description(**{"health": "/up/", **fields})
    return Project(folder, description, "shop.settings", Path("python"), {}, folder / "pyproject.toml")


def findings_of(facts=None, folder=Path("/srv/shop"), **fields):
    """The findings of a project with this description, with these facts in place of good ones."""
    facts = msgspec.structs.replace(GOOD, **(facts or {}))
    return examine(Examination(project(folder, **fields), facts, processes=4, threads=2, memory_mb=1000))


def names(facts=None, **fields):
    return [item.id for item in findings_of(facts, **fields)]


def of(page, **changes):
    """The fact of a page that differs in this from another one."""
    return {"pages": (msgspec.structs.replace(page, **changes),)}


# What each rule finds: a change of good facts, and the files that the project has.
NOTICED = [
    ("no-application", {"application": {}}),
    ("no-application", {"application": {}, "application_problem": "shop.wsgi: ValueError: it sets another"}),
    ("broken-application", {"application_problem": "shop.asgi: ImportError: channels"}),
    ("stale-unknown", {"stale_problem": "names shop.Thing, which is no model of it"}),
    ("unfit-static-url", {"static_url": "https://cdn.example/"}),
    ("unfit-cookie-name", {"session_cookie": "shop id"}),
    ("health-page", of(HEALTH, status=302, location="/en/")),
    # For the host that the kit requests; and for all hosts.
    ("other-host", of(HOME, here=404)),
    ("home-not-shown", of(HOME, status=403)),
    ("home-not-shown", of(HOME, status=302, location="/login/?next=/")),
    ("page-error", of(HOME, path="/a/", status=500)),
    ("static-file-error", {**of(HOME, missing_static={"css/nope.css": "base.html:1"}), "static_strict": True}),
    ("health-check-cost", of(HEALTH, queries=2)),
    ("health-check-refused", {"checks_by_address": {"/up/": 400}}),
    ("script-name", {"settings": {"FORCE_SCRIPT_NAME": "/shop"}}),
    ("site-by-host", {"settings": {"INSTALLED_APPS": ["django_tenants"]}}),
    ("site-by-host", {"sites": 2}),
    ("other-names", {"allowed_hosts": ("a.example", "b.example")}),
    ("prepend-www", {"settings": {"PREPEND_WWW": True}}),
    ("shared-page", of(HOME, shared=True)),
    ("shared-part", of(HOME, shared_part=True)),
    ("per-site-cache-order", {"middleware": (SESSIONS, UPDATE_CACHE)}),
    ("per-site-cache-private", {"middleware": (UPDATE_CACHE, SESSIONS)}),
    ("secret-key-in-code", {"secret_in_code": "shop/settings.py:3"}),
    ("any-host", {"allowed_hosts": ("*",)}),
    ("tls-not-known", {"settings": {"SESSION_COOKIE_SECURE": True}}),
    ("forwarded-host", {"settings": {"USE_X_FORWARDED_HOST": True}}),
    ("plain-origins", {"settings": {"CSRF_TRUSTED_ORIGINS": ["https://a.example", "http://b.example"]}}),
    ("no-referrer", {"settings": {"SECURE_REFERRER_POLICY": "no-referrer"}, "middleware": REFERRER}),
    ("no-referrer", {"settings": {"SECURE_REFERRER_POLICY": ["same-origin", "no-referrer"]}, "middleware": REFERRER}),
    ("breach", {"middleware": (GZIP,)}),
    ("signed-cookie-sessions", {"settings": {"SESSION_ENGINE": f"{SESSION_BACKENDS}.signed_cookies"}}),
    ("unlimited-body", {"settings": {"DATA_UPLOAD_MAX_MEMORY_SIZE": None}}),
    ("csp-nonce-unused", {"csp_nonce_setting": "SECURE_CSP"}),
    ("secure-cookie-name", {"session_cookie": "__Secure-id"}),
    ("cookie-domain", {"settings": {"SESSION_COOKIE_DOMAIN": ".example.org"}}),
    ("security.W012", {"checks": (DeploymentCheck("security.W012", "Cookie. More.", ""),)}),
    ("database-unusable", {"database_error": "OperationalError: refused", "migrations_left": None}),
    ("database-empty", {"migrations_left": 3, "database_files": {"default": "/srv/shop/none"}}),
    ("migrations-unapplied", {"migrations_left": 3}),
    ("migration-unsafe", {"lint": (("shop/migrations/0002_more.py", "NOT NULL constraint on columns"),)}),
    ("sqlite-locks", {"sqlite_modes": {"default": ("DEFERRED", "WAL")}}),
    ("persistent-connections", {"conn_max_age": {"default": 600}, "application": {"asgi": "shop.asgi:application"}}),
    ("too-many-connections", {"max_connections": 7}),
    ("too-many-connections", {"pools": {"default": 30}}),
    ("server-side-cursors", {"poolers": {"default": "pool.example:6432"}}),
    ("session-saved-always", {"session_save_every_request": True}),
    ("channel-layer-per-process", {"channel_layers": {"default": "channels.layers.InMemoryChannelLayer"}}),
    ("cache-per-process", {"caches": IN_MEMORY, "uses_cache": True}),
    ("cache-per-process", {"caches": IN_MEMORY, "statements": {"CACHES": (Statement("shop/settings.py", 9, 9),)}}),
    ("redis-hello", {"silent": {"CACHES['default']": "ResponseError: unknown command 'HELLO', with args beginning"}}),
    ("service-down", {"silent": {"CACHES['default']": "ConnectionError: refused"}}),
    ("mail-not-sent", {"mail_backends": {"EMAIL_BACKEND": f"{MAIL}.console.EmailBackend"}}),
    ("mail-without-host", {**RESET, "mail_hosts": {"EMAIL_BACKEND": ""}}),
    ("mail-without-host", {"mail_hosts": {"EMAIL_BACKEND": ""}, "statements": IN_DEBUG}),
    ("dangling-reference", {"dangling_references": {"js/site.js": "site.js.map"}}),
    ("static-file-missing", {"missing_static": {"css/nope.css": "templates/base.html:1"}}),
    ("static-file-missing", of(HOME, missing_static={"css/nope.css": "base.html:1"})),
    ("static-root", {"static_root": None}),
    ("static-unhashed", {"static_hashed": False}),
    ("storage-ignored", {"statements": {"DEFAULT_FILE_STORAGE": (Statement("shop/settings.py", 4, 4),)}}),
    ("endless-file-cache", {"endless_file_caches": ("default",)}),
    ("uploads-not-served", {"media_root": "/srv/media", "media_url": "/media/"}),
    ("log-file", {"log_files": ("/srv/shop/logs/site.log",)}),
    ("uncached-templates", {"uncached_loaders": True}),
    ("cookie-set", of(HOME, cookies=("csrftoken",))),
    ("cookie-read", of(HOME, causes={"reads theme": "base.html:3"})),
    ("header-read", of(HOME, headers=HTML, readers={"remote-addr": "shop.home"})),
    ("not-shared", of(HOME, cache_control="max-age=0, private")),
    ("vary-cookie", of(HOME, vary="Accept-Encoding, Cookie")),
    ("session-read", of(HOME, session_read=True)),
    ("vary-other", of(HOME, vary="User-Agent")),
    ("vary-other", of(HOME, vary="User-Agent", headers=HTML, readers={"user-agent": "shop.home"})),
    ("nonce-on-page", of(HOME, headers={"Content-Security-Policy": "script-src 'nonce-x'"})),
    ("session-written", of(HOME, session_written=True)),
    ("query-parameters", of(LIST, linked_parameters={"/": ("page",)})),
    ("django-version", {"django": "5.2.3"}),
    ("django-version", {"django": "4.2.30"}),
    ("django-version", {"django": "6.2a1"}),
    ("too-many-workers", {"worker_mb": 251.0}),
    ("mail.E001", {"checks": (DeploymentCheck("mail.E001", "Broken", ""),) * 3}),
]
# Rules that need files, rights or a description; each has a test below or in another module.
ELSEWHERE = {
    "django-check",
    "django-security",
    "folder-name",
    "health-check-missing",
    "host-refused",
    "lifespan",
    "production-settings",
    "proxy-header-unread",
    "public-page",
    "secret-key-random",
    "sendfile",
    "start-not-told",
    "unreadable-files",
    "uploads-in-release",
    "variable-not-read",
    "websockets",
}


def test_the_page_of_documentation_is_printed_from_the_rules():
    assert (paths.KIT / "docs" / "findings.md").read_text("utf-8") == documentation.text()


# Finding -> the word for its subject in its link, if the rule has another.
WORDS_OF_LINKS = {
    "folder-name": "basedefs",
    "unreadable-files": "chmod",
    "database-empty": "migrations",
    "dangling-reference": "staticfiles",
    "session-read": "vary",
    "storage-ignored": "features-removed",
    "health-check-cost": "probes",
}
# Findings about all that a page of Django's says.
WHOLE_PAGES = {"csp-nonce-unused", "django-check"}
PREFIX = re.compile(r"https://[^/]+(/en/\w+)?/")


def stems(text):
    """The beginnings of the words, without endings such as of plurals."""
    return {word[:5] for word in re.findall("[a-z]{3,}", text.lower().replace("_", "-"))}


def section(link):
    """The text below the heading of a page of this project, named as `docs/page.md#heading`."""
    page, _, anchor = link.partition("#")
    for part in (paths.KIT / page).read_text("utf-8").split("\n## "):
        title = part.partition("\n")[0]
        if re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") == anchor:
            return part
    raise LookupError(f"{page} has no heading for #{anchor}")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_link_of_a_rule_is_about_its_finding(rule):
    if rule.link.startswith("docs/"):
        assert stems(f"{rule.id} {rule.remedy}") & stems(section(rule.link))
        return
    own = stems(f"{rule.id} {rule.title} {rule.remedy} {rule.setting}")
    address = PREFIX.sub("", rule.link)
    assert own & stems(address) or WORDS_OF_LINKS.get(rule.id, "?") in address
    if rule.link.startswith(DOCS) and rule.id not in WHOLE_PAGES:
        assert rule.link.partition("#")[2]


@pytest.mark.parametrize(("finding", "fact"), NOTICED, ids=lambda value: value if isinstance(value, str) else "")
def test_each_fact_has_its_finding(finding, fact):
    assert names(fact) == [finding]


def test_each_rule_has_a_fact_that_it_finds():
    rules = {rule.id for rule in RULES}
    assert len(rules) == len(RULES)
    assert rules == (rules & {name for name, _ in NOTICED}) | ELSEWHERE


def test_a_project_without_benchapps_settings_lacks_what_they_do(tmp_path):
    bare = Examination(project(tmp_path, health="/"), GOOD, 4, 1, plain=True, unread=("DEBUG", "DATABASE_URL"))
    lacks = ["health-check-missing", "variable-not-read", "variable-not-read", "start-not-told", "proxy-header-unread"]
    assert [item.id for item in examine(bare) if item.group == "plain"] == lacks

    settings = {"SECURE_PROXY_SSL_HEADER": ["HTTP_X_FORWARDED_PROTO", "https"]}
    facts = msgspec.structs.replace(GOOD, settings=settings, tells_loaded=("wsgi",), checks_by_address={"/up/": 204})
    assert examine(Examination(project(tmp_path), facts, 4, 1, plain=True)) == []


@pytest.mark.parametrize(
    ("asgi", "tells", "named"),
    [
        ("shop.asgi:application", ("wsgi",), ["an import of shop.asgi makes"]),
        ("shop.asgi:application", (), ["an import of shop.wsgi or shop.asgi makes"]),
        ("shop.wsgi:asgi", (), ["an import of shop.wsgi makes"]),
        ("shop.asgi:application", ("wsgi", "asgi"), []),
    ],
)
def test_each_application_that_does_not_tell_its_start_is_named(tmp_path, asgi, tells, named):
    applications = {"wsgi": "shop.wsgi:application", "asgi": asgi}
    facts = msgspec.structs.replace(GOOD, application=applications, tells_loaded=tells)
    findings = examine(Examination(project(tmp_path), facts, 4, 1, plain=True))
    assert [item.what.partition(" no file")[0] for item in findings if item.id == "start-not-told"] == named


def test_the_findings_of_a_plain_host_come_first_after_errors(tmp_path):
    facts = msgspec.structs.replace(GOOD, database_error="it is down", allowed_hosts=("*",))
    findings = examine(Examination(project(tmp_path), facts, 4, 1, plain=True))
    assert [group for group, _ in itertools.groupby(item.group for item in findings)] == ["data", "plain", "security"]
    assert findings[1].id == "start-not-told" and "shop.wsgi makes no file" in findings[1].what


@pytest.mark.parametrize(
    "facts",
    [
        {},
        # The kit sets hosts when it serves.
        {"allowed_hosts": ("example.org",)},
        {"settings": {"SECURE_SSL_REDIRECT": True, "SECURE_PROXY_SSL_HEADER": ["HTTP_X_FORWARDED_PROTO", "https"]}},
        {"conn_max_age": {"default": 600}},
        # A health check gets its page whatever the host, and a page of a tool may be for some only.
        of(HEALTH, here=400),
        {"django": "6.1.3"},
        {"django": "7.0"},
        # Nobody has a session.
        {"middleware": (UPDATE_CACHE,)},
        # Of several policies a browser takes the last that it knows; without CSRF protection nothing is refused.
        {"settings": {"SECURE_REFERRER_POLICY": "no-referrer, same-origin"}, "middleware": REFERRER},
        {"settings": {"SECURE_REFERRER_POLICY": "no-referrer"}, "middleware": (SECURITY,)},
        {"settings": {"SESSION_ENGINE": f"{SESSION_BACKENDS}.cached_db"}},
        {"settings": {"DATA_UPLOAD_MAX_MEMORY_SIZE": 2_621_440}},
        {"channel_layers": {"default": "channels_redis.core.RedisChannelLayer"}},
        # Nothing sends mail; a server is named, also the one of this machine; other backends send by themselves.
        {"mail_hosts": {"EMAIL_BACKEND": ""}},
        {**RESET, "mail_hosts": {"EMAIL_BACKEND": "localhost"}},
        {**RESET, "mail_backends": {"EMAIL_BACKEND": "anymail.backends.mailgun.EmailBackend"}},
        # Settings that only hold while DEBUG is on, as it is here.
        {"mail_backends": {"EMAIL_BACKEND": f"{MAIL}.console.EmailBackend"}, "debug": True, "statements": IN_DEBUG},
        {"uncached_loaders": True, "debug": True, "statements": IN_DEBUG},
        # Nobody looks for another version of Django.
        {"django": "10.0.1"},
        # Four of them fit, and nobody knows.
        {"worker_mb": 250.0},
        {"worker_mb": None},
        # No cache stores a redirect or an error page, whatever it reads.
        {"pages": tuple(msgspec.structs.replace(page, path="/a/") for page in NEVER_STORED)},
        # Forms of accounts, which no cache stores.
        of(HOME, path="/accounts/password_reset/", cookies=("csrftoken",), vary="Cookie"),
        {**of(HOME, path="/welcome/", cookies=("csrftoken",)), "login": "/welcome/"},
        # A list of the visitor's own orders, which forbids caches to share it.
        of(HOME, path="/api/orders/", session_read=True, vary="Accept, Cookie", cache_control="private"),
        # A health check, which nobody expects from a cache.
        of(HOME, path="/health/ready", session_read=True, causes={"reads csrftoken": "shop/log.py:3"}),
        # WhiteNoise sends the files of the finders.
        {"static_root": None, "middleware": (WHITENOISE,), "settings": {"WHITENOISE_USE_FINDERS": True}},
        # Settings for older versions of Django, too.
        {"statements": {**OLDER_STORAGE, "STORAGES": (Statement("shop/settings.py", 5, 5),)}},
        # The cache by default, which nobody uses.
        {"caches": IN_MEMORY},
        # A view sends uploads, on each stack.
        {"media_root": "/srv/media", "media_view": True},
    ],
    ids=lambda facts: next(iter(facts), "good"),
)
def test_what_is_right_is_no_finding(facts):
    assert names(facts) == []


def test_what_is_ignored_or_allowed_is_left_out_and_an_unknown_id_is_refused():
    facts = {"static_root": None, "checks": (DeploymentCheck("security.W004", "HSTS", ""),)}
    assert names(facts) == ["security.W004", "static-root"]
    assert names(facts, ignore=("static-root",), allow=("security.W004",)) == []
    assert names(facts, ignore=("security.W004",)) == ["static-root"]
    with pytest.raises(BenchError, match=r"did you mean static-root\?"):
        names(facts, ignore=("static-roots",))


def test_findings_are_errors_first_then_the_worst_group():
    facts = {"static_root": None, "migrations_left": 2, "settings": {"USE_X_FORWARDED_HOST": True}}
    assert names(facts) == ["migrations-unapplied", "forwarded-host", "static-root"]


def test_only_one_finding_says_why_there_is_no_application():
    problem = "shop.wsgi: ValueError: it sets DJANGO_SETTINGS_MODULE"
    (only,) = findings_of({"application": {}, "application_problem": problem})
    assert (only.severity, problem in only.what) == (ERROR, True)


def test_an_error_that_needs_no_table_shows_without_migrations():
    broken = {"path": "/a/", "status": 500, "error": "ZeroDivisionError: division by zero (shop/urls.py:3)"}
    empty = {"migrations_left": 2, "database_files": {"default": "/srv/shop/none"}}
    assert names({**of(HOME, **broken), **empty}) == ["page-error", "database-empty"]
    assert names({**of(HOME, **broken, queries=1), **empty}) == ["database-empty"]


def test_one_error_at_several_lines_is_one_finding():
    places = ("a.html:1", "b.html:2")
    broken = [
        msgspec.structs.replace(HOME, path=f"/{number}/", status=500, error=f"KeyError: 'x' ({place})")
        for number, place in enumerate(places)
    ]
    (finding,) = findings_of({"pages": (HOME, HEALTH, *broken)})
    assert (finding.id, finding.where) == ("page-error", "a.html:1")
    assert "/0/, /1/" in finding.what


def test_settings_of_storages_are_read_before_django_5_1():
    assert names({"statements": OLDER_STORAGE, "django": "4.2.30"}) == ["django-version"]


def test_from_a_pre_release_the_way_leads_to_its_release():
    remedies = [findings_of({"django": version})[0].remedy for version in ("6.1rc1", "6.1.dev20260401", "9.0b2")]
    assert ["6.1." in remedy and "upgrade" in remedy for remedy in remedies] == [True, True, False]
    assert "upgrade" not in remedies[2]


def test_the_note_for_old_versions_of_django_names_no_option_that_they_lack():
    facts = {"sqlite_modes": {"default": ("DEFERRED", "WAL")}}
    remedies = {
        version: findings_of({**facts, "django": version})[0].remedy for version in ("5.2.19", "5.0.2", "4.2.30")
    }
    assert ["IMMEDIATE" in remedy for remedy in remedies.values()] == [True, False, False]


def test_hosts_are_an_error_if_the_kit_sets_none():
    assert names({"allowed_hosts": ("example.org",)}, reads_environment=True) == ["host-refused"]


def test_settings_that_the_kit_changes_are_no_finding():
    facts = {
        "application": {"wsgi": "shop.wsgi:application", "asgi": "shop.asgi:application"},
        "conn_max_age": {"default": 600},
        "caches": IN_MEMORY,
        "uses_cache": True,
        "checks": (DeploymentCheck("security.W008", "No redirect to HTTPS", ""),),
    }
    assert names(facts, reads_environment=True) == []
    assert len(names(facts)) == 3


def test_an_error_of_a_service_that_does_not_respond_is_found_once():
    down = "ConnectionError: Error 111 connecting to 127.0.0.1:6379. Connection refused."
    failing = of(HOME, path="/a/", status=500, error=f"{down} (shop/views.py:7)")
    assert names({**failing, "silent": {"CACHES['default']": down}}) == ["service-down"]
    assert names(failing) == ["page-error"]


def test_the_hint_of_a_check_is_whole():
    (finding,) = findings_of(
        {"checks": (DeploymentCheck("shop.E004", "No worker", "Start one:\n\n  celery worker\n"),)}
    )
    assert finding.remedy == "Start one: celery worker"


def test_missing_static_files_are_one_finding():
    places = {f"css/{number}.css": f"templates/base.html:{number}" for number in range(1, 16)}
    (finding,) = findings_of({"missing_static": places})
    assert (finding.id, finding.where) == ("static-file-missing", "templates/base.html:1")
    assert "css/1.css" in finding.what and "12 more" in finding.what


def test_origins_of_this_machine_are_on_no_way():
    origins = ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:3000", "https://a.example"]
    assert names({"settings": {"CSRF_TRUSTED_ORIGINS": origins}}) == []


def test_a_database_that_the_kit_fills_is_no_error_before(tmp_path):
    facts = {"migrations_left": 3, "pages": (msgspec.structs.replace(HOME, status=503), HEALTH)}
    assert names(facts, generated=True, public=("/",)) == ["database-empty"]
    # Nor does an SQLite file that is not there yet, as in a fresh clone.
    there = {**facts, "pages": (HOME, HEALTH), "database_files": {"default": __file__}}
    assert names({**facts, "database_files": {"default": "/srv/shop/none"}}) == ["database-empty"]
    # A command that only looks, such as makemigrations, makes an empty one.
    (tmp_path / "db.sqlite3").touch()
    assert names({**facts, "database_files": {"default": str(tmp_path / "db.sqlite3")}}) == ["database-empty"]
    memory = {"databases_in_memory": ("default",), "sqlite_modes": {"default": ("DEFERRED", "DELETE")}}
    assert names(facts | memory) == ["database-empty"]
    assert names(there) == ["migrations-unapplied"]


def test_uploads_need_a_web_server_and_a_path_of_their_own():
    sent = {"media_root": "/srv/media", "media_url": "/media/"}
    (advice,) = findings_of(sent)
    assert (advice.severity, advice.id) == (WARNING, "uploads-not-served")
    assert advice.what.startswith("/media/ is a 404 on stacks without a web server")
    (advice,) = findings_of({**sent, "media_url": None})
    assert "MEDIA_URL is no separate path" in advice.what and advice.remedy.startswith('set MEDIA_URL = "/media/"')
    # Nobody moves them out of the release, and the kit does not know their place.
    assert names(sent, reads_environment=True) == ["uploads-not-served", "uploads-in-release"]


def test_an_error_of_the_health_page_is_reported_with_its_line():
    (advice,) = findings_of(of(HEALTH, status=500, error="KeyError: 'x' (shop/views.py:7)"))
    assert advice.what == "GET /up/ returns status 500: KeyError: 'x' (shop/views.py:7)"
    assert advice.where == "shop/views.py:7"
    assert advice.remedy.startswith(f"{CORRECT}, or name a page that returns status 200: ")
    # What it lacks may be made by these commands, which were not run.
    (advice,) = findings_of(of(HEALTH, status=500, error="KeyError: 'x' (shop/views.py:7)"), build=("compress",))
    assert (advice.severity, advice.remedy) == (WARNING, CORRECT)


def test_a_page_that_may_lack_rows_only_refuses_nobody():
    lacking = {**of(HEALTH, status=404), "urls": ("/up/",)}
    (advice,) = findings_of(lacking)
    assert (advice.id, advice.remedy.startswith(LET_IN)) == ("health-page", True)
    assert names({**lacking, "rows_as_served": False}) == []
    # No view is there, whatever the rows.
    (advice,) = findings_of({**of(HEALTH, status=404), "rows_as_served": False})
    assert not advice.remedy.startswith(LET_IN)


def test_a_page_in_place_of_a_health_check_is_a_warning():
    (advice,) = findings_of(health="/")
    assert advice.what == "GET /, which health checks request, renders a page"
    assert advice.remedy.startswith("give health checks a URL")
    # The project has one and does not name it.
    (advice,) = findings_of({"urls": ("/", "/healthz/")}, health="/")
    assert advice.remedy.startswith('name it: health = "/healthz/"')


def test_what_keeps_pages_out_of_caches_is_named_with_its_cause():
    read = msgspec.structs.replace(HOME, session_read=True, causes={"session": "base.html:2", "vary": "x"})
    pages = (read, msgspec.structs.replace(read, path="/a/"), msgspec.structs.replace(read, path="/b/", causes={}))
    (advice,) = findings_of({"pages": pages})
    assert advice.what.startswith("Vary: Cookie on /, /a/ (base.html:2) and /b/, which read the session ")
    assert advice.where == "base.html:2"
    (advice,) = findings_of(of(HOME, causes={"reads theme": "base.html:3"}))
    assert advice.what.startswith("/ (base.html:3) read the cookie theme: no layer stores ")


def test_what_keeps_pages_out_of_layers_is_reported_once_with_its_reader_and_what_to_write():
    causes, readers = {"header cf-ipcountry": "shop/country.py:6"}, {"cf-ipcountry": "shop.country.Country"}
    read = msgspec.structs.replace(HOME, causes=causes, readers=readers, headers=HTML)
    pages = (
        read,
        msgspec.structs.replace(read, path="/a/"),
        msgspec.structs.replace(read, path="/b/", readers={}, causes={}),
        # These are stored nowhere anyway.
        msgspec.structs.replace(read, path="/c/", cookies=("csrftoken",), causes={}),
    )
    _, country = findings_of({"pages": pages})
    assert country.what == (
        "2 of 4 pages are not cached, such as /: shop.country.Country reads Cf-Ipcountry (shop/country.py:6)"
    )
    assert country.remedy.startswith('if no page depends on it: harmless = ["Cf-Ipcountry"] ')
    # A host of the client's choice is never harmless.
    (host,) = findings_of(of(HOME, headers=HTML, readers={"host": "shop.home"}))
    assert "harmless" not in host.remedy and "ALLOWED_HOSTS" in host.remedy


def test_a_cache_whose_table_is_missing_has_a_command_that_makes_it():
    (advice,) = findings_of({"silent": {"CACHES['default']": "OperationalError: no such table: cached"}})
    assert (advice.id, "createcachetable" in advice.remedy) == ("service-down", True)


def test_a_warning_about_security_says_if_a_host_has_it_right():
    numbers = ("002", "005", "008", "021")
    warnings = {"checks": tuple(DeploymentCheck(f"security.W{number}", "Wrong.", "") for number in numbers)}
    frames, subdomains, redirect, preload = findings_of(warnings)
    assert frames.remedy == "see ./manage.py check --deploy"
    assert redirect.remedy == "nothing to do: benchapp's settings set it on a host, except with --plain"
    # Nothing sets these on a host.
    assert subdomains.remedy == preload.remedy and preload.remedy.startswith("decide it for all subdomains")
    facts = msgspec.structs.replace(GOOD, **warnings)
    plain = {item.id: item.remedy for item in examine(Examination(project(), facts, 4, 2, plain=True))}
    assert plain["security.W008"] == frames.remedy
    assert plain["security.W005"] == subdomains.remedy


def test_a_finding_names_the_line_of_its_setting():
    statements = {name: (Statement("shop/settings.py", line, line),) for name, line in (("DEBUG", 7), ("DATABASES", 9))}
    debug = DeploymentCheck("security.W018", "You should not have DEBUG set to True in deployment.", "")
    facts = {"checks": (debug,), "sqlite_modes": {"default": ("DEFERRED", "WAL")}, "statements": statements}
    assert [(item.id, item.where) for item in findings_of(facts)] == [
        ("security.W018", "shop/settings.py:7"),
        ("sqlite-locks", "shop/settings.py:9"),
    ]


@pytest.mark.parametrize(
    ("value", "lines", "findings"),
    [
        ("get_random_secret_key()", 1, 1),
        ("env(\n    'KEY',\n    default=get_random_secret_key(),\n)", 4, 1),
        ("os.environ['KEY']", 1, 0),
        ("os.environ['KEY']\nOTHER = get_random_secret_key()", 1, 0),
    ],
)
def test_a_key_that_each_process_makes_is_found(tmp_path, value, lines, findings):
    (tmp_path / "settings.py").write_text(f"\nSECRET_KEY = {value}\n")
    given = findings_of({"statements": {"SECRET_KEY": (Statement("settings.py", 2, 1 + lines),)}}, tmp_path)
    assert [(item.id, item.where) for item in given] == [("secret-key-random", "settings.py:2")] * findings


@pytest.mark.parametrize(
    ("urls", "is_named"),
    [
        (("/upload/", "/update", "/uploads/new/", "/statuses/", "/live-blog/"), False),
        (("/items/<int:id>/status/", "/admin/api/ping/"), False),
        (("/health/", "/up", "/healthz", "/api/v3/status/", "/ready/", "/health-check/", "/__heartbeat__"), True),
    ],
)
def test_a_health_address_is_a_whole_segment(urls, is_named):
    for url in urls:
        (advice,) = findings_of({"urls": ("/", url)}, health="/")
        assert advice.remedy.startswith("name it: ") == is_named, url


def leading(*places):
    """Pages each of which redirects to the next place."""
    each = itertools.pairwise(places)
    return {"pages": tuple(InspectedPage(path, 302, location=location) for path, location in each)}


def test_a_site_behind_a_login_learns_how_to_describe_it():
    login = "/accounts/login/?next=/"
    for pages in (leading("/", login), leading("/", "/mine/", login)):
        (advice,) = findings_of(pages, health="/")
        assert advice.severity == ERROR and '[tool.benchapp.login], url = "/accounts/login/"' in advice.remedy
        assert 'health = "/accounts/login/"' in advice.remedy
    (advice,) = findings_of(leading("/", login) | {"urls": ("/", "/up")}, health="/")
    assert 'health = "/up"' in advice.remedy
    # A redirect to the visitor's language is no login.
    (advice,) = findings_of(leading("/", "/en/"), health="/")
    assert advice.what == "GET / redirects to /en/, not 200"
    assert 'health = "/en/"' in advice.remedy and "login" not in advice.remedy
    (advice,) = findings_of(leading("/", "/en/", "/en/shop/"), health="/")
    assert 'health = "/en/shop/"' in advice.remedy


@pytest.mark.parametrize(("start", "remedy"), [("/shop/", 'public = ["/shop/"]'), ("/login/", 'url = "/login/"')])
def test_the_finding_on_a_home_page_that_redirects_names_the_last_page(start, remedy):
    (advice,) = findings_of(of(HOME, status=302, location="/en/"), start=start)
    assert advice.id == "home-not-shown" and remedy in advice.remedy


def test_the_note_on_a_page_of_another_host_says_how_to_show_it():
    (advice,) = findings_of(of(HOME, status=404), health="/")
    assert LET_IN in advice.remedy


@pytest.mark.parametrize(
    ("engine", "error", "remedy"),
    [
        ("postgresql", "OperationalError: refused", "--database postgresql"),
        ("mysql", "OperationalError: refused", "--database URL"),
        ("postgresql", "ImproperlyConfigured: no pool", "correct DATABASES"),
    ],
)
def test_a_database_that_cannot_be_used_has_a_remedy_of_its_kind(engine, error, remedy):
    (advice,) = findings_of({"databases": {"default": f"django.db.backends.{engine}"}, "database_error": error})
    assert remedy in advice.remedy


def test_a_health_check_that_is_named_is_not_to_be_another_one():
    (advice,) = findings_of(of(HEALTH, queries=2) | {"urls": ("/up/", "/health/")})
    assert "name it" not in advice.remedy


@pytest.mark.parametrize(
    ("named", "other"),
    [
        ("shop.settings.dev", "shop.settings.production"),
        ("shop.settings", "shop.settings.prod"),
        ("shop.settings_dev", "shop.settings_production"),
        ("shop.settings", "shop.live_settings"),
        ("config.local", "config.deploy"),
    ],
)
def test_settings_for_production_beside_those_that_manage_py_names_are_requested(tmp_path, named, other):
    path = tmp_path / f"{other.replace('.', '/')}.py"
    path.parent.mkdir(parents=True)
    path.touch()
    for noise in ("products", "production.example"):
        (path.parent / f"{noise}.py").touch()
    # Folders of apps are no settings.
    chosen = msgspec.structs.replace(project(tmp_path), settings=named, env={"PYTHONPATH": "apps:more"})
    (advice,) = examine(Examination(chosen, GOOD, 4, 1))
    assert advice.remedy.startswith(f'say so: settings = "{other}" in ')
    assert examine(Examination(msgspec.structs.replace(chosen, settings=other), GOOD, 4, 1)) == []


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("response['X-Accel-Redirect'] = path\n", "sendfile"),
        ("from channels.routing import URLRouter\n", "websockets"),
        ("await send({'type': 'websocket.accept'})\n", "websockets"),
        ("if scope['type'] == 'lifespan':\n", "lifespan"),
    ],
)
def test_what_the_code_needs_of_servers_is_found_with_its_line(tmp_path, code, finding):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "theirs.py").write_text(code)
    assert findings_of(folder=tmp_path) == []
    (tmp_path / "views.py").write_text(f"# mine\n{code}")
    (advice,) = findings_of(folder=tmp_path)
    assert (advice.id, advice.where) == (finding, "views.py:2")


def test_a_public_page_that_is_none_is_an_error_and_its_exception_is_named():
    missing = msgspec.structs.replace(HOME, path="/blog/", status=404)
    (advice,) = findings_of({"pages": (HEALTH, missing)}, public=("/blog/",))
    assert (advice.severity, advice.id) == (ERROR, "public-page")
    broken = msgspec.structs.replace(missing, status=500, error="DoesNotExist: none (blog/views.py:7)")
    (advice,) = findings_of({"pages": (HEALTH, broken)}, public=("/blog/",))
    assert broken.error in advice.what and advice.where == "blog/views.py:7"
    # It may lack rows.
    assert CORRECT in advice.remedy


def test_a_per_site_cache_inside_of_sessions_gives_visitors_each_other_s_pages():
    (inside,) = findings_of({"middleware": (SESSIONS, UPDATE_CACHE)})
    (around,) = findings_of({"middleware": (UPDATE_CACHE, SESSIONS)})
    assert ("each other" in inside.what, "each other" in around.what) == (True, False)
    assert SESSIONS in inside.what


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ({}, {"CACHING_QUERY": ["page"]}),
        ({"linked_parameters": {"/": ("utm_source",)}}, {}),
        ({"linked_parameters": {"/": ("page",)}}, {"CACHING_QUERY_IGNORED": ["pag*"]}),
        # No cache stores that page, or nobody has looked at it.
        ({"cookies": ("csrftoken",)}, {}),
        ({"linked_parameters": {"/login/": ("next",)}}, {}),
    ],
)
def test_parameters_that_a_cache_knows_or_that_no_cached_page_has_are_no_finding(page, settings):
    linking = {"linked_parameters": {"/": ("page", "page")}, **page}
    assert "query-parameters" not in names({**of(LIST, **linking), "settings": settings})


def test_all_parameters_of_a_list_are_one_finding():
    other = msgspec.structs.replace(LIST, path="/blog/", linked_parameters={"/": ("sort",), "/blog/": ("page", "q")})
    pages = (msgspec.structs.replace(LIST, linked_parameters={"/blog/": ("page",)}), other)
    (finding,) = [item for item in findings_of({"pages": pages}) if item.id == "query-parameters"]
    assert 'CACHING_QUERY = ["page", "q", "sort"]' in finding.remedy
    assert "/blog/?page=" in finding.what
