"""X-Cache: which pages are hits, which misses, and for which reason a page passes the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from benchapp.caching.external.cacheable_header import MARK
from tests.app.caching.layers import HTML, OUTSIDE, ActiveLayer, View, rendering

REASONS = {
    "method": (rendering(), {"method": "post"}),
    "path": (rendering(), {"path": "/.a/"}),
    "request-header": (rendering(), {"headers": {"Authorization": "x"}}),
    "session": (rendering(), {"headers": {"cookie": "sessionid=x"}}),
    "messages": (rendering(), {"headers": {"cookie": "messages=x"}}),
    "host": (rendering(), {"headers": {"host": "foreign.test"}}),
    "scheme": (rendering(), {"secure": True}),
    "query": (rendering(), {"QUERY_STRING": "a=1"}),
    "body": (rendering(), {"headers": {"content-length": "1"}}),
    "port": (rendering(), {"headers": {"host": "testserver:1"}}),
    "prefix": (rendering(), {"SCRIPT_NAME": "/elsewhere"}),
    "status": (lambda request: HttpResponse("x", HTML, status=404), {}),
    "streaming": (lambda request: StreamingHttpResponse([b"x"], content_type=HTML), {}),
    "content-type": (rendering({"Content-Type": "application/json"}), {}),
    "content-encoding": (rendering({"Content-Encoding": "br"}), {}),
    "content-range": (rendering({"Content-Range": "bytes 0-1/2"}), {}),
    "reads-cookie=theme": (rendering(reads=lambda request: request.COOKIES.get("theme")), {}),
    "reads-header=user-agent": (rendering(reads=lambda request: request.headers.get("User-Agent")), {}),
    "reads-header=remote-addr": (rendering(reads=lambda request: request.META["REMOTE_ADDR"]), {}),
    "sets-cookie": (rendering({"Set-Cookie": "a=b"}), {}),
    "vary": (rendering({"Vary": "User-Agent"}), {}),
    "cache-control": (rendering({"Cache-Control": "no-store"}), {}),
    "lifetime": (rendering({"Cache-Control": "max-age=soon"}), {}),
    "nonce": (rendering({"Content-Security-Policy": "script-src 'nonce-abc'"}), {}),
}


def respond(layered: View, method: str = "get", path: str = "/posts/5/", **request: Any) -> HttpResponse:
    return layered(getattr(RequestFactory(), method)(path, **request))


@pytest.mark.parametrize("reason", REASONS)
def test_each_layer_says_why_a_page_passes(layer: ActiveLayer, settings, reason: str):
    settings.CACHING_X_CACHE = True
    view, request = REASONS[reason]
    layered = layer.over(view)
    for _ in range(2):
        assert respond(layered, **request)["X-Cache"] == f"pass; {reason}"


def test_a_page_is_a_miss_and_then_a_hit(active_layer: Callable, settings):
    with active_layer("page-cache") as layer:
        settings.CACHING_X_CACHE = True
        view = layer.over(rendering())
        assert [respond(view)["X-Cache"] for _ in range(3)] == ["miss", "hit", "hit"]
        assert respond(view, "head")["X-Cache"] == "hit"


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_page_for_a_cache_outside_has_none_which_its_hits_would_repeat(active_layer: Callable, settings, name: str):
    with active_layer(name) as layer:
        settings.CACHING_X_CACHE = True
        response = respond(layer.over(rendering()))
    assert MARK in response and "X-Cache" not in response


def test_pages_outside_of_the_public_ones_and_stores_that_are_down(active_layer: Callable, settings, monkeypatch):
    settings.CACHING_PUBLIC = ["/"]
    with active_layer("page-cache") as layer:
        settings.CACHING_X_CACHE = True
        assert respond(layer.over(rendering()))["X-Cache"] == "pass; not-public"

        def refuse(*_: object) -> bool:
            raise OSError("full")

        store = "benchapp.caching.django_cache.DjangoCacheStore"
        monkeypatch.setattr(f"{store}.put", refuse)
        assert respond(layer.over(rendering()), path="/")["X-Cache"] == "pass; store"
        monkeypatch.setattr(f"{store}.look_up", refuse)
        assert respond(layer.over(rendering()), path="/")["X-Cache"] == "pass; store"


def test_a_page_with_separate_headers_if_only_bodies_are_stored(active_layer: Callable, settings):
    with active_layer("staticgenerator") as layer:
        settings.CACHING_X_CACHE = True
        assert respond(layer.over(rendering({"X-Own": "1"})))["X-Cache"] == "pass; page-headers"


def test_without_the_setting_no_response_says_it(layer: ActiveLayer, settings):
    settings.CACHING_X_CACHE = False
    layered = layer.over(rendering(reads=lambda request: request.COOKIES.get("theme")))
    for _ in range(2):
        response = respond(layered)
        assert "X-Cache" not in response
        assert response["Cache-Control"] == "private"
