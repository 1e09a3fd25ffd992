"""URLs of the probes that write rows of the kit's own site, under the same prefix as the others."""

from __future__ import annotations

from django.urls import path

from bench.serve.inside.site import gated, rows

urlpatterns = [
    path("rows/", rows.create),
    path("rows/<positive:pk>/<slug:what>/", rows.write),
    path("author/<positive:pk>/", rows.title, name="probe_author"),
    path("author/<positive:pk>/large/", rows.large),
    path("author/<positive:pk>/gated/<slug:name>/", gated.gated),
    path("author/<positive:pk>/halting/<slug:name>/", gated.halting),
    path("gate/<positive:pk>/<slug:what>/", gated.gate),
]
