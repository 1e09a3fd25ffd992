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
# A file, or a server that is asked while settings are imported.
LACKS = re.compile(r"\b(FileNotFound|Permission|URL|Timeout|gai|Connection\w*)[eE]rror: ")
# Libraries that read variables of the environment say in words of their own that one is missing, and so do settings.
LACKS_VARIABLE = re.compile(
    r"UndefinedValueError|ImproperlyConfigured.*(environment|must not be empty|variable)"
    r"|[Vv]ariable \S+ is (not|missing|required)"
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
# What Django calls them where a project sets no other names.
SESSION_COOKIE, CSRF_COOKIE = "sessionid", "csrftoken"
# The name of a cookie: https://www.rfc-editor.org/rfc/rfc9110#name-tokens
TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


class InspectedPage(msgspec.Struct, frozen=True):
    """The response to an anonymous visitor at a path, in process.

    location         where a redirect leads, or None
    vary             the header, or None; cache_control likewise
    cookies          names of those that it sets
    session_read     whether rendering looked into the session, which makes Django send Vary: Cookie
    session_written  whether it changed the session
    shared           whether Django's own cache stores for everybody what the page read of its visitor
    shared_part      whether {% cache %} does so with a part of it
    queries          of the database
    linked_parameters  path -> names of the parameters with which its links lead there
    error            the exception that it raised, in a line, or None
    here             the status where 127.0.0.1 is asked for it; None if that is the site's own host
    headers          all that it has, by name
    causes           `vary`, `session` (that it was read), a cookie's name, `reads NAME` of a cookie, `header NAME` of a
                     header or address that it reads, `shared`, `shared-part` -> the line or module
    readers          what keeps it out of the layers, as X-Cache names it -> the middleware or view that reads it
    missing_static   static files that it names and nobody has -> the line that names each
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
        """True if it is a page and no file."""
        return self.headers.get("Content-Type", "").lower().startswith("text/html")

    @property
    def cause_of_error(self) -> str:
        """The line of the project that raised the error: `shop/views.py:7`; empty without one."""
        found = re.search(r"\(([^()]+:\d+)\)$", self.error or "")
        return found[1] if found else ""

    @property
    def words(self) -> str:
        """`redirects to /en/`, or `is answered with status 500: KeyError: 'x' (shop/views.py:7)`."""
        if self.location:
            return f"redirects to {self.location}"
        return f"is answered with status {self.status}" + (f": {self.error}" if self.error else "")


class DeploymentCheck(msgspec.Struct, frozen=True):
    """A message of Django's own `check --deploy`; `where` is the model, or what else it is about."""

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
    application_problem  why one that no setting names cannot be imported; None if it can, or is not there
    databases        alias -> engine; conn_max_age: alias -> seconds; caches: alias -> backend
    database_files   alias -> absolute path of an SQLite file, which need not exist
    databases_in_memory  aliases of SQLite databases without a file
    urls             its URL patterns; commands: those of its manage.py
    migrations_left  how many migrations the default database lacks; None when it cannot be asked
    database_error   why it cannot, or None
    media_root       the folder of uploaded files, which need not exist; None without one of their own
    media_url        their path; None if they are not served below a path of the site, or a view answers there
    media_view       whether a view answers there
    session_cookie   the name of the cookie that visitors who are logged in have; csrf_cookie likewise
    max_connections  how many connections the database takes; None when it does not say
    settings         some settings as they are, by name
    statements       name of a setting -> the statements that gave it a value, in the order in which they ran
    sqlite_modes     alias -> how its transactions begin and its journal, `("DEFERRED", "DELETE")`
    pools            alias -> connections of the driver's pool in a process; 0 without one
    remote_storages  aliases of storages that are no files of this machine
    sites            how many sites share the database; None if nothing says
    lint             file and problem of each migration that django-migration-linter warns of
    silent           caches, storages and databases but the default one that do not answer, by their setting: why
    stale_problem    which model, or which of its fields, `stale` names that there is not; None without one
    static_hashed    whether the names of collected files say which version they are
    postgresql       a URL of the default database, with its password; empty for another kind
    log_files        those that each of its processes opens as it starts
    secret_in_code   the line that has the secret key as text; empty if none has
    secret_is_default  whether that text is the default of a variable
    channel_layers   alias -> backend
    mail_backends    what sends mail, by the setting that names it
    mail_hosts       the host that the project names for each of those by SMTP; empty if it names none
    poolers          alias -> host and port of a pooler in front of a PostgreSQL whose cursors may be the server's
    endless_file_caches  aliases of caches in files of which no entry expires
    uncached_loaders whether templates are compiled for each request, because the settings name loaders
    csp_nonce_setting  the setting whose policy has a nonce that no template can have; empty without one
    missing_static   static files that templates name and nobody has -> the line that names each
    dangling_references  style sheet or script -> its reference to a missing file, with a storage that follows it
    static_strict    whether a static file that is not in the storage's list makes a page an error
    pages            the paths that were asked for; none when the database cannot be used
    start            the path at which visitors begin; None if no path shows them anything
    worker_mb        MiB of memory of a process that has loaded its application and pages; None if nobody knows
    rows_as_served   whether its database has the rows that the project will be served with, or a copy of them
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
    missing_static: dict[str, str] = {}
    dangling_references: dict[str, str] = {}
    static_strict: bool = False

    @property
    def lines(self) -> dict[str, str]:
        """Where the project gives each setting its value, `shop/settings.py:12`."""
        return {name: str(those[-1]) for name, those in self.statements.items()}

    @property
    def unfit(self) -> dict[str, str]:
        """The settings that no server can be configured for: why."""
        found: dict[str, str] = {}
        if self.static_url and not FOLDERS.fullmatch(self.static_url):
            found["STATIC_URL"] = f"is {self.static_url!r}: only a path such as /static/ can be served here"
        for setting, name in (("SESSION_COOKIE_NAME", self.session_cookie), ("CSRF_COOKIE_NAME", self.csrf_cookie)):
            if not TOKEN.fullmatch(name):
                found[setting] = f"is {name!r}: no cookie has such a name (RFC 6265, section 4.1.1)"
        return found


def inspect(project: Project, patterns: int = 0, *, closely: bool = False, database: str = "") -> Facts:
    """Look at the project; nothing in its folder or its databases changes.

    patterns  how many pages of its URL patterns are looked at besides those that its description names
    closely   ask its caches and storages for a response, and read its migrations, too
    database  a URL in place of its default database

    Raises BenchError, in one line, when its settings, its application or its URLs cannot be imported.
    """
    said, timeout_s = project.description, run_command.IMPORT_TIMEOUT_S
    question = {
        "paths": list(dict.fromkeys((said.health, *said.public))),
        "patterns": patterns,
        "wsgi": said.wsgi,
        "asgi": said.asgi,
        "stale": said.stale,
        "harmless": said.harmless,
        "generated": said.generated,
        "health_checks": HEALTH.pattern,
        "closely": closely,
        "page_timeout_s": PAGE_TIMEOUT_S,
        "database": _settings_of(database) if database else None,
    }
    try:
        with run_command.announced(f"{project.settings} of {project.folder}", timeout_s):
            # As its servers have it: what its description names, and its settings.
            env = {**project.env, "DJANGO_SETTINGS_MODULE": project.settings}
            answer, why = run_command.run_probe_script(
                project.python, SCRIPT, [json.dumps(question)], project.folder, env
            )
    except subprocess.TimeoutExpired:
        late = f"{project.folder}: {project.settings} and its pages are not ready within {timeout_s:g} s"
        raise BenchError(f"{late}; see where ./manage.py check hangs") from None
    if not answer:
        remedy = f"mend its environment, or name another python in [tool.benchapp] of {FILE}"
        raise BenchError(f"{project.folder}: {project.python} cannot look at it: {why}; {remedy}")
    found = msgspec.json.decode(answer)
    if "problem" in found:
        raise BenchError(_words(project, **found["problem"]))
    return msgspec.convert(found, Facts)


def beginning_at(said: Description, start: str | None) -> Description:
    """The description with the page at which visitors begin, which also stands for a health check that nobody named."""
    if not start or start == said.start:
        return said
    health = start if said.health == HOME else said.health
    return structs.replace(said, start=start, health=health)


def _settings_of(database: str) -> dict[str, Any]:
    """Django's settings for the database of a URL."""
    url = urlsplit(database)
    kind = {"sqlite": "sqlite3", "postgres": "postgresql", "postgis": "postgresql"}.get(url.scheme, url.scheme)
    words = {"USER": url.username, "PASSWORD": url.password, "HOST": url.hostname, "PORT": url.port}
    # Empty ones, too: those of its own settings are for another server.
    said = {name: unquote(str(word or "")) for name, word in words.items()}
    return {
        "ENGINE": f"django.db.backends.{kind}",
        "NAME": unquote(url.path[1:]),
        "OPTIONS": dict(parse_qsl(url.query)),
        **said,
    }


def _words(project: Project, stage: str, error: str, where: str | None, variables: Sequence[str] = ()) -> str:
    """The error of a stage that failed, and what to do about it.

    variables  those that the settings read and that the environment lacks
    """
    what = f"settings {project.settings}" if stage == "settings" else stage
    at = f" ({where})" if where else ""
    own = {path.stem for path in project.folder.iterdir()} | {project.settings.partition(".")[0]}
    missing = re.fullmatch(r"ModuleNotFoundError: No module named '(\w+)[\w.]*'", error)
    if (missing and missing[1] not in own) or NO_DRIVER.search(error):
        remedy = environments.remedy(project.folder, project.python)
    elif error.startswith("KeyError") or LACKS_VARIABLE.search(error) or any(name in error for name in variables):
        remedy = WRITE_VARIABLE
        if variables:
            remedy = WRITE_VARIABLE.replace("the variable", joined(variables))
    elif "GDAL" in error and "installed?" in error:
        remedy = "install it here and on the host, on Debian by apt-get install gdal-bin"
    elif LACKS.search(error):
        remedy = "give it that where it is measured, or have the settings do without, by a variable of env_file"
    else:
        remedy = f"correct it{OR_ELSE.get(what.split()[0], '')}"
    return f"{project.folder}: {what} cannot be imported: {error}{at}; {remedy}"


def require_environment(project: Project) -> None:
    """Raise BenchError unless its settings take database and static files from the kit's variables, as it says.

    Else its own database would be filled by `setup`, and its own folder with static files.
    """
    file, folder = "/nonexistent/benchapp.sqlite3", "/nonexistent/static"
    given = {"DATABASE_URL": f"sqlite:///{file}", "BENCHAPP_STATIC_ROOT": folder}
    found = inspect(structs.replace(project, env={**project.env, **given}))
    for name, got, wanted in (
        ("DATABASE_URL", found.database_files.get("default"), file),
        ("BENCHAPP_STATIC_ROOT", found.static_root, folder),
    ):
        if got != wanted:
            raise BenchError(
                f"{project.folder / FILE}: reads_environment: its settings do not read {name}; leave it out"
            )
