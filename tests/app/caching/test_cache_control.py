"""The Cache-Control header for a shared cache."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
SAID = "s-maxage=31, stale-while-revalidate=30, stale-if-error=30"


@pytest.fixture
def shared(site_with, tmp_path):
    options = {"DIRECTORY": str(tmp_path / "pages"), "GENERATION_FILE": str(tmp_path / "purged")}
    layer = {f"CACHING_NGINX_MICROCACHE_{name}": value for name, value in options.items()}
    with site_with(**layer, BENCHAPP_CACHE_SECONDS="61"):
        yield


def test_a_public_page_has_its_fresh_and_stale_times(rows, shared):
    assert Client().get("/").headers["Cache-Control"] == SAID


def test_a_page_of_an_account_has_no_s_maxage(rows, shared, reader):
    assert "s-maxage" not in reader.get("/").headers.get("Cache-Control", "")


def test_a_csrf_cookie_is_anonymous_until_a_page_holds_the_token(rows, shared):
    visitor = Client()
    assert visitor.get("/login/").cookies["csrftoken"]
    assert visitor.get("/").headers["Cache-Control"] == SAID
    assert "s-maxage" not in visitor.get("/login/").headers.get("Cache-Control", "")


@pytest.mark.parametrize("path", ["/login/", "/posts/999999999/", "/healthz", "/?a=1"])
def test_an_uncacheable_page_has_no_s_maxage(rows, shared, path):
    assert "s-maxage" not in Client().get(path).headers.get("Cache-Control", "")


@pytest.mark.parametrize("left", [{"f_bavail": 0}, {"f_favail": 0}])
def test_on_a_full_disk_nginx_gets_nothing_to_cache(rows, shared, tmp_path, monkeypatch, left):
    free = {"f_bavail": 10**6, "f_frsize": 4096, "f_files": 10**6, "f_favail": 10**6}
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**free | left))
    headers = Client().get("/").headers
    assert headers["X-Accel-Expires"] == "0"
    assert "Cache-Control" not in headers
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**free | {"f_files": 0, "f_favail": 0}))
    assert Client().get("/").headers["Cache-Control"] == SAID


def test_no_cache_control_without_the_layer(rows):
    assert "Cache-Control" not in Client().get("/").headers
