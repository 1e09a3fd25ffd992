"""A page with a part that takes its time."""

from __future__ import annotations

import time
import uuid

from django.http import HttpRequest, HttpResponse

from bench.inside.rendered import probe_page
from benchapp.caching.fragments import cached_value, page_generation
from benchapp.caching.rendering import public_page as page

MAX_MS = 3_000


@page
def slow(request: HttpRequest, milliseconds: int, name: str) -> HttpResponse:
    """A page with a part that takes so many milliseconds to render; the page of a new `name` is not cached yet."""

    def render_part() -> str:
        time.sleep(min(milliseconds, MAX_MS) / 1000)
        return uuid.uuid4().hex

    generation = page_generation(request.path)
    return probe_page([("part-id", cached_value(f"probe.{name}", generation, render_part))])
