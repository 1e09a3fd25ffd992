"""Pages that wait between reading the database and responding."""

from __future__ import annotations

import time
import uuid

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from benchapp.caching.fragments import cached_value, page_generation
from benchapp.views import page
from probes import render_gate
from probes.rendered import probe_page
from probes.rows import made_by_probe, title_of

MAX_MS = 3_000


@page
def slow(request: HttpRequest, milliseconds: int, name: str) -> HttpResponse:
    """A page with a part that takes so many milliseconds to render; the page of a new `name` is not cached yet."""

    def render_part() -> str:
        time.sleep(min(milliseconds, MAX_MS) / 1000)
        return uuid.uuid4().hex

    generation = page_generation(request.path)
    return probe_page([("part-id", cached_value(f"probe.{name}", generation, render_part))])


@page
def gated(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """The title of an author's post, read at once; while the author's gate is closed, the response waits.

    The page of a new `name` is not cached yet.
    """

    def read() -> str:
        title = title_of(pk)
        render_gate.wait_at(pk)
        return title

    generation = page_generation(request.path)
    return probe_page([("title", cached_value(f"probe.title.{pk}.{name}", generation, read))])


@never_cache
@require_POST
def gate(request: HttpRequest, pk: int, what: str) -> JsonResponse:
    """Close an author's gate, open it, or only look; the response has the number of waiting requests."""
    made_by_probe(pk)
    if what == "close":
        render_gate.close(pk)
    waiting = render_gate.waiting(pk)
    if what == "open":
        render_gate.reopen(pk)
    return JsonResponse({"waiting": waiting})
