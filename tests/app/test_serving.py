"""The settings that are laid over another project's: its own stay, and the kit's variables are heeded."""

from __future__ import annotations

import importlib
import json
import os
import sys
import textwrap
from unittest import mock

import pytest
from django.core.exceptions import MiddlewareNotUsed

from bench.serve.inside.serving.media import CopiedWhenWritten
from benchapp.caching.harmless import PAUSE, RESUME
from benchapp.caching.middleware import INNER, OUTER
from benchapp.serving import loaded
from benchapp_overlay import external_services

THEIRS = """
DEBUG = True
ROOT_URLCONF = "their_urls"
SECRET_KEY = "theirs"
SECURE_SSL_REDIRECT = True
SESSION_COOKIE_SAMESITE, CSRF_COOKIE_SAMESITE = "None", None
STATIC_URL = "static/"
INSTALLED_APPS = ["django.contrib.sessions"]
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "debug_toolbar.middleware.DebugToolbarMiddleware",
              "django.middleware.common.CommonMiddleware"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "theirs", "OPTIONS": {"timeout": 7}},
             "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": "other"}}
"""
FILES = """
LOGGING = {"version": 1, "handlers": {"mine": {"class": "logging.FileHandler", "filename": "theirs.log"},
                                      "other": {"class": "logging.StreamHandler"}}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": "theirs"},
          "disk": {"BACKEND": "diskcache.DjangoCache", "LOCATION": "theirs"},
          "other": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SESSION_ENGINE, SESSION_FILE_PATH = "django.contrib.sessions.backends.file", "theirs"
"""

ALWAYS = [
    "benchapp.serving.loaded.noted",
    "benchapp.serving.header_lines.sound",
    "benchapp.serving.streaming.at_once",
    "benchapp.serving.client_address.any_host_for_health",
]


# Imported once more for each environment, which their settings read.
MODULES = ("their_settings", "benchapp_overlay", "bench.serve.inside.serving.settings")


@pytest.fixture
def laid_over(tmp_path, monkeypatch):
    """The settings of another project, as the kit's variables change them; evaluated in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    # The next text of the project's settings may be as long as this one, and of the same second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def settings(package: str = "benchapp_overlay", more: str = "", **env: str) -> dict:
        (tmp_path / "their_settings.py").write_text(THEIRS + more)
        env = {"PATH": os.environ["PATH"], "OVERLAID_SETTINGS": "their_settings", **env}
        with mock.patch.dict(os.environ, env, clear=True), mock.patch.dict(sys.modules):
            for name in list(sys.modules):
                if name.startswith(MODULES):
                    del sys.modules[name]
            importlib.invalidate_caches()
            module = importlib.import_module(f"{package}.settings")
        values = {name: getattr(module, name) for name in dir(module) if name.isupper()}
        return json.loads(json.dumps(values, default=str))

    return settings


def test_without_layers_only_what_serving_needs_is_changed(laid_over):
    settings = laid_over()
    assert (settings["DEBUG"], settings["SECURE_SSL_REDIRECT"], settings["SECRET_KEY"]) == (False, False, "theirs")
    assert (settings["ROOT_URLCONF"], settings["SESSION_COOKIE_SAMESITE"]) == ("their_urls", "Lax")
    assert settings["INSTALLED_APPS"] == ["django.contrib.sessions", "benchapp.caching"]
    assert settings["MIDDLEWARE"] == [
        *ALWAYS,
        "django.middleware.security.SecurityMiddleware",
        "benchapp.serving.static_files.StaticFiles",
        OUTER,
        "benchapp.serving.sessions.private_sessions",
        "django.middleware.common.CommonMiddleware",
        INNER,
    ]
    assert settings["DATABASES"]["default"]["NAME"] == "theirs"


def test_nothing_is_watched_in_harmless_middleware_and_the_scheme_is_known(laid_over):
    common = "django.middleware.common.CommonMiddleware"
    settings = laid_over(BENCHAPP_HARMLESS=json.dumps(["DNT", common]))
    assert settings["CACHING_HARMLESS"] == ["DNT", common]
    place = settings["MIDDLEWARE"].index(common)
    assert settings["MIDDLEWARE"][place - 1 : place + 2] == [PAUSE, common, RESUME]
    assert laid_over(more=f"CACHING_HARMLESS = ['{common}']")["MIDDLEWARE"].count(PAUSE) == 1
    for variables, scheme in (
        ({}, "http"),
        ({"BENCHAPP_HTTPS": "1"}, "https"),
        ({"BENCHAPP_SCHEME": "https"}, "https"),
        ({"BENCHAPP_SCHEME": ""}, ""),
        ({"BENCHAPP_TRUSTED_PROXIES": "10.0.0.0/8"}, ""),
        ({"BENCHAPP_TRUSTED_PROXIES": "10.0.0.0/8", "BENCHAPP_HTTPS": "1"}, "https"),
    ):
        assert laid_over(**variables)["CACHING_SCHEME"] == scheme


def test_databases_and_hosts_are_those_of_the_environment(laid_over):
    places = {"ENGINE": "django.contrib.gis.db.backends.spatialite", "NAME": "places"}
    settings = laid_over(
        more=f"DATABASES['places'] = {places}",
        BENCHAPP_DATABASE_URL="sqlite:////tmp/copy.sqlite3",
        BENCHAPP_DATABASE_FILES='{"other": "/tmp/other.sqlite3", "places": "/tmp/places.sqlite3"}',
        BENCHAPP_ALLOWED_HOSTS="127.0.0.1",
        BENCHAPP_WHITENOISE="0",
        BENCHAPP_MEDIA_ROOT="/tmp/media",
    )
    assert (settings["MEDIA_ROOT"], laid_over().get("MEDIA_ROOT")) == ("/tmp/media", None)
    default = settings["DATABASES"]["default"]
    assert (default["NAME"], default["OPTIONS"]) == ("/tmp/copy.sqlite3", {"timeout": 7})
    assert [settings["DATABASES"][alias]["NAME"] for alias in ("other", "places")] == [
        "/tmp/other.sqlite3",
        "/tmp/places.sqlite3",
    ]
    assert settings["ALLOWED_HOSTS"] == ["127.0.0.1"]
    assert laid_over(more="ALLOWED_HOSTS = [None, '']")["ALLOWED_HOSTS"] == []
    # A request for health checks gets another one, which is a name.
    any_host = laid_over(more="ALLOWED_HOSTS = ['*']", BENCHAPP_ALLOWED_HOSTS="127.0.0.1")
    assert any_host["BENCHAPP_OWN_HOSTS"] == ["127.0.0.1"]
    assert not any("static_files" in name for name in settings["MIDDLEWARE"])


def test_a_replica_is_where_the_default_database_is_that_is_tried(laid_over):
    more = "DATABASES['replica'] = {**DATABASES['default'], 'HOST': 'live.example', 'TEST': {'MIRROR': 'default'}}\n"
    tried = {"BENCHAPP_DATABASE_URL": "postgresql://here/copy", "BENCHAPP_FILES": "/tmp/ours"}
    more += "DATABASES['default']['ENGINE'] = 'django.db.backends.postgresql'\n"
    assert laid_over(more=more, **tried)["DATABASES"]["replica"]["HOST"] == "here"
    # On a host it is what the project says, and if no other database is named.
    assert (
        laid_over(more=more, BENCHAPP_DATABASE_URL="postgresql://here/x")["DATABASES"]["replica"]["HOST"]
        == "live.example"
    )
    assert laid_over(more=more, BENCHAPP_FILES="/tmp/ours")["DATABASES"]["replica"]["HOST"] == "live.example"


@pytest.mark.parametrize("engine", ["django.contrib.gis.db.backends.postgis", "django.db.backends.mysql"])
def test_a_command_that_needs_no_rows_keeps_the_engine_and_reaches_no_server(laid_over, engine):
    theirs = {"ENGINE": engine, "NAME": "shop", "HOST": "live.example", "OPTIONS": {"read_default_file": "/etc/my.cnf"}}
    more = f"DATABASES = {{'default': {theirs}}}\n"
    default = laid_over(more=more, BENCHAPP_DATABASE_URL="sqlite:///:memory:")["DATABASES"]["default"]
    assert (default["ENGINE"], default["HOST"], default["PORT"], default["OPTIONS"]) == (engine, "127.0.0.1", "1", {})


def test_what_is_in_a_folder_that_is_elsewhere_goes_with_it(laid_over):
    """Else commands after collectstatic, and uploads, would write beside the project's code."""
    lines = """
    from pathlib import Path
    STATIC_ROOT, MEDIA_ROOT, STATIC_URL = "/srv/shop/static", "", "/srv/shop/static/"
    COMPRESS_ROOT, SASS_DIR, OTHER_ROOT = STATIC_ROOT, Path("/srv/shop/static/css"), "/srv/shop/static2"
    _files = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": "/srv/shop/up"}}
    STORAGES = {"staticfiles": {**_files, "OPTIONS": {"location": STATIC_ROOT, "base_url": "/s/"}}, "default": _files}
    THUMBNAIL_PATH = "/srv/shop/up/small"
    """
    folders = {"BENCHAPP_STATIC_ROOT": "/kit/static", "BENCHAPP_MEDIA_ROOT": "/kit/media"}
    settings = laid_over(more=textwrap.dedent(lines), **folders)
    names = ("STATIC_ROOT", "COMPRESS_ROOT", "SASS_DIR", "OTHER_ROOT", "MEDIA_ROOT", "THUMBNAIL_PATH", "STATIC_URL")
    assert [settings[name] for name in names] == [
        *("/kit/static", "/kit/static", "/kit/static/css", "/srv/shop/static2", "/kit/media", "/kit/media/small"),
        "/srv/shop/static/",
    ]
    assert {alias: it["OPTIONS"] for alias, it in settings["STORAGES"].items()} == {
        "staticfiles": {"location": "/kit/static", "base_url": "/s/"},
        "default": {"location": "/kit/media"},
    }
    # If nothing is moved, all stays as it is.
    assert laid_over(more=textwrap.dedent(lines))["COMPRESS_ROOT"] == "/srv/shop/static"


def test_logs_and_file_caches_go_elsewhere_if_it_is_only_tried(laid_over, tmp_path):
    settings = laid_over(more=FILES, BENCHAPP_FILES="/tmp/ours")
    assert settings["LOGGING"]["handlers"]["mine"] == {"class": "logging.FileHandler", "filename": "/tmp/ours/mine.log"}
    assert settings["LOGGING"]["handlers"]["other"] == {"class": "logging.StreamHandler"}
    places = [cache.get("LOCATION") for cache in settings["CACHES"].values()]
    assert places == ["/tmp/ours/cache-default", "/tmp/ours/cache-disk", None]
    assert settings["SESSION_FILE_PATH"] == "/tmp/ours"
    # In production they stay in the project's places.
    there = laid_over(more=FILES)
    assert there["LOGGING"]["handlers"]["mine"]["filename"] == "theirs.log"
    assert (there["CACHES"]["default"]["LOCATION"], there["SESSION_FILE_PATH"]) == ("theirs", "theirs")


@pytest.mark.parametrize("mode", ["w", "a", "r+"])
def test_an_uploaded_file_that_is_written_to_is_copied_first(tmp_path, mode):
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "file").symlink_to(tmp_path / "theirs")
    storage = CopiedWhenWritten(tmp_path / "ours")
    with storage.open("file") as file:
        assert file.read() == b"theirs" and (tmp_path / "ours" / "file").is_symlink()
    with storage.open("file", mode) as file:
        file.write("ours++")
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert (tmp_path / "ours" / "file").read_text() == {"a": "theirsours++"}.get(mode, "ours++")


def test_the_instrument_s_own_settings_add_the_probes(laid_over):
    settings = laid_over("bench.serve.inside.serving", BENCHAPP_PROBES="1")
    assert settings["INSTALLED_APPS"] == ["django.contrib.sessions", "benchapp.caching", "bench.serve.inside"]
    assert settings["MIDDLEWARE"][-2:] == ["bench.serve.inside.render_id.RenderId", INNER]
    assert (settings["ROOT_URLCONF"], settings["OVERLAID_URLCONF"]) == ("bench.serve.inside.serving.urls", "their_urls")
    assert laid_over("bench.serve.inside.serving") == laid_over() | {"BENCHAPP_PROBES": False}
    marking = laid_over("bench.serve.inside.serving", BENCHAPP_PROBES="1", BENCHAPP_MARKS="1")
    assert marking["MIDDLEWARE"][-2:] == ["bench.serve.inside.visitor_pages.marked", INNER]


OUTSIDE = """
CACHES = {alias: {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": place} for alias, place in
          {"live": "redis://:pw@cache.example:6379/1", "here": "redis://127.0.0.1:6379"}.items()}
CELERY_BROKER_URL = "amqp://queue.example"
HUEY = {"name": "theirs", "huey_class": "huey.SqliteHuey", "filename": "data/tasks.sqlite3"}
CHANNEL_LAYERS = {alias: {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [place]}}
                  for alias, place in {"live": ("queue.example", 6379), "here": ("localhost", 6379)}.items()}
SESSION_ENGINE, SESSION_CACHE_ALIAS = "django.contrib.sessions.backends.cache", "live"
DRAMATIQ_BROKER = {"BROKER": "dramatiq.brokers.redis.RedisBroker", "OPTIONS": {"url": "redis://queue.example"}}
TASKS = {alias: {"BACKEND": backend, "QUEUES": ["mail"]} for alias, backend in
         {"live": "django_tasks_db.DatabaseBackend", "here": "django_tasks.backends.ImmediateBackend"}.items()}
HAYSTACK_CONNECTIONS = {"live": {"ENGINE": "haystack.backends.solr_backend.SolrEngine", "URL": "http://solr.example"},
                        "here": {"ENGINE": "haystack.backends.whoosh_backend.WhooshEngine", "PATH": "index"}}
WAGTAILSEARCH_BACKENDS = {"live": {"BACKEND": "wagtail.search.backends.elasticsearch8", "URLS": ["https://es.example"]},
                          "here": {"BACKEND": "wagtail.search.backends.database", "SEARCH_CONFIG": "german"}}
STORAGES = {"staticfiles": {"BACKEND": "storages.backends.s3.S3StaticStorage"}, "default": {"BACKEND": "theirs"}}
"""


def test_if_it_is_only_tried_nothing_of_its_production_is_touched(laid_over, tmp_path):
    tried = {"BENCHAPP_FILES": str(tmp_path), "BENCHAPP_REMOTE_STORAGES": '["staticfiles"]'}
    settings = laid_over("benchapp_overlay", OUTSIDE, **tried)
    backends = {alias: cache["BACKEND"].rpartition(".")[2] for alias, cache in settings["CACHES"].items()}
    assert backends == {"live": "LocMemCache", "here": "RedisCache"}
    assert settings["EMAIL_BACKEND"].endswith("dummy.EmailBackend") and settings["CELERY_BROKER_URL"] == "memory://"
    assert (settings["HUEY"]["name"], settings["HUEY"]["huey_class"]) == ("theirs", "huey.BlackHoleHuey")
    layers = {alias: layer["BACKEND"].rpartition(".")[2] for alias, layer in settings["CHANNEL_LAYERS"].items()}
    assert layers == {"live": "InMemoryChannelLayer", "here": "RedisChannelLayer"}
    assert settings["DRAMATIQ_BROKER"] == {"BROKER": "dramatiq.brokers.stub.StubBroker", "OPTIONS": {}}
    tasks = {alias: (it["BACKEND"].rpartition(".")[2], it["QUEUES"]) for alias, it in settings["TASKS"].items()}
    assert tasks == {"live": ("DummyBackend", ["mail"]), "here": ("ImmediateBackend", ["mail"])}
    index, search = settings["HAYSTACK_CONNECTIONS"], settings["WAGTAILSEARCH_BACKENDS"]
    assert index["live"]["ENGINE"].endswith("SimpleEngine") and index["here"]["PATH"] == f"{tmp_path}/search-here"
    assert search["live"] == {"BACKEND": "wagtail.search.backends.database"} and search["here"]["SEARCH_CONFIG"]
    # A cache of one process would lose them.
    assert settings["SESSION_ENGINE"].endswith(".file") and settings["SESSION_FILE_PATH"] == str(tmp_path)
    for env in ({**tried, "BENCHAPP_OUTSIDE": "1"}, {}):
        untouched = laid_over("benchapp_overlay", OUTSIDE, **env)
        assert untouched["CACHES"]["live"]["LOCATION"] == "redis://:pw@cache.example:6379/1"
        assert "EMAIL_BACKEND" not in untouched and untouched["CELERY_BROKER_URL"] == "amqp://queue.example"
        assert untouched["HUEY"]["huey_class"] == "huey.SqliteHuey"


@pytest.mark.parametrize("outside", ["0", "1"])
def test_celery_has_no_broker_wherever_the_project_names_it(monkeypatch, tmp_path, outside):
    monkeypatch.setattr(os, "environ", {"BENCHAPP_OUTSIDE": outside})
    external_services.settings_overrides({}, [], tmp_path)
    assert os.environ.get("CELERY_BROKER_URL") == {"0": "memory://", "1": None}[outside]


def test_if_it_is_only_tried_no_mailer_of_the_newer_setting_sends(laid_over, tmp_path):
    lines = """
    MAILERS = {"default": {"OPTIONS": {"host": "smtp.example"}},
               "files": {"BACKEND": "django.core.mail.backends.filebased.EmailBackend"},
               "shown": {"BACKEND": "django.core.mail.backends.console.EmailBackend"}}
    """
    settings = laid_over("benchapp_overlay", textwrap.dedent(lines), BENCHAPP_FILES=str(tmp_path))
    assert "EMAIL_BACKEND" not in settings
    assert {alias: mailer["BACKEND"].split(".")[-2] for alias, mailer in settings["MAILERS"].items()} == {
        "default": "dummy",
        "files": "dummy",
        "shown": "console",
    }
    assert "OPTIONS" not in settings["MAILERS"]["default"]


def test_behind_a_reverse_proxy_it_sees_the_clients_address(laid_over):
    settings = laid_over(BENCHAPP_BEHIND_PROXY="1", BENCHAPP_FRONT="1")
    assert settings["MIDDLEWARE"][len(ALWAYS)] == "benchapp.serving.client_address.real_address"
    assert settings["SECURE_PROXY_SSL_HEADER"] == ["HTTP_FRONTPROTO", "https"]
    settings = laid_over(BENCHAPP_TRUSTED_PROXIES="10.0.0.0/8")
    assert settings["MIDDLEWARE"][len(ALWAYS)] == "benchapp.serving.client_address.balanced_address"
    assert settings["SECURE_PROXY_SSL_HEADER"] == ["HTTP_X_FORWARDED_PROTO", "https"]


def test_without_a_reverse_proxy_no_header_of_a_client_says_scheme_or_host(laid_over):
    lines = """
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    USE_X_FORWARDED_HOST = USE_X_FORWARDED_PORT = True
    """
    settings = laid_over(more=textwrap.dedent(lines))
    assert not any("address" in name for name in settings["MIDDLEWARE"][len(ALWAYS) :])
    assert settings["SECURE_PROXY_SSL_HEADER"] is None
    assert not (settings["USE_X_FORWARDED_HOST"] or settings["USE_X_FORWARDED_PORT"])


def test_errors_are_written_unless_it_logs_itself(laid_over):
    assert laid_over()["LOGGING"]["loggers"]["django.request"]["level"] == "ERROR"


def test_a_layer_goes_inside_of_security_and_outside_of_the_rest(laid_over):
    settings = laid_over(CACHING_PAGE_CACHE="1", BENCHAPP_CACHE_URL="locmemcache://", BENCHAPP_WHITENOISE="0")
    assert settings["MIDDLEWARE"] == [
        *ALWAYS,
        "django.middleware.security.SecurityMiddleware",
        OUTER,
        "benchapp.serving.sessions.private_sessions",
        "django.middleware.common.CommonMiddleware",
        INNER,
    ]
    assert settings["CACHE_MIDDLEWARE_ALIAS"] == "benchapp_pages"
    assert set(settings["CACHES"]) == {"default", "benchapp_pages"}


def test_what_a_project_caches_in_its_own_code_goes_to_the_cache_of_such_a_layer_only(laid_over):
    stock = "django.core.cache.backends.memcached.PyMemcacheCache"
    locmem = "django.core.cache.backends.locmem.LocMemCache"
    url = {"BENCHAPP_CACHE_URL": "pymemcache://127.0.0.1:1", "BENCHAPP_CACHE_SECONDS": "7"}
    assert laid_over(**url)["CACHES"] == {"default": {"BACKEND": locmem}}
    assert laid_over(CACHING_PAGE_CACHE="1", **url)["CACHES"]["default"] == {"BACKEND": locmem}
    theirs = f"CACHES = {{alias: {{'BACKEND': '{locmem}'}} for alias in ('default', 'theirs')}}\n"
    # The first is where cache_page looks.
    for layer, alias in (
        ("VIEW_CACHE", "default"),
        ("SITE_MIDDLEWARE", "django_pages"),
        ("FRAGMENTS", "template_fragments"),
    ):
        settings = laid_over(more=theirs, **url, **{f"CACHING_{layer}": "1"})
        laid = settings["CACHES"].pop(alias)
        assert (laid["BACKEND"], laid["LOCATION"], laid["TIMEOUT"]) == (stock, "127.0.0.1:1", 7)
        own = {"default", "theirs"} - {alias}
        assert settings["CACHES"] == {name: {"BACKEND": locmem} for name in own}
        assert settings.get("CACHE_MIDDLEWARE_ALIAS", alias) == alias


def test_a_layer_is_outside_of_all_that_sets_cookies_and_messages_are_in_the_session(laid_over):
    sessions, csrf = "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.csrf.CsrfViewMiddleware"
    # As `wagtail start` has it: what is first elsewhere comes last.
    theirs = f"MIDDLEWARE = ['{sessions}', '{csrf}', 'django.middleware.security.SecurityMiddleware']"
    layer = {"CACHING_PAGE_CACHE": "1", "BENCHAPP_CACHE_URL": "locmemcache://", "BENCHAPP_WHITENOISE": "0"}
    settings = laid_over(more=theirs, **layer)
    assert settings["MIDDLEWARE"].index(OUTER) < settings["MIDDLEWARE"].index(sessions)
    assert settings["MESSAGE_STORAGE"].endswith(".SessionStorage")
    # Without a layer, without sessions, and with their own storage, it stays theirs.
    assert "MESSAGE_STORAGE" not in laid_over(more=theirs, BENCHAPP_WHITENOISE="0")
    assert "MESSAGE_STORAGE" not in laid_over(**layer)
    assert laid_over(more=f"{theirs}\nMESSAGE_STORAGE = 'their.storage'", **layer)["MESSAGE_STORAGE"] == "their.storage"


def test_a_project_that_has_the_caching_app_itself_keeps_it(laid_over):
    theirs = f"""
INSTALLED_APPS.append("benchapp.caching")
MIDDLEWARE = ["{OUTER}", *MIDDLEWARE, "{INNER}"]
CACHING_LAYERS, CACHING_SECONDS, CACHING_PUBLIC = {{"page-cache": {{}}}}, 30, ["/blog/"]
"""
    settings = laid_over(more=theirs)
    assert settings["INSTALLED_APPS"].count("benchapp.caching") == 1
    assert [settings["MIDDLEWARE"].count(name) for name in (OUTER, INNER)] == [1, 1]
    assert settings["MIDDLEWARE"][-1] == INNER
    assert (settings["CACHING_LAYERS"], settings["CACHING_SECONDS"]) == ({"page-cache": {}}, 30)
    assert settings["CACHING_PUBLIC"] == ["/blog/"]
    assert "CACHE_MIDDLEWARE_ALIAS" not in settings
    other = laid_over(more=theirs, CACHING_STATICGENERATOR_ROOT="pages", BENCHAPP_CACHE_SECONDS="5")
    assert (list(other["CACHING_LAYERS"]), other["CACHING_SECONDS"]) == (["staticgenerator"], 5)


def test_a_process_that_has_loaded_the_application_leaves_a_file(tmp_path, monkeypatch):
    """And takes no part in a request; it serves also if the folder is missing."""
    for folder in (tmp_path, tmp_path / "nosuch"):
        monkeypatch.setenv("BENCHAPP_LOADED", str(folder))
        with pytest.raises(MiddlewareNotUsed):
            loaded.noted(lambda request: None)
    assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]


def test_a_site_over_https_is_served_as_safely_as_the_kits_own(laid_over):
    """Whatever the settings say, by the host's environment; nothing shortens a promise of theirs to browsers."""
    more = "SESSION_COOKIE_SECURE = False\nSILENCED_SYSTEM_CHECKS = ['auth.W004']\n"
    host = {"BENCHAPP_HTTPS": "1", "BENCHAPP_HSTS_SECONDS": "300", "SECRET_KEY": "k" * 60}
    settings = laid_over(more=more, **host, BENCHAPP_ALLOW='["security.W003"]')
    assert settings["SECRET_KEY"] == "k" * 60
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS")
    assert [settings[name] for name in names] == [True, True, True, 300]
    assert {"auth.W004", "security.W003"} < set(settings["SILENCED_SYSTEM_CHECKS"])
    assert laid_over(more="SECURE_HSTS_SECONDS = 86400", **host)["SECURE_HSTS_SECONDS"] == 86400
    # While it is tried and measured, its own key stays: all commands of a deployment have that.
    assert laid_over(**host, BENCHAPP_FILES="/tmp/ours")["SECRET_KEY"] == "theirs"
