"""Pages that take their time between reading and answering."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import uuid
from pathlib import Path

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from benchapp.caching.fragments import lookup, page_generation
from benchapp.probes.rendered import probe_page
from benchapp.probes.rows import made_by_probe, title_of
from benchapp.views import page

LONGEST_MS = 3_000
# A gate that nobody opens lets its page go after so many seconds: the request that would open it may have been given to
# the very worker that waits at it.
GATE_S = 0.5
POLL_S = 0.005


@page
def slow(request: HttpRequest, milliseconds: int, name: str) -> HttpResponse:
    """A page, and a part of it, that takes so many milliseconds to make; nobody has asked for that of a new `name`."""

    def make_part() -> str:
        time.sleep(min(milliseconds, LONGEST_MS) / 1000)
        return uuid.uuid4().hex

    word = page_generation(request.path)
    return probe_page([("part-id", lookup(f"probe.{name}", word, make_part))])


@page
def gated(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """The title of an author's post; while its gate is closed, read at once and answered when the gate is opened.

    A new `name` is a page nobody has asked for.
    """

    def read() -> str:
        title = title_of(pk)
        _wait_at(_gate(pk))
        return title

    word = page_generation(request.path)
    return probe_page([("title", lookup(f"probe.title.{pk}.{name}", word, read))])


@never_cache
@require_POST
def gate(request: HttpRequest, pk: int, what: str) -> JsonResponse:
    """Close an author's gate, open it, or only look; says how many renderings have read and are waiting at it."""
    made_by_probe(pk)
    folder = _gate(pk)
    if what == "close":
        folder.mkdir(mode=0o700)
    waiting = len(list(folder.glob("*")))
    if what == "open":
        # Moved away first: removed where it is, it would stay when a rendering arrives meanwhile.
        gone = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}")
        with contextlib.suppress(FileNotFoundError):
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
    return JsonResponse({"waiting": waiting})


def _wait_at(folder: Path) -> None:
    deadline = time.monotonic() + GATE_S
    with contextlib.suppress(FileNotFoundError):
        (folder / uuid.uuid4().hex).touch()
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(POLL_S)


def _gate(pk: int) -> Path:
    """A directory that all workers see: the gate is closed while it exists."""
    return Path(tempfile.gettempdir(), f"benchapp-gate-{pk}")
