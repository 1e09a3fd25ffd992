"""Facts from a running project's databases, caches, storages and Django's checks.

A part of inspect_project, which writes nothing.
"""

import contextlib
import io
import re
import threading
from pathlib import Path

import inspect_kit
from error_words import in_a_line
from inspect_kit import is_own_module

# So long nobody waits for a database, a cache or a storage.
RESPONSE_S = 3
# The storages by their older names, in Django 4.2.
OLDER = {"staticfiles": "STATICFILES_STORAGE", "default": "DEFAULT_FILE_STORAGE"}
KEY = "benchapp-doctor"
# The engine if DATABASES is empty.
NO_DATABASE = "django.db.backends.dummy"
IN_PROCESS = ("LocMemCache", "DummyCache", "FileBasedCache")
# What Python calls an object that says no name.
UNNAMED = re.compile("<.* object at 0x.*>")
LINTED = re.compile(r"\((\w+), (\w+)\)\.\.\. (ERR|WARNING)")


def not_waited_for(databases):
    """Have an unresponsive server reported in seconds: libpq and the pool of a driver wait much longer."""
    for database in databases.values():
        options = database.get("OPTIONS", {})
        if pool := options.get("pool"):
            limited = {"timeout": RESPONSE_S}
            if isinstance(pool, dict):
                limited = {**pool, **limited}
            options = {**options, "pool": limited}
        if re.search("postg|psql|mysql", database.get("ENGINE", "")):
            database["OPTIONS"] = {"connect_timeout": RESPONSE_S, **options}


def running(question, cache_servers):
    """All these facts, by name; without `closely`, of the services only the caches in servers of this machine."""
    left, error = migrations_left()
    facts = {
        **storages(),
        "stale_problem": stale_problem(question["stale"]),
        "checks": deployment_checks(),
        "migrations_left": left,
        "database_error": error,
        "max_connections": None,
        "sites": None,
        "lint": [],
    }
    if not error:
        facts["max_connections"] = max_connections()
        facts["sites"] = sites()
    if not error and question["closely"]:
        facts["lint"] = lint()
    names = cache_servers
    if question["closely"]:
        names = None
    facts["silent"] = silent(names)
    return facts


def deployment_checks():
    """The messages of `manage.py check --deploy`, except those silenced by the settings."""
    from django.core import checks

    try:
        messages = checks.run_checks(include_deployment_checks=True)
    except Exception as error:
        # A check of the project's own, such as one that queries a database that is down.
        messages = [checks.Error(f"the checks cannot be run: {type(error).__name__}: {error}", id="check")]
    records = []
    for message in messages:
        if not message.is_silenced():
            text, hint = str(message.msg), str(message.hint or "")
            where = UNNAMED.sub("", str(message.obj or ""))
            records.append({"id": str(message.id), "text": text, "hint": hint, "where": where})
    return records


def migrations_left():
    """The number of missing migrations in the default database, and the error if it cannot be queried."""
    from django.db import DEFAULT_DB_ALIAS, connections
    from django.db.migrations.executor import MigrationExecutor

    if connections[DEFAULT_DB_ALIAS].settings_dict["ENGINE"] == NO_DATABASE:
        return 0, None
    try:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
        return len(executor.migration_plan(executor.loader.graph.leaf_nodes())), None
    except Exception as error:
        return None, in_a_line(error)


def max_connections():
    """The connection limit of the default database; None if unknown."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return None
    with contextlib.suppress(Exception), connection.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        return int(cursor.fetchone()[0])
    return None


def stale_problem(stale):
    """The first unknown model or field in the rules of stale pages, or None."""
    from django.apps import apps

    row_values = inspect_kit.module_of_caching("row_values.py")
    for label, pages in stale.items():
        try:
            model = apps.get_model(label)
        except LookupError:
            return "names " + label + ", which is no model of it"
        if model._meta.swapped:
            return "names " + label + ", which is replaced by " + model._meta.swapped
        names = row_values.FIELD.findall("".join(pages))
        missing = [name for name in names if not row_values.has_value(model, name)]
        if missing:
            return "names " + missing[0] + ", which " + label + " has not"
    return None


def sites():
    """The number of sites in the database, by django.contrib.sites or by Wagtail; None if neither says."""
    from django.apps import apps

    for label, model in (("wagtailcore", "Site"), ("sites", "Site"), ("django_tenants", "Domain")):
        with contextlib.suppress(Exception):
            return apps.get_model(label, model)._default_manager.count()
    return None


def lint():
    """The findings of django-migration-linter, if installed, in the last migration of each app."""
    from django.core.management import call_command, load_command_class
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader

    problems = []
    try:
        # The project need not have it among its apps.
        linter = load_command_class("django_migration_linter", "lintmigrations")
    except ImportError:
        return problems
    loader = MigrationLoader(connection, ignore_no_migrations=True)
    for app, name in loader.graph.leaf_nodes():
        module = __import__(type(loader.graph.nodes[app, name]).__module__, fromlist=["x"])
        if not is_own_module(module.__name__):
            continue
        path = Path(module.__file__)
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit, Exception):
            call_command(linter, app, name, no_cache=True, stdout=output)
        lines = output.getvalue().splitlines()
        for number, line in enumerate(lines):
            if LINTED.search(line):
                why = [it.strip(" \t-") for it in lines[number + 1 :] if it.startswith(("\t", "  "))]
                problems.append([f"{path.relative_to(Path.cwd())}", "; ".join(why[:2])])
    return problems


def silent(names):
    """Caches, storages and other databases than the default that do not respond, by name, with the reason; all, or
    only those of these names.
    """
    from django.core.cache import caches
    from django.core.files.storage import default_storage
    from django.db import DEFAULT_DB_ALIAS, connections

    elsewhere = [alias for alias, cache in caches.settings.items() if not cache["BACKEND"].endswith(IN_PROCESS)]
    requests = {f"CACHES[{alias!r}]": lambda alias=alias: caches[alias].get(KEY) for alias in elsewhere}
    if type(default_storage._wrapped).__module__ != "django.core.files.storage.filesystem":
        requests["STORAGES['default']"] = lambda: default_storage.exists(KEY)
    for alias in set(connections) - {DEFAULT_DB_ALIAS}:
        # Looked up by the thread, since connections are of one thread each.
        requests[f"DATABASES[{alias!r}]"] = lambda alias=alias: connections[alias].ensure_connection()
    if names is not None:
        requests = {name: request for name, request in requests.items() if name in names}
    errors = dict.fromkeys(requests, f"no response within {RESPONSE_S} s")

    def try_service(name):
        try:
            requests[name]()
            del errors[name]
        except Exception as error:
            errors[name] = in_a_line(error)

    threads = [threading.Thread(target=try_service, args=[name], daemon=True) for name in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(RESPONSE_S)
    return dict(errors)


def storages():
    """The aliases of storages on other machines, and whether names of static files have a hash."""
    import django
    from django.conf import settings
    from django.contrib.staticfiles.storage import ManifestFilesMixin
    from django.core.files.storage import FileSystemStorage
    from django.utils.module_loading import import_string

    named = {alias: storage["BACKEND"] for alias, storage in getattr(settings, "STORAGES", {}).items()}
    for alias, old in OLDER.items():
        # Later versions of Django do not read these settings.
        if django.VERSION < (5, 1) and getattr(settings, old, None):
            named[alias] = getattr(settings, old)
    kinds = {}
    for alias, backend in named.items():
        # What cannot be imported is found when it is used.
        with contextlib.suppress(Exception):
            kinds[alias] = import_string(backend)
    return {
        "remote_storages": [alias for alias, kind in kinds.items() if not issubclass(kind, FileSystemStorage)],
        "static_hashed": issubclass(kinds.get("staticfiles", object), ManifestFilesMixin),
    }


def has_view(url):
    """True if a view of the project responds below a path: it may check who may see a file. Django's own file view, and
    a view that responds at every path, do not count.
    """
    from django.urls import Resolver404, resolve
    from django.views.static import serve

    def view(path):
        with contextlib.suppress(Resolver404):
            return resolve(path).func
        return None

    views = {view(f"{url}{name}") for name in ("1.png", "a/1.png")} - {None, serve}
    return bool(views - {view("/no-such-place/1.png"), view("/no-such-place/a/1.png")})
