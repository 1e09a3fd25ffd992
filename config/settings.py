"""Settings of the site: one file, driven by environment variables, safe without any.

A server needs SECRET_KEY. An invalid variable raises ImproperlyConfigured with one line that names the variable.
"""

from __future__ import annotations

from pathlib import Path

from django.core.management.utils import get_random_secret_key
from whitenoise.compress import Compressor

from benchapp.postgresql.timeouts import with_statement_timeout
from benchapp_overlay import caches, environment, pools
from config import served

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

env = environment.Env()
# What systemd hands over in place of variables is read like them.
env.ENVIRON = environment.with_credentials(env.ENVIRON)

# --- Core ---------------------------------------------------------------------------------------

# How the site is served, which config/wsgi.py and asgi.py say: commands and tests have no server.
BENCHAPP_SERVER = env.choice("BENCHAPP_SERVER", "none", "wsgi", "asgi")
# Pages of errors show the code: for development only.
DEBUG = env.flag("DEBUG")
# Signs sessions and links that reset passwords. A server does not start without one.
SECRET_KEY = env.text("SECRET_KEY")
# Earlier keys, with spaces between: what they signed, such as sessions, stays valid while they are here.
SECRET_KEY_FALLBACKS = env.text("SECRET_KEY_FALLBACKS").split()
if BENCHAPP_SERVER != "none":
    served.require_no_debug(DEBUG)
    served.require_secret(SECRET_KEY, SECRET_KEY_FALLBACKS)
elif not SECRET_KEY:
    # A new key for each command and each start of `runserver`; `check --deploy` knows it by its prefix, and warns.
    SECRET_KEY = f"django-insecure-{get_random_secret_key()}"
# The host names of the site, with commas between; by default those of this machine.
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
# Other origins whose forms are accepted, with commas between: https://shop.example.org.
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
# A reverse proxy that overwrites X-Forwarded-Proto and X-Real-IP is in front: trust them.
BENCHAPP_BEHIND_PROXY = env.flag("BENCHAPP_BEHIND_PROXY")
# Networks of load balancers and CDNs: X-Forwarded-For, and if no reverse proxy is ours X-Forwarded-Proto, is believed.
BENCHAPP_TRUSTED_PROXIES = env.networks("BENCHAPP_TRUSTED_PROXIES")
# Another reverse proxy, in front of the whole chain, sends FrontAddress and FrontProto instead: trust those.
BENCHAPP_FRONT = env.flag("BENCHAPP_FRONT")
# Production over HTTPS: redirect plain HTTP, send HSTS, mark cookies secure.
BENCHAPP_HTTPS = env.flag("BENCHAPP_HTTPS")
# How long browsers are to use HTTPS only, in seconds; with BENCHAPP_HTTPS only.
BENCHAPP_HSTS_SECONDS = env.whole_number("BENCHAPP_HSTS_SECONDS", 30 * 24 * 3600, minimum=0, maximum=63_072_000)
# One time to live, in seconds, for every caching layer.
CACHING_SECONDS = env.whole_number("BENCHAPP_CACHE_SECONDS", 60, minimum=1, maximum=31_536_000)
# The active caching layers with their options, from CACHING_<LAYER> and CACHING_<LAYER>_<OPTION>.
CACHING_LAYERS = env.caching_layers(BASE_DIR)
# Django's cache tags in templates, which no write invalidates. https://docs.djangoproject.com/en/5.2/topics/cache/
CACHING_FRAGMENTS = env.flag("CACHING_FRAGMENTS")
# Django's `cache_page` on the public views, which no write invalidates.
CACHING_VIEW_CACHE = env.flag("CACHING_VIEW_CACHE")
# The two middleware of Django's per-site cache, which no write invalidates.
CACHING_SITE_MIDDLEWARE = env.flag("CACHING_SITE_MIDDLEWARE")
# The port that visitors use, if not the scheme's default: no page with addresses of another port is stored.
CACHING_PORT = env.text("BENCHAPP_PORT")
# The scheme that visitors use: a page may have it in its addresses. Of a load balancer's plain HTTP nothing is known.
CACHING_SCHEME = environment.scheme(env, BENCHAPP_HTTPS, BENCHAPP_TRUSTED_PROXIES)
# Headers, cookies and middleware that read something of a visitor although no page depends on it.
CACHING_HARMLESS = env.json("BENCHAPP_HARMLESS", [])
# How many requests an ASGI process handles at a time, each in a separate thread.
BENCHAPP_ASGI_THREADS = env.whole_number("BENCHAPP_ASGI_THREADS", 16, minimum=1, maximum=1000)
# The largest body of a request over ASGI, whose servers have no limit; 0: none.
BENCHAPP_MAX_BODY_MB = env.whole_number("BENCHAPP_MAX_BODY_MB", 0, minimum=0, maximum=1_000_000)
# Seconds for which a database connection persists between requests. 0 if threads do not persist either: a connection
# belongs to a thread, and those of ended threads would stay open. https://docs.djangoproject.com/en/5.2/ref/databases/#caveats
BENCHAPP_CONN_MAX_AGE = env.whole_number(
    "BENCHAPP_CONN_MAX_AGE", 0 if BENCHAPP_SERVER == "asgi" else 600, minimum=0, maximum=86_400
)
# Seconds that a request waits for the database before a 503: for a connection, a lock, a statement.
# Less than a visitor's patience, and than what a health check allows, since a wait holds a worker. Commands wait.
BENCHAPP_DATABASE_TIMEOUT = env.whole_number("BENCHAPP_DATABASE_TIMEOUT", 2, minimum=1, maximum=3600)
# A line a request to standard error, if no web server writes an access log.
BENCHAPP_ACCESS_LOG = env.flag("BENCHAPP_ACCESS_LOG")
# The form of that line: combined or json.
BENCHAPP_LOG_FORMAT = env.choice("BENCHAPP_LOG_FORMAT", "combined", "json")
# The client in that line: full is the address, masked only its network.
BENCHAPP_LOG_ADDRESSES = env.choice("BENCHAPP_LOG_ADDRESSES", "full", "masked")
# Requests have ids, which logs and responses show.
BENCHAPP_REQUEST_IDS = env.flag("BENCHAPP_REQUEST_IDS")
# Pages are compressed by the site, if no web server does it.
BENCHAPP_COMPRESS_PAGES = env.flag("BENCHAPP_COMPRESS_PAGES")
# Static files from the application server; off if a web server serves /static/.
BENCHAPP_WHITENOISE = env.flag("BENCHAPP_WHITENOISE", default=True)
# The app `bench.serve.inside` and the one below it: commands of the instrument, and views that read and write inside a
# worker. Off in production.
BENCHAPP_PROBES = env.flag("BENCHAPP_PROBES")
# Responses say whether they come from a cache, and why not.
CACHING_X_CACHE = BENCHAPP_PROBES
# Only these pages and pages below may be cached; without the variable each page may.
if env.text("BENCHAPP_PUBLIC"):
    CACHING_PUBLIC = env.json("BENCHAPP_PUBLIC")

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
    "benchapp.login_limit",
    # The first one's commands take precedence.
    *(["bench.serve.inside.site", "bench.serve.inside"] if BENCHAPP_PROBES else []),
]

# A reverse proxy in front overwrites the headers in which it names the client.
proxied = BENCHAPP_BEHIND_PROXY or BENCHAPP_TRUSTED_PROXIES

# From the outside to the inside.
MIDDLEWARE = ["benchapp.serving.loaded.noted"]
if BENCHAPP_REQUEST_IDS:
    MIDDLEWARE += ["benchapp.serving.request_id.identified"]
if BENCHAPP_SERVER == "asgi":
    MIDDLEWARE += ["benchapp.middleware.limit_requests"]
MIDDLEWARE += ["benchapp.serving.header_lines.sound"]
if BENCHAPP_BEHIND_PROXY:
    MIDDLEWARE += ["benchapp.serving.client_address.real_address"]
if BENCHAPP_TRUSTED_PROXIES:
    MIDDLEWARE += ["benchapp.serving.client_address.balanced_address"]
if BENCHAPP_ACCESS_LOG:
    MIDDLEWARE += ["benchapp.middleware.access_log"]
MIDDLEWARE += [
    "benchapp.serving.client_address.any_host_for_health",
    "django.middleware.security.SecurityMiddleware",
]
if BENCHAPP_WHITENOISE:
    MIDDLEWARE += ["config.static_files.StaticFiles"]
if BENCHAPP_COMPRESS_PAGES:
    # Outside of the caching layers, which store pages as they are. Its random padding is against BREACH.
    MIDDLEWARE += ["benchapp.middleware.Compression"]
if not DEBUG:
    # The debug toolbar has inline styles.
    MIDDLEWARE += ["benchapp.middleware.security_headers"]
MIDDLEWARE += [
    # Outside of all that may set a cookie or a Vary header, so that a caching layer sees it.
    "benchapp.caching.middleware.CachingMiddleware",
]
if CACHING_SITE_MIDDLEWARE:
    MIDDLEWARE += ["django.middleware.cache.UpdateCacheMiddleware"]
MIDDLEWARE += [
    "benchapp.serving.sessions.private_sessions",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
if CACHING_SITE_MIDDLEWARE:
    MIDDLEWARE += ["django.middleware.cache.FetchFromCacheMiddleware"]
if BENCHAPP_PROBES:
    # Inside of the caching layers: a cached response keeps the name of its rendering.
    MIDDLEWARE += ["bench.serve.inside.render_id.RenderId"]
MIDDLEWARE += [
    "benchapp.login_limit.middleware.too_many_failed_logins",
    # The last: it watches what a page reads of its visitor.
    "benchapp.caching.middleware.WatchMiddleware",
]

MIDDLEWARE = environment.with_pauses(MIDDLEWARE, CACHING_HARMLESS)

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
    # Take the write lock at the start, when the timeout applies, not in the middle, when it does not.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20 if BENCHAPP_SERVER == "none" else min(BENCHAPP_DATABASE_TIMEOUT, 20),  # s, for another writer
}

# The database as a URL, of SQLite or PostgreSQL: postgresql://USER:PASSWORD@HOST/NAME.
database = env.database("DATABASE_URL", f"sqlite:///{VAR_DIR}/data/benchapp.sqlite3", BASE_DIR)
options = database.setdefault("OPTIONS", {})
if database["ENGINE"].endswith("sqlite3"):
    database["OPTIONS"] = SQLITE_OPTIONS | options
elif BENCHAPP_SERVER != "none":
    # Django's, with a limit for each wait; the server itself ends a statement that takes too long.
    database["ENGINE"] = "benchapp.postgresql"
    options["options"] = with_statement_timeout(options.get("options", ""), BENCHAPP_DATABASE_TIMEOUT)
# Django refuses persistent connections beside a pool, which keeps its own.
database.setdefault("CONN_MAX_AGE", 0 if options.get("pool") else BENCHAPP_CONN_MAX_AGE)
# A persistent connection that the server has closed is detected and replaced.
database.setdefault("CONN_HEALTH_CHECKS", True)
DATABASES = {"default": pools.with_pool(database, env)}

# --- Caches -------------------------------------------------------------------------------------

CACHE_MIDDLEWARE_SECONDS = CACHING_SECONDS
# Where `cache_page` and the per-site cache look; they get Django's own backend, the page cache a repaired one.
# One memcached or Redis may serve several sites.
site = caches.site_of(DATABASES, ROOT_URLCONF, BASE_DIR)
pages_cache = caches.stock_cache if CACHING_VIEW_CACHE or CACHING_SITE_MIDDLEWARE else caches.cache
# The cache of the layers inside Django as a URL, such as redis://HOST:PORT; by default the memory of each process.
CACHES = {
    "default": pages_cache(env, "CACHE_URL", site, "pages", CACHING_SECONDS),
    # The alias that Django's {% cache %} tag looks for by itself.
    "template_fragments": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
}
if CACHING_FRAGMENTS:
    CACHES["template_fragments"] = caches.stock_cache(env, "CACHE_URL", site, "fragments", CACHING_SECONDS)

# --- Static files -------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The folder that collectstatic fills.
STATIC_ROOT = env.directory("BENCHAPP_STATIC_ROOT", BASE_DIR, VAR_DIR / "static")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.static_files.Storage"},
}
# large.txt is for comparing servers uncompressed; compressing it would add seconds to each collectstatic.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "txt")
# The names that collectstatic makes have a hash before the ending: browsers may keep those files for ever.
WHITENOISE_IMMUTABLE_FILE_TEST = r"\.[0-9a-f]{12}\.\w+$"
# Before collectstatic has run, files are looked for in their sources at each request.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not (STATIC_ROOT / "staticfiles.json").exists()

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
AUTHENTICATION_BACKENDS = [
    "benchapp.login_limit.backends.LimitBackend",
    "django.contrib.auth.backends.ModelBackend",
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

SESSION_ENGINE = "benchapp.sessions"
# Not in a cookie, which would have a visitor bypass every cache.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BENCHAPP_HTTPS
CSRF_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = BENCHAPP_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]
# Paths with a response whatever host a load balancer names.
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
        "line": {"format": "{asctime} {levelname} {name} {request_id}: {message}", "style": "{"},
    },
    "filters": {
        "request_id": {"()": "benchapp.serving.request_id.InLog"},
        "one_line": {"()": "config.log_filters.OneLine"},
        "one_line_without_database": {"()": "config.log_filters.OneLineWithoutDatabase"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request_id"]},
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
