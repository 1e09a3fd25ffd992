"""A page outside of the probes' public pages: the path begins alike, but is not below a public path."""

from __future__ import annotations

from django.urls import path

from bench.serve.inside.pages import plain

urlpatterns = [path("<slug:name>/", plain)]
