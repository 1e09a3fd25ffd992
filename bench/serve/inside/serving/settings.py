"""The settings of `benchapp_overlay.settings`, and over them the probes, if BENCHAPP_PROBES is 1."""

from __future__ import annotations

import os

from benchapp_overlay import environment, project_settings
from benchapp_overlay import settings as _below

globals().update(project_settings.attributes(_below))
if project_settings.CONFIGURATION in os.environ:
    globals()[os.environ[project_settings.CONFIGURATION]] = project_settings.Configured

_collected = "django.contrib.staticfiles.storage.StaticFilesStorage"
_plain = "django.core.files.storage.FileSystemStorage"
_storages = getattr(_below, "STORAGES", {"default": {"BACKEND": _plain}, "staticfiles": {"BACKEND": _collected}})
_older = hasattr(_below, "DEFAULT_FILE_STORAGE") or hasattr(_below, "STATICFILES_STORAGE")
if "BENCHAPP_MEDIA_ROOT" in os.environ and not _older and _storages.get("default", {}).get("BACKEND") == _plain:
    # The folder has links to the uploaded files of the project.
    _default = {**_storages["default"], "BACKEND": "bench.serve.inside.serving.media.CopiedWhenWritten"}
    STORAGES = {**_storages, "default": _default}

BENCHAPP_PROBES = environment.Env().flag("BENCHAPP_PROBES")
if BENCHAPP_PROBES:
    INSTALLED_APPS = [*_below.INSTALLED_APPS, "bench.serve.inside"]
    _marks = environment.Env().flag("BENCHAPP_MARKS")
    _inner = []
    if _marks:
        _inner = ["bench.serve.inside.visitor_pages.marked"]
    *_outer, _watch = _below.MIDDLEWARE
    MIDDLEWARE = [*_outer, "bench.serve.inside.render_id.RenderId", *_inner, _watch]
    # A check names the reason why a page is not cached.
    CACHING_X_CACHE = True
    if _below.CACHING_PUBLIC:
        CACHING_PUBLIC = [*_below.CACHING_PUBLIC, "/__probe__/"]
    OVERLAID_URLCONF = _below.ROOT_URLCONF
    ROOT_URLCONF = "bench.serve.inside.serving.urls"
