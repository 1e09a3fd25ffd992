"""A page beside the public pages of the probes: its path only begins like theirs, so that it is none of them."""

from __future__ import annotations

from django.urls import path

from bench.serve.inside.pages import plain

urlpatterns = [path("<slug:name>/", plain)]
