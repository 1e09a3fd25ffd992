"""Advice: each finding for the fact that causes it, and none for a project that has nothing to change."""

from pathlib import Path

import msgspec
import pytest

from bench.catalog.server import Limits, Server
from bench.project.description import Description, Project
from bench.project.doctor import examine
from bench.project.health import CORRECT
from bench.project.inspection import DeploymentCheck, Facts, Page

HEALTH = Page("/up/", 200, None, None, None, (), False, False, 0)
HOME = msgspec.structs.replace(HEALTH, path="/")
GOOD = Facts(
    python="3.12.1",
    django="5.2.19",
    debug=False,
    allowed_hosts=("example.org", "127.0.0.1"),
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


def project(folder=Path("/srv/shop"), **said):
    said = Description(**{"health": "/up/", **said})
    return Project(folder, said, "shop.settings", Path("python"), {}, folder / "pyproject.toml")


def names(facts, **said):
    return [(item.level, item.name) for item in examine(project(**said), facts, processes=4, threads=2)]


def test_a_project_with_nothing_to_change():
    assert names(GOOD) == []


@pytest.mark.parametrize(
    ("fact", "finding"),
    [
        ({"application": {}}, ("blocks", "application")),
        ({"debug": True}, ("hurts", "DEBUG")),
        ({"allowed_hosts": ("*",)}, ("hurts", "ALLOWED_HOSTS")),
        ({"database_error": "OperationalError: refused", "migrations_left": None}, ("blocks", "database")),
        ({"migrations_left": 3}, ("blocks", "migrations")),
        (
            {"conn_max_age": {"default": 600}, "application": {"asgi": "shop.asgi:application"}},
            ("hurts", "CONN_MAX_AGE"),
        ),
        ({"max_connections": 7}, ("hurts", "connections")),
        ({"caches": {"default": "django.core.cache.backends.locmem.LocMemCache"}}, ("hurts", "CACHES")),
        ({"session_save_every_request": True}, ("hurts", "SESSION_SAVE_EVERY_REQUEST")),
        ({"static_hashed": False}, ("hurts", "static files")),
        ({"static_root": None}, ("hurts", "STATIC_ROOT")),
        ({"checks": (DeploymentCheck("security.W012", "Cookie. More.", ""),)}, ("hurts", "security.W012")),
        ({"checks": (DeploymentCheck("mail.E001", "Broken", ""),) * 3}, ("hurts", "mail.E001")),
        ({"pages": (msgspec.structs.replace(HEALTH, status=302, location="/en/"),)}, ("blocks", "health")),
        ({"pages": (msgspec.structs.replace(HEALTH, queries=2),)}, ("hurts", "health")),
        ({"pages": (msgspec.structs.replace(HOME, cookies=("csrftoken",)),)}, ("hurts", "cacheability")),
        ({"pages": (msgspec.structs.replace(HOME, session_read=True),)}, ("hurts", "cacheability")),
        ({"pages": (msgspec.structs.replace(HOME, vary="Accept-Encoding, Cookie"),)}, ("hurts", "cacheability")),
        ({"pages": (msgspec.structs.replace(HOME, cache_control="max-age=0, private"),)}, ("hurts", "cacheability")),
        ({"pages": (msgspec.structs.replace(HOME, session_written=True),)}, ("hurts", "sessions")),
        ({"meant_for_https": True}, ("hurts", "SECURE_PROXY_SSL_HEADER")),
        ({"forwarded_host": True}, ("hurts", "USE_X_FORWARDED_HOST")),
        ({"silent": {"CACHES['default']": "ConnectionError: refused"}}, ("hurts", "CACHES")),
        ({"settings": {"FORCE_SCRIPT_NAME": "/shop"}}, ("hurts", "FORCE_SCRIPT_NAME")),
        ({"settings": {"PREPEND_WWW": True}}, ("hurts", "PREPEND_WWW")),
        ({"settings": {"SESSION_COOKIE_DOMAIN": ".example.org"}}, ("hurts", "SESSION_COOKIE_DOMAIN")),
        ({"session_cookie": "__Secure-id"}, ("hurts", "SESSION_COOKIE_NAME")),
        ({"settings": {"INSTALLED_APPS": ["django_tenants"]}}, ("hurts", "hosts")),
        ({"sites": 2}, ("hurts", "hosts")),
        ({"allowed_hosts": ("a.example", "b.example")}, ("hurts", "ALLOWED_HOSTS")),
        ({"middleware": ("debug_toolbar.middleware.DebugToolbarMiddleware",)}, ("hurts", "debug toolbar")),
        ({"sqlite_modes": {"default": ("DEFERRED", "WAL")}}, ("hurts", "SQLite")),
        ({"pools": {"default": 30}}, ("hurts", "connections")),
        ({"django": "5.2.3"}, ("hurts", "Django")),
        ({"django": "4.2.30"}, ("hurts", "Django")),
        ({"lint": (("shop/migrations/0002_more.py", "NOT NULL constraint on columns"),)}, ("hurts", "migration")),
        ({"application_problem": "shop.asgi: ImportError: channels"}, ("hurts", "application")),
        ({"pages": (msgspec.structs.replace(HOME, vary="User-Agent"),)}, ("hurts", "cacheability")),
        (
            {"pages": (msgspec.structs.replace(HOME, headers={"Content-Security-Policy": "script-src 'nonce-x'"}),)},
            ("hurts", "cacheability"),
        ),
        ({"trusted_origins": ("https://a.example", "http://b.example")}, ("hurts", "CSRF_TRUSTED_ORIGINS")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else next(iter(value)),
)
def test_each_fact_has_its_advice(fact, finding):
    assert names(msgspec.structs.replace(GOOD, **fact)) == [finding]


def test_a_site_behind_tls_that_is_told_of_it_is_right():
    facts = msgspec.structs.replace(GOOD, meant_for_https=True, proxy_ssl_header=True)
    assert names(msgspec.structs.replace(facts, trusted_origins=("https://a.example",))) == []


def test_hosts_block_only_where_the_kit_sets_none():
    facts = msgspec.structs.replace(GOOD, allowed_hosts=("example.org",))
    assert names(facts) == []
    assert names(facts, reads_environment=True) == [("blocks", "ALLOWED_HOSTS")]


def test_what_the_kit_sets_where_it_serves_is_no_finding():
    facts = msgspec.structs.replace(
        GOOD,
        application={"wsgi": "shop.wsgi:application", "asgi": "shop.asgi:application"},
        conn_max_age={"default": 600},
        caches={"default": "django.core.cache.backends.locmem.LocMemCache"},
        checks=(DeploymentCheck("security.W008", "No redirect to HTTPS", ""),),
    )
    assert names(facts, reads_environment=True) == []
    assert len(names(facts)) == 3


def test_a_database_that_the_kit_fills_blocks_nothing_before():
    facts = msgspec.structs.replace(GOOD, migrations_left=3, pages=(msgspec.structs.replace(HOME, status=503), HEALTH))
    assert names(facts, generated=True, public=("/",)) == [("hurts", "database")]


def test_uploads_need_a_web_server_and_a_path_of_their_own():
    sent = msgspec.structs.replace(GOOD, media_root="/srv/media", media_url="/media/")
    assert names(sent) == [("hurts", "MEDIA_URL")]
    (advice,) = examine(project(), sent, 4, 1)
    assert advice.what.startswith("/media/ is a 404 on stacks without a web server")
    (advice,) = examine(project(), msgspec.structs.replace(sent, media_url=None), 4, 1)
    assert "no path of its own" in advice.what and advice.remedy.startswith('set MEDIA_URL = "/media/"')
    # Nobody moves them out of the release, and the kit does not know where they are.
    assert names(sent, reads_environment=True) == [("hurts", "MEDIA_URL"), ("hurts", "MEDIA_ROOT")]


def test_persistent_connections_under_wsgi_are_right():
    assert names(msgspec.structs.replace(GOOD, conn_max_age={"default": 600})) == []


def test_an_error_of_the_health_page_is_said():
    broken = msgspec.structs.replace(HEALTH, status=500, error="KeyError: 'x' (shop/views.py:7)")
    (advice,) = examine(project(), msgspec.structs.replace(GOOD, pages=(broken,)), 4, 1)
    assert advice.what == "GET /up/ is answered with status 500: KeyError: 'x' (shop/views.py:7)"
    assert advice.remedy.startswith(f"{CORRECT}, or name a path that answers 200: ")


def test_a_page_in_place_of_a_health_check_hurts():
    (advice,) = examine(project(health="/"), GOOD, 4, 1)
    assert advice.what == "GET /, by which health checks find out whether the site serves, renders a page"
    assert advice.remedy.startswith("give health checks a URL of their own")
    # The project has one and does not name it.
    (advice,) = examine(project(health="/"), msgspec.structs.replace(GOOD, urls=("/", "/healthz/")), 4, 1)
    assert advice.remedy.startswith('name it: health = "/healthz/"')


def test_what_keeps_pages_out_of_caches_is_named_with_its_cause():
    read = msgspec.structs.replace(HOME, session_read=True, causes={"session": "base.html:2", "vary": "x"})
    pages = (read, msgspec.structs.replace(read, path="/a/"), msgspec.structs.replace(read, path="/b/", causes={}))
    (advice,) = examine(project(), msgspec.structs.replace(GOOD, pages=pages), 4, 1)
    assert advice.what.startswith("Vary: Cookie on /, /a/ (base.html:2) and /b/, which read the session ")
    dark = msgspec.structs.replace(HOME, causes={"reads theme": "base.html:3"})
    (advice,) = examine(project(), msgspec.structs.replace(GOOD, pages=(dark,)), 4, 1)
    assert advice.what.startswith("the cookie theme is read by / (base.html:3): no layer stores ")


@pytest.mark.parametrize("django", ["5.2.19", "6.1.3", "7.0"])
def test_a_release_with_all_fixes_is_right(django):
    assert names(msgspec.structs.replace(GOOD, django=django)) == []


def test_a_finding_names_the_line_of_its_setting():
    facts = msgspec.structs.replace(GOOD, debug=True, lines={"DEBUG": "shop/settings.py:7"})
    assert [item.where for item in examine(project(), facts, 4, 1)] == ["shop/settings.py:7"]
    broken = msgspec.structs.replace(HEALTH, status=500, error="KeyError: 'x' (shop/views.py:7)")
    assert examine(project(), msgspec.structs.replace(GOOD, pages=(broken,)), 4, 1)[0].where == "shop/views.py:7"


def test_a_health_address_is_a_whole_segment():
    def named(*urls):
        (advice,) = examine(project(health="/"), msgspec.structs.replace(GOOD, urls=urls), 4, 1)
        return advice.remedy.startswith("name it: ")

    for url in (
        "/upload/",
        "/update",
        "/uploads/new/",
        "/statuses/",
        "/live-blog/",
        "/items/<int:id>/status/",
        "/admin/api/ping/",
    ):
        assert not named("/", url), url
    for url in ("/health/", "/up", "/healthz", "/api/v3/status/", "/ready/", "/health-check/", "/__heartbeat__"):
        assert named("/", url), url


def test_a_site_behind_a_login_is_told_how_to_describe_it():
    home = msgspec.structs.replace(HOME, status=302, location="/accounts/login/?next=/")
    (advice,) = examine(project(health="/"), msgspec.structs.replace(GOOD, pages=(home,)), 4, 1)
    assert advice.level == "blocks" and '[tool.benchapp.login], url = "/accounts/login/"' in advice.remedy
    # A redirect to the visitor's language is no login.
    home = msgspec.structs.replace(HOME, status=302, location="/en/")
    (advice,) = examine(project(health="/"), msgspec.structs.replace(GOOD, pages=(home,)), 4, 1)
    assert 'health = "/en/"' in advice.remedy and "login" not in advice.remedy


def test_a_page_that_another_host_would_have_is_told_how_to_be_shown():
    missing = msgspec.structs.replace(HOME, status=404)
    (advice,) = examine(project(health="/"), msgspec.structs.replace(GOOD, pages=(missing,)), 4, 1)
    assert "the host 127.0.0.1" in advice.remedy


@pytest.mark.parametrize(
    ("engine", "error", "remedy"),
    [
        ("postgresql", "OperationalError: refused", "--database postgresql"),
        ("mysql", "OperationalError: refused", "--database URL"),
        ("postgresql", "ImproperlyConfigured: no pool", "correct DATABASES"),
    ],
)
def test_a_database_that_cannot_be_used_has_a_remedy_of_its_kind(engine, error, remedy):
    engines = {"default": f"django.db.backends.{engine}"}
    facts = msgspec.structs.replace(GOOD, databases=engines, database_error=error)
    (advice,) = examine(project(), facts, 4, 1)
    assert remedy in advice.remedy


def test_a_health_check_that_is_named_is_not_to_be_another_one():
    asks = msgspec.structs.replace(HEALTH, queries=2)
    (advice,) = examine(project(), msgspec.structs.replace(GOOD, pages=(asks,), urls=("/up/", "/health/")), 4, 1)
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
def test_settings_for_production_beside_those_that_manage_py_names_are_asked_for(tmp_path, named, other):
    path = tmp_path / f"{other.replace('.', '/')}.py"
    path.parent.mkdir(parents=True)
    path.touch()
    (path.parent / "products.py").touch()
    found = msgspec.structs.replace(project(tmp_path), settings=named)
    (advice,) = examine(found, GOOD, 4, 1)
    assert advice.remedy.startswith(f'say so: settings = "{other}" in ')
    assert examine(msgspec.structs.replace(found, settings=other), GOOD, 4, 1) == []


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("answer['X-Accel-Redirect'] = path\n", "X-Accel-Redirect"),
        ("from channels.routing import URLRouter\n", "WebSockets"),
        ("if scope['type'] == 'lifespan':\n", "lifespan"),
    ],
)
def test_what_the_code_asks_of_servers_is_found_with_its_line(tmp_path, code, finding):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "theirs.py").write_text(code)
    assert examine(project(tmp_path), GOOD, 4, 1) == []
    (tmp_path / "views.py").write_text(f"# mine\n{code}")
    (advice,) = examine(project(tmp_path), GOOD, 4, 1)
    assert (advice.name, advice.where) == (finding, "views.py:2")


def test_a_public_page_that_is_none_blocks():
    missing = msgspec.structs.replace(HOME, path="/blog/", status=404)
    assert names(msgspec.structs.replace(GOOD, pages=(HEALTH, missing)), public=("/blog/",)) == [("blocks", "public")]


def test_the_exception_of_a_public_page_is_named_and_that_it_may_lack_rows():
    broken = msgspec.structs.replace(HOME, path="/blog/", status=500, error="DoesNotExist: none (blog/views.py:7)")
    facts = msgspec.structs.replace(GOOD, pages=(HEALTH, broken))
    (advice,) = examine(project(health="/up/", public=("/blog/",)), facts, 4, 1)
    assert broken.error in advice.what and advice.where == "blog/views.py:7"
    assert CORRECT in advice.remedy


def test_limits_that_a_servers_own_file_does_not_set(tmp_path):
    server = Server("pre", ("pre",), "http", ("pre",), config="pre.conf", limits=Limits({"max": "leaks stay"}, "link"))
    (tmp_path / "pre.conf").write_text("# max = 5\n")
    (advice,) = examine(project(tmp_path), GOOD, 4, 1, [server])
    assert (advice.what, advice.remedy) == ("pre has no max: leaks stay", "set max in pre.conf")
    (tmp_path / "pre.conf").write_text("max = 5\n")
    assert examine(project(tmp_path), GOOD, 4, 1, [server]) == []
