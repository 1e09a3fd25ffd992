"""Pages that take their time between reading and answering."""

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

LONGEST_MS = 3_000


@page
def slow(request: HttpRequest, milliseconds: int, name: str) -> HttpResponse:
    """A page, and a part of it, that takes so many milliseconds to make; nobody has asked for that of a new `name`."""

    def make_part() -> str:
        time.sleep(min(milliseconds, LONGEST_MS) / 1000)
        return uuid.uuid4().hex

    word = page_generation(request.path)
    return probe_page([("part-id", cached_value(f"probe.{name}", word, make_part))])


@page
def gated(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """The title of an author's post; while its gate is closed, read at once and answered when the gate is opened.

    A new `name` is a page nobody has asked for.
    """

    def read() -> str:
        title = title_of(pk)
        render_gate.wait_at(pk)
        return title

    word = page_generation(request.path)
    return probe_page([("title", cached_value(f"probe.title.{pk}.{name}", word, read))])


@never_cache
@require_POST
def gate(request: HttpRequest, pk: int, what: str) -> JsonResponse:
    """Close an author's gate, open it, or only look; says how many have come to it and are waiting."""
    made_by_probe(pk)
    if what == "close":
        render_gate.close(pk)
    waiting = render_gate.waiting(pk)
    if what == "open":
        render_gate.open_again(pk)
    return JsonResponse({"waiting": waiting})
