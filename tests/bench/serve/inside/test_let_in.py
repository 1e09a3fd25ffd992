"""Middleware of a project that refuses every visitor refuses no probe."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.test import RequestFactory
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin

from bench.serve.inside.serving import let_in

PROBE, PAGE = "/__probe__/page/x/", "/page/"


def redirecting(get_response: Any) -> Any:
    return lambda request: HttpResponseRedirect("/login/")


def denying(get_response: Any) -> Any:
    def middleware(request: HttpRequest) -> HttpResponse:
        raise PermissionDenied

    return middleware


@sync_and_async_middleware
class InTheView(MiddlewareMixin):
    def process_view(self, request: HttpRequest, *words: Any) -> HttpResponse:
        return HttpResponse(status=403)


class Mixed(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(status=401)


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("a page", headers={"X-Render-Id": "1"})


async def async_page(request: HttpRequest) -> HttpResponse:
    return page(request)


def status(middleware: Any, path: str) -> int:
    try:
        return middleware(RequestFactory().get(path)).status_code
    except PermissionDenied:
        return 403


@pytest.mark.parametrize("factory", [redirecting, denying, Mixed])
def test_only_probes_are_let_in(factory):
    middleware = let_in.letting_in(factory)(page)
    assert status(middleware, PROBE) == 200
    assert status(middleware, PAGE) == status(factory(page), PAGE) != 200


def test_a_refusal_before_the_view_is_none_of_a_probe():
    middleware = let_in.letting_in(InTheView)(page)
    views = {path: middleware.process_view(RequestFactory().get(path), page, (), {}) for path in (PROBE, PAGE)}
    assert views[PROBE] is None
    assert views[PAGE].status_code == 403


def test_asynchronous_middleware_lets_probes_in_too():
    factory = let_in.letting_in(Mixed)
    assert factory.async_capable
    middleware = factory(async_page)
    responses = [asyncio.run(middleware(RequestFactory().get(path))).status_code for path in (PROBE, PAGE)]
    assert responses == [200, 401]


def test_what_a_probe_responds_to_itself_is_no_refusal():
    requests = []

    def forbidden(request: HttpRequest) -> HttpResponse:
        requests.append(request)
        return HttpResponse(status=403, headers={"X-Render-Id": "1"})

    middleware = let_in.letting_in(lambda get_response: get_response)(forbidden)
    assert (status(middleware, PROBE), len(requests)) == (403, 1)


def test_middleware_of_others_is_as_it_is():
    name = "django.middleware.common.CommonMiddleware"
    assert let_in.imported(name) is let_in._import_string(name)
