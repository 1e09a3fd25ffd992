"""Pages of the probes: small, whole, and naming their own rendering."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.http import HttpResponse
from django.utils.html import format_html, format_html_join


def probe_page(lines: Iterable[tuple[str, object]]) -> HttpResponse:
    """A page of paragraphs, each an id with its text; the first is the rendering's own id, as X-Render-Id has it.

    What a cache keeps of a page may be its bytes alone, so a HIT is proved by what the page itself says.
    """
    render_id = uuid.uuid4().hex
    body = format_html_join("\n", '<p id="{}">{}</p>', [("render-id", render_id), *lines])
    page = format_html('<!doctype html>\n<html lang="en">\n<title>Probe</title>\n{}\n</html>\n', body)
    return HttpResponse(page, headers={"X-Render-Id": render_id})
