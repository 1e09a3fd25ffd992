"""The page that visitors ask for while something breaks: which version rendered it, for whom, and when."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from benchapp.models import Author
from benchapp.views import page
from probes import release


@page
def visit(request: HttpRequest, name: str) -> HttpResponse:
    """A page of any name, cacheable like an ordinary one; it asks the database for a row."""
    context = {
        "code": release.VERSION,
        "account": request.user.get_username() or "nobody",
        "rendered": f"{time.time():.3f}",
        "author": Author.objects.order_by("-pk").values_list("name", flat=True).first(),
    }
    return render(request, "probes/visit.html", context)
