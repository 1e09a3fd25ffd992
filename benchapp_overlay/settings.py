"""The settings of any Django project, OVERLAID_SETTINGS, and the kit's changes over them.

Environment variables choose every change; nothing in the project's folder changes.
"""

from __future__ import annotations

import json
import os
import re
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

from django.core.exceptions import ImproperlyConfigured

from benchapp.caching import local_hosts
from benchapp_overlay import caches, environment, external_services, pools, project_settings

_below = project_settings.load(os.environ["OVERLAID_SETTINGS"])
_attributes = project_settings.attributes(_below)
_env = environment.Env()
# The project's folder, to which a release's link leads now: the working directory may be that of the release before.
_base = Path(_below.__file__).resolve().parents[_below.__name__.count(".") + hasattr(_below, "__path__")]
for _alias, _variable in (("staticfiles", "BENCHAPP_STATIC_ROOT"), ("default", "BENCHAPP_MEDIA_ROOT")):
    if _found := _env.directory(_variable, _base):
        _attributes.update(project_settings.storage_settings(_attributes, _alias, _found))
globals().update(_attributes)
if project_settings.CONFIGURATION in os.environ:
    globals()[os.environ[project_settings.CONFIGURATION]] = project_settings.Configured
# Django's defaults, if the settings below say nothing.
_middleware = external_services.without_toolbar(_attributes.get("MIDDLEWARE", ()))
_apps = list(_attributes.get("INSTALLED_APPS", ()))
# A project may have the caching app itself.
_caching_app = "benchapp.caching"
_has_caching = any(_name == _caching_app or _name.startswith(f"{_caching_app}.apps.") for _name in _apps)
_middleware = [_name for _name in _middleware if not _name.startswith(f"{_caching_app}.")]

# --- Serving ------------------------------------------------------------------------------------

DEBUG = False
# A setting from an unset variable is empty, or None.
_hosts = list(filter(None, _attributes.get("ALLOWED_HOSTS", ())))
ALLOWED_HOSTS = _env.hosts("BENCHAPP_ALLOWED_HOSTS", _hosts)
# Paths with a response whatever host a load balancer names.
BENCHAPP_HEALTH_PATHS = _env.json("BENCHAPP_HEALTH_PATHS", [])
# Two of those have no page in the project: the kit responds.
BENCHAPP_OWN_CHECKS = _env.json("BENCHAPP_OWN_CHECKS", [])
# And over plain HTTP, as many load balancers connect.
_exempt = [f"^{re.escape(_path.lstrip('/'))}$" for _path in BENCHAPP_HEALTH_PATHS]
SECURE_REDIRECT_EXEMPT = [*_attributes.get("SECURE_REDIRECT_EXEMPT", ()), *_exempt]
# Its own middleware may refuse all names except its own; those of this machine are for development.
BENCHAPP_OWN_HOSTS = [_name for _name in _hosts if _name not in (*local_hosts.LOCAL, "*")] or ALLOWED_HOSTS
if not _env.flag("BENCHAPP_HTTPS"):
    # Over plain HTTP on this machine, a redirect to HTTPS leads nowhere and a secure cookie never comes back.
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
    # Nor does one to www. lead anywhere, and no browser sends a cookie of another domain.
    PREPEND_WWW, SESSION_COOKIE_DOMAIN, CSRF_COOKIE_DOMAIN = False, None, None
    # It takes one for all sites over HTTPS only.
    for _name in ("SESSION_COOKIE_SAMESITE", "CSRF_COOKIE_SAMESITE"):
        if _attributes.get(_name) in ("None", "none"):
            globals()[_name] = "Lax"
else:
    # Whatever the settings say: a cookie over plain HTTP can be read on the way.
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    # Browsers keep their promise of HTTPS: nothing shortens what the settings have promised.
    _hsts = _env.whole_number("BENCHAPP_HSTS_SECONDS", 0, minimum=0, maximum=63_072_000)
    SECURE_HSTS_SECONDS = max(_attributes.get("SECURE_HSTS_SECONDS", None) or 0, _hsts)
# A key in a repository is public. The host's key replaces it; while a project is tried and measured, the
# commands of its servers and those of the kit share the project's key.
if "BENCHAPP_FILES" not in os.environ and (_key := os.environ.get("SECRET_KEY")):
    SECRET_KEY = _key
# HSTS for every subdomain, and the preload lists of browsers, concern more than this site: their owner decides.
SILENCED_SYSTEM_CHECKS = [
    *_attributes.get("SILENCED_SYSTEM_CHECKS", ()),
    *("security.W005", "security.W021"),
    *_env.json("BENCHAPP_ALLOW", []),
]
BENCHAPP_BEHIND_PROXY = _env.flag("BENCHAPP_BEHIND_PROXY")
# No web server in front adds the ids of requests to responses.
BENCHAPP_ACCESS_LOG = _env.flag("BENCHAPP_ACCESS_LOG")
BENCHAPP_FRONT = _env.flag("BENCHAPP_FRONT")
BENCHAPP_TRUSTED_PROXIES = _env.networks("BENCHAPP_TRUSTED_PROXIES")
# A client could forge a header that no reverse proxy overwrites; then the application server says which scheme it is.
_proxied = BENCHAPP_BEHIND_PROXY or BENCHAPP_TRUSTED_PROXIES
_scheme = ("HTTP_FRONTPROTO" if BENCHAPP_FRONT else "HTTP_X_FORWARDED_PROTO", "https")
SECURE_PROXY_SSL_HEADER = _scheme if _proxied else None
# All servers hand Host on, and most of them take these away.
USE_X_FORWARDED_HOST = USE_X_FORWARDED_PORT = False

# The largest body of a request over ASGI, whose servers have no limit; 0: none.
BENCHAPP_MAX_BODY_MB = _env.whole_number("BENCHAPP_MAX_BODY_MB", 0, minimum=0, maximum=1_000_000)

# Kinds of static files that WhiteNoise's table lacks; under `nosniff` a browser uses no file of another type.
WHITENOISE_MIMETYPES = {
    ".mjs": "text/javascript",
    ".otf": "font/otf",
    ".ttf": "font/ttf",
    ".webmanifest": "application/manifest+json",
    **(_attributes.get("WHITENOISE_MIMETYPES", None) or {}),
}
# Which names have a hash, as the web servers of the kit know them: by themselves, not by a list of Django's.
WHITENOISE_IMMUTABLE_FILE_TEST = _attributes.get("WHITENOISE_IMMUTABLE_FILE_TEST", r"\.[0-9a-f]{12}\.[a-z0-9]+$")

# --- Database -----------------------------------------------------------------------------------

# Other SQLite files by alias, and a URL for the default database. Everything else of a database stays as it is.
DATABASES = {_alias: dict(_database) for _alias, _database in _attributes.get("DATABASES", {}).items()}
for _alias, _file in _env.json("BENCHAPP_DATABASE_FILES", {}).items():
    if project_settings.kind(DATABASES[_alias]["ENGINE"]) == "sqlite":
        DATABASES[_alias]["NAME"] = _file
if _url := os.environ.get("BENCHAPP_DATABASE_URL"):
    _found = _env.database("BENCHAPP_DATABASE_URL", "", _base, environment.ALL_DATABASE_SCHEMES)
    try:
        DATABASES["default"] = project_settings.database(DATABASES.get("default", {}), _found)
    except ValueError as _error:
        raise ImproperlyConfigured(f"BENCHAPP_DATABASE_URL: {_error}; name a database of the project's kind") from None
    # On a host they are those of the settings.
    if "BENCHAPP_FILES" in os.environ:
        project_settings.with_replicas(DATABASES)
DATABASES = {_alias: pools.with_pool(_database, _env) for _alias, _database in DATABASES.items()}

# --- Caching layers -----------------------------------------------------------------------------

CACHES = _attributes.get("CACHES", {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}})
_seconds = _attributes.get("CACHING_SECONDS", 60)
CACHING_SECONDS = _env.whole_number("BENCHAPP_CACHE_SECONDS", _seconds, minimum=1, maximum=31_536_000)
CACHING_LAYERS = _env.caching_layers(_base)
if _has_caching and not CACHING_LAYERS:
    # The layers that the project has by itself stay.
    CACHING_LAYERS = _attributes.get("CACHING_LAYERS", {"page-cache": {}})
    _adds_page_cache = False
else:
    _adds_page_cache = "page-cache" in CACHING_LAYERS
# Django's own caches: the tags and `cache_page` are in the project's code, the per-site middleware is laid over it.
CACHING_FRAGMENTS = _env.flag("CACHING_FRAGMENTS")
CACHING_VIEW_CACHE = _env.flag("CACHING_VIEW_CACHE")
CACHING_SITE_MIDDLEWARE = _env.flag("CACHING_SITE_MIDDLEWARE")
# The port that visitors use, if not the scheme's default.
CACHING_PORT = _env.text("BENCHAPP_PORT")
# The scheme that visitors use: a page may have it in its addresses. Of a load balancer's plain HTTP nothing is known.
CACHING_SCHEME = environment.scheme(_env, _env.flag("BENCHAPP_HTTPS"), BENCHAPP_TRUSTED_PROXIES)
# What the project says of itself: the pages that may be cached, and those that a write of each model makes stale.
CACHING_PUBLIC = _env.json("BENCHAPP_PUBLIC", _attributes.get("CACHING_PUBLIC", []))
CACHING_STALE = _env.json("BENCHAPP_STALE", _attributes.get("CACHING_STALE", {}))
# Headers, cookies and middleware that read something of a visitor although no page depends on it.
CACHING_HARMLESS = _env.json("BENCHAPP_HARMLESS", _attributes.get("CACHING_HARMLESS", []))
# The headers of all pages, percent-encoded: a server that stores only bodies sends them, too.
CACHING_PAGE_HEADERS = json.loads(unquote(os.environ.get("BENCHAPP_PAGE_HEADERS", "{}")))
_cookie_messages = ("storage.fallback.FallbackStorage", "storage.cookie.CookieStorage")
_messages = _attributes.get("MESSAGE_STORAGE", "django.contrib.messages.storage.fallback.FallbackStorage")
_sessions = "django.contrib.sessions" in _apps and any("session" in _name.lower() for _name in _middleware)
# One memcached or Redis may serve several sites.
_site = caches.site_of(DATABASES, _attributes.get("ROOT_URLCONF", ""), _base)
_caches_pages = bool(CACHING_LAYERS) or CACHING_VIEW_CACHE or CACHING_SITE_MIDDLEWARE
if _caches_pages and _sessions and _messages.endswith(_cookie_messages):
    # A cached page would reach a visitor with a message; a session with a message bypasses every cache.
    MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
if _adds_page_cache:
    # A separate alias: the project's caches stay as they are.
    CACHES = {
        **CACHES,
        "benchapp_pages": caches.cache(_env, "BENCHAPP_CACHE_URL", _site, "pages", CACHING_SECONDS),
    }
    CACHE_MIDDLEWARE_ALIAS = "benchapp_pages"
    CACHE_MIDDLEWARE_SECONDS = CACHING_SECONDS
    CACHE_MIDDLEWARE_KEY_PREFIX = ""

# Under these names Django looks by itself; the project's other caches stay as they are.
if CACHING_FRAGMENTS:
    _parts = caches.stock_cache(_env, "BENCHAPP_CACHE_URL", _site, "parts", CACHING_SECONDS)
    CACHES = {**CACHES, "template_fragments": _parts}
_pages = caches.stock_cache(_env, "BENCHAPP_CACHE_URL", _site, "django-pages", CACHING_SECONDS)
if CACHING_VIEW_CACHE or CACHING_SITE_MIDDLEWARE:
    CACHE_MIDDLEWARE_SECONDS = CACHING_SECONDS
if CACHING_VIEW_CACHE:
    CACHES = {**CACHES, "default": _pages}
if CACHING_SITE_MIDDLEWARE:
    CACHES = {**CACHES, "django_pages": _pages}
    CACHE_MIDDLEWARE_ALIAS = "django_pages"

# --- Applications and middleware ----------------------------------------------------------------

# Without DEBUG, Django's defaults send an error to ADMINS and write nothing of it.
LOGGING = _attributes.get("LOGGING", None) or {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "loggers": {"django.request": {"handlers": ["stderr"], "level": "ERROR"}},
}
# While the project is tried and measured, nothing is written beside its code.
if _files := os.environ.get("BENCHAPP_FILES"):
    LOGGING, CACHES = (
        external_services.logs_in(Path(_files), LOGGING),
        external_services.caches_in(Path(_files), CACHES),
    )
    # Nothing of its production is touched either.
    _remote = _env.json("BENCHAPP_REMOTE_STORAGES", [])
    globals().update(external_services.settings_overrides({**_attributes, "CACHES": CACHES}, _remote, Path(_files)))
INSTALLED_APPS = _apps if _has_caching else [*_apps, _caching_app]

# Whole pages are stored inside of what comes first, which adds the same headers to every page, and outside of all else,
# for that may set cookies.
_first = {"django.middleware.security.SecurityMiddleware", "whitenoise.middleware.WhiteNoiseMiddleware"}
_outer = len(list(takewhile(_first.__contains__, _middleware)))
_static = "whitenoise.middleware.WhiteNoiseMiddleware"
_update, _fetch = (f"django.middleware.cache.{_name}CacheMiddleware" for _name in ("Update", "FetchFrom"))
_adds_cache = CACHING_SITE_MIDDLEWARE and _update not in _middleware
_serves_static = _env.flag("BENCHAPP_WHITENOISE", default=True) and _static not in _middleware
MIDDLEWARE = [
    "benchapp.serving.loaded.noted",
    *(["benchapp.serving.request_id.identified"] if _env.flag("BENCHAPP_REQUEST_IDS") else []),
    "benchapp.serving.header_lines.sound",
    "benchapp.serving.streaming.at_once",
    *(["benchapp.serving.health.own_checks"] if BENCHAPP_OWN_CHECKS else []),
    "benchapp.serving.client_address.any_host_for_health",
    # Over a Unix socket a project would see no client's address, and refuse what it limits by address.
    *(["benchapp.serving.client_address.real_address"] if BENCHAPP_BEHIND_PROXY else []),
    *(["benchapp.serving.client_address.balanced_address"] if BENCHAPP_TRUSTED_PROXIES else []),
    *_middleware[:_outer],
    *(["benchapp.serving.static_files.StaticFiles"] if _serves_static else []),
    "benchapp.caching.middleware.CachingMiddleware",
    *([_update] if _adds_cache else []),
    "benchapp.serving.sessions.private_sessions",
    *environment.with_pauses(_middleware[_outer:], CACHING_HARMLESS),
    *([_fetch] if _adds_cache else []),
    "benchapp.caching.middleware.WatchMiddleware",
]
