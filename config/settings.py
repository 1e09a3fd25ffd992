"""Settings of the site: this one file, driven by environment variables, safe when none is set.

A variable that cannot be understood raises ImproperlyConfigured with one line that names it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import environ
from whitenoise.compress import Compressor

from config import environment

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

env = environ.Env()

# --- Core ---------------------------------------------------------------------------------------

DEBUG = environment.flag(env, "DEBUG", default=False)
SECRET_KEY = environment.secret_key(env.ENVIRON, "SECRET_KEY", VAR_DIR / "secret_key")
ALLOWED_HOSTS = environment.hosts(env, "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = environment.origins(env, "CSRF_TRUSTED_ORIGINS")
# A web server that overwrites X-Forwarded-Proto and X-Real-IP stands in front: believe them.
BENCHAPP_BEHIND_PROXY = environment.flag(env, "BENCHAPP_BEHIND_PROXY", default=False)
# A server before the whole chain says the same in X-Front-Address and X-Front-Proto, which those between pass on.
BENCHAPP_FRONT = environment.flag(env, "BENCHAPP_FRONT", default=False)
# Production over HTTPS: redirect plain HTTP, send HSTS, mark cookies secure.
BENCHAPP_HTTPS = environment.flag(env, "BENCHAPP_HTTPS", default=False)
# How list pages are found: `counted` costs the same at any depth, `offset` is Django's own paginator.
BENCHAPP_PAGINATION = environment.choice(env, "BENCHAPP_PAGINATION", ("counted", "offset"))
# One time to live, in seconds, for every caching layer.
BENCHAPP_CACHE_SECONDS = environment.whole_number(env, "BENCHAPP_CACHE_SECONDS", 60, minimum=1, maximum=31_536_000)
BENCHAPP_FRAGMENTS = environment.flag(env, "BENCHAPP_FRAGMENTS", default=False)
BENCHAPP_SITE_MIDDLEWARE = environment.flag(env, "BENCHAPP_SITE_MIDDLEWARE", default=False)
BENCHAPP_VIEW_CACHE = environment.flag(env, "BENCHAPP_VIEW_CACHE", default=False)
# Finished pages are written below this directory for a web server to serve; None turns the layer off.
BENCHAPP_STATICGENERATOR_ROOT = environment.directory(env, "BENCHAPP_STATICGENERATOR_ROOT", None, base=BASE_DIR)
# The most that those files may take together, in megabytes of 1024 * 1024; 0: as much as they are.
BENCHAPP_STATICGENERATOR_MB = environment.whole_number(
    env, "BENCHAPP_STATICGENERATOR_MB", 0, minimum=0, maximum=1_048_576
)
# The memcached that finished pages are put into for a web server to read, as `unix:/path` or `host:port`; empty: off.
BENCHAPP_MEMCACHED_PAGES = environment.memcached(env, "BENCHAPP_MEMCACHED_PAGES")
# Finished pages are put into uWSGI's cache `pages`, from which it answers before Python runs.
BENCHAPP_UWSGI_PAGES = environment.flag(env, "BENCHAPP_UWSGI_PAGES", default=False)
# The directory where Nginx keeps pages by itself, to remove what a write made stale; None: there is none.
BENCHAPP_NGINX_PAGES = environment.directory(env, "BENCHAPP_NGINX_PAGES", None, base=BASE_DIR)
# A cache in front that takes PURGE and BAN for pages that a write made stale, as unix:/path or http://host:port/;
# empty: there is none to tell.
BENCHAPP_PURGE_URL = environment.plain_url(env, "BENCHAPP_PURGE_URL")
# A file that all workers share: it changes with each purge, by which a rendering knows that it is out of date.
BENCHAPP_PURGE_GENERATION = environment.file(env, "BENCHAPP_PURGE_GENERATION", base=BASE_DIR)
# A cache between the site and its visitors that cannot be told: each page says how long it may be kept there.
BENCHAPP_SHARED_CACHE = environment.flag(env, "BENCHAPP_SHARED_CACHE", default=False)
# Static files from the application server; off where a web server serves /static/.
BENCHAPP_WHITENOISE = environment.flag(env, "BENCHAPP_WHITENOISE", default=True)
# The app `probes`: commands of the instrument, and views that read and write inside a worker. Off in production.
BENCHAPP_PROBES = environment.flag(env, "BENCHAPP_PROBES", default=False)

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en-us"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

# --- Applications and middleware ----------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "benchapp",
    *(["probes"] if BENCHAPP_PROBES else []),
]

MIDDLEWARE = [
    *(["benchapp.middleware.real_address"] if BENCHAPP_BEHIND_PROXY else []),
    "django.middleware.security.SecurityMiddleware",
    *(["whitenoise.middleware.WhiteNoiseMiddleware"] if BENCHAPP_WHITENOISE else []),
    *([] if DEBUG else ["benchapp.middleware.security_headers"]),  # the debug toolbar has inline styles
    # The caching layers wrap all that may set a cookie or a Vary header, and so see it.
    *(["benchapp.caching.sharedcache.SayHowLong"] if BENCHAPP_SHARED_CACHE else []),
    *(["benchapp.caching.staticgenerator.StaticGenerator"] if BENCHAPP_STATICGENERATOR_ROOT else []),
    *(["benchapp.caching.purge.MarkOutdated"] if BENCHAPP_PURGE_GENERATION else []),
    *(["benchapp.caching.memcachedpages.KeepInMemcached"] if BENCHAPP_MEMCACHED_PAGES else []),
    *(["benchapp.caching.uwsgipages.KeepInUwsgi"] if BENCHAPP_UWSGI_PAGES else []),
    *(["benchapp.caching.sitemiddleware.StoreAnonymousInCache"] if BENCHAPP_SITE_MIDDLEWARE else []),
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    *(["benchapp.caching.sitemiddleware.FetchAnonymousFromCache"] if BENCHAPP_SITE_MIDDLEWARE else []),
    # Innermost, so that a cached response keeps the name of its rendering.
    "benchapp.middleware.render_id",
]

if DEBUG:
    INSTALLED_APPS.append("debug_toolbar")
    MIDDLEWARE.insert(0, "debug_toolbar.middleware.DebugToolbarMiddleware")
    INTERNAL_IPS = ["127.0.0.1", "::1"]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
            ],
        },
    },
]

# --- Database -----------------------------------------------------------------------------------

SQLITE_OPTIONS = {
    # Readers go on while one writes; a commit survives a crash of the process, not always of the machine.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    # Take the write lock at the start, where the timeout applies, not in the middle, where it does not.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,  # seconds to wait for another writer
}

DATABASES = {"default": environment.database(env, "DATABASE_URL", VAR_DIR / "data" / "benchapp.sqlite3")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS | DATABASES["default"].get("OPTIONS", {})
# Connections outlive a request; one that the server has closed meanwhile is noticed and replaced.
DATABASES["default"].setdefault("CONN_MAX_AGE", 600)
DATABASES["default"].setdefault("CONN_HEALTH_CHECKS", True)

# --- Caches -------------------------------------------------------------------------------------

# Of caches that count their entries; Django's default of 300 is 150 pages, since each page takes two.
MOST_ENTRIES = 10_000
COUNTING = ("LocMemCache", "AddingFileCache", "MadeTableCache")
# Caches of Django's that would break a page or cost it much, and what this site has instead.
SAFER_CACHES = {
    "django.core.cache.backends.memcached.PyMemcacheCache": "benchapp.caching.backends.KeptMemcachedCache",
    "django.core.cache.backends.redis.RedisCache": "benchapp.caching.backends.ForgivingRedisCache",
    "django.core.cache.backends.db.DatabaseCache": "benchapp.caching.backends.MadeTableCache",
    "django.core.cache.backends.filebased.FileBasedCache": "benchapp.caching.backends.AddingFileCache",
}
REDIS_OPTIONS = {"socket_timeout": 1}  # seconds
# A memcached that is down or hangs makes pages slower, not broken; it is asked again soon after it is back.
MEMCACHED_OPTIONS = {
    "ignore_exc": True,
    "connect_timeout": 1,  # seconds, as the others
    "timeout": 1,
    "retry_timeout": 1,
    "dead_timeout": 1,
    "no_delay": True,
}


def _cache(prefix: str) -> dict:
    """The cache of CACHE_URL with its own key prefix, so that two layers never share an entry."""
    cache = environment.cache(env, "CACHE_URL", default="locmemcache://")
    cache.setdefault("TIMEOUT", BENCHAPP_CACHE_SECONDS)
    cache["KEY_PREFIX"] = f"{cache.get('KEY_PREFIX', 'benchapp')}-{prefix}"
    cache["BACKEND"] = SAFER_CACHES.get(cache["BACKEND"], cache["BACKEND"])
    kind = cache["BACKEND"].rpartition(".")[2]
    if kind == "LocMemCache":
        cache["LOCATION"] = f"{cache['LOCATION']}{prefix}"
    if kind in COUNTING:
        cache.setdefault("OPTIONS", {}).setdefault("MAX_ENTRIES", MOST_ENTRIES)
    elif kind == "KeptMemcachedCache":
        cache["OPTIONS"] = MEMCACHED_OPTIONS | cache.get("OPTIONS", {})
    elif kind == "ForgivingRedisCache":
        cache["OPTIONS"] = REDIS_OPTIONS | cache.get("OPTIONS", {})
    return cache


CACHE_MIDDLEWARE_SECONDS = BENCHAPP_CACHE_SECONDS
CACHES = {
    "default": _cache("pages"),
    # The alias that Django's {% cache %} tag looks for by itself.
    "template_fragments": (
        _cache("fragments") if BENCHAPP_FRAGMENTS else {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
    ),
}

# --- Static files -------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = environment.directory(env, "BENCHAPP_STATIC_ROOT", VAR_DIR / "static", base=BASE_DIR)
# WhiteNoise warns of a missing directory; a real trouble with it is for collectstatic to report.
with contextlib.suppress(OSError):
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "benchapp.staticfiles.Storage"},
}
# large.txt is there to be sent as it is, to compare servers; compressing it takes seconds of each collectstatic.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "txt")
# Before collectstatic has run, serve the files where they lie.
WHITENOISE_USE_FINDERS = not (STATIC_ROOT / "staticfiles.json").exists()

# --- Accounts, cookies and headers --------------------------------------------------------------

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BENCHAPP_HTTPS
CSRF_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = BENCHAPP_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if BENCHAPP_HTTPS else 0
if BENCHAPP_BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FRONT_PROTO" if BENCHAPP_FRONT else "HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "strict-origin-when-cross-origin"
# HSTS for every subdomain, and the browsers' preload lists, bind more than this site: their owner decides.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# --- Logging ------------------------------------------------------------------------------------

# To standard error, where every server collects it. Errors with traceback; 404s are the access log's.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "django.request": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
    },
}
