"""URLs of the probes, all under /probe/."""

from __future__ import annotations

from django.urls import path

from benchapp.probes import advisories, rows, slow

urlpatterns = [
    path("rows/", rows.make),
    path("rows/<positive:pk>/<slug:what>/", rows.write),
    path("author/<positive:pk>/", rows.title, name="probe_author"),
    path("author/<positive:pk>/large/", rows.large),
    path("author/<positive:pk>/gated/", slow.gated),
    path("gate/<positive:pk>/<slug:what>/", slow.gate),
    path("slow/<int:milliseconds>/<slug:name>/", slow.slow),
    path("advisory/<slug:kind>/<slug:name>/", advisories.advisory),
]
