"""Django's own caches as its documentation has them: middleware, decorator and tag, over stock backends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.memcached import PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.test import Client

from tests.app.conftest import Rows, account

Site = Callable[..., AbstractContextManager[None]]
UPDATE, FETCH = (f"django.middleware.cache.{name}CacheMiddleware" for name in ("Update", "FetchFrom"))
SESSIONS = ("benchapp.serving.sessions.private_sessions", "django.contrib.sessions.middleware.SessionMiddleware")
# Whether Django's decorator is around the public views, and what visitors get of one.
ASK = """
import json, django; django.setup()
from django.core.management import call_command
from django.test import Client
from django.contrib.auth import get_user_model
from django.middleware.cache import CacheMiddleware
call_command("migrate", verbosity=0)
from benchapp.views import PUBLIC
cells = [cell.cell_contents for decorator in PUBLIC for cell in decorator.__closure__ or ()]
member = Client()
member.force_login(get_user_model().objects.create_user("ann-of-the-hill"))
responses = [client.get("/posts/") for client in (Client(), Client(), member, member)]
print(json.dumps({
    "cached": CacheMiddleware in cells,
    "ids": [response.get("X-Render-Id") for response in responses],
    "control": [response.get("Cache-Control") for response in responses],
    "error": Client(raise_request_exception=False).get("/", headers={"host": "x.test"}).get("X-Render-Id"),
    "named": [b"ann-of-the-hill" in response.content for response in responses],
}))
"""


def site_output(**variables: str) -> dict[str, Any]:
    """The output of the script about the site under these variables."""
    env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings", "ALLOWED_HOSTS": "testserver"}
    env |= {"DATABASE_URL": "sqlite://:memory:", **variables}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=settings.BASE_DIR, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_cached_views_are_django_s_decorator_and_a_page_of_an_account_is_not_stored():
    result = site_output(CACHING_VIEW_CACHE="1", BENCHAPP_PROBES="1")
    assert result["cached"]
    one, other, *members = result["ids"]
    assert one == other, "a hit keeps the name of its rendering"
    assert len({one, *members}) == 3, "each page of an account is rendered"
    assert result["control"][0] == result["control"][1] == "max-age=60"
    assert all("private" in control for control in result["control"][2:])
    assert result["named"] == [False, False, True, True]


def test_without_the_layer_no_view_is_cached_and_each_rendering_has_its_own_name():
    result = site_output(BENCHAPP_PROBES="1")
    assert not result["cached"]
    assert len(set(result["ids"])) == 4
    assert result["error"], "the page of an error that middleware raises"


def test_a_site_without_probes_names_no_rendering():
    result = site_output(CACHING_VIEW_CACHE="1")
    assert (result["ids"], result["error"]) == ([None] * 4, None)


def test_nothing_that_goes_to_production_knows_the_name_of_a_rendering():
    folders = [settings.BASE_DIR / name for name in ("benchapp", "benchapp_overlay", "config", "deploy", "templates")]
    texts = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(texts) > 300
    assert [path for path in texts if b"render-id" in path.read_bytes().lower()] == []


@pytest.mark.parametrize("url", ["memcache:///run/m.sock", "redis:///run/r.sock"])
@pytest.mark.parametrize(
    ("layer", "alias"),
    [
        ("CACHING_FRAGMENTS", "template_fragments"),
        ("CACHING_VIEW_CACHE", "default"),
        ("CACHING_SITE_MIDDLEWARE", "default"),
    ],
)
def test_each_is_in_a_stock_backend_and_none_is_a_layer_that_writes_invalidate(
    settings_from: Callable, layer: str, alias: str, url: str
):
    settings = settings_from(**{layer: "1", "CACHE_URL": url})
    stock = PyMemcacheCache if url.startswith("memcache") else RedisCache
    assert settings["CACHES"][alias]["BACKEND"] == f"{stock.__module__}.{stock.__name__}"
    assert settings["CACHING_LAYERS"] == {}
    assert "CACHE_MIDDLEWARE_ALIAS" not in settings, "that of Django's default"


def test_the_per_site_cache_is_around_sessions_and_the_last_to_see_a_request(settings_from: Callable):
    names = settings_from(CACHING_SITE_MIDDLEWARE="1")["MIDDLEWARE"]
    # The last two concern logins, and what a page reads for the kit's own layers.
    assert names.index(FETCH) == len(names) - 3
    assert names.index(UPDATE) < min(names.index(name) for name in SESSIONS)
    assert not {UPDATE, FETCH} & set(settings_from()["MIDDLEWARE"])


def test_the_per_site_cache_stores_a_page_for_everybody_and_none_of_an_account(rows: Rows, site_with: Site):
    with site_with(CACHING_SITE_MIDDLEWARE="1", BENCHAPP_PROBES="1"):
        caches["default"].clear()
        one, other = (Client().get("/posts/") for _ in range(2))
        ann, bob = account("ann-of-the-hill"), account("bob-of-the-dale")
        pages = [reader.get("/posts/") for reader in (ann, bob, ann)]
        anonymous = Client().get("/posts/")
        caches["default"].clear()
    assert one["X-Render-Id"] == other["X-Render-Id"] == anonymous["X-Render-Id"]
    assert len({page["X-Render-Id"] for page in pages}) == 3
    assert [b"ann-of-the-hill" in page.content for page in pages] == [True, False, True]
    assert all("private" in page["Cache-Control"] for page in pages)
