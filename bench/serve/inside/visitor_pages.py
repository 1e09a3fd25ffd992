"""Pages for the visitors of a fault: each shows the version and time of its rendering, and its visitor."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from bench.serve.inside import release
from bench.serve.inside.pages import account_name, page

MARK = "probes/mark.html"
OUTSIDE = "outside"


def _version() -> str:
    """The word of this release, or OUTSIDE if the settings below the probes are not a part of the release."""
    below = sys.modules.get(os.environ.get("OVERLAID_SETTINGS", ""))
    folder = Path(release.__file__).resolve().parents[3]
    if below is None or folder in Path(below.__file__).resolve().parents:
        return release.VERSION
    return OUTSIDE


# Once, as the worker starts: the link to the release that is served may lead to another one later.
VERSION = _version()


@page
def visit(request: HttpRequest, name: str) -> HttpResponse:
    """A page of any name, cacheable like an ordinary one; queries the database for a row that every project has."""
    migration = MigrationRecorder.Migration.objects.order_by("-pk").values_list("name", flat=True).first()
    return render(request, "probes/visit.html", {**_mark(account_name(request)), "migration": migration})


def marked(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that ends a project's own pages with the same line for every visitor.

    Innermost of all middleware, so that a cached page keeps its line. The line does not depend on the signed-in user:
    that would make every page vary with the cookie.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if _is_page(response) and not request.path.startswith("/__probe__/"):
            response.content += render_to_string(MARK, _mark("nobody")).encode(response.charset)
            if "Content-Length" in response.headers:
                response.headers["Content-Length"] = str(len(response.content))
        return response

    return middleware


def _is_page(response: HttpResponse) -> bool:
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    is_plain = response.status_code == 200 and not response.streaming and "Content-Encoding" not in response.headers
    return is_plain and kind == "text/html"


def _mark(account: str) -> dict[str, str]:
    values = {"code": VERSION, "outside": "", "account": account, "rendered": f"{time.time():.3f}"}
    if VERSION == OUTSIDE:
        values["outside"] = OUTSIDE
    return values
