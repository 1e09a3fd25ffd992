"""URLs of pages that depend on their request, on the cache or on the clock."""

from __future__ import annotations

import secrets
import time

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path


def request_shown(request: HttpRequest) -> HttpResponse:
    names = ("HTTP_HOST", "HTTP_USER_AGENT", "HTTP_ACCEPT", "SERVER_PROTOCOL", "REMOTE_ADDR")
    return HttpResponse(" ".join(request.META[name] for name in names))


def seen(request: HttpRequest) -> HttpResponse:
    known = cache.get("seen")
    cache.set("seen", True)
    return HttpResponse(f"seen {known}", headers={"X-First": "1"} if known is None else {})


urlpatterns = [
    path("request/", request_shown),
    path("port/", lambda request: HttpResponse(f"{request.build_absolute_uri()} port {request.get_port()}")),
    path("seen/", seen),
    path("second/", lambda request: HttpResponse("now", headers={"X-Second": str(int(time.time()))})),
    path("chance/", lambda request: HttpResponse(secrets.token_hex())),
    path("latin/", lambda request: HttpResponse("K\xf6ln".encode("latin-1"), "text/html; charset=iso-8859-1")),
    path("stream/", lambda request: StreamingHttpResponse(["a", "b"])),
]
