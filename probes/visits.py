"""The page that visitors ask for while something breaks: which version rendered it, for whom, and when."""

from __future__ import annotations

import time

from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from benchapp.caching.rendering import public_page as page
from probes import release
from probes.rendered import account_name


@page
def visit(request: HttpRequest, name: str) -> HttpResponse:
    """A page of any name, cacheable like an ordinary one; it asks the database for a row that every project has."""
    context = {
        "code": release.VERSION,
        "account": account_name(request),
        "rendered": f"{time.time():.3f}",
        "migration": MigrationRecorder.Migration.objects.order_by("-pk").values_list("name", flat=True).first(),
    }
    return render(request, "probes/visit.html", context)
