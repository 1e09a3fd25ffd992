"""A project's own middleware, such as a log-in wall, does not keep visitors from the probes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import PermissionDenied
from django.core.handlers import base
from django.http import HttpRequest, HttpResponse

Factory = Callable[..., Any]

PROBES = ("/__probe__/", "/__probe__aside/")
# Middleware that refuses nobody, or whose refusals a check tries.
OF_OTHERS = ("django.", "benchapp.", "benchapp_overlay.", "bench.")
REFUSALS = (301, 302, 303, 307, 308, 401, 403)
HOOKS = ("process_view", "process_exception", "process_template_response")
_import_string = base.import_string


def begin() -> None:
    """From now on, Django builds the middleware of the project so that visitors get through to the probes."""
    base.import_string = imported


def imported(name: str) -> Any:
    """Import the middleware of a dotted path."""
    factory = _import_string(name)
    if name.startswith(OF_OTHERS):
        return factory
    return letting_in(factory)


def letting_in(factory: Factory) -> Factory:
    """The middleware, which still does its work for a probe, and refuses none."""

    @wraps(factory, updated=())
    def letting_in_factory(get_response: Callable[..., Any]) -> Any:
        middleware = factory(get_response)
        if middleware is None:
            return None
        if iscoroutinefunction(middleware):
            passing = _asynchronous(middleware, get_response)
        else:
            passing = _synchronous(middleware, get_response)
        for hook in HOOKS:
            if hasattr(middleware, hook):
                setattr(passing, hook, getattr(middleware, hook))
        if hasattr(middleware, "process_view") and not iscoroutinefunction(middleware.process_view):
            passing.process_view = partial(_view, middleware.process_view)
        return passing

    for mode in ("sync_capable", "async_capable"):
        if hasattr(factory, mode):
            setattr(letting_in_factory, mode, getattr(factory, mode))
    return letting_in_factory


def _synchronous(middleware: Factory, get_response: Callable[..., Any]) -> Any:
    def passing(request: HttpRequest) -> HttpResponse:
        try:
            response = middleware(request)
        except PermissionDenied:
            if not _is_probe(request):
                raise
            return get_response(request)
        if _is_refusal(request, response):
            return get_response(request)
        return response

    return passing


def _asynchronous(middleware: Factory, get_response: Callable[..., Any]) -> Any:
    async def passing(request: HttpRequest) -> HttpResponse:
        try:
            response = await middleware(request)
        except PermissionDenied:
            if not _is_probe(request):
                raise
            return await get_response(request)
        if _is_refusal(request, response):
            return await get_response(request)
        return response

    return passing


def _view(process_view: Factory, request: HttpRequest, *words: Any) -> HttpResponse | None:
    response = process_view(request, *words)
    if response is not None and _is_refusal(request, response):
        return None
    return response


def _is_probe(request: HttpRequest) -> bool:
    return request.path_info.startswith(PROBES)


def _is_refusal(request: HttpRequest, response: HttpResponse) -> bool:
    """True if a probe was refused further out: every response of a probe has the name of its rendering."""
    refused = _is_probe(request) and response.status_code in REFUSALS
    return refused and not response.has_header("X-Render-Id")
