"""URLs of the probes, all under one prefix. The client chooses the names, so it can always request an uncached page."""

from __future__ import annotations

from django.urls import path

from bench.inside import answers, entries, fill, inside, memory, pages, slow, visits

urlpatterns = [
    path("inside", inside.inside),
    path("connections", inside.connections),
    path("entries", entries.entries),
    path("failure", inside.failure),
    path("page/<path:name>/", pages.plain),
    path("large/<slug:name>/", pages.large),
    path("coded/<slug:name>/", pages.coded),
    path("form/<slug:name>/", pages.form),
    path("answer/<slug:spelt>/<slug:name>/", answers.answer),
    path("fill/", fill.fill),
    path("memory/<int:megabytes>/", memory.allocate),
    path("download/<int:megabytes>/", memory.download),
    path("slow/<int:milliseconds>/<slug:name>/", slow.slow),
    path("visit/<slug:name>/", visits.visit),
]
