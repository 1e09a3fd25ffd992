"""Settings of the site: this one file, driven by environment variables, safe when none is set.

A variable that cannot be understood raises ImproperlyConfigured with one line that names it.
"""

from __future__ import annotations

from pathlib import Path

from django.core.management.utils import get_random_secret_key
from whitenoise.compress import Compressor

from benchapp_overlay import caches, environment
from config.log_filters import one_line, one_line_without_database

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

env = environment.Env()
# What systemd hands over in place of variables is read like them.
env.ENVIRON = environment.with_credentials(env.ENVIRON)

# --- Core ---------------------------------------------------------------------------------------

DEBUG = env.flag("DEBUG")
# A server needs one, so that its processes, and it after a restart, accept each other's sessions. Commands do without;
# `check --deploy` knows a key without one by its prefix, and refuses it.
SECRET_KEY = env.text("SECRET_KEY") or f"django-insecure-{get_random_secret_key()}"
# Earlier keys, with spaces between: what they signed, such as sessions, stays valid while they are here.
SECRET_KEY_FALLBACKS = env.text("SECRET_KEY_FALLBACKS").split()
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
# A reverse proxy that overwrites X-Forwarded-Proto and X-Real-IP is in front: trust them.
BENCHAPP_BEHIND_PROXY = env.flag("BENCHAPP_BEHIND_PROXY")
# Networks of balancers and CDNs: X-Forwarded-For, and where no reverse proxy is ours X-Forwarded-Proto, is believed.
BENCHAPP_TRUSTED_PROXIES = env.networks("BENCHAPP_TRUSTED_PROXIES")
# Another reverse proxy, in front of the whole chain, sends FrontAddress and FrontProto instead: trust those.
BENCHAPP_FRONT = env.flag("BENCHAPP_FRONT")
# Production over HTTPS: redirect plain HTTP, send HSTS, mark cookies secure.
BENCHAPP_HTTPS = env.flag("BENCHAPP_HTTPS")
# How long browsers are to use HTTPS alone, in seconds; with BENCHAPP_HTTPS only.
BENCHAPP_HSTS_SECONDS = env.whole_number("BENCHAPP_HSTS_SECONDS", 30 * 24 * 3600, minimum=0, maximum=63_072_000)
# One time to live, in seconds, for every caching layer.
CACHING_SECONDS = env.whole_number("BENCHAPP_CACHE_SECONDS", 60, minimum=1, maximum=31_536_000)
# The active caching layers with their options, from CACHING_<LAYER> and CACHING_<LAYER>_<OPTION>.
CACHING_LAYERS = env.caching_layers(BASE_DIR)
# The port that visitors ask for, where it is not the usual one: no page is stored with the addresses of another.
CACHING_PORT = env.text("BENCHAPP_PORT")
# How the site is served, which config/wsgi.py and asgi.py say: commands and tests have no server.
BENCHAPP_SERVER = env.choice("BENCHAPP_SERVER", "none", "wsgi", "asgi")
# How many requests an ASGI process handles at a time, each in a thread of its own.
BENCHAPP_ASGI_THREADS = env.whole_number("BENCHAPP_ASGI_THREADS", 16, minimum=1, maximum=1000)
# Seconds for which a database connection persists between requests. 0 where threads do not persist either: a connection
# belongs to a thread, and those of ended threads would stay open. https://docs.djangoproject.com/en/5.2/ref/databases/#caveats
BENCHAPP_CONN_MAX_AGE = env.whole_number(
    "BENCHAPP_CONN_MAX_AGE", 0 if BENCHAPP_SERVER == "asgi" else 600, minimum=0, maximum=86_400
)
# Seconds that a request waits for the database before it is answered with 503: for a connection, a lock, a statement.
# Less than a visitor's patience, and than what a health check allows, since a wait holds a worker. Commands wait.
BENCHAPP_DATABASE_TIMEOUT = env.whole_number("BENCHAPP_DATABASE_TIMEOUT", 2, minimum=1, maximum=3600)
# A line a request to standard error, where no web server writes an access log.
BENCHAPP_ACCESS_LOG = env.flag("BENCHAPP_ACCESS_LOG")
# Pages are compressed by the site, where no web server does it.
BENCHAPP_COMPRESS_PAGES = env.flag("BENCHAPP_COMPRESS_PAGES")
# Static files from the application server; off where a web server serves /static/.
BENCHAPP_WHITENOISE = env.flag("BENCHAPP_WHITENOISE", default=True)
# The apps `bench.inside` and `bench.inside.site`: commands of the instrument, and views that read and write inside a
# worker. Off in production.
BENCHAPP_PROBES = env.flag("BENCHAPP_PROBES")
# Responses say whether they come from a cache, and why not.
CACHING_X_CACHE = BENCHAPP_PROBES

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
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "benchapp",
    "benchapp.caching",
    # The first one's commands take precedence.
    *(["bench.inside.site", "bench.inside"] if BENCHAPP_PROBES else []),
]

# A reverse proxy in front overwrites the headers in which it names the client.
proxied = BENCHAPP_BEHIND_PROXY or BENCHAPP_TRUSTED_PROXIES

MIDDLEWARE = [
    *(["benchapp.middleware.limit_requests"] if BENCHAPP_SERVER == "asgi" else []),
    *([] if BENCHAPP_SERVER == "none" else ["benchapp.middleware.well_formed"]),
    *([] if proxied else ["benchapp.serving.client_address.no_forwarding"]),
    *(["benchapp.serving.client_address.real_address"] if BENCHAPP_BEHIND_PROXY else []),
    *(["benchapp.serving.client_address.balanced_address"] if BENCHAPP_TRUSTED_PROXIES else []),
    *(["benchapp.middleware.access_log"] if BENCHAPP_ACCESS_LOG else []),
    "benchapp.serving.client_address.any_host_for_health",
    "django.middleware.security.SecurityMiddleware",
    *(["config.static_files.StaticFiles"] if BENCHAPP_WHITENOISE else []),
    # Outside of the caching layers, which store pages as they are. Its random padding is against BREACH.
    *(["benchapp.middleware.Compression"] if BENCHAPP_COMPRESS_PAGES else []),
    *([] if DEBUG else ["benchapp.middleware.security_headers"]),  # the debug toolbar has inline styles
    # Outside of all that may set a cookie or a Vary header, so that a caching layer sees it.
    "benchapp.caching.middleware.CachingMiddleware",
    "benchapp.serving.sessions.private",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Inside of the layers, so that a cached response keeps its X-Render-Id.
    "benchapp.caching.rendering.render_id",
    # The last: it watches what a page reads of its visitor.
    "benchapp.caching.middleware.WatchMiddleware",
]

if DEBUG:
    INSTALLED_APPS.append("debug_toolbar")
    MIDDLEWARE.insert(0, "debug_toolbar.middleware.DebugToolbarMiddleware")
    INTERNAL_IPS = ["127.0.0.1", "::1"]
    DEBUG_TOOLBAR_CONFIG = {"SHOW_COLLAPSED": True}

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Database -----------------------------------------------------------------------------------

SQLITE_OPTIONS = {
    # Reads continue during a write; a commit survives a crash of the process, not always of the machine.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    # Take the write lock at the start, where the timeout applies, not in the middle, where it does not.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20 if BENCHAPP_SERVER == "none" else min(BENCHAPP_DATABASE_TIMEOUT, 20),  # s, for another writer
}

DATABASES = {"default": env.database("DATABASE_URL", f"sqlite:///{VAR_DIR}/data/benchapp.sqlite3", BASE_DIR)}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS | DATABASES["default"].get("OPTIONS", {})
elif BENCHAPP_SERVER != "none":
    # Of one statement; benchapp/postgresql_waits.py limits the wait for a server that does not answer.
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault(
        "options", f"-c statement_timeout={BENCHAPP_DATABASE_TIMEOUT * 1000}"
    )
# A persistent connection that the server has closed is detected and replaced.
DATABASES["default"].setdefault("CONN_MAX_AGE", BENCHAPP_CONN_MAX_AGE)
DATABASES["default"].setdefault("CONN_HEALTH_CHECKS", True)

# --- Caches -------------------------------------------------------------------------------------

CACHE_MIDDLEWARE_SECONDS = CACHING_SECONDS
NO_CACHE = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
CACHES = {
    "default": caches.cache(env, "CACHE_URL", "pages", CACHING_SECONDS),
    # The alias that Django's {% cache %} tag looks for by itself.
    "template_fragments": (
        caches.cache(env, "CACHE_URL", "fragments", CACHING_SECONDS) if "fragments" in CACHING_LAYERS else NO_CACHE
    ),
}

# --- Static files -------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = env.directory("BENCHAPP_STATIC_ROOT", BASE_DIR, VAR_DIR / "static")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.static_files.Storage"},
}
# large.txt is for comparing servers uncompressed; compressing it would add seconds to each collectstatic.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "txt")
# Before collectstatic has run, serve the files from their sources.
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

SESSION_ENGINE = "benchapp.sessions"
# Not in a cookie of its own, which would have a visitor bypass every cache.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BENCHAPP_HTTPS
CSRF_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = BENCHAPP_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]
# Answered whatever host a balancer names.
BENCHAPP_HEALTH_PATHS = ("/healthz", "/readyz")
SECURE_HSTS_SECONDS = BENCHAPP_HSTS_SECONDS if BENCHAPP_HTTPS else 0
if proxied:
    SECURE_PROXY_SSL_HEADER = ("HTTP_FRONTPROTO" if BENCHAPP_FRONT else "HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "strict-origin-when-cross-origin"
# HSTS for every subdomain, and the preload lists of browsers, concern more than this site: their owner decides.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# --- Logging ------------------------------------------------------------------------------------

# To standard error, where every server collects it. Errors have a traceback; 404s are in the access log only.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "bare": {"format": "{message}", "style": "{"},
        "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
    },
    "filters": {
        "one_line": {"()": lambda: one_line},
        "one_line_without_database": {"()": lambda: one_line_without_database},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
        "access": {"class": "logging.StreamHandler", "formatter": "bare"},
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "benchapp.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
        "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        # A foreign Host: any client can cause one, as often as it likes.
        "django.security.DisallowedHost": {"filters": ["one_line"]},
        "django.request": {
            "handlers": ["stderr"],
            "level": "ERROR",
            "propagate": False,
            "filters": ["one_line_without_database"],
        },
    },
}
