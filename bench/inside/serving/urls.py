"""The URLs of the project below, after those of the probes."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.urls import include, path

_below = import_module(settings.OVERLAID_URLCONF)

# The probes first: a project may have a pattern that takes every path.
urlpatterns = [path("__probe__/", include("bench.inside.urls")), *_below.urlpatterns]

for _name in ("handler400", "handler403", "handler404", "handler500"):
    if hasattr(_below, _name):
        globals()[_name] = getattr(_below, _name)
