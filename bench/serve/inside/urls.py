"""URLs of the probes, all under one prefix. The client chooses the names, so it can always request an uncached page."""

from __future__ import annotations

from django.urls import path

from bench.serve.inside import costs, described_responses, inside, pages, stores, visitor_pages

urlpatterns = [
    path("inside", inside.inside),
    path("connections", costs.connections),
    path("entries", stores.entries),
    path("failure", inside.failure),
    path("page/<path:name>/", pages.plain),
    path("large/<slug:name>/", pages.large),
    path("coded/<slug:name>/", pages.coded),
    path("form/<slug:name>/", pages.form),
    path("answer/<slug:spelt>/<slug:name>/", described_responses.described),
    path("fill/", stores.fill),
    path("purge/", stores.purge),
    path("memory/<int:megabytes>/", costs.allocate),
    path("download/<int:megabytes>/", costs.download),
    path("slow/<int:milliseconds>/<slug:name>/", costs.slow),
    path("visit/<slug:name>/", visitor_pages.visit),
]

for _pattern in urlpatterns:
    # As Django's login_not_required says it, which is newer than 4.2: a site may be wholly behind a login.
    _pattern.callback.login_required = False
