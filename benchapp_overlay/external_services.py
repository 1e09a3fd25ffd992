"""Stand-ins for a project's external services while the instrument serves the project.

Storages, caches, search engines, mail and tasks of other machines have stand-ins; logs, file caches and search indexes
go to another folder.

The interpreter of any project also loads this module by its path, so it imports nothing and runs on Python 3.8.
"""

import os
import re
import sys
from importlib.util import find_spec

# If it is 1 in the environment, the project's own services are used.
OUTSIDE = "BENCHAPP_OUTSIDE"
# If it is 1, the project's workers run, and its own task queues are used.
QUEUES = "BENCHAPP_QUEUES"
STATIC = "django.contrib.staticfiles.storage.StaticFilesStorage"
# Not in files: without MEDIA_ROOT they would be beside the project's code.
MEDIA = "django.core.files.storage.InMemoryStorage"
# Older names of the two storages.
OLDER = {"staticfiles": "STATICFILES_STORAGE", "default": "DEFAULT_FILE_STORAGE"}
ON_SERVERS = re.compile(r"(Redis|Valkey|Memcached?|PyLibMC)\w*Cache$")
THIS_MACHINE = re.compile(r"(^|//|@)(localhost|127\.0\.0\.1|\[?::1\]?)([:/]|$)|^(unix:)?/", re.I)
SENDS_NOTHING = "django.core.mail.backends.dummy.EmailBackend"
MAIL_HERE = re.compile(r"\.(dummy|locmem|console)\.EmailBackend$")
# Caches in files: Django's, and that of diskcache.
IN_FILES = re.compile(r"(FileBased|\bDjango)Cache$")
BROKERS = ("CELERY_BROKER_URL", "BROKER_URL", "DRAMATIQ_BROKER_URL")
TASKS_NOWHERE = "memory://"
# Celery takes these for what its application says, wherever it says it: that may be no setting.
# https://docs.celeryq.dev/en/stable/userguide/configuration.html#broker-url
CELERY = {
    **dict.fromkeys(["CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL"], TASKS_NOWHERE),
    "CELERY_RESULT_BACKEND": "cache+memory://",
}
DISCARDS_TASKS = "huey.BlackHoleHuey"
DRAMATIQ_NOWHERE = "dramatiq.brokers.stub.StubBroker"
# Backends of Django's setting TASKS that hand none to another process.
TASKS_HERE = re.compile(r"\.(Dummy|Immediate)Backend$")
# What stands in for a search engine of another machine: its setting, the key of its places, and one of Django only.
SEARCH = {
    "HAYSTACK_CONNECTIONS": ("URL", {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}),
    "WAGTAILSEARCH_BACKENDS": ("URLS", {"BACKEND": "wagtail.search.backends.database"}),
}
CHANNELS_HERE = {"BACKEND": "channels.layers.InMemoryChannelLayer"}
SESSIONS = "django.contrib.sessions.backends."


def settings_overrides(settings, storages, folder):
    """The replaced settings, by name, of those that a project has, and the variables of libraries.

    storages  aliases of storages that are no files of this machine
    folder    a folder for files of the kit, for all processes of the project
    """
    if os.environ.get(OUTSIDE) == "1":
        return {}
    overrides = {**_queues(settings), **_search(settings, folder)}
    if "sentry_sdk" in sys.modules:
        # It sends each error to the project's owners.
        sys.modules["sentry_sdk"].init(dsn="", default_integrations=False)
    if "MIDDLEWARE" in settings:
        overrides["MIDDLEWARE"] = without_toolbar(settings["MIDDLEWARE"])
    if settings.get("CHANNEL_LAYERS"):
        overrides["CHANNEL_LAYERS"] = {alias: _channels(layer) for alias, layer in settings["CHANNEL_LAYERS"].items()}
    # Django 6.1 refuses the older setting beside the newer one.
    if "MAILERS" in settings:
        # One without a BACKEND is Django's, which sends.
        overrides["MAILERS"] = {
            alias: mailer if MAIL_HERE.search(mailer.get("BACKEND") or "") else {"BACKEND": SENDS_NOTHING}
            for alias, mailer in settings["MAILERS"].items()
        }
    elif not MAIL_HERE.search(settings.get("EMAIL_BACKEND") or ""):
        overrides["EMAIL_BACKEND"] = SENDS_NOTHING
    if settings.get("SESSION_ENGINE") == SESSIONS + "file":
        overrides["SESSION_FILE_PATH"] = str(folder)
    if settings.get("CACHES"):
        overrides["CACHES"] = {alias: _cache(alias, cache) for alias, cache in settings["CACHES"].items()}
        alias = settings.get("SESSION_CACHE_ALIAS", "default")
        if overrides["CACHES"].get(alias) != settings["CACHES"].get(alias):
            overrides.update(_sessions(settings.get("SESSION_ENGINE"), folder))
    for alias in storages:
        plain = STATIC if alias == "staticfiles" else MEDIA
        if OLDER.get(alias) in settings:
            overrides[OLDER[alias]] = plain
        else:
            overrides["STORAGES"] = {
                **overrides.get("STORAGES", settings.get("STORAGES", {})),
                alias: {"BACKEND": plain},
            }
    return overrides


def _sessions(engine, folder):
    """Sessions that all processes share, if the cache of the sessions is now one per process."""
    if engine == SESSIONS + "cache":
        return {"SESSION_ENGINE": SESSIONS + "file", "SESSION_FILE_PATH": str(folder)}
    return {"SESSION_ENGINE": SESSIONS + "db"} if engine == SESSIONS + "cached_db" else {}


def _cache(alias, cache):
    """A cache of this machine; a cache elsewhere would be production's."""
    if not ON_SERVERS.search(cache.get("BACKEND", "")) or _all_here(listed(cache.get("LOCATION"))):
        return cache
    return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "benchapp-" + alias}


def is_served_here(cache):
    """True for a cache in a server of this machine, such as Redis or memcached."""
    places = listed(cache.get("LOCATION"))
    return bool(places and ON_SERVERS.search(cache.get("BACKEND", ""))) and _all_here(places)


def _channels(layer):
    """A channel layer of this machine: messages to one elsewhere reach the visitors of production."""
    hosts = layer.get("CONFIG", {}).get("hosts", [])
    return layer if _all_here(_address(host) for host in hosts) else CHANNELS_HERE


def _address(host):
    """The address in a host of a channel layer, which is an address, a pair with the port, or a dictionary."""
    if isinstance(host, dict):
        host = host.get("address", host.get("host"))
    return host[0] if isinstance(host, (list, tuple)) else host


def _queues(settings):
    """The settings of task queues, from which no worker takes tasks, unless the project's workers run."""
    if os.environ.get(QUEUES) == "1":
        return {}
    os.environ.update(CELERY)
    overrides = {name: TASKS_NOWHERE for name in BROKERS if settings.get(name)}
    if settings.get("HUEY"):
        overrides["HUEY"] = tasks_discarded(settings["HUEY"])
    if settings.get("TASKS"):
        overrides["TASKS"] = {alias: _tasks(queue) for alias, queue in settings["TASKS"].items()}
    if settings.get("DRAMATIQ_BROKER"):
        overrides["DRAMATIQ_BROKER"] = {**settings["DRAMATIQ_BROKER"], "BROKER": DRAMATIQ_NOWHERE, "OPTIONS": {}}
    return overrides


def _search(settings, folder):
    """The settings of search engines, with file indexes in that folder."""
    overrides = {}
    for name, (key, plain) in SEARCH.items():
        for alias, engine in (settings.get(name) or {}).items():
            here = not engine.get(key) or _all_here(listed(engine[key]))
            in_files = {"PATH": f"{folder}/search-{alias}"} if engine.get("PATH") else {}
            overrides.setdefault(name, {})[alias] = {**engine, **in_files} if here else plain
    return overrides


def _tasks(queue):
    """One of Django's."""
    backend = queue.get("BACKEND", "")
    if not backend or TASKS_HERE.search(backend):
        return queue
    package = "django.tasks" if find_spec("django.tasks") else "django_tasks"
    return {**queue, "BACKEND": package + ".backends.dummy.DummyBackend", "OPTIONS": {}}


def without_toolbar(middleware):
    """MIDDLEWARE without the debug toolbar, whose pages exist only with DEBUG."""
    return [name for name in middleware if not name.startswith("debug_toolbar.")]


def listed(places):
    """Places one by one, from a list or one text."""
    return places if isinstance(places, (list, tuple)) else re.split("[;,]", str(places or ""))


def _all_here(places):
    return all(THIS_MACHINE.search(str(place)) for place in places)


def tasks_discarded(huey):
    """The setting of Huey, a dictionary or its queue itself, with a queue that keeps nothing: others open a file or a
    connection on import.
    """
    options = huey if isinstance(huey, dict) else {"name": huey.name, "immediate": huey.immediate}
    return {**options, "huey_class": DISCARDS_TASKS}


def logs_in(folder, logging):
    """LOGGING with a file in that folder for each file handler."""
    handlers = {
        name: {**handler, "filename": str(folder / (name + ".log"))} if "filename" in handler else handler
        for name, handler in logging.get("handlers", {}).items()
    }
    return {**logging, "handlers": handlers} if handlers else logging


def caches_in(folder, caches):
    """CACHES with a place in that folder for each file cache."""
    return {
        alias: {**cache, "LOCATION": str(folder / ("cache-" + alias))}
        if IN_FILES.search(cache.get("BACKEND", ""))
        else cache
        for alias, cache in caches.items()
    }
