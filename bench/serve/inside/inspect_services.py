"""Facts for findings from the settings of services and templates; a part of inspect_project."""

import re
import sys
from urllib.parse import urlsplit

from inspect_kit import OF_CACHING, is_own_module
from inspect_static import templates

# Ports and names of programs that pool connections to PostgreSQL: PgBouncer, Supavisor, and those of hosters.
POOLER_PORTS = ("6432", "6543", "25061")
POOLER_NAMES = re.compile(r"pgbouncer|pooler|pgcat|supavisor|odyssey", re.I)
SMTP = "django.core.mail.backends.smtp.EmailBackend"
# The value of django.utils.csp.CSP.NONCE, which older releases of Django lack.
NONCE = "<CSP_NONCE_SENTINEL>"
CSP_PROCESSOR = "django.template.context_processors.csp"
CSP_SETTINGS = ("SECURE_CSP", "SECURE_CSP_REPORT_ONLY")
CACHED_SESSIONS = ("django.contrib.sessions.backends.cache", "django.contrib.sessions.backends.cached_db")
REDIS = re.compile("Redis|Valkey")
# Not the end of an IPv6 address.
PORT = re.compile(r"(?<!:):(\d+)(?=[/?]|$)")
# Modules that use the cache only if an API has throttles, and a package to which a copy in each process does no harm.
THROTTLING = ("rest_framework.throttling", "ninja.throttling")
COPIES = ("compressor.",)
LOADS_CACHE_TAG = re.compile(r"{%\s*load\s[^%]*\bcache\b")


def services(settings):
    """All these facts, by name."""
    return {
        "channel_layers": channel_layers(settings),
        "mail_backends": mail_backends(settings),
        "mail_hosts": mail_hosts(settings),
        "poolers": poolers(settings.DATABASES),
        "endless_file_caches": endless_file_caches(settings.CACHES),
        "uncached_loaders": uncached_loaders(settings.TEMPLATES),
        "csp_nonce_setting": csp_nonce_setting(settings),
        "session_cache": session_cache(settings),
    }


def session_cache(settings):
    """The name of the cache that the sessions need, as CACHES['default']; empty without one."""
    if settings.SESSION_ENGINE in CACHED_SESSIONS:
        return f"CACHES[{settings.SESSION_CACHE_ALIAS!r}]"
    return ""


def cache_servers(caches, external):
    """A command that starts the server of each cache of this machine, at the place that the settings name.

    external  the module of the overlay that knows external services
    """
    commands = {}
    for alias, cache in caches.items():
        if external.is_served_here(cache):
            place = str(external.listed(cache["LOCATION"])[0])
            commands[f"CACHES[{alias!r}]"] = started_by(cache, place)
    return commands


def started_by(cache, place):
    """The command that starts Redis or memcached at this place."""
    program, socket_option, port_option, port = "memcached", "-s", "-p", "11211"
    if REDIS.search(cache["BACKEND"]):
        program, socket_option, port_option, port = "redis-server", "--unixsocket", "--port", "6379"
    if place.startswith(("unix:", "/")):
        return f"{program} {socket_option} {urlsplit(place).path}"
    if named := PORT.search(place):
        port = named[1]
    return f"{program} {port_option} {port}"


def uses_cache(settings):
    """True if sessions, middleware, a template of the project or loaded code other than Django's use a cache."""
    from django.core import cache
    from django.views.decorators.cache import cache_page

    if settings.SESSION_ENGINE in CACHED_SESSIONS or "django.middleware.cache" in str(settings.MIDDLEWARE):
        return True
    handles = {id(cache), id(cache.cache), id(cache.caches), id(cache_page)}
    throttles = has_throttles(settings)
    for name, module in list(sys.modules.items()):
        if name.startswith(("django.", OF_CACHING, *COPIES)) or (name in THROTTLING and not throttles):
            continue
        for value in list(getattr(module, "__dict__", {}).values()):
            # Not isinstance: it would have a lazy object of the project made.
            if id(value) in handles or issubclass(type(value), cache.BaseCache):
                return True
    return any(LOADS_CACHE_TAG.search(path.read_text("utf-8", "replace")) for path in templates())


def has_throttles(settings):
    """True if a setting or a module of the project names a throttle of an API, a user of the cache."""
    names = [str(getattr(settings, "REST_FRAMEWORK", ""))]
    for name, module in list(sys.modules.items()):
        if is_own_module(name):
            names += vars(module)
    return any("throttl" in name.lower() for name in names)


def plain(value):
    """A setting's value for JSON: text, numbers and lists of them."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def channel_layers(settings):
    """Alias -> backend of each channel layer."""
    layers = getattr(settings, "CHANNEL_LAYERS", None) or {}
    return {alias: str(layer.get("BACKEND", "")) for alias, layer in layers.items()}


def mail_backends(settings):
    """The mail backends by setting; Django 6.1's setting replaces the older one."""
    mailers = getattr(settings, "MAILERS", None)
    if mailers:
        return {f"MAILERS[{alias!r}]": str(mailer.get("BACKEND") or SMTP) for alias, mailer in mailers.items()}
    # Django 6.1 has it no more if MAILERS is set, and empty.
    backend = getattr(settings, "EMAIL_BACKEND", None)
    if not backend:
        return {}
    return {"EMAIL_BACKEND": str(backend)}


def mail_hosts(settings):
    """The host of each SMTP backend; empty if the project names none, so mail goes to this machine."""
    hosts = {}
    for setting, backend in mail_backends(settings).items():
        if backend == SMTP and setting == "EMAIL_BACKEND":
            host = ""
            if settings.is_overridden("EMAIL_HOST"):
                host = getattr(settings, "EMAIL_HOST", "")
            hosts[setting] = str(host or "")
        elif backend == SMTP:
            mailer = settings.MAILERS[setting[len("MAILERS['") : -len("']")]]
            hosts[setting] = str(mailer.get("OPTIONS", {}).get("host") or "")
    return hosts


def poolers(databases):
    """Alias -> host and port of each PostgreSQL behind a pooler that may use server-side cursors."""
    addresses = {}
    for alias, database in databases.items():
        host, port = str(database.get("HOST") or ""), str(database.get("PORT") or "")
        is_pooler = port in POOLER_PORTS or POOLER_NAMES.search(host)
        has_cursors = not database.get("DISABLE_SERVER_SIDE_CURSORS")
        if "postg" in database.get("ENGINE", "") and is_pooler and has_cursors:
            addresses[alias] = f"{host}:{port}"
    return addresses


def endless_file_caches(caches):
    """The aliases of caches in files of which no entry ever expires."""
    aliases = []
    for alias, cache in caches.items():
        if cache.get("BACKEND", "").endswith(".FileBasedCache") and cache.get("TIMEOUT", 300) is None:
            aliases.append(alias)
    return aliases


def uncached_loaders(templates):
    """True if an engine of Django's names its loaders, and no loader keeps compiled templates."""
    for engine in templates:
        loaders = engine.get("OPTIONS", {}).get("loaders")
        if loaders and engine.get("BACKEND", "").endswith(".DjangoTemplates"):
            # One with arguments is a list that begins with its name.
            names = [str(_listed(loader)[0]) for loader in loaders]
            if "cached" not in " ".join(names).lower():
                return True
    return False


def csp_nonce_setting(settings):
    """The setting of a policy with a nonce that no template can have; else empty."""
    for engine in settings.TEMPLATES:
        if CSP_PROCESSOR in engine.get("OPTIONS", {}).get("context_processors", []):
            return ""
    for name in CSP_SETTINGS:
        policy = getattr(settings, name, None) or {}
        if any(NONCE in _listed(sources) for sources in policy.values()):
            return name
    return ""


def _listed(sources):
    if isinstance(sources, (list, tuple, set)):
        return list(sources)
    return [sources]
