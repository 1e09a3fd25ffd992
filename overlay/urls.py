"""The URLs of the project below, with those of the probes where they are installed."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.urls import include, path

_below = import_module(settings.OVERLAID_URLCONF)

urlpatterns = list(_below.urlpatterns)
if settings.BENCHAPP_PROBES:
    # First: a project may have a pattern that takes every path.
    urlpatterns.insert(0, path("__probe__/", include("probes.urls")))

for _name in ("handler400", "handler403", "handler404", "handler500"):
    if hasattr(_below, _name):
        globals()[_name] = getattr(_below, _name)
