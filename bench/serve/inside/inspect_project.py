"""Inspect a Django project and write JSON: python inspect_project.py OUTPUT QUESTION

The project's own interpreter runs the script in the project's folder, with DJANGO_SETTINGS_MODULE set. Needs Django 4.2
and Python 3.8 or newer, and no other package. QUESTION is JSON: the paths to request, the application to import,
`module:name`, or null for the one in the settings, and the pages that a write of each model makes stale. OUTPUT is a
file: a project may print to standard output.

Nothing of the project changes: the script works on copies of SQLite files and links to uploaded files, and rolls back
other writes of pages.
"""

import contextlib
import functools
import importlib
import itertools
import json
import os
import platform
import re
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote, urlencode

import inspect_kit
from error_words import in_a_line, in_words, where
from inspect_kit import is_own_module, loaded
from inspect_pages import HERE, LOCAL, page, status_by_address, usable_databases
from inspect_running import NO_DATABASE, has_view, not_waited_for, running
from inspect_services import cache_servers, plain, services, uses_cache
from inspect_start import ANCHORS, PLAIN, Search, start_page
from inspect_static import static_files
from missing_variables import SettingsImport, lookups, missing_variables
from settings_statements import lines_that_run, secret_in_code, statements
from time_limit import leave_threads

# The settings laid over a project's while it is served.
OVERLAY_FOLDER = inspect_kit.FOLDER / "benchapp_overlay"
MAX_PATTERNS, MAX_REDIRECTS = 2000, 3
# So many times the wanted number of pages are tried if most redirect to the log-in.
MAX_TRIES = 3
# As an application finds it that is served; one that sets it itself is served by other settings.
SETTINGS, OVERLAY = "DJANGO_SETTINGS_MODULE", "benchapp_overlay.settings"
# Names the folder of a unit on a host; the name of a process's file there.
LOADED, PID = "BENCHAPP_LOADED", str(os.getpid())
OVERRIDES = f"it sets {SETTINGS} whatever the environment says: use os.environ.setdefault there"
# Settings whose value is reported as it is.
REPORTED = ["CSRF_COOKIE_DOMAIN", "FORCE_SCRIPT_NAME", "INSTALLED_APPS", "PREPEND_WWW", "SESSION_COOKIE_DOMAIN"]
# What a site believes of the server in front of it.
REPORTED += ["CSRF_COOKIE_SECURE", "CSRF_TRUSTED_ORIGINS", "SECURE_PROXY_SSL_HEADER", "SECURE_SSL_REDIRECT"]
REPORTED += ["SESSION_COOKIE_SECURE", "USE_X_FORWARDED_HOST"]
REPORTED += ["CACHING_QUERY", "CACHING_QUERY_IGNORED", "WHITENOISE_USE_FINDERS"]
REPORTED += ["DATA_UPLOAD_MAX_MEMORY_SIZE", "LOGIN_URL", "SECURE_REFERRER_POLICY", "SESSION_ENGINE"]
# Pages of tools, which no visitor sees.
TOOL = re.compile(
    r"/([\w-]*admin|__\w+__|silk|rosetta|explorer|hijack|schema|swagger(-ui)?|redoc|metrics|jsi18n|django-rq)(/|$)"
)
TOOL_APP = re.compile("admin|^(djdt|silk|hijack|explorer|rosetta)$")
# A path that no project has, for the page of errors.
UNKNOWN_PATH = "/no/such/page/"
# Of no host: https://www.rfc-editor.org/rfc/rfc5737
# In regular expressions, a character that stands for itself.
ESCAPED = re.compile(r"\\([./_~-])")
# Views that show how the site's own error pages look.
SHOWS_ERROR = re.compile(r"/[45]\d\d([-_/]|$)|/(sentry-debug|(raise|test|trigger)[-_]?(error|exception))\b")
ACTION = re.compile("log-?out|sign-?out|delete|remove|send|cron|webhook|unsubscribe", re.I)
# Options of a database that libpq has, too.
LIBPQ = {"service", "passfile", "sslmode", "sslrootcert", "sslcert", "sslkey"}


class Problem(Exception):
    """A stage that failed: `settings`, `application` or `urls`."""

    def __init__(self, stage, error):
        super().__init__(stage)
        self.record = {"stage": stage, "error": in_a_line(error), "where": where(error)}


def inspect(question, folder):
    """All requested facts, by name; raises Problem."""
    settings, facts = configured(question, folder)
    files, in_memory_too = sqlite_databases(settings)
    copy_sqlite(folder)
    facts.update(from_settings(settings), **services(settings))
    external = loaded("benchapp_external_services", OVERLAY_FOLDER / "external_services.py")
    facts["cache_servers"] = cache_servers(settings.CACHES, external)
    facts["database_files"] = files
    facts["databases_in_memory"] = in_memory_too
    with replaced(settings, noted_static(settings)):
        facts["application"], facts["application_problem"] = application(settings, question, Path(folder, "loaded"))
        routes = url_patterns()
    facts["tells_loaded"] = with_marks(facts["application"], Path(folder, "loaded"))
    facts["urls"] = [route for route, _, _ in routes]
    facts["media_view"] = bool(facts["media_url"]) and has_view(facts["media_url"])
    if facts["media_view"]:
        facts["media_url"] = None
    facts["login"] = login_url(settings)
    facts["commands"] = commands()
    facts.update(running(question, facts["cache_servers"]))
    if question["closely"]:
        facts.update(static_files(settings))
    as_served(settings, facts["remote_storages"], folder)
    link_media(settings, folder)
    facts["pages"], facts["checks_by_address"] = [], {}
    if question["pages"]:
        add_pages(facts, question, settings, routes)
    facts["worker_mb"] = memory_mb()
    if question["closely"]:
        facts["uses_cache"] = uses_cache(settings)
    return facts


def configured(question, folder):
    """The settings of the project, set up, and facts that are known only during their import; raises Problem."""
    name, ran, looked_up, load = os.environ[SETTINGS], {}, [], None
    try:
        import django
        from django.conf import settings

        below = loaded("benchapp_project_settings", OVERLAY_FOLDER / "project_settings.py")
        load = functools.partial(below.load, name)
        with lookups() as looked_up, lines_that_run() as ran:
            load()
        load = None
        log_files = files_elsewhere(settings, folder)
        if question["database"]:
            settings.DATABASES["default"] = below.database(settings.DATABASES.get("default", {}), question["database"])
            below.with_replicas(settings.DATABASES)
        not_waited_for(settings.DATABASES)
        # Django calls this on first use.
        key = settings.SECRET_KEY
        django.setup()
    except (Exception, SystemExit) as error:
        problem = Problem("settings", error)
        failed = SettingsImport(error, max(ran.values(), default=0), looked_up)
        problem.record["mentioned"] = failed.mentioned
        problem.record["variables"] = []
        if load:
            problem.record["variables"] = missing_variables(failed, load)
        raise problem from None
    by_setting = statements(ran)
    in_code, is_default = secret_in_code(key, by_setting.get("SECRET_KEY", []))
    return settings, {
        "django": django.get_version(),
        "statements": by_setting,
        "log_files": log_files,
        "secret_in_code": in_code,
        "secret_is_default": is_default,
    }


def commands():
    """The names of the commands of manage.py."""
    from django.core.management import get_commands

    return sorted(get_commands())


def add_pages(facts, question, settings, patterns):
    """Add the pages to the facts, and the visitors' first page."""
    every_route = spread_paths(patterns)
    aliases = []
    if not facts["database_error"]:
        aliases = usable_databases()
    looked_at = aliases or not facts["databases"]

    @functools.lru_cache
    def get_page(path):
        return page(path, aliases, question["harmless"], question["page_timeout_s"])

    filled_later = question["generated"] and not question["database"]
    facts["rows_as_served"] = bool(looked_at) and not facts["migrations_left"] and not filled_later
    search = Search(get_page, facts["rows_as_served"])
    health_check = re.compile(question["health_checks"], re.I)
    named = [path for path in question["paths"] if not health_check.search(path)]
    routes = [path for path in every_route if not health_check.search(path)]
    facts["start"] = start_page(search, named, routes, login_paths(settings, patterns))
    wanted = list(question["paths"])
    if facts["start"]:
        wanted.append(facts["start"])
    if looked_at:
        facts["pages"] = pages(question, wanted, every_route, settings, get_page)
        for path in question["checks_by_address"]:
            facts["checks_by_address"][path] = status_by_address(path, aliases, question["page_timeout_s"])


def login_paths(settings, patterns):
    """Possible paths of a log-in form: from the settings, and from admins."""
    of_admins = []
    for route, _, of_tool in patterns:
        path = ANCHORS.sub("", route)
        if of_tool and path.endswith("/login/"):
            of_admins.append(path)
    return [*filter(None, [login_url(settings)]), *sorted(of_admins)]


def login_url(settings):
    """The URL of the form to log in, by the settings; empty if they name no URL that there is."""
    from django.shortcuts import resolve_url

    with contextlib.suppress(Exception):
        return str(resolve_url(settings.LOGIN_URL))
    return ""


def pages(question, named, routes, settings, get_page):
    """Render the named paths and some of the found ones; with `closely` also an unknown path and the targets of
    redirects.

    Of the found ones, only the first that redirects to the log-in counts: a site behind a log-in has many.
    """
    rendered = {path: get_page(path) for path in named}
    left, walls = question["patterns"], 0
    for path in routes[: left * MAX_TRIES]:
        if not left:
            break
        if path in rendered:
            continue
        response = get_page(path)
        if leads_to_login(settings, response["location"]):
            walls += 1
            if walls > 1:
                continue
        rendered[path] = response
        left -= 1
    if question["closely"]:
        follow_redirects(settings, rendered, get_page)
        rendered.setdefault(UNKNOWN_PATH, get_page(UNKNOWN_PATH))
    return list(rendered.values())


def follow_redirects(settings, rendered, get_page):
    """Look at some targets of redirects, except files: Django sends none while it is served."""
    # Without a separate path, Django says that they are at the root.
    files = tuple(url for url in (settings.STATIC_URL, settings.MEDIA_URL) if url not in (None, "", "/"))
    # It grows meanwhile.
    waiting, left = list(rendered.values()), MAX_REDIRECTS
    for response in waiting:
        path = response["location"] or "none"
        if left and PLAIN.fullmatch(path) and path not in rendered and not path.startswith(files):
            left -= 1
            rendered[path] = get_page(path)
            waiting.append(rendered[path])


def leads_to_login(settings, location):
    """True if a redirect leads to the log-in page of the project."""
    return bool(location) and location.partition("?")[0] == login_url(settings)


def files_elsewhere(settings, folder):
    """Have logs and file caches written to a folder of our own, and no queue opened, before their first write; returns
    the intended folders of the logs.
    """
    elsewhere = loaded("benchapp_external_services", OVERLAY_FOLDER / "external_services.py")
    handlers = (settings.LOGGING or {}).get("handlers", {}).values()
    settings.LOGGING = elsewhere.logs_in(Path(folder), settings.LOGGING)
    settings.CACHES = elsewhere.caches_in(Path(folder), settings.CACHES)
    if getattr(settings, "HUEY", None):
        settings.HUEY = elsewhere.tasks_discarded(settings.HUEY)
    return [str(it["filename"]) for it in handlers if "filename" in it]


def memory_mb():
    """MiB of memory of this process only, not shared with other programs; None if the kernel does not say.

    The process has loaded the application and its pages, like a worker.
    """
    try:
        text = Path("/proc/self/smaps_rollup").read_text()
    except OSError:
        return None
    return int(re.search(r"^Anonymous:\s+(\d+)", text, re.M)[1]) / 1024


def from_settings(settings):
    """Facts from the settings."""
    engines = {alias: it["ENGINE"] for alias, it in own_databases(settings) if it["ENGINE"] != NO_DATABASE}
    static_root = None
    if settings.STATIC_ROOT:
        static_root = str(settings.STATIC_ROOT)
    return {
        "python": platform.python_version(),
        "debug": bool(settings.DEBUG),
        "allowed_hosts": [str(name) for name in settings.ALLOWED_HOSTS if name],
        "local_hosts": LOCAL,
        "static_url": settings.STATIC_URL,
        "static_root": static_root,
        "media_root": media_root(settings),
        "media_url": media_url(settings),
        "middleware": list(settings.MIDDLEWARE),
        "databases": engines,
        "postgresql": postgresql(settings.DATABASES.get("default", {})),
        "conn_max_age": {alias: it.get("CONN_MAX_AGE", 0) for alias, it in settings.DATABASES.items()},
        "caches": {alias: cache["BACKEND"] for alias, cache in settings.CACHES.items()},
        "session_cookie": settings.SESSION_COOKIE_NAME,
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
        "session_save_every_request": bool(settings.SESSION_SAVE_EVERY_REQUEST),
        "settings": {name: plain(getattr(settings, name)) for name in REPORTED if hasattr(settings, name)},
        "sqlite_modes": sqlite_modes(settings.DATABASES),
        "pools": {alias: pool_size(it.get("OPTIONS", {}).get("pool")) for alias, it in settings.DATABASES.items()},
    }


def own_databases(settings):
    """Each database with its alias, except for replicas, which are in the same place as the default."""
    databases = settings.DATABASES.items()
    return [(alias, it) for alias, it in databases if it.get("TEST", {}).get("MIRROR") != "default"]


def is_sqlite(database):
    """True for a database of SQLite, SpatiaLite included."""
    project_settings = loaded("benchapp_project_settings", OVERLAY_FOLDER / "project_settings.py")
    return project_settings.kind(database["ENGINE"]) == "sqlite"


def sqlite_modes(databases):
    """The modes of SQLite databases by alias."""
    from django.db import connections

    modes = {}
    for alias, database in databases.items():
        # A backend of the project may begin transactions in another way.
        if is_sqlite(database) and not is_own_module(type(connections[alias]).__module__):
            modes[alias] = sqlite_mode(database)
    return modes


def sqlite_mode(database):
    """The way in which writers of an SQLite database wait for each other: its transactions, and its journal."""
    options, path = database.get("OPTIONS", {}), Path(str(database["NAME"] or "."))
    with_log = path.is_file() and path.read_bytes()[18:19] == b"\2"
    journal = "DELETE"
    if with_log or "journal_mode=wal" in str(options.get("init_command", "")).lower().replace(" ", ""):
        journal = "WAL"
    return [str(options.get("transaction_mode", "DEFERRED")).upper(), journal]


def pool_size(pool):
    """The number of connections in the pool of a process; 0 without one."""
    if not pool:
        return 0
    options = {}
    if isinstance(pool, dict):
        options = pool
    # https://www.psycopg.org/psycopg3/docs/api/pool.html
    return options.get("max_size") or options.get("min_size") or 4


def postgresql(database):
    """The URL by which libpq connects to a database, with any password; empty for another kind of database."""
    if "postg" not in database.get("ENGINE", ""):
        return ""
    named = {name.lower(): database.get(name) for name in ("USER", "PASSWORD", "HOST", "PORT")}
    named.update((name, value) for name, value in database.get("OPTIONS", {}).items() if name in LIBPQ)
    words = {name: str(value) for name, value in named.items() if value}
    return "postgresql:///" + quote(str(database.get("NAME") or "")) + "?" + urlencode(words, quote_via=quote)


def sqlite_databases(settings):
    """Absolute paths of SQLite files by alias; and the aliases of databases in memory, one for each process."""
    files, inside = {}, []
    for alias, database in own_databases(settings):
        if not is_sqlite(database):
            continue
        name = str(database["NAME"] or "")
        if not name or in_memory(name):
            inside.append(alias)
        else:
            files[alias] = str(Path(name).absolute())
    return files, sorted(inside)


def in_memory(name):
    """True if an SQLite database is in the memory of one process; its name is a path, or a URI."""
    return name == ":memory:" or (name.startswith("file:") and (":memory:" in name or "mode=memory" in name))


def media_root(settings):
    """The absolute path of the folder of uploaded files; None without a separate folder."""
    options = getattr(settings, "STORAGES", {}).get("default", {}).get("OPTIONS", {})
    here, root = Path.cwd(), Path(options.get("location") or settings.MEDIA_ROOT or ".").absolute()
    if root == here or root in here.parents:
        return None
    return str(root)


def media_url(settings):
    """The path of uploaded files; None if they are on another site, or have no separate folder."""
    url = settings.MEDIA_URL or ""
    if media_root(settings) and re.fullmatch(r"(/[\w-]+)+/", url):
        return url
    return None


def link_media(settings, folder):
    """Have pages find the uploaded files, and write new ones, such as images of another size, somewhere else."""
    source = media_root(settings)
    if source is None:
        return
    target = Path(folder, "media")
    target.mkdir()
    for path in Path(source).rglob("*"):
        link = target / path.relative_to(source)
        if path.is_dir() and not path.is_symlink():
            link.mkdir()
        else:
            link.symlink_to(path)
    put(settings, "MEDIA_ROOT", type(settings.MEDIA_ROOT)(target))
    storages = getattr(settings, "STORAGES", {})
    default = storages.get("default", {})
    if default.get("BACKEND") == "django.core.files.storage.FileSystemStorage":
        # A link that is written to would lead to the file of the project.
        storage = loaded("benchapp_media", Path(__file__).parent / "serving" / "media.py").CopiedWhenWritten
        backend = f"benchapp_media.{storage.__name__}"
        put(settings, "STORAGES", {**storages, "default": {**default, "BACKEND": backend}})


def copy_sqlite(folder):
    """Have the project work on copies of its SQLite files: even a reader writes beside one with a write-ahead log."""
    from django.db import connections

    snapshot = loaded("sqlite_snapshot", Path(__file__).parents[1] / "project" / "sqlite_snapshot.py").snapshot
    for alias in connections:
        database = connections[alias].settings_dict
        name = str(database["NAME"] or "")
        if not is_sqlite(database) or in_memory(name):
            continue
        copy = f"{folder}/{alias}.sqlite3"
        # A file that is not there would be made by the first reader.
        if Path(name).is_file():
            snapshot(name, copy)
        database["NAME"] = copy


def application(settings, question, marks):
    """`wsgi` or `asgi` -> `module:name` of each application that can be imported; and the problem of an ASGI
    application beside a WSGI one, or of one that no setting names; or None.

    Without a setting, the module beside the other application counts, or beside the settings, which may be a package,
    or a module of one. A loaded application may leave a mark in the folder of `marks` named after the kind.
    """
    applications, problem = {}, None
    for kind in ("wsgi", "asgi"):
        named = question[kind] or getattr(settings, kind.upper() + "_APPLICATION", None)
        candidates = [named]
        if not named:
            candidates = guesses(kind, applications.get("wsgi"), settings.SETTINGS_MODULE)
        for candidate in candidates:
            module, _, name = candidate.replace(":", ".").rpartition(".")
            try:
                with as_where_served(), as_in_a_unit(marks / kind):
                    getattr(importlib.import_module(module), name)
            except (Exception, SystemExit) as error:
                # Beside one for WSGI it may lack a package that only its servers need.
                if named and (kind != "asgi" or "wsgi" not in applications or question["asgi"]):
                    raise Problem("application " + named, error) from None
                missing = isinstance(error, ModuleNotFoundError) and module.startswith(error.name or "-")
                if not missing and problem is None:
                    problem = f"{module}: {in_words(error)}"
                continue
            applications[kind] = f"{module}:{name}"
            break
    return applications, problem


def with_marks(applications, marks):
    """The kinds of applications whose module makes its mark when imported: for two in one module, it makes only one."""
    modules = {kind: name.partition(":")[0] for kind, name in applications.items()}
    marked = [module for kind, module in modules.items() if (marks / kind / PID).is_file()]
    return [kind for kind, module in modules.items() if module in marked]


@contextlib.contextmanager
def as_where_served():
    """Have the environment name the overlaid settings; raises ValueError if the project ignores them."""
    own, os.environ[SETTINGS] = os.environ[SETTINGS], OVERLAY
    try:
        yield
        if os.environ[SETTINGS] != OVERLAY:
            raise ValueError(OVERRIDES)
    finally:
        os.environ[SETTINGS] = own


@contextlib.contextmanager
def as_in_a_unit(folder):
    """Have the environment name the folder for the mark of a process with a loaded application."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[LOADED] = str(folder)
    try:
        yield
    finally:
        del os.environ[LOADED]


def guesses(kind, other, settings_module):
    """Possible modules of a kind of application: beside the other one, else in the packages around the settings, the
    nearest first.
    """
    around = settings_module.split(".")
    beside = []
    if other:
        beside = [other.partition(":")[0].split(".")[:-1]]
    packages = beside or [around[:length] for length in range(len(around), -1, -1)]
    return [".".join([*package, kind]) + ":application" for package in packages]


def url_patterns():
    """The URL patterns: the text of each route, the module of its view, and whether the page belongs to a tool."""
    from django.conf import settings
    from django.urls import get_resolver
    from django.utils import translation

    routes, code = [], settings.LANGUAGE_CODE
    spoken = [name for name, _ in settings.LANGUAGES if name in (code, code.partition("-")[0])]

    def walk(resolver, prefix, of_tool=False):
        for pattern in resolver.url_patterns:
            route = prefix + literal(pattern.pattern)
            if hasattr(pattern, "url_patterns"):
                walk(pattern, route, of_tool or bool(TOOL_APP.search(pattern.app_name or "")))
            elif len(routes) < MAX_PATTERNS:
                routes.append((route, view_module(pattern.callback), of_tool or bool(TOOL.search(route))))

    try:
        # As visitors without a language get it.
        with translation.override(next(iter(spoken), settings.LANGUAGE_CODE)):
            walk(get_resolver(), "/")
    except (Exception, SystemExit) as error:
        raise Problem("urls", error) from None
    return routes


def literal(pattern):
    """The route of a pattern; for a regular expression such as a router's `^users/$`, its only match, if any."""
    text = str(pattern)
    if not hasattr(pattern, "_regex"):
        return text
    plain_text = ESCAPED.sub(r"\1", ANCHORS.sub("", text).replace("/?", "/"))
    if re.search(r"[][(){}*+?|\\^$]", plain_text):
        return text
    return plain_text


def view_module(view):
    """The module of a view, or of a view's class."""
    view = getattr(view, "view_class", None) or getattr(view, "cls", None) or view
    return getattr(view, "__module__", None) or ""


def spread_paths(routes):
    """The paths of URL patterns without parameters: one of each app of the project in turn, then from packages.

    Paths of tools, and paths named like an action or an error, are left out.
    """
    by_app, others = {}, []
    for route, module, of_tool in routes:
        if not PLAIN.fullmatch(route) or of_tool or ACTION.search(route) or SHOWS_ERROR.search(route):
            continue
        if is_own_module(module):
            by_app.setdefault(module.partition(".views")[0], []).append(route)
        else:
            others.append(route)
    own_paths = []
    for turn in itertools.zip_longest(*by_app.values()):
        own_paths += [route for route in turn if route]
    return list(dict.fromkeys([*own_paths, *others]))


def as_served(settings, remote, folder):
    """Request pages as the kit serves them: DEBUG off, no other service touched, and static files under their own
    names, because the project may not have collected them.
    """
    elsewhere = loaded("benchapp_external_services", OVERLAY_FOLDER / "external_services.py")
    values = {name: getattr(settings, name) for name in dir(settings) if name.isupper()}
    for name, value in elsewhere.settings_overrides(values, remote, folder).items():
        put(settings, name, value)
    settings.PREPEND_WWW = False
    # A setting from an unset variable is empty, or None.
    settings.ALLOWED_HOSTS = [*filter(None, settings.ALLOWED_HOSTS), HERE]
    settings.DEBUG = False
    for name, value in noted_static(settings).items():
        put(settings, name, value)


def noted_static(settings):
    """The settings with which static files have their own names, and missing ones are noted."""
    loaded("noted_static", Path(__file__).parent / "noted_static.py")
    noted, values = "noted_static.NotedStaticFilesStorage", {}
    if "staticfiles" in getattr(settings, "STORAGES", {}):
        values["STORAGES"] = {**settings.STORAGES, "staticfiles": {"BACKEND": noted}}
    # Before Django 5.1 its older name wins, if the project has it.
    if settings.is_overridden("STATICFILES_STORAGE"):
        values["STATICFILES_STORAGE"] = noted
    return values


@contextlib.contextmanager
def replaced(settings, values):
    """Settings with these values during the block: modules may look for a static file that is not collected yet."""
    own = {name: getattr(settings, name) for name in values}
    for name, value in values.items():
        put(settings, name, value)
    yield
    for name, value in own.items():
        put(settings, name, value)


def put(settings, name, value):
    """Change a setting; Django drops objects that it has made of the old value."""
    from django.test.signals import setting_changed

    setattr(settings, name, value)
    setting_changed.send(sender=None, setting=name, value=value, enter=True)


def main():
    """Write the facts, or the problem, to the file."""
    output, question = sys.argv[1], json.loads(sys.argv[2])
    # Without this file's folder, and perhaps a clone of the kit: a project has modules of the same names.
    here = Path.cwd()
    sys.path[:] = [str(here), *(folder for folder in sys.path[1:] if not inspect_kit.hides(Path(folder), here))]
    if question["overlaid"]:
        sys.meta_path.append(inspect_kit.PackageOnHosts)
    with tempfile.TemporaryDirectory() as folder:
        try:
            facts = inspect(question, folder)
        except Problem as problem:
            facts = {"problem": problem.record}
    Path(output).write_text(json.dumps(facts), "utf-8")
    leave_threads()


if __name__ == "__main__":
    main()
