"""X-Render-Id: a name for each rendering. Two responses with one name prove a cache hit."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import get_callable

View = Callable[..., HttpResponse]


class RenderId:
    """Innermost middleware, so that a cached response keeps the name of its rendering."""

    def __init__(self, get_response: View):
        self.get_response = get_response
        if getattr(settings, "CACHING_VIEW_CACHE", False):
            # `cache_page` stores a page as soon as it is rendered, before any middleware sees it. Without `cache_page`
            # the hook would only cost ASGI servers a change of threads.
            self.process_template_response = self._name_before_rendering

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return named(self.get_response(request))

    def _name_before_rendering(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return named(response)


def named(response: HttpResponse) -> HttpResponse:
    """The response with an X-Render-Id, unless it has one."""
    response.headers.setdefault("X-Render-Id", uuid.uuid4().hex)
    return response


def naming(handler: str | View) -> View:
    """The error handler of a URLconf, which names its pages: errors of middleware never pass the innermost one."""
    view = get_callable(handler)

    @wraps(view)
    def named_error(*args: object, **kwargs: object) -> HttpResponse:
        return named(view(*args, **kwargs))

    return named_error
