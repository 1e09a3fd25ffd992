"""Pages with a cost: time, a connection to the database, memory, or the bytes of a download."""

from __future__ import annotations

import time
import uuid

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from bench.serve.inside.pages import cached_part, page, probe_page

MAX_MS = 30_000
# Seconds for which a request holds its database connection, so that those of other requests are there at the same time.
HOLD_CONNECTION_S = 0.02
# A worker beyond the memory of its size is killed; without a size, no client may take more of the machine than this.
MAX_MB = 2_000
HOLD_MEMORY_S = 0.5
MAX_DOWNLOAD_MB = 10


@page
def slow(request: HttpRequest, milliseconds: int, name: str) -> HttpResponse:
    """A page with a part that takes so many milliseconds to render; the page of a new `name` is not cached yet."""

    def render_part() -> str:
        time.sleep(min(milliseconds, MAX_MS) / 1000)
        return uuid.uuid4().hex

    return probe_page([("part-id", cached_part(name, render_part))])


@never_cache
@require_safe
def connections(request: HttpRequest) -> JsonResponse:
    """Hold a database connection for a moment, if the database is a server."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(%s)", [HOLD_CONNECTION_S])
    return JsonResponse({})


@never_cache
@require_safe
def allocate(request: HttpRequest, megabytes: int) -> JsonResponse:
    """Use so much memory for half a second."""
    # Not zeros, which take no memory until they are written to.
    used = b"x" * (min(megabytes, MAX_MB) * 1_000_000)
    time.sleep(HOLD_MEMORY_S)
    return JsonResponse({"bytes": len(used)})


@never_cache
@require_safe
def download(request: HttpRequest, megabytes: int) -> HttpResponse:
    """A response of so many megabytes, made in no time."""
    return HttpResponse(b"x" * (min(megabytes, MAX_DOWNLOAD_MB) * 1_000_000), content_type="application/octet-stream")
