"""The HTML of the probes' pages: small, complete, with the id of its rendering."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join


def probe_page(lines: Iterable[tuple[str, object]]) -> HttpResponse:
    """A page of paragraphs, each an id with its text; the first is the id of the rendering, as in X-Render-Id.

    A cache may store the body alone, so the body itself must prove a cache hit, and by its end that it is whole.
    """
    render_id = uuid.uuid4().hex
    body = format_html_join("\n", '<p id="{}">{}</p>', [("render-id", render_id), *lines, ("whole", render_id)])
    page = format_html('<!doctype html>\n<html lang="en">\n<title>Probe</title>\n{}\n</html>\n', body)
    return HttpResponse(page, headers={"X-Render-Id": render_id})


def account_name(request: HttpRequest) -> str:
    """The name of the account that is logged in; `nobody` without one, and in a project without accounts."""
    user = getattr(request, "user", None)
    return user.get_username() if user is not None and user.is_authenticated else "nobody"
