"""Inspection of a Django project by its own interpreter (bench/serve/inside/inspect_project.py)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import structs

from bench.errors import BenchError
from bench.serve.project import environments, run_command
from bench.serve.project.description import FILE, FOLDERS, HOME, Description, Project
from bench.words import joined

SCRIPT = "inspect_project.py"
# How Django says that the package of a database is missing.
NO_DRIVER = re.compile(r"ImproperlyConfigured: (Error loading |'.*' isn't an available database backend)")
# A file, or a server that settings need during import.
LACKS = re.compile(r"\b(FileNotFound|Permission|URL|Timeout|gai|Connection\w*)[eE]rror: ")
# Libraries that read variables of the environment report a missing one in different words, and so do settings.
LACKS_VARIABLE = re.compile(
    r"UndefinedValueError|ImproperlyConfigured.*(environment|must not be empty|variable)"
    r"|[Vv]ariable \S+ is (not|missing|required)|[Ee]nvironment variable"
)
WRITE_VARIABLE = f'write the variable into a file, and name it: env_file = "..." in [tool.benchapp] of {FILE}'
# By what cannot be imported.
OR_ELSE = {
    "settings": f", or settings in [tool.benchapp] of {FILE}",
    "application": f', or name another: wsgi = "..." or asgi = "..." in [tool.benchapp] of {FILE}',
}
# A whole segment at the end of a path: `/health/` or `/up`, and not `/upload/`.
HEALTH = re.compile(
    r"/(health|live|ready)(z|y|iness|ness|[-_]?check)?/?$|/(up|ping|status|heartbeat|__(lb)?heartbeat__)/?$", re.I
)
# Longer than any page takes on a busy machine; servers end what takes 30 s.
PAGE_TIMEOUT_S = 10.0
# Django's names, unless a project sets others.
SESSION_COOKIE, CSRF_COOKIE = "sessionid", "csrftoken"
# The name of a cookie: https://www.rfc-editor.org/rfc/rfc9110#name-tokens
TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


class InspectedPage(msgspec.Struct, frozen=True):
    """The response to an anonymous visitor at a path, in process.

    location         the target of a redirect, or None
    vary             the header, or None; cache_control likewise
    cookies          names of the cookies that the page sets
    session_read     whether rendering looked into the session, which makes Django send Vary: Cookie
    session_written  whether rendering changed the session
    shared           whether Django's own cache stores values of the visitor for everybody
    shared_part      whether {% cache %} does so with a part of the page
    queries          of the database
    linked_parameters  path -> names of the parameters of links to the path
    error            the raised exception, in a line, or None
    here             the status under 127.0.0.1; None if that is the site's own host
    headers          all headers, by name
    causes           `vary`, `session` (read), a cookie's name, `reads NAME` of a cookie, `header NAME` of a
                     read header or address, `shared`, `shared-part` -> the line or module
    readers          reads that keep the page out of the layers, by X-Cache's names -> the middleware or view that reads
    missing_static   missing static files -> the line that names each
    """

    path: str
    status: int
    location: str | None = None
    vary: str | None = None
    cache_control: str | None = None
    cookies: tuple[str, ...] = ()
    session_read: bool = False
    session_written: bool = False
    shared: bool = False
    shared_part: bool = False
    queries: int = 0
    headers: dict[str, str] = {}
    causes: dict[str, str] = {}
    readers: dict[str, str] = {}
    linked_parameters: dict[str, tuple[str, ...]] = {}
    missing_static: dict[str, str] = {}
    error: str | None = None
    here: int | None = None

    @property
    def is_html(self) -> bool:
        """True for a page, False for a file."""
        return self.headers.get("Content-Type", "").lower().startswith("text/html")

    @property
    def cause_of_error(self) -> str:
        """The line of the project that raised the error: `shop/views.py:7`; else empty."""
        match = re.search(r"\(([^()]+:\d+)\)$", self.error or "")
        if not match:
            return ""
        return match[1]

    @property
    def words(self) -> str:
        """`redirects to /en/`, or `returns status 500: KeyError: 'x' (shop/views.py:7)`."""
        if self.location:
            return f"redirects to {self.location}"
        if self.error:
            return f"returns status {self.status}: {self.error}"
        return f"returns status {self.status}"


class DeploymentCheck(msgspec.Struct, frozen=True):
    """A message of Django's own `check --deploy`; `where` is the model, or another subject."""

    id: str
    text: str
    hint: str
    where: str = ""


class Statement(msgspec.Struct, frozen=True):
    """A statement that sets a setting: first and last line, and the value of DEBUG if it runs only under that."""

    file: str
    line: int
    end: int
    in_debug: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Facts(msgspec.Struct, frozen=True):
    """A project as seen by its interpreter: pages, and settings that matter for serving.

    application      `wsgi` or `asgi` -> `module:name` of each application that can be imported
    application_problem  the error of an application that no setting names; None without one
    databases        alias -> engine; conn_max_age: alias -> seconds; caches: alias -> backend
    database_files   alias -> absolute path of an SQLite file, which need not exist
    databases_in_memory  aliases of SQLite databases without a file
    urls             the URL patterns; commands: those of manage.py
    migrations_left  the number of migrations that the default database lacks; None if it does not respond
    database_error   the reason, or None
    media_root       the folder of uploaded files, which need not exist; None without a separate folder
    media_url        their path; None if no path of the site serves them, or a view does
    media_view       whether a view responds there
    session_cookie   the name of the cookie of logged-in visitors; csrf_cookie likewise
    max_connections  the number of connections that the database allows; None if unknown
    settings         some settings, by name
    statements       name of a setting -> the statements that set it, in order of execution
    sqlite_modes     alias -> the beginning of its transactions and its journal, `("DEFERRED", "DELETE")`
    pools            alias -> connections of the driver's pool in a process; 0 without one
    remote_storages  aliases of storages that are no files of this machine
    local_hosts      names of this machine, and `*`, in ALLOWED_HOSTS
    tells_loaded     kinds of applications, `wsgi` and `asgi`, with a mark for a host's unit when loaded
    checks_by_address  path of a health check -> its status over plain HTTP under an address; only for a plain host
    sites            the number of sites that share the database; None if unknown
    lint             file and problem of each migration that django-migration-linter warns of
    silent           unresponsive caches, storages and databases other than the default, by their setting: why; without
                     a close look only caches in servers of this machine
    stale_problem    the unknown model or field that `stale` names; else None
    static_hashed    whether the names of collected files show their version
    postgresql       a URL of the default database, with its password; empty for another kind
    log_files        files that each process opens as it starts
    secret_in_code   the line with the secret key as text; else empty
    secret_is_default  whether that text is the default of a variable
    uses_cache       whether code, templates or sessions use a cache
    channel_layers   alias -> backend
    mail_backends    mail backends, by the setting that names each
    mail_hosts       the host of each of those by SMTP; empty without a name
    poolers          alias -> host and port of a pooler in front of a PostgreSQL with possible server-side cursors
    endless_file_caches  aliases of caches in files of which no entry expires
    uncached_loaders whether templates are compiled for each request, because the settings name loaders
    csp_nonce_setting  the setting of a policy with a nonce that no template can have; else empty
    session_cache    the cache that the sessions need, `CACHES['default']`; else empty
    cache_servers    a cache in a server of this machine -> a command that starts the server
    missing_static   missing static files of templates -> the line that names each
    dangling_references  style sheet or script -> its reference to a missing file, if the storage follows references
    static_strict    whether a static file outside of the storage's list makes a page an error
    pages            the requested paths; empty if the database cannot be used
    login            the URL of the form to log in, from the settings; empty if they name none that exists
    start            the path at which visitors begin; None if no path shows them anything
    worker_mb        MiB of memory of a process with its application and pages loaded; None if unknown
    rows_as_served   whether the database has the rows of the deployment, or a copy
    """

    python: str
    django: str
    debug: bool
    allowed_hosts: tuple[str, ...]
    static_url: str | None
    static_root: str | None
    static_hashed: bool
    middleware: tuple[str, ...]
    databases: dict[str, str]
    conn_max_age: dict[str, int | None]
    caches: dict[str, str]
    session_save_every_request: bool
    application: dict[str, str]
    urls: tuple[str, ...]
    checks: tuple[DeploymentCheck, ...]
    migrations_left: int | None
    database_error: str | None
    max_connections: int | None
    pages: tuple[InspectedPage, ...]
    database_files: dict[str, str] = {}
    databases_in_memory: tuple[str, ...] = ()
    session_cookie: str = SESSION_COOKIE
    csrf_cookie: str = CSRF_COOKIE
    commands: tuple[str, ...] = ()
    media_root: str | None = None
    media_url: str | None = None
    media_view: bool = False
    uses_cache: bool = False
    application_problem: str | None = None
    settings: dict[str, Any] = {}
    statements: dict[str, tuple[Statement, ...]] = {}
    sqlite_modes: dict[str, tuple[str, str]] = {}
    pools: dict[str, int] = {}
    remote_storages: tuple[str, ...] = ()
    sites: int | None = None
    lint: tuple[tuple[str, str], ...] = ()
    silent: dict[str, str] = {}
    stale_problem: str | None = None
    postgresql: str = ""
    log_files: tuple[str, ...] = ()
    login: str = ""
    start: str | None = "/"
    worker_mb: float | None = None
    rows_as_served: bool = True
    secret_in_code: str = ""
    secret_is_default: bool = False
    channel_layers: dict[str, str] = {}
    mail_backends: dict[str, str] = {}
    mail_hosts: dict[str, str] = {}
    poolers: dict[str, str] = {}
    endless_file_caches: tuple[str, ...] = ()
    uncached_loaders: bool = False
    csp_nonce_setting: str = ""
    session_cache: str = ""
    cache_servers: dict[str, str] = {}
    missing_static: dict[str, str] = {}
    dangling_references: dict[str, str] = {}
    static_strict: bool = False
    local_hosts: tuple[str, ...] = ()
    tells_loaded: tuple[str, ...] = ()
    checks_by_address: dict[str, int] = {}

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """The names of ALLOWED_HOSTS that are no names of this machine."""
        return tuple(name for name in self.allowed_hosts if name not in self.local_hosts)

    @property
    def lines(self) -> dict[str, str]:
        """The line that gives each setting its value, `shop/settings.py:12`."""
        return {name: str(those[-1]) for name, those in self.statements.items()}

    @property
    def has_database_cache(self) -> bool:
        """True if a cache is a table of a database, which `createcachetable` makes."""
        return any(backend.endswith("DatabaseCache") for backend in self.caches.values())

    @property
    def unfit(self) -> dict[str, str]:
        """The settings that no server can be configured for: why."""
        problems: dict[str, str] = {}
        if self.static_url and not FOLDERS.fullmatch(self.static_url):
            problems["STATIC_URL"] = f"is {self.static_url!r}: only a path such as /static/ can be served here"
        for setting, name in (("SESSION_COOKIE_NAME", self.session_cookie), ("CSRF_COOKIE_NAME", self.csrf_cookie)):
            if not TOKEN.fullmatch(name):
                problems[setting] = f"is {name!r}: no cookie has such a name (RFC 6265, section 4.1.1)"
        return problems


def inspect(
    project: Project,
    patterns: int = 0,
    *,
    closely: bool = False,
    database: str = "",
    plain: bool = False,
    pages: bool = True,
) -> Facts:
    """Look at the project; nothing in its folder or its databases changes.

    patterns  the number of pages from URL patterns to inspect, besides the pages that the description names
    closely   request a response of caches and storages, and read migrations, too
    database  a URL in place of the default database
    plain     request the health checks as the load balancer of a plain host does, too
    pages     request pages at all

    Raises BenchError, in one line, if settings, application or URLs cannot be imported.
    """
    description = project.description
    checks: tuple[str, ...] = ()
    if plain:
        checks = tuple(description.health_checks)
    question = {
        "paths": list(dict.fromkeys((description.health, *description.public))),
        "patterns": patterns,
        "pages": pages,
        "wsgi": description.wsgi,
        "asgi": description.asgi,
        "stale": description.stale,
        "harmless": description.harmless,
        "generated": description.generated,
        "health_checks": HEALTH.pattern,
        "closely": closely,
        "checks_by_address": checks,
        "page_timeout_s": PAGE_TIMEOUT_S,
        "database": _settings_of(database),
        "overlaid": not (plain or description.reads_environment),
    }
    decoded = msgspec.json.decode(_run_script(project, question))
    if "problem" in decoded:
        raise BenchError(_words(project, **decoded["problem"]))
    return msgspec.convert(decoded, Facts)


def _run_script(project: Project, question: dict[str, Any]) -> bytes:
    """The JSON with which the script responds to a question; raises BenchError if it cannot run, or is late."""
    timeout_s = run_command.IMPORT_TIMEOUT_S
    try:
        with run_command.announced(f"{project.settings} of {project.folder}", timeout_s):
            # As its servers have it: what its description names, and its settings.
            env = {**project.env, "DJANGO_SETTINGS_MODULE": project.settings}
            response, why = run_command.run_probe_script(
                project.python, SCRIPT, [json.dumps(question)], project.folder, env
            )
    except subprocess.TimeoutExpired:
        late = f"{project.folder}: {project.settings} and its pages are not ready within {timeout_s:g} s"
        raise BenchError(f"{late}; see where ./manage.py check hangs") from None
    if not response:
        remedy = f"mend its environment, or name another python in [tool.benchapp] of {FILE}"
        raise BenchError(f"{project.folder}: {project.python} cannot look at it: {why}; {remedy}")
    return response


def beginning_at(description: Description, start: str | None) -> Description:
    """The description with the visitors' first page, which is also the health check if nobody named one."""
    if not start or start == description.start:
        return description
    if description.health == HOME:
        return structs.replace(description, start=start, health=start)
    return structs.replace(description, start=start)


def _settings_of(database: str) -> dict[str, Any] | None:
    """Django's settings for the database of a URL; None without one."""
    if not database:
        return None
    url = urlsplit(database)
    kind = {"sqlite": "sqlite3", "postgres": "postgresql", "postgis": "postgresql"}.get(url.scheme, url.scheme)
    words = {"USER": url.username, "PASSWORD": url.password, "HOST": url.hostname, "PORT": url.port}
    # Empty ones, too: the project's values are for another server.
    parts = {name: unquote(str(word or "")) for name, word in words.items()}
    return {
        "ENGINE": f"django.db.backends.{kind}",
        "NAME": unquote(url.path[1:]),
        "OPTIONS": dict(parse_qsl(url.query)),
        **parts,
    }


def _words(
    project: Project,
    stage: str,
    error: str,
    where: str | None,
    variables: Sequence[str] = (),
    mentioned: Sequence[str] = (),
) -> str:
    """The error of a stage that failed, and the remedy.

    variables  variables that the settings need and the environment lacks
    mentioned  variables that the settings look up, also with a default, and that the error names
    """
    what = stage
    if stage == "settings":
        what = f"settings {project.settings}"
    own = {project.settings.partition(".")[0]}
    if environments.lacks_package(project.folder, error, own) or NO_DRIVER.search(error):
        remedy = environments.remedy(project.folder, project.python, error)
    elif variables:
        remedy = WRITE_VARIABLE.replace("the variable", joined(variables))
    elif mentioned:
        remedy = WRITE_VARIABLE.replace("the variable", joined(mentioned, "or"))
    elif error.startswith("KeyError") or LACKS_VARIABLE.search(error):
        remedy = WRITE_VARIABLE
    elif "GDAL" in error and "installed?" in error:
        remedy = "install it here and on the host, on Debian by apt-get install gdal-bin"
    elif LACKS.search(error):
        remedy = "give it that while it is measured, or have the settings do without, by a variable of env_file"
    else:
        remedy = f"correct it{OR_ELSE.get(what.split()[0], '')}"
    if where:
        error = f"{error} ({where})"
    return f"{project.folder}: {what} cannot be imported: {error}; {remedy}"


def require_environment(project: Project) -> None:
    """Raise BenchError unless the settings take database and static files from the kit's variables, as declared.

    Else `setup` would fill the project's own database, and static files its own folder.
    """
    unread = unread_variables(project)
    for name in ("DATABASE_URL", "BENCHAPP_STATIC_ROOT"):
        if name in unread:
            raise BenchError(
                f"{project.folder / FILE}: reads_environment: its settings do not read {name}; leave it out"
            )


def unread_variables(project: Project) -> tuple[str, ...]:
    """The variables of a host's files that change nothing in the project's settings."""
    file, folder, host = "/nonexistent/benchapp.sqlite3", "/nonexistent/static", "benchapp.example.org"
    given = {
        "DATABASE_URL": f"sqlite:///{file}",
        "BENCHAPP_STATIC_ROOT": folder,
        "ALLOWED_HOSTS": f"{host},127.0.0.1",
        "DEBUG": "0",
    }
    facts = inspect(structs.replace(project, env={**project.env, **given}), pages=False)
    are_read = {
        "DATABASE_URL": facts.database_files.get("default") == file,
        "BENCHAPP_STATIC_ROOT": facts.static_root == folder,
        "ALLOWED_HOSTS": host in facts.allowed_hosts,
        "DEBUG": not facts.debug,
    }
    return tuple(name for name, is_read in are_read.items() if not is_read)
