"""Health checks for a project without such pages: middleware for any project."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse

GetResponse = Callable[[HttpRequest], HttpResponse]


def own_checks(get_response: GetResponse) -> GetResponse:
    """Respond to the two paths of BENCHAPP_OWN_CHECKS: the process serves; and the database can be used, too."""
    alive, ready = settings.BENCHAPP_OWN_CHECKS

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path_info == alive:
            return _plain("ok", 200)
        if request.path_info == ready:
            return _plain("ok", 200) if _database_responds() else _plain("no database", 503)
        return get_response(request)

    return middleware


def _plain(text: str, status: int) -> HttpResponse:
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8", status=status, headers=headers)


def _database_responds() -> bool:
    if connection.vendor == "unknown":
        # The project has none.
        return True
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    return True
