"""Pages that wait at a gate between reading the database and responding."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from bench.serve.inside.pages import cached_part, page, probe_page
from bench.serve.inside.site import render_gate
from bench.serve.inside.site.rows import large_page, probe_author, title_of


@page
def gated(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """The title of an author's post, read at once; while the author's gate is closed, the response waits.

    The page of a new `name` is not cached yet.
    """

    def read() -> str:
        title = title_of(pk)
        render_gate.wait_at(pk)
        return title

    return probe_page([("title", cached_part(f"title.{pk}.{name}", read))])


class HaltingResponse(HttpResponse):
    """A response in two halves, which waits at the gate of an author in between."""

    gate: int | None = None

    def __iter__(self) -> Iterator[bytes]:
        half = len(self.content) // 2
        yield self.content[:half]
        if self.gate is not None:
            render_gate.wait_at(self.gate)
        yield self.content[half:]


@page
def halting(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """A large page of an author, sent to the half; while the author's gate is closed, the rest waits.

    The page of a new `name` is not cached yet.
    """
    rendered = large_page(pk)
    response = HaltingResponse(rendered.content, headers=rendered.headers)
    response.gate = pk
    return response


@never_cache
@require_POST
def gate(request: HttpRequest, pk: int, what: str) -> JsonResponse:
    """Close an author's gate, open it, or only look; the response has the number of waiting requests."""
    probe_author(pk)
    if what == "close":
        render_gate.close(pk)
    waiting = render_gate.waiting(pk)
    if what == "open":
        render_gate.reopen(pk)
    return JsonResponse({"waiting": waiting})
