"""A layer over a view, as the settings lay it, and whether it stores the responses of the view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings

from benchapp.caching.external.cacheable_header import MARK
from benchapp.caching.middleware import CachingMiddleware, WatchMiddleware

View = Callable[[HttpRequest], HttpResponse]
HTML = "text/html; charset=utf-8"
# Each with the variables that turn it on.
INSIDE = {
    "page-cache": {"CACHING_PAGE_CACHE": "1"},
    "staticgenerator": {"CACHING_STATICGENERATOR_ROOT": "{folder}/pages"},
    "nginx-memcached": {"CACHING_NGINX_MEMCACHED_ADDRESS": "unix:{socket}"},
    "uwsgi-cache": {"CACHING_UWSGI_CACHE": "1"},
}
OUTSIDE = {
    "varnish": {
        "CACHING_VARNISH_PURGE_URL": "unix:{folder}/purge",
        "CACHING_VARNISH_GENERATION_FILE": "{folder}/purged",
    },
    "nginx-microcache": {
        "CACHING_NGINX_MICROCACHE_DIRECTORY": "{folder}/pages",
        "CACHING_NGINX_MICROCACHE_GENERATION_FILE": "{folder}/purged",
    },
    "apache-cache": {"CACHING_APACHE_CACHE_GENERATION_FILE": "{folder}/purged"},
}


def with_layer(view: View, *projects: Callable[[View], View]) -> View:
    """The view with the middleware of the app around it, and of a project inside of that, as in MIDDLEWARE."""
    around = [CachingMiddleware, *projects, WatchMiddleware]
    classes = [kind for kind in around if isinstance(kind, type) and kind.__qualname__ == kind.__name__]
    layered = view
    with override_settings(MIDDLEWARE=[f"{kind.__module__}.{kind.__name__}" for kind in classes]):
        for middleware in reversed(around):
            layered = middleware(layered)
    return layered


@dataclass(frozen=True)
class ActiveLayer:
    """An active layer."""

    name: str

    def over(self, view: View, *projects: Callable[[View], View]) -> View:
        """The view with the middleware of the layer around it, and inside of that the middleware of a project."""
        return with_layer(view, *projects)

    def stores(
        self, view: View, path: str = "/posts/5/", projects: tuple[Callable[[View], View], ...] = (), **request: Any
    ) -> bool:
        """True if the response to this request is everybody's: stored, or marked for a cache outside."""
        layered = self.over(view, *projects)
        first = layered(RequestFactory().get(path, **request))
        if self.name in OUTSIDE:
            return first.has_header(MARK)
        again = layered(RequestFactory().get(path, **request))
        return b"".join(again) == b"".join(first)


def rendering(headers: dict[str, str] | None = None, reads: Callable[[HttpRequest], object] = lambda _: None) -> View:
    """A view whose every rendering is another one."""
    count = iter(range(1000))

    def view(request: HttpRequest) -> HttpResponse:
        reads(request)
        return HttpResponse(f"<p>rendering {next(count)}</p>", headers={"Content-Type": HTML} | (headers or {}))

    return view
