"""The system checks of the caching app: each mistake has an id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from benchapp.caching.harmless import PAUSE, RESUME
from benchapp.caching.middleware import INNER, OUTER
from benchapp.caching.registry import Layer

SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"
LOCALE = "django.middleware.locale.LocaleMiddleware"
GZIP = "django.middleware.gzip.GZipMiddleware"
SECURITY = "django.middleware.security.SecurityMiddleware"
BACKENDS = "django.core.cache.backends"
RIGHT = {
    "CACHING_LAYERS": {"page-cache": {}},
    "CACHES": {"default": {"BACKEND": f"{BACKENDS}.redis.RedisCache"}},
    "MIDDLEWARE": [SECURITY, OUTER, SESSIONS, LOCALE, INNER],
}


class OwnMiddleware:
    """Middleware that is no class of Django's."""


def function_middleware(get_response: object) -> object:
    return get_response


OWN = [f"{__name__}.{name}" for name in ("OwnMiddleware", "function_middleware", "nothing")]


def cache(backend: str) -> dict[str, Any]:
    return {"CACHES": {"default": {"BACKEND": f"{BACKENDS}.{backend}"}}}


def in_memcached(location: object, engine: str = "cache") -> dict[str, Any]:
    """Sessions in a cache at this place."""
    caches = {"default": {"BACKEND": f"{BACKENDS}.memcached.PyMemcacheCache", "LOCATION": location}}
    return {"CACHES": caches, "SESSION_ENGINE": f"django.contrib.sessions.backends.{engine}"}


def layers(**options: object) -> dict[str, Any]:
    return {"CACHING_LAYERS": {name.replace("_", "-"): value for name, value in options.items()}}


# A layer of a project, of which two parts are not there.
IN_PARTS = Layer("tests.nowhere.purge", (f"{__name__}.function_middleware", f"{__name__}.nothing"))
NO_PAGES = ("log/", "", "*", "/log*", "/{user.nothing}/", "/{user_id|upper}/", "/{0}/", "/{user.pk/", "https://a.test/")
PAGES = ("/", "/*", "/log/*", "{get_admin_url}", "{get_admin_url}*", "/{user.pk}/{user.groups.first}/", "/{user_id}/")


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({}, []),
        (layers(), []),
        (cache("locmem.LocMemCache"), ["W003"]),
        (cache("dummy.DummyCache"), ["W003"]),
        (cache("locmem.LocMemCache") | layers(staticgenerator={"root": Path("/pages")}), []),
        ({"CACHE_MIDDLEWARE_ALIAS": "pages"}, ["E007"]),
        *(({"CACHING_LAYERS": value}, ["E001"]) for value in (["page-cache"], None, "page-cache")),
        *(({"CACHING_SECONDS": value}, ["E001"]) for value in ("60", 0, -1, None, True, 1.5)),
        *(({"CACHING_QUERY": value}, ["E001"]) for value in ("page", None, [1])),
        ({"CACHING_QUERY": {"page"}}, []),
        ({"CACHING_QUERY_IGNORED": "utm_*"}, ["E001"]),
        *(({"CACHING_PUBLIC": value}, ["E001"]) for value in ("/", ["blog/"], ["/", ""], [None])),
        ({"CACHING_PUBLIC": ["/blog/", "https://a.test/shop/"]}, []),
        *(({"CACHING_PORT": value}, ["E001"]) for value in ("https", -1, 0, True, "65536", 80.5, None, ":80")),
        *(({"CACHING_PORT": value}, []) for value in (8443, "8443")),
        ({"CACHING_X_CACHE": "yes"}, ["E001"]),
        *(({"CACHING_PAGE_HEADERS": value}, ["E001"]) for value in (["Vary"], {"Vary": 1}, {1: "a"}, {"Vary": None})),
        ({"CACHING_STALE": ["/"]}, ["E001"]),
        ({"CACHING_STALE": {"auth.User": ["/by/{username}/"]}}, []),
        ({"CACHING_STALE": {"auth.Nobody": ["/"]}}, ["E002"]),
        ({"CACHING_STALE": {"nobody": ["/"]}}, ["E002"]),
        ({"CACHING_STALE": {"auth.User": ["/{nothing}/"], "auth.Group": "/"}}, ["E002", "E002"]),
        *(({"CACHING_STALE": {"admin.LogEntry": [page]}}, ["E002"]) for page in NO_PAGES),
        *(({"CACHING_STALE": {"admin.LogEntry": [page]}}, []) for page in PAGES),
        (layers(varnsh={}), ["E003"]),
        ({"CACHING_LAYERS": {f"{__name__}.IN_PARTS": {}}}, ["E003", "E003"]),
        ({"CACHING_LAYERS": {f"{__name__}.nothing": {}}}, ["E003"]),
        ({"CACHING_LAYERS": {f"{__name__}.OwnMiddleware": {}}}, ["E003"]),
        (layers(staticgenerator={}), ["E004"]),
        (layers(staticgenerator={"root": "/pages"}), ["E004"]),
        (layers(staticgenerator={"root": Path("/pages"), "max_mb": "64", "size": 1}), ["E004", "E004"]),
        (layers(staticgenerator=None), ["E004"]),
        (layers(varnish={"purge_url": "http://127.0.0.1:1", "generation_file": Path("/a")}), []),
        (layers(nginx_memcached={"address": "127.0.0.1:1"}) | in_memcached("127.0.0.1:1"), ["W005"]),
        (layers(nginx_memcached={"address": "unix:/m"}) | in_memcached(["unix:/n", "unix:/m"]), ["W005"]),
        (layers(nginx_memcached={"address": "127.0.0.1:1"}) | in_memcached("127.0.0.1:2"), []),
        (layers(nginx_memcached={"address": "127.0.0.1:1"}) | in_memcached("127.0.0.1:1", "cached_db"), []),
        (layers(varnish={"purge_url": "http://127.0.0.1:1", "generation_file": Path("/a")}) | in_memcached("x"), []),
        ({"MIDDLEWARE": [SESSIONS, OUTER, INNER]}, ["E005"]),
        ({"MIDDLEWARE": [LOCALE, SESSIONS, OUTER, INNER]}, ["E005", "E005"]),
        ({"MIDDLEWARE": [OUTER, SESSIONS]}, ["E006"]),
        ({"MIDDLEWARE": [SESSIONS]}, ["W001"]),
        ({"MIDDLEWARE": [SESSIONS], "CACHING_LAYERS": {}}, []),
        ({"MIDDLEWARE": [OUTER, SESSIONS, INNER, GZIP]}, ["W002"]),
        ({"MIDDLEWARE": [*OWN, OUTER, INNER]}, ["W004", "W004", "W004"]),
        ({"MIDDLEWARE": [OWN[0], OUTER, INNER], "CACHING_HARMLESS": [OWN[0]]}, []),
        ({"MIDDLEWARE": [OUTER, PAUSE, OWN[0], RESUME, INNER], "CACHING_HARMLESS": [OWN[0], "DNT", "cookie:a"]}, []),
        ({"MIDDLEWARE": [OUTER, OWN[0], INNER], "CACHING_HARMLESS": [OWN[0]]}, ["E008"]),
        ({"MIDDLEWARE": [OUTER, PAUSE, OWN[0], INNER], "CACHING_HARMLESS": [OWN[0]]}, ["E008"]),
        ({"CACHING_HARMLESS": [OWN[0]]}, ["E008"]),
        *(({"CACHING_HARMLESS": value}, ["E001"]) for value in ("DNT", ["cookie:"], ["a b"], [""], [1], ["cookie=a"])),
        *(({"CACHING_SCHEME": value}, ["E001"]) for value in ("ftp", "HTTPS", None, True)),
    ],
)
def test_a_mistake_has_its_id(settings, changes: dict[str, Any], ids: list[str]):
    for name, value in (RIGHT | changes).items():
        setattr(settings, name, value)
    message_ids = [message.id.removeprefix("caching.") for message in run_checks() if message.id.startswith("caching.")]
    assert sorted(message_ids) == ids
