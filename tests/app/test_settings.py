"""Settings from the environment: values that are read, values that are refused in one line, safe defaults."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings as site
from django.core.exceptions import ImproperlyConfigured

from benchapp_overlay import environment
from tests.managing import manage

FromEnvironment = Callable[..., dict[str, Any]]

REFUSED = {
    "DEBUG": ["maybe", "2", "$NO_SUCH_VARIABLE"],
    "CACHING_FRAGMENTS": ["si"],
    "BENCHAPP_SERVER": ["cgi"],
    "BENCHAPP_CACHE_SECONDS": ["0", "-1", "1.5", "1m", "31536001", "٣", "9" * 30],
    "CACHING_STATICGENERATOR_ROOT": ["manage.py", "/"],
    "CACHING_APACHE_CACHE_GENERATION_FILE": ["config"],
    "CACHING_NGINX_MEMCACHED_ADDRESS": ["m.sock", "127.0.0.1", "localhost:many", "localhost:70000"],
    "CACHING_VARNISH_PURGE_URL": ["127.0.0.1:80", "https://127.0.0.1/", "http://127.0.0.1:80/x", "http://h:70000/"],
    "BENCHAPP_STATIC_ROOT": ["manage.py"],
    "BENCHAPP_TRUSTED_PROXIES": ["10.0.0.1/8", "balancer"],
    "ALLOWED_HOSTS": ["example.org,https://example.net", "example.org:8000"],
    "CSRF_TRUSTED_ORIGINS": ["example.org"],
    "DATABASE_URL": [
        "mysql://u:secret@h/n",
        "site.sqlite3",
        "postgresql://user:secret@host:port/name",
        "postgresql://user:secret@host",
        "postgresql://user:secret@host/name?conn_health_checks=perhaps",
        "postgresql://user:secret@host/name?conn_max_age=10m",
        "sqlite://data/site.sqlite3",
    ],
    "CACHE_URL": ["memory://", "memcache://", "filecache://", "memcache://localhost:many"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_a_value_that_cannot_be_read_is_refused_in_one_line_that_names_it(
    settings_from: FromEnvironment, name: str, value: str
):
    with pytest.raises(ImproperlyConfigured) as refused:
        settings_from(**{name: value})
    assert re.match(rf"{name}\b.*: .*\Z", str(refused.value))
    assert "secret" not in str(refused.value)


def test_a_layer_without_one_of_its_options_is_refused(settings_from: FromEnvironment):
    with pytest.raises(ImproperlyConfigured, match=r"^CACHING_VARNISH_GENERATION_FILE is not set"):
        settings_from(CACHING_VARNISH_PURGE_URL="unix:/x")


@pytest.mark.parametrize("command", ["check", "nonsense"])
def test_command_line_ends_in_one_line(command: str):
    done = manage(command, BENCHAPP_CACHE_SECONDS="soon")
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (1, 1, "")
    assert done.stderr.startswith("manage.py: BENCHAPP_CACHE_SECONDS='soon': ")
    assert "Traceback" in manage(command, "--traceback", BENCHAPP_CACHE_SECONDS="soon").stderr


PRODUCTION = {
    "ALLOWED_HOSTS": "example.org",
    "BENCHAPP_BEHIND_PROXY": "1",
    "BENCHAPP_HTTPS": "1",
    "SECRET_KEY": "Zb1" * 20 + "-an-example-of-a-long-key",
}


@pytest.mark.parametrize(
    "layer",
    [
        {},
        {"CACHING_STATICGENERATOR_ROOT": "var/pages"},
        {"CACHING_PAGE_CACHE": "1", "CACHE_URL": "dbcache://pages"},
    ],
)
def test_production_values_pass_the_deployment_check(layer: dict[str, str]):
    done = manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION | layer)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues" in done.stdout


def test_defaults_are_safe(settings_from: FromEnvironment, monkeypatch: pytest.MonkeyPatch):
    for name in ("DEBUG", "SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "CACHE_URL"):
        monkeypatch.delenv(name, raising=False)
    settings = settings_from()
    assert settings["DEBUG"] is False
    assert settings["ALLOWED_HOSTS"] == ["localhost", "127.0.0.1", "[::1]"]
    assert len(settings["SECRET_KEY"]) >= 64
    assert "SECURE_PROXY_SSL_HEADER" not in settings
    assert settings["CACHES"]["template_fragments"]["BACKEND"].endswith("DummyCache")
    assert settings["DATABASES"]["default"]["NAME"].endswith("var/data/benchapp.sqlite3")
    assert settings["CACHING_LAYERS"] == {}
    assert not any("debug" in name for name in settings["MIDDLEWARE"])


def test_a_debug_site_starts_with_its_toolbar(settings_from: FromEnvironment):
    with_debug, without = settings_from(DEBUG="on"), settings_from(DEBUG="off")
    assert "debug_toolbar" in with_debug["INSTALLED_APPS"]
    assert any("debug_toolbar" in name for name in with_debug["MIDDLEWARE"])
    assert "debug_toolbar" not in str(without["INSTALLED_APPS"] + without["MIDDLEWARE"])
    done = manage("check", DEBUG="1")
    assert (done.returncode, done.stderr) == (0, "")


def test_one_time_to_live_for_every_layer(settings_from: FromEnvironment):
    settings = settings_from(BENCHAPP_CACHE_SECONDS="7", CACHING_FRAGMENTS="1")
    assert settings["CACHE_MIDDLEWARE_SECONDS"] == 7
    assert {cache["TIMEOUT"] for cache in settings["CACHES"].values()} == {7}
    # A few pages are more than Django's limit.
    assert settings["CACHES"]["default"]["OPTIONS"]["MAX_ENTRIES"] == 10_000


@pytest.mark.parametrize(
    ("url", "backend", "location"),
    [
        ("locmemcache://", "locmem.LocMemCache", "pages"),
        ("dummycache://", "dummy.DummyCache", ""),
        ("filecache:///tmp/site", "AtomicAddFileCache", "/tmp/site"),
        ("dbcache://cache_table", "SelfCreatingDatabaseCache", "cache_table"),
        ("redis:///run/r.sock?db=1", "TolerantRedisCache", "unix:///run/r.sock"),
        ("memcache://127.0.0.1:11211", "SharedMemcachedCache", "127.0.0.1:11211"),
        ("memcache://a:1,b:2", "SharedMemcachedCache", ["a:1", "b:2"]),
        ("memcache:///run/m.sock", "SharedMemcachedCache", "unix:/run/m.sock"),
        ("pymemcache:///run/m.sock", "SharedMemcachedCache", "unix:/run/m.sock"),
    ],
)
def test_caches(settings_from: FromEnvironment, url: str, backend: str, location: str | list[str]):
    caches = settings_from(CACHE_URL=url, CACHING_FRAGMENTS="1")["CACHES"]
    where = "django.core.cache.backends" if "." in backend else "benchapp.caching.private_apis.django_backends"
    assert caches["default"]["BACKEND"] == f"{where}.{backend}"
    assert caches["default"]["LOCATION"] == location
    waits = {"socket_timeout": 1, "socket_connect_timeout": 1}
    assert "Redis" not in backend or caches["default"]["OPTIONS"] == {"db": 1, **waits}
    # Pages and fragments never share an entry, whatever the backend.
    one, other = caches["default"], caches["template_fragments"]
    assert one["KEY_PREFIX"] != other["KEY_PREFIX"]
    # Fragments are Django's own, without a repair.
    assert other["BACKEND"].startswith("django.core.cache.backends.")


@pytest.mark.parametrize("layer", [{}, {"CACHING_SITE_MIDDLEWARE": "1"}, {"CACHING_FRAGMENTS": "1"}])
def test_sites_share_a_cache_and_no_entry_and_the_hosts_of_one_site_share_all(
    settings_from: FromEnvironment, layer: dict[str, str]
):
    def prefixes(**variables: str) -> set[str]:
        caches = settings_from(CACHE_URL="redis://cache:6379", **layer, **variables)["CACHES"]
        return {cache["KEY_PREFIX"] for cache in caches.values() if "KEY_PREFIX" in cache}

    production = {"DATABASE_URL": "postgresql://ann:old@db:5432/site"}
    staging = {"DATABASE_URL": "postgresql://ann:old@staging-db:5432/site"}
    assert not prefixes(**production) & prefixes(**staging)
    assert not prefixes(DATABASE_URL="sqlite:////a/site.sqlite3") & prefixes(DATABASE_URL="sqlite:////b/site.sqlite3")
    # A server and a command, with another password meanwhile.
    other = {"DATABASE_URL": "postgresql://ann:new@db:5432/site", "ALLOWED_HOSTS": "b.test"}
    served = {"BENCHAPP_SERVER": "wsgi", "SECRET_KEY": "s" * 60}
    assert prefixes(**production) == prefixes(**other, **served)


def test_a_key_prefix_of_the_url_is_the_site_s(settings_from: FromEnvironment):
    cache = settings_from(CACHE_URL="redis://cache:6379?key_prefix=shop")["CACHES"]["default"]
    assert cache["KEY_PREFIX"] == "shop-pages"


def test_cache_whose_package_is_missing(settings_from: FromEnvironment, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(environment, "find_spec", lambda name: None)
    with pytest.raises(ImproperlyConfigured, match=r"^CACHE_URL: redis:// needs a package: pip install redis$"):
        settings_from(CACHE_URL="redis://127.0.0.1:6379/0")


@pytest.mark.parametrize("word", ["false", "FALSE", "off", "0", "no"])
def test_a_switch_in_a_url_is_one_however_it_is_spelt(settings_from: FromEnvironment, word: str):
    url = f"postgresql://a@%2Frun%2Fpostgresql/n?conn_health_checks={word}&atomic_requests={word}&conn_max_age=5"
    database = settings_from(DATABASE_URL=url)["DATABASES"]["default"]
    assert (database["CONN_HEALTH_CHECKS"], database["ATOMIC_REQUESTS"], database["CONN_MAX_AGE"]) == (False, False, 5)
    assert database["HOST"] == "/run/postgresql"


def test_postgresql(settings_from: FromEnvironment):
    database = settings_from(DATABASE_URL="postgresql://ann:p%40ss@db:5433/site")["DATABASES"]["default"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert (database["USER"], database["PASSWORD"], database["HOST"], database["PORT"]) == ("ann", "p@ss", "db", 5433)
    assert database["CONN_MAX_AGE"] == 600


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:///site.sqlite3", "{BASE_DIR}/site.sqlite3"),
        ("sqlite:////tmp/site.sqlite3", "/tmp/site.sqlite3"),
        ("sqlite://:memory:", ":memory:"),
    ],
)
def test_a_relative_file_is_the_same_in_whatever_directory_a_server_works(
    settings_from: FromEnvironment, url: str, name: str
):
    settings = settings_from(DATABASE_URL=url)
    assert settings["DATABASES"]["default"]["NAME"] == name.format(**settings)


# -- the key -----------------------------------------------------------------------------------------


def test_a_key_that_nobody_set_is_refused_by_the_deployment_check(settings_from: FromEnvironment):
    assert settings_from(SECRET_KEY=" ")["SECRET_KEY"] != settings_from(SECRET_KEY=" ")["SECRET_KEY"]
    done = manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION | {"SECRET_KEY": ""})
    assert done.returncode == 1
    assert "W009" in done.stderr


SERVERS = ("wsgi", "asgi")
GOOD_KEY = PRODUCTION["SECRET_KEY"]
# Variables of a server that does not start, by the variable that the refusal names.
NOT_STARTED = [
    ("SECRET_KEY", {}),
    ("SECRET_KEY", {"SECRET_KEY": ""}),
    ("SECRET_KEY", {"SECRET_KEY": " \t"}),
    ("SECRET_KEY", {"SECRET_KEY_FALLBACKS": GOOD_KEY}),
    ("SECRET_KEY", {"SECRET_KEY": f"django-insecure-{GOOD_KEY}"}),
    ("SECRET_KEY", {"SECRET_KEY": "REPLACE-ME with 50 random characters"}),
    ("SECRET_KEY_FALLBACKS", {"SECRET_KEY": GOOD_KEY, "SECRET_KEY_FALLBACKS": f"x django-insecure-{GOOD_KEY}"}),
    ("SECRET_KEY", {"BENCHAPP_SERVER": ""}),
    ("SECRET_KEY", {"BENCHAPP_SERVER": "none"}),
    ("DEBUG", {"SECRET_KEY": GOOD_KEY, "DEBUG": "1"}),
    ("DEBUG", {"DEBUG": "1"}),
]


def started(server: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The site's application, imported as its servers do."""
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **env}
    argv = [sys.executable, "-W", "error", "-c", f"import config.{server}"]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(("name", "env"), NOT_STARTED)
def test_a_server_that_is_not_safe_refuses_to_start_in_a_line(server: str, name: str, env: dict[str, str]):
    done = started(server, Path(site.BASE_DIR), **env)
    assert done.returncode == 1
    assert re.search(rf"ImproperlyConfigured: {name} .*: .*\n\Z", done.stderr)
    assert GOOD_KEY not in done.stderr


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("env", "weak"),
    [
        ({"SECRET_KEY": GOOD_KEY, "DEBUG": "0"}, []),
        ({"SECRET_KEY": f"${GOOD_KEY}", "SECRET_KEY_FALLBACKS": f"${GOOD_KEY} ${GOOD_KEY}"}, []),
        ({"SECRET_KEY": "of-tests"}, ["SECRET_KEY"]),
        ({"SECRET_KEY": "x" * 60}, ["SECRET_KEY"]),
        ({"SECRET_KEY": GOOD_KEY, "SECRET_KEY_FALLBACKS": f"old {GOOD_KEY}"}, ["SECRET_KEY_FALLBACKS"]),
    ],
)
def test_a_server_with_a_weak_key_starts_and_warns(server: str, env: dict[str, str], weak: list[str]):
    done = started(server, Path(site.BASE_DIR), **env)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines()] == weak


def test_gunicorn_does_not_start_without_a_key(tmp_path: Path):
    argv = [sys.executable, "-m", "gunicorn", "--no-control-socket", "--bind", f"unix:{tmp_path}/socket", "config.wsgi"]
    env = {"PATH": os.environ["PATH"], "DATABASE_URL": "sqlite://:memory:"}
    done = subprocess.run(argv, cwd=site.BASE_DIR, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "\nSECRET_KEY is not set: " in done.stderr


def test_runserver_needs_no_key():
    words = "from django.core.servers.basehttp import get_internal_wsgi_application as get; print(type(get()).__name__)"
    env = {"DEBUG": "1", "SECRET_KEY": "", "DATABASE_URL": "sqlite://:memory:"}
    done = manage("shell", "-v", "0", "-c", words, **env)
    assert (done.returncode, done.stdout) == (0, "WSGIHandler\n"), done.stderr


def test_reading_the_settings_makes_nothing(tmp_path: Path):
    project = tmp_path / "site"
    for name in ("config", "benchapp", "benchapp_overlay"):
        shutil.copytree(Path(site.BASE_DIR) / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(project.rglob("*"))
    for server in SERVERS:
        assert started(server, project, SECRET_KEY=GOOD_KEY).returncode == 0
    assert sorted(project.rglob("*")) == before


def test_what_systemd_hands_over_in_a_file_has_the_last_word(tmp_path: Path):
    file, given = tmp_path / "secrets.env", {"CREDENTIALS_DIRECTORY": str(tmp_path), "SECRET_KEY": "old", "DEBUG": "0"}
    assert environment.with_credentials(given) == given
    file.write_text("# made by hand\n\nSECRET_KEY=a=b$c\nDATABASE_URL=sqlite:////x\\\\y\n")
    assert environment.with_credentials({"SECRET_KEY": "x"}) == {"SECRET_KEY": "x"}
    expected = {"SECRET_KEY": "a=b$c", "DATABASE_URL": "sqlite:////x\\y"}
    assert environment.with_credentials(given) == {**given, **expected}
    # As systemd reads them: quotes are no part of a value, so that an empty key is empty.
    file.write_text("SECRET_KEY=\"\"\nDATABASE_URL='sqlite:////x'\nCACHE_URL=\"a'b\n")
    assert environment.with_credentials(given) == {
        **given,
        "SECRET_KEY": "",
        "DATABASE_URL": "sqlite:////x",
        "CACHE_URL": "\"a'b",
    }
    file.write_bytes(b"SECRET_KEY=\xff")
    with pytest.raises(ImproperlyConfigured, match=r"^.*/secrets.env cannot be read: .*$"):
        environment.with_credentials(given)


def test_a_server_is_not_kept_waiting_and_a_command_is(settings_from: FromEnvironment):
    def waits(**env: str) -> tuple[int, str]:
        sqlite = settings_from(DATABASE_URL="sqlite:////tmp/x", **env)["DATABASES"]["default"]["OPTIONS"]
        assert sqlite["transaction_mode"] == "IMMEDIATE"
        assert "journal_mode=WAL" in sqlite["init_command"]
        postgresql = settings_from(DATABASE_URL="postgresql://a@b/c", **env)["DATABASES"]["default"]
        return sqlite["timeout"], postgresql.get("OPTIONS", {}).get("options", "")

    assert waits() == (20, "")
    assert waits(BENCHAPP_SERVER="wsgi") == (2, "-c statement_timeout=2000")
    assert waits(BENCHAPP_SERVER="asgi", BENCHAPP_DATABASE_TIMEOUT="7") == (7, "-c statement_timeout=7000")


@pytest.mark.parametrize(
    ("value", "pool"),
    [("true", True), ("1", True), ("False", False), ("0", False), ('{"max_size": 8}', {"max_size": 8})],
)
def test_a_pool_of_connections(
    settings_from: FromEnvironment, monkeypatch: pytest.MonkeyPatch, value: str, pool: object
):
    monkeypatch.setattr(environment, "require_pool", lambda name: None)
    url = f"postgresql://a@b/c?pool={quote(value)}"
    database = settings_from(DATABASE_URL=url, BENCHAPP_SERVER="wsgi")["DATABASES"]["default"]
    assert database["OPTIONS"]["pool"] == pool
    assert database["CONN_MAX_AGE"] == (0 if pool else 600)


@pytest.mark.parametrize("value", ["8", "many", "[]", '{"max_size"'])
def test_a_pool_that_is_none(settings_from: FromEnvironment, value: str):
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_URL: pool=.*use true, false, or JSON"):
        settings_from(DATABASE_URL=f"postgresql://a@b/c?pool={quote(value)}")


def test_readers_take_the_usual_spellings(monkeypatch: pytest.MonkeyPatch):
    env = environment.Env()
    for value, expected in [("1", True), ("On", True), (" yes ", True), ("0", False), ("FALSE", False), ("", False)]:
        monkeypatch.setenv("SWITCH", value)
        assert env.flag("SWITCH", default=True) is expected
    monkeypatch.setenv("NUMBER", "")
    assert env.whole_number("NUMBER", 5, 1, 9) == 5
