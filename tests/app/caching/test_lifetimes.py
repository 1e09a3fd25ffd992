"""A page that names a shorter lifetime than the layer's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils.http import http_date

from benchapp.caching.cacheability import lifetime
from tests.app.caching.layers import INSIDE, OUTSIDE, ActiveLayer, rendering


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Lets time pass for the cache in memory and the layer."""
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])

    def passes(seconds: float) -> None:
        now[0] += seconds

    return passes


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 60),
        ({"Cache-Control": "public"}, 60),
        ({"Cache-Control": "max-age=30"}, 30),
        ({"Cache-Control": "max-age=600"}, 60),
        ({"Cache-Control": "max-age=600, s-maxage=5"}, 5),
        ({"Cache-Control": "max-age=5, s-maxage=600"}, 60),
        ({"Cache-Control": 'MAX-AGE="20"'}, 20),
        ({"Cache-Control": "max-age=20", "Expires": http_date(0)}, 20),
        ({"Expires": http_date(0)}, 0),
        ({"Expires": "0"}, 0),
        ({"Expires": "soon"}, 0),
        *(({"Cache-Control": f"max-age={value}"}, 0) for value in ("0", "soon", "-5", "1.5", "")),
        ({"Cache-Control": "max-age=600", "Age": "1"}, 0),
    ],
)
def test_the_lifetime_of_a_page(settings, headers: dict[str, str], seconds: int):
    settings.CACHING_SECONDS = 60
    assert lifetime(HttpResponse("x", headers=headers)) == seconds


def test_an_hour_of_expiry_is_cut(settings, clock: Callable):
    settings.CACHING_SECONDS = 60
    for ahead, seconds in ((3600, 60), (31, 31)):
        assert lifetime(HttpResponse("x", headers={"Expires": http_date(int(time.time()) + ahead)})) in (
            seconds,
            seconds - 1,
        )


@pytest.mark.parametrize("headers", [{"Cache-Control": "max-age=30"}, {"Cache-Control": "public, s-maxage=30"}])
def test_a_page_is_stored_for_as_long_as_it_says(active_layer: Callable, clock: Callable, headers: dict[str, str]):
    with active_layer("page-cache") as layer:
        view = layer.over(rendering(headers))
        pages = []
        for wait in (0, 29, 2):
            clock(wait)
            pages.append(view(RequestFactory().get("/a/")))
    assert pages[0].content == pages[1].content != pages[2].content
    # Browsers count from the rendering.
    ages = [page.get("Age") for page in pages]
    assert ages == ([None, "29", None] if "max-age" in headers["Cache-Control"] else [None, None, None])


@pytest.mark.parametrize("control", ["no-cache", "private", "max-age=0", "max-age=30, must-revalidate"])
def test_a_page_that_forbids_it_is_not_stored(layer: ActiveLayer, control: str):
    assert not layer.stores(rendering({"Cache-Control": control}))


@pytest.mark.parametrize("name", [name for name in INSIDE | OUTSIDE if name != "page-cache"])
def test_a_server_with_one_lifetime_for_all_pages_gets_none_that_ends_earlier(active_layer: Callable, name: str):
    with active_layer(name) as layer:
        assert not layer.stores(rendering({"Cache-Control": "max-age=30"}))
