"""The settings of a project, over which others are laid, from whatever library.

The interpreter of any project also loads this module by its path, so it imports nothing and runs on Python 3.8.
"""

import contextlib
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

MODULE, CONFIGURATION = "DJANGO_SETTINGS_MODULE", "DJANGO_CONFIGURATION"


def load(name):
    """The settings module `name`, with all settings as attributes.

    django-configurations makes settings of a class, if DJANGO_CONFIGURATION names one. dynaconf replaces Django's
    settings by another object, which would hide all settings laid over. https://django-configurations.readthedocs.io/
    https://www.dynaconf.com/django/
    """
    from django import conf

    with contextlib.ExitStack() as undo:
        # Both look up the name of the module there.
        undo.callback(os.environ.update, {MODULE: os.environ.get(MODULE, name)})
        undo.callback(sys.modules.update, {"django.conf": conf})
        os.environ[MODULE] = name
        if CONFIGURATION in os.environ:
            from configurations import importer

            importer.install()
        if not find_spec("dynaconf"):
            return import_module(name)
        # It looks for files beside the program that runs, and above: in a thread that is Python, not the kit.
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(import_module, name).result()


def attributes(module):
    """The settings by name."""
    return {name: getattr(module, name) for name in dir(module) if name.isupper()}


# Databases that a plain one of another kind may stand in for, and what tells the kinds of all others apart.
PLAIN = ("", "django.db.backends.dummy", "django.db.backends.sqlite3", "django.db.backends.postgresql")
KINDS = ("postg", "psql", "mysql", "oracle", "mssql", "sqlite", "spatialite")


# The name of the database for commands that need no rows, or if no server responds.
NO_ROWS = ":memory:"
NOWHERE = {"HOST": "127.0.0.1", "PORT": "1", "OPTIONS": {}}


def kind(engine):
    """The kind of a database engine, by the program behind it: PostGIS is a `postg`."""
    program = next((name for name in KINDS if name in engine), engine)
    return {"psql": "postg", "spatialite": "sqlite"}.get(program, program)


def database(settings, chosen):
    """The given database; if of the same kind, with the engine and options of the settings.

    If no rows are needed, a special kind keeps its engine for the models, but reaches no server. Raises ValueError for
    another kind, unless both are plain.
    """
    engine = settings.get("ENGINE", "")
    if engine and kind(engine) == kind(chosen["ENGINE"]):
        options = {**settings.get("OPTIONS", {}), **chosen.get("OPTIONS", {})}
        return {**settings, **chosen, "ENGINE": engine, "OPTIONS": options}
    if engine not in PLAIN:
        if chosen["NAME"] == NO_ROWS:
            return {**settings, **NOWHERE}
        raise ValueError("the project's database is " + engine + ", which " + chosen["ENGINE"] + " cannot replace")
    return chosen


# The setting of the folder of each storage's files; and which settings name other folders and files.
FOLDERS = {"staticfiles": "STATIC_ROOT", "default": "MEDIA_ROOT"}
OF_FILES = re.compile("_(ROOT|DIR|PATH|LOCATION)$")


def storage_settings(settings, alias, folder):
    """The settings that move a storage's files to this folder: the folder's setting, the storage's option, and settings
    with a path inside, such as `COMPRESS_ROOT = STATIC_ROOT`.
    """
    storages = settings.get("STORAGES", {})
    options = storages.get(alias, {}).get("OPTIONS", {})
    old = options.get("location") or settings.get(FOLDERS[alias]) or ""
    overrides = {FOLDERS[alias]: str(folder) if isinstance(old, str) else folder}
    if "location" in options:
        overrides["STORAGES"] = {
            **storages,
            alias: {**storages[alias], "OPTIONS": {**options, "location": str(folder)}},
        }
    for name, value in settings.items():
        path = Path(value) if OF_FILES.search(name) and isinstance(value, (str, Path)) else None
        if path and old and Path(str(old)) in (path, *path.parents):
            overrides[name] = type(value)(folder / path.relative_to(str(old)))
    return overrides


def with_replicas(databases):
    """Give each replica of the default database, as marked for Django's tests, the same settings.

    https://docs.djangoproject.com/en/stable/topics/testing/advanced/#testing-primary-replica-configurations
    """
    for settings in databases.values():
        if settings.get("TEST", {}).get("MIRROR") == "default":
            settings.update(databases["default"])


class Configured:
    """The class that django-configurations looks for in the overlay; does nothing."""

    @classmethod
    def pre_setup(cls):
        """Nothing."""

    setup = post_setup = pre_setup
