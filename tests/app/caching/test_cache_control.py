"""What the site tells a cache on the way to its visitors about how long a page may be kept there."""

from __future__ import annotations

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


def test_a_public_page_says_how_long_it_is_fresh_and_how_long_it_may_be_stale(rows, shared):
    assert Client().get("/").headers["Cache-Control"] == SAID


def test_a_page_for_somebody_says_nothing_of_the_kind(rows, shared, reader):
    assert "s-maxage" not in reader.get("/").headers.get("Cache-Control", "")


def test_who_has_been_at_the_login_page_is_nobody_in_particular_until_a_page_holds_their_token(rows, shared):
    visitor = Client()
    assert visitor.get("/login/").cookies["csrftoken"]
    assert visitor.get("/").headers["Cache-Control"] == SAID
    assert "s-maxage" not in visitor.get("/login/").headers.get("Cache-Control", "")


@pytest.mark.parametrize("path", ["/login/", "/posts/999999999/", "/healthz", "/?a=1"])
def test_what_is_not_to_be_kept_says_nothing_of_the_kind(rows, shared, path):
    assert "s-maxage" not in Client().get(path).headers.get("Cache-Control", "")


def test_it_says_nothing_where_it_is_not_asked_to(rows):
    assert "Cache-Control" not in Client().get("/").headers
