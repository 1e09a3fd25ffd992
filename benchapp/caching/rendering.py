"""Name each rendering, so that two responses of one rendering show that one of them came from a cache."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_cookie

from benchapp.caching.django_cache import cache_public_page

View = Callable[..., HttpResponse]


def public_page(view: View) -> View:
    """A public page that the layers may cache. It may name who is logged in, so it varies with the cookie."""
    return require_safe(cache_public_page(render_id(vary_on_cookie(view))))


def render_id(get_response: View) -> View:
    """Give each rendering an id of its own, X-Render-Id, in a middleware or around one view.

    Inside of the caching layers, so that a cached response keeps its id, and of the cache of a cached view.
    """

    @wraps(get_response)
    def named(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        return name_rendering(get_response(request, *args, **kwargs))

    return named


def name_rendering(response: HttpResponse) -> HttpResponse:
    """Give a response its X-Render-Id, unless it has one."""
    response.headers.setdefault("X-Render-Id", uuid.uuid4().hex)
    return response
