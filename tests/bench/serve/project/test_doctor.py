"""Advice: each finding for the fact that causes it, and none for a project that has nothing to change."""

import itertools
from pathlib import Path

import msgspec
import pytest

from bench.serve.project.description import Description, Project
from bench.serve.project.doctor import examine
from bench.serve.project.findings import UPDATE_CACHE
from bench.serve.project.health import CORRECT, LET_IN
from bench.serve.project.inspection import DeploymentCheck, Facts, InspectedPage

HEALTH = InspectedPage("/up/", 200, None, None, None, (), False, False, 0)
HTML = {"Content-Type": "text/html; charset=utf-8"}
HOME = msgspec.structs.replace(HEALTH, path="/")
LIST = msgspec.structs.replace(HOME, headers={"Content-Type": "text/html; charset=utf-8"})
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


SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"


def project(folder=Path("/srv/shop"), **said):
    said = Description(**{"health": "/up/", **said})
    return Project(folder, said, "shop.settings", Path("python"), {}, folder / "pyproject.toml")


def found(facts=None, folder=Path("/srv/shop"), **said):
    """What is found in a project that says this, where these facts are others than good ones."""
    return examine(project(folder, **said), msgspec.structs.replace(GOOD, **(facts or {})), processes=4, threads=2)


def names(facts=None, **said):
    return [(item.level, item.name) for item in found(facts, **said)]


def of(page, **changes):
    """The fact of a page that differs in this from another one."""
    return {"pages": (msgspec.structs.replace(page, **changes),)}


@pytest.mark.parametrize(
    ("fact", "finding"),
    [
        ({"application": {}}, ("blocks", "application")),
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
        (of(HEALTH, status=302, location="/en/"), ("blocks", "health")),
        # For the host that the kit asks for; and for all hosts.
        (of(HOME, here=404), ("blocks", "host name")),
        (of(HOME, status=403), ("hurts", "public")),
        (of(HOME, path="/a/", status=500), ("hurts", "error")),
        (of(HOME, status=302, location="/login/?next=/"), ("hurts", "public")),
        ({"log_files": ("/srv/shop/logs/site.log",)}, ("hurts", "LOGGING")),
        ({"static_url": "https://cdn.example/"}, ("blocks", "STATIC_URL")),
        ({"session_cookie": "shop id"}, ("blocks", "SESSION_COOKIE_NAME")),
        (of(HEALTH, queries=2), ("hurts", "health")),
        (of(HOME, cookies=("csrftoken",)), ("hurts", "cacheability")),
        (of(HOME, session_read=True), ("hurts", "cacheability")),
        (of(HOME, vary="Accept-Encoding, Cookie"), ("hurts", "cacheability")),
        (of(HOME, cache_control="max-age=0, private"), ("hurts", "cacheability")),
        (of(HOME, session_written=True), ("hurts", "sessions")),
        (of(HOME, shared=True), ("hurts", "cache_page")),
        (of(LIST, linked_parameters={"/": ("page",)}), ("hurts", "CACHING_QUERY")),
        ({"middleware": (SESSIONS, UPDATE_CACHE)}, ("hurts", "UpdateCacheMiddleware")),
        ({"middleware": (UPDATE_CACHE, SESSIONS)}, ("hurts", "UpdateCacheMiddleware")),
        ({"silent": {"CACHES['default']": "ConnectionError: refused"}}, ("hurts", "CACHES")),
        ({"settings": {"FORCE_SCRIPT_NAME": "/shop"}}, ("hurts", "FORCE_SCRIPT_NAME")),
        ({"settings": {"PREPEND_WWW": True}}, ("hurts", "PREPEND_WWW")),
        ({"settings": {"SESSION_COOKIE_SECURE": True}}, ("hurts", "SECURE_PROXY_SSL_HEADER")),
        ({"settings": {"USE_X_FORWARDED_HOST": True}}, ("hurts", "USE_X_FORWARDED_HOST")),
        (
            {"settings": {"CSRF_TRUSTED_ORIGINS": ["https://a.example", "http://b.example"]}},
            ("hurts", "CSRF_TRUSTED_ORIGINS"),
        ),
        ({"settings": {"SESSION_COOKIE_DOMAIN": ".example.org"}}, ("hurts", "SESSION_COOKIE_DOMAIN")),
        ({"session_cookie": "__Secure-id"}, ("hurts", "SESSION_COOKIE_NAME")),
        ({"settings": {"INSTALLED_APPS": ["django_tenants"]}}, ("hurts", "hosts")),
        ({"sites": 2}, ("hurts", "hosts")),
        ({"allowed_hosts": ("a.example", "b.example")}, ("hurts", "ALLOWED_HOSTS")),
        ({"sqlite_modes": {"default": ("DEFERRED", "WAL")}}, ("hurts", "SQLite")),
        ({"pools": {"default": 30}}, ("hurts", "connections")),
        ({"django": "5.2.3"}, ("hurts", "Django")),
        ({"django": "4.2.30"}, ("hurts", "Django")),
        ({"lint": (("shop/migrations/0002_more.py", "NOT NULL constraint on columns"),)}, ("hurts", "migration")),
        ({"application_problem": "shop.asgi: ImportError: channels"}, ("hurts", "application")),
        (of(HOME, vary="User-Agent"), ("hurts", "cacheability")),
        (of(HOME, vary="User-Agent", headers=HTML, readers={"user-agent": "shop.home"}), ("hurts", "cacheability")),
        (of(HOME, headers=HTML, readers={"remote-addr": "shop.home"}), ("hurts", "cacheability")),
        (of(HOME, headers={"Content-Security-Policy": "script-src 'nonce-x'"}), ("hurts", "cacheability")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else next(iter(value)),
)
def test_each_fact_has_its_advice(fact, finding):
    assert names(fact) == [finding]


@pytest.mark.parametrize(
    "facts",
    [
        {},
        # The kit sets hosts where it serves.
        {"allowed_hosts": ("example.org",)},
        {"settings": {"SECURE_SSL_REDIRECT": True, "SECURE_PROXY_SSL_HEADER": ["HTTP_X_FORWARDED_PROTO", "https"]}},
        {"conn_max_age": {"default": 600}},
        # A health check is answered whatever the host, and a page of a tool may be for some alone.
        of(HEALTH, here=400),
        {"django": "6.1.3"},
        {"django": "7.0"},
        # Nobody has a session.
        {"middleware": (UPDATE_CACHE,)},
    ],
    ids=lambda facts: next(iter(facts), "good"),
)
def test_what_is_right_is_no_finding(facts):
    assert names(facts) == []


def test_hosts_block_where_the_kit_sets_none():
    assert names({"allowed_hosts": ("example.org",)}, reads_environment=True) == [("blocks", "ALLOWED_HOSTS")]


def test_what_the_kit_sets_where_it_serves_is_no_finding():
    facts = {
        "application": {"wsgi": "shop.wsgi:application", "asgi": "shop.asgi:application"},
        "conn_max_age": {"default": 600},
        "caches": {"default": "django.core.cache.backends.locmem.LocMemCache"},
        "checks": (DeploymentCheck("security.W008", "No redirect to HTTPS", ""),),
    }
    assert names(facts, reads_environment=True) == []
    assert len(names(facts)) == 3


def test_a_database_that_the_kit_fills_blocks_nothing_before():
    facts = {"migrations_left": 3, "pages": (msgspec.structs.replace(HOME, status=503), HEALTH)}
    assert names(facts, generated=True, public=("/",)) == [("hurts", "database")]
    # Nor does an SQLite file that is not there yet, as in a fresh clone.
    there = {**facts, "pages": (HOME, HEALTH), "database_files": {"default": __file__}}
    assert names({**facts, "database_files": {"default": "/srv/shop/none"}}) == [("hurts", "database")]
    memory = {"databases_in_memory": ("default",), "sqlite_modes": {"default": ("DEFERRED", "DELETE")}}
    assert names(facts | memory) == [("hurts", "database")]
    assert names(there) == [("blocks", "migrations")]


def test_uploads_need_a_web_server_and_a_path_of_their_own():
    sent = {"media_root": "/srv/media", "media_url": "/media/"}
    (advice,) = found(sent)
    assert (advice.level, advice.name) == ("hurts", "MEDIA_URL")
    assert advice.what.startswith("/media/ is a 404 on stacks without a web server")
    (advice,) = found({**sent, "media_url": None})
    assert "no path of its own" in advice.what and advice.remedy.startswith('set MEDIA_URL = "/media/"')
    # Nobody moves them out of the release, and the kit does not know where they are.
    assert names(sent, reads_environment=True) == [("hurts", "MEDIA_URL"), ("hurts", "MEDIA_ROOT")]


def test_an_error_of_the_health_page_is_said_with_its_line():
    (advice,) = found(of(HEALTH, status=500, error="KeyError: 'x' (shop/views.py:7)"))
    assert advice.what == "GET /up/ is answered with status 500: KeyError: 'x' (shop/views.py:7)"
    assert advice.where == "shop/views.py:7"
    assert advice.remedy.startswith(f"{CORRECT}, or name a page that answers 200: ")
    # What it lacks may be made by these commands, which were not run.
    (advice,) = found(of(HEALTH, status=500, error="KeyError: 'x' (shop/views.py:7)"), build=("compress",))
    assert (advice.level, advice.remedy) == ("hurts", CORRECT)


def test_a_page_in_place_of_a_health_check_hurts():
    (advice,) = found(health="/")
    assert advice.what == "GET /, by which health checks find out whether the site serves, renders a page"
    assert advice.remedy.startswith("give health checks a URL of their own")
    # The project has one and does not name it.
    (advice,) = found({"urls": ("/", "/healthz/")}, health="/")
    assert advice.remedy.startswith('name it: health = "/healthz/"')


def test_what_keeps_pages_out_of_caches_is_named_with_its_cause():
    read = msgspec.structs.replace(HOME, session_read=True, causes={"session": "base.html:2", "vary": "x"})
    pages = (read, msgspec.structs.replace(read, path="/a/"), msgspec.structs.replace(read, path="/b/", causes={}))
    (advice,) = found({"pages": pages})
    assert advice.what.startswith("Vary: Cookie on /, /a/ (base.html:2) and /b/, which read the session ")
    assert advice.where == "base.html:2"
    (advice,) = found(of(HOME, causes={"reads theme": "base.html:3"}))
    assert advice.what.startswith("the cookie theme is read by / (base.html:3): no layer stores ")


def test_what_keeps_pages_out_of_layers_is_said_once_with_its_reader_and_what_to_write():
    causes, readers = {"header cf-ipcountry": "shop/country.py:6"}, {"cf-ipcountry": "shop.country.Country"}
    read = msgspec.structs.replace(HOME, causes=causes, readers=readers, headers=HTML)
    pages = (
        read,
        msgspec.structs.replace(read, path="/a/"),
        msgspec.structs.replace(read, path="/b/", readers={}, causes={}),
        # These are stored nowhere anyway.
        msgspec.structs.replace(read, path="/c/", cookies=("csrftoken",), causes={}),
    )
    country, _ = found({"pages": pages})
    assert country.what == (
        "2 of 4 pages are not cached, such as /: shop.country.Country reads Cf-Ipcountry (shop/country.py:6)"
    )
    assert country.remedy.startswith('if no page depends on it: harmless = ["Cf-Ipcountry"] ')
    # A host of the client's choice is never harmless.
    (host,) = found(of(HOME, headers=HTML, readers={"host": "shop.home"}))
    assert "harmless" not in host.remedy and "ALLOWED_HOSTS" in host.remedy


def test_a_cache_whose_table_is_missing_has_a_command_that_makes_it():
    (advice,) = found({"silent": {"CACHES['default']": "OperationalError: no such table: cached"}})
    assert (advice.name, "createcachetable" in advice.remedy) == ("CACHES", True)


def test_a_finding_names_the_line_of_its_setting():
    lines = {"DEBUG": "shop/settings.py:7", "DATABASES": "shop/settings.py:9"}
    debug = DeploymentCheck("security.W018", "You should not have DEBUG set to True in deployment.", "")
    facts = {"checks": (debug,), "sqlite_modes": {"default": ("DEFERRED", "WAL")}, "lines": lines}
    assert [(item.name, item.where) for item in found(facts)] == [
        ("SQLite", "shop/settings.py:9"),
        ("security.W018", "shop/settings.py:7"),
    ]


@pytest.mark.parametrize(
    ("value", "findings"),
    [
        ("get_random_secret_key()", 1),
        ("env(\n    'KEY',\n    default=get_random_secret_key(),\n)", 1),
        ("os.environ['KEY']", 0),
        ("os.environ['KEY']\nOTHER = get_random_secret_key()", 0),
    ],
)
def test_a_key_that_each_process_makes_is_found(tmp_path, value, findings):
    (tmp_path / "settings.py").write_text(f"\nSECRET_KEY = {value}\n")
    given = found({"lines": {"SECRET_KEY": "settings.py:2"}}, tmp_path)
    assert [(item.name, item.where) for item in given] == [("SECRET_KEY", "settings.py:2")] * findings


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
        (advice,) = found({"urls": ("/", url)}, health="/")
        assert advice.remedy.startswith("name it: ") == is_named, url


def leading(*places):
    """Pages each of which redirects to the next place."""
    each = itertools.pairwise(places)
    return {"pages": tuple(InspectedPage(path, 302, location=location) for path, location in each)}


def test_a_site_behind_a_login_is_told_how_to_describe_it():
    login = "/accounts/login/?next=/"
    for pages in (leading("/", login), leading("/", "/mine/", login)):
        (advice,) = found(pages, health="/")
        assert advice.level == "blocks" and '[tool.benchapp.login], url = "/accounts/login/"' in advice.remedy
        assert 'health = "/accounts/login/"' in advice.remedy
    (advice,) = found(leading("/", login) | {"urls": ("/", "/up")}, health="/")
    assert 'health = "/up"' in advice.remedy
    # A redirect to the visitor's language is no login.
    (advice,) = found(leading("/", "/en/"), health="/")
    assert advice.what == "GET / redirects to /en/, not 200"
    assert 'health = "/en/"' in advice.remedy and "login" not in advice.remedy
    (advice,) = found(leading("/", "/en/", "/en/shop/"), health="/")
    assert 'health = "/en/shop/"' in advice.remedy


def test_a_page_that_another_host_would_have_is_told_how_to_be_shown():
    (advice,) = found(of(HOME, status=404), health="/")
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
    (advice,) = found({"databases": {"default": f"django.db.backends.{engine}"}, "database_error": error})
    assert remedy in advice.remedy


def test_a_health_check_that_is_named_is_not_to_be_another_one():
    (advice,) = found(of(HEALTH, queries=2) | {"urls": ("/up/", "/health/")})
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
    for noise in ("products", "production.example"):
        (path.parent / f"{noise}.py").touch()
    # Folders of apps are no settings.
    chosen = msgspec.structs.replace(project(tmp_path), settings=named, env={"PYTHONPATH": "apps:more"})
    (advice,) = examine(chosen, GOOD, 4, 1)
    assert advice.remedy.startswith(f'say so: settings = "{other}" in ')
    assert examine(msgspec.structs.replace(chosen, settings=other), GOOD, 4, 1) == []


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("answer['X-Accel-Redirect'] = path\n", "X-Accel-Redirect"),
        ("from channels.routing import URLRouter\n", "WebSockets"),
        ("await send({'type': 'websocket.accept'})\n", "WebSockets"),
        ("if scope['type'] == 'lifespan':\n", "lifespan"),
    ],
)
def test_what_the_code_asks_of_servers_is_found_with_its_line(tmp_path, code, finding):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "theirs.py").write_text(code)
    assert found(folder=tmp_path) == []
    (tmp_path / "views.py").write_text(f"# mine\n{code}")
    (advice,) = found(folder=tmp_path)
    assert (advice.name, advice.where) == (finding, "views.py:2")


def test_a_public_page_that_is_none_blocks_and_its_exception_is_named():
    missing = msgspec.structs.replace(HOME, path="/blog/", status=404)
    (advice,) = found({"pages": (HEALTH, missing)}, public=("/blog/",))
    assert (advice.level, advice.name) == ("blocks", "public")
    broken = msgspec.structs.replace(missing, status=500, error="DoesNotExist: none (blog/views.py:7)")
    (advice,) = found({"pages": (HEALTH, broken)}, public=("/blog/",))
    assert broken.error in advice.what and advice.where == "blog/views.py:7"
    # It may lack rows.
    assert CORRECT in advice.remedy


def test_a_per_site_cache_inside_of_sessions_gives_visitors_each_other_s_pages():
    (inside,) = found({"middleware": (SESSIONS, UPDATE_CACHE)})
    (around,) = found({"middleware": (UPDATE_CACHE, SESSIONS)})
    assert ("each other" in inside.what, "each other" in around.what) == (True, False)
    assert SESSIONS in inside.what


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ({}, {"CACHING_QUERY": ["page"]}),
        ({"linked_parameters": {"/": ("utm_source",)}}, {}),
        ({"linked_parameters": {"/": ("page",)}}, {"CACHING_QUERY_IGNORED": ["pag*"]}),
        # No cache stores that page, or it is none of those that were looked at.
        ({"cookies": ("csrftoken",)}, {}),
        ({"linked_parameters": {"/login/": ("next",)}}, {}),
    ],
)
def test_parameters_that_a_cache_knows_or_that_no_cached_page_has_are_no_finding(page, settings):
    linking = {"linked_parameters": {"/": ("page", "page")}, **page}
    assert ("hurts", "CACHING_QUERY") not in names({**of(LIST, **linking), "settings": settings})


def test_all_parameters_of_a_list_are_one_finding():
    other = msgspec.structs.replace(LIST, path="/blog/", linked_parameters={"/": ("sort",), "/blog/": ("page", "q")})
    pages = (msgspec.structs.replace(LIST, linked_parameters={"/blog/": ("page",)}), other)
    (finding,) = [item for item in found({"pages": pages}) if item.name == "CACHING_QUERY"]
    assert 'CACHING_QUERY = ["page", "q", "sort"]' in finding.remedy
    assert "/blog/?page=" in finding.what
