"""The settings of any Django project, OVERLAID_SETTINGS, and over them what the kit needs to serve it.

Environment variables choose all of it; nothing in the project's folder changes.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import environ

from benchapp.caching import registry
from benchapp.serving import caches, environment, files, websockets

_below = import_module(os.environ["OVERLAID_SETTINGS"])
globals().update({_name: getattr(_below, _name) for _name in dir(_below) if _name.isupper()})

_env = environ.Env()
# The project's folder, to which a release's link leads now: the working directory may be that of the release before.
_base = Path(_below.__file__).resolve().parents[_below.__name__.count(".") + hasattr(_below, "__path__")]
# Django's defaults, where the settings below say nothing.
_middleware = list(getattr(_below, "MIDDLEWARE", ()))
_apps = list(getattr(_below, "INSTALLED_APPS", ()))

# --- Serving ------------------------------------------------------------------------------------

# Before the project makes its ASGI application.
websockets.refuse()
DEBUG = False
ALLOWED_HOSTS = environment.hosts(_env, "BENCHAPP_ALLOWED_HOSTS", list(getattr(_below, "ALLOWED_HOSTS", ())))
# Paths that are answered whatever host a balancer names.
BENCHAPP_HEALTH_PATHS = json.loads(os.environ.get("BENCHAPP_HEALTH_PATHS", "[]"))
STATIC_ROOT = environment.directory(_env, "BENCHAPP_STATIC_ROOT", None, _base) or getattr(_below, "STATIC_ROOT", None)
MEDIA_ROOT = environment.directory(_env, "BENCHAPP_MEDIA_ROOT", None, _base) or getattr(_below, "MEDIA_ROOT", "")
if not environment.flag(_env, "BENCHAPP_HTTPS", default=False):
    # Over plain HTTP on this machine, a redirect to HTTPS leads nowhere and a secure cookie never comes back.
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
BENCHAPP_BEHIND_PROXY = environment.flag(_env, "BENCHAPP_BEHIND_PROXY", default=False)
BENCHAPP_FRONT = environment.flag(_env, "BENCHAPP_FRONT", default=False)
if BENCHAPP_BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_FRONTPROTO" if BENCHAPP_FRONT else "HTTP_X_FORWARDED_PROTO", "https")

# Kinds of static files that WhiteNoise's table lacks; a browser that is told `nosniff` uses no file of another type.
WHITENOISE_MIMETYPES = {
    ".mjs": "text/javascript",
    ".otf": "font/otf",
    ".ttf": "font/ttf",
    ".webmanifest": "application/manifest+json",
    **(getattr(_below, "WHITENOISE_MIMETYPES", None) or {}),
}

# --- Database -----------------------------------------------------------------------------------

# Other SQLite files by alias, and a URL for the default database. Everything else of a database stays as it is.
DATABASES = {_alias: dict(_database) for _alias, _database in getattr(_below, "DATABASES", {}).items()}
for _alias, _file in json.loads(os.environ.get("BENCHAPP_DATABASE_FILES", "{}")).items():
    if "sqlite" in DATABASES[_alias]["ENGINE"]:
        DATABASES[_alias]["NAME"] = _file
if _url := os.environ.get("BENCHAPP_DATABASE_URL"):
    _found = environment.database(_env, "BENCHAPP_DATABASE_URL", _base, _base)
    _default = DATABASES.get("default", {})
    DATABASES["default"] = {**(_default if _default.get("ENGINE") == _found["ENGINE"] else {}), **_found}

# --- Caching layers -----------------------------------------------------------------------------

CACHES = getattr(_below, "CACHES", {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}})
CACHING_SECONDS = environment.whole_number(_env, "BENCHAPP_CACHE_SECONDS", 60, minimum=1, maximum=31_536_000)
CACHING_LAYERS = environment.caching_layers(_env, registry.LAYERS, base=_base)
# What the project says of itself: the pages that may be cached, and those that a write of each model makes stale.
CACHING_PUBLIC = json.loads(os.environ.get("BENCHAPP_PUBLIC", "[]"))
CACHING_STALE = json.loads(os.environ.get("BENCHAPP_STALE", "{}"))
# The headers that all its pages have, percent-encoded: a server that stores bodies alone sends them, too.
CACHING_PAGE_HEADERS = json.loads(unquote(os.environ.get("BENCHAPP_PAGE_HEADERS", "{}")))
_cookie_messages = ("storage.fallback.FallbackStorage", "storage.cookie.CookieStorage")
_messages = getattr(_below, "MESSAGE_STORAGE", "django.contrib.messages.storage.fallback.FallbackStorage")
_sessions = "django.contrib.sessions" in _apps and any("session" in _name.lower() for _name in _middleware)
if CACHING_LAYERS and _sessions and _messages.endswith(_cookie_messages):
    # A cached page would answer a visitor with a message: one whose session has it bypasses every cache.
    MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
if "site-middleware" in CACHING_LAYERS:
    # An alias of its own: the project's caches stay what they are.
    CACHES = {
        **CACHES,
        "benchapp_pages": caches.cache(_env, "BENCHAPP_CACHE_URL", "pages", CACHING_SECONDS),
    }
    CACHE_MIDDLEWARE_ALIAS = "benchapp_pages"
    CACHE_MIDDLEWARE_SECONDS = CACHING_SECONDS
    CACHE_MIDDLEWARE_KEY_PREFIX = ""

if {"fragments", "view-cache"} & CACHING_LAYERS.keys():
    # The project's own templates and views have these layers, and find the cache by the names that Django looks for.
    _parts = caches.cache(_env, "BENCHAPP_CACHE_URL", "parts", CACHING_SECONDS)
    CACHES = {**CACHES, "default": _parts}
    if "fragments" in CACHING_LAYERS:
        CACHES["template_fragments"] = _parts
    if "site-middleware" not in CACHING_LAYERS:
        CACHE_MIDDLEWARE_ALIAS = "default"

# --- Applications and middleware ----------------------------------------------------------------

# Without DEBUG, Django's defaults send an error to ADMINS and write nothing of it.
LOGGING = getattr(_below, "LOGGING", None) or {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "loggers": {"django.request": {"handlers": ["stderr"], "level": "ERROR"}},
}
# Where it is tried and measured, nothing is written beside its code.
if _files := os.environ.get("BENCHAPP_FILES"):
    LOGGING, CACHES = files.logs_in(Path(_files), LOGGING), files.caches_in(Path(_files), CACHES)
INSTALLED_APPS = [*_apps, "benchapp.caching"]

# Whole pages are stored inside of what comes first, which adds the same headers to every page, and outside of all else,
# for that may set cookies.
_first = {"django.middleware.security.SecurityMiddleware", "whitenoise.middleware.WhiteNoiseMiddleware"}
_outer = len(list(takewhile(_first.__contains__, _middleware)))
_static = "whitenoise.middleware.WhiteNoiseMiddleware"
_serves_static = environment.flag(_env, "BENCHAPP_WHITENOISE", default=True) and _static not in _middleware
MIDDLEWARE = [
    "benchapp.serving.streaming.at_once",
    "benchapp.serving.client_address.any_host_for_health",
    # Over a Unix socket a project would see no client's address, and refuse what it limits by address.
    *(["benchapp.serving.client_address.real_address"] if BENCHAPP_BEHIND_PROXY else []),
    *_middleware[:_outer],
    *(["benchapp.serving.static_files.StaticFiles"] if _serves_static else []),
    *registry.outer_middleware(CACHING_LAYERS),
    *(["benchapp.caching.described.OnlyShared"] if CACHING_LAYERS else []),
    *_middleware[_outer:],
    *registry.inner_middleware(CACHING_LAYERS),
]
