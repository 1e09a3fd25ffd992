"""URLs of the whole project: the site, the admin, the probes under BENCHAPP_PROBES, the debug toolbar under DEBUG."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("benchapp.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "benchapp.views.bad_request"
handler500 = "benchapp.views.server_error"

if settings.BENCHAPP_PROBES:
    handler400 = "bench.serve.inside.site.error_pages.bad_request"
    handler500 = "bench.serve.inside.site.error_pages.server_error"
    urlpatterns += [
        path("__probe__/", include(app)) for app in ("bench.serve.inside.urls", "bench.serve.inside.site.urls")
    ]
    urlpatterns += [path("__probe__aside/", include("bench.serve.inside.aside"))]

if settings.DEBUG:
    urlpatterns.append(path("__debug__/", include("debug_toolbar.urls")))
