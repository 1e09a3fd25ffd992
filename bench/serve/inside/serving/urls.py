"""The URLs of the project below, after those of the probes."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings, urls
from django.urls import include, path

from bench.serve.inside.render_id import naming

_below = import_module(settings.OVERLAID_URLCONF)

# The probes first: a project may have a pattern that takes every path.
urlpatterns = [
    path("__probe__/", include("bench.serve.inside.urls")),
    path("__probe__aside/", include("bench.serve.inside.aside")),
    *_below.urlpatterns,
]

for _name in ("handler400", "handler403", "handler404", "handler500"):
    globals()[_name] = naming(getattr(_below, _name, getattr(urls, _name)))
