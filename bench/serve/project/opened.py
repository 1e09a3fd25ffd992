"""The project under test as the kit serves it: the kit's own, or another Django project."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import structs

from bench import paths, programs
from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.catalog.manifest import Layer, Stack
from bench.serve.machine.identity import Identity, worker
from bench.serve.project import description, inspection, pythons, refs, venv_overlay
from bench.serve.project.description import FILE, HOME, START, Description, Project
from bench.serve.project.environments import INSTALL_OF_KIT, OF_KIT
from bench.serve.project.inspection import CSRF_COOKIE, SESSION_COOKIE, Facts
from bench.serve.project.refs import Ref
from bench.serve.project.venv_overlay import KIT_PACKAGES, PythonFacts, VenvOverlay

Result = TypeVar("Result")
# What the memo of a project has of its commits.
REFS = "refs"
# Laid over the settings of a project that does not read the kit's variables itself. The instrument's have the probes.
OVERLAY = "benchapp_overlay.settings"
PROBED = "bench.serve.inside.serving.settings"
# Wraps the ASGI application of such a project, which a variable names.
ASGI = "benchapp_overlay.asgi:application"
OVERLAID_ASGI = "OVERLAID_ASGI"
# Variables of the kit that mean something else, or nothing, in another project's settings.
SHARED_NAMES = ("ALLOWED_HOSTS", "CACHE_URL", "CSRF_TRUSTED_ORIGINS", "DATABASE_URL", "DEBUG", "SECRET_KEY")
PREFIX = "BENCHAPP_"
# The folder of logs and file caches that would be written beside its code, below `var`.
FILES = "files"
# A path that every server can have in its configuration, quoted or not.
PLAIN = re.compile(r"(/[\w.-]+)+/?")
# The end of a path, also in a request line and before a query string; or the end or a continuation below.
PATH_END, BELOW = "(?![^ |?])", "(?![^ |?/])"
PROBES = "__probe__/"
USUAL_LOGIN = "(.*/)?(log|sign)[-_]?in/?"
# Health checks of a project that names none, to which the kit's middleware responds: no page has such a path.
OWN_CHECKS = ("/.health", "/.ready")
# A value that means itself in the configuration of every server.
TEXT = re.compile(r"[ !#&-\[\]-z|~]*")
# Apps of the kit that a project may have copied.
APPS = ("caching", "login_limit")
# What to do with a setting that no server can be configured for.
UNFIT = "give it another value while it is measured, by a variable of env_file"
# Headers that belong to one response and not to every page.
OF_ONE_RESPONSE = frozenset(
    {"cache-control", "content-length", "content-type", "set-cookie", "x-render-id", "date", "etag", "expires", "vary"}
    # Over HTTPS only, and remembered by browsers.
    | {"strict-transport-security"}
    | {"x-cache"}
)


@dataclass(frozen=True)
class UnderTest:
    """A project as the kit serves it.

    var       the kit's folder for the project: static files, databases, logs
    recorded  the project's folder for results, unless it is a site of the kit: its databases are somebody's; else empty
    version   of the serving Python, if it is neither the instrument's nor the project's own
    base      the project of whose repository this is a commit, with the served rows; None for others
    installs  whether missing servers are installed; without that the project is only looked at
    plain     whether --plain chose its own settings module, without a promise to read the kit's variables
    memo      facts found already, by question; shared by all its Pythons
    """

    project: Project
    var: Path
    recorded: str = ""
    version: str = ""
    base: UnderTest | None = None
    installs: bool = True
    plain: bool = False
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, question: Hashable, compute: Callable[[], Result]) -> Result:
        """The result of a question, computed once."""
        if question not in self.memo:
            self.memo[question] = compute()
        result: Result = self.memo[question]
        return result

    @property
    def folder(self) -> Path:
        """The folder of manage.py."""
        return self.project.folder

    @property
    def description(self) -> Description:
        """The project's description, with its start page."""
        return inspection.beginning_at(self.project.description, self.memo.get(START))

    @property
    def described(self) -> str:
        """The file of the description for results; empty for the project's own."""
        file = self.project.described
        if file == self.folder / FILE:
            return ""
        return str(file)

    @functools.cached_property
    def layered(self) -> VenvOverlay:
        """The environment of the servers, created if missing; raises BenchError on failure."""
        if self.version:
            return pythons.environment(self.version)
        if self.recorded:
            return venv_overlay.environment(self.project.python, self.var)
        return venv_overlay.kits()

    @property
    def venv(self) -> Path:
        """The virtual environment of the servers and commands, made or not."""
        if self.version:
            return self.layered.venv
        if self.recorded:
            return venv_overlay.place(self.var)
        return programs.servers_venv()

    @property
    def python(self) -> Path:
        """The interpreter of the environment, created if missing."""
        return self.layered.python

    @property
    def servers_in(self) -> tuple[Path, ...]:
        """The virtual environments with the servers, in order of precedence."""
        if not self.installs:
            return (self.venv, programs.servers_venv())
        return tuple(dict.fromkeys((self.layered.venv, self.layered.kit)))

    @functools.cached_property
    def _interpreter(self) -> PythonFacts:
        return venv_overlay.query_interpreter(self.project.python)

    @property
    def sites(self) -> tuple[str, ...]:
        """The folders with its packages."""
        return self._interpreter.sites

    @property
    def own_packages(self) -> frozenset[str]:
        """The canonical names of the project's own distributions."""
        return venv_overlay.own_packages(self.sites)

    def worker(self, folder: Path = paths.KIT) -> Identity:
        """The user of servers and commands, with access to `folder`, the project and its packages."""
        reads: tuple[Path, ...] = ()
        if self.version and self.layered.sites:
            reads = (self.layered.base, *map(Path, self.layered.sites))
        elif self.recorded:
            interpreter = self._interpreter
            reads = (self.folder, Path(interpreter.base_prefix), *map(Path, interpreter.sites))
        return worker(folder, reads)

    def served_by(self, version: str) -> UnderTest:
        """The project served by another Python; unchanged for an empty version.

        Raises BenchError for a project with a separate environment.
        """
        if not version:
            return self
        if self.recorded:
            raise BenchError(
                f"python={version}: {self.folder} is served by the Python that has its packages; leave it out"
            )
        return replace(self, version=version)

    def at(self, label: str) -> UnderTest:
        """The project at a commit known from `use_refs`; unchanged without a label.

        Raises BenchError for an unknown label, and for a commit that cannot be served.
        """
        if not label:
            return self
        known: dict[str, Ref] = self.memo.get(REFS, {})
        if label not in known:
            raise BenchError(f"ref={label}: no such commit was named; name it with --ref")
        if not known[label].commit:
            return self
        return self.once((REFS, label), lambda: _at(self, known[label]))

    def use_refs(self, refs: Sequence[Ref]) -> None:
        """Register commits of the repository by their labels."""
        if refs and not self.recorded:
            raise BenchError("--ref compares commits of a project of yours: stand in its folder, or give --project")
        self.memo[REFS] = {ref.label: ref for ref in refs}

    @property
    def by_the_instrument(self) -> UnderTest:
        """The project run by the instrument's own Python, unless it has an environment: one fills all databases."""
        if self.version:
            return replace(self, version="")
        return self

    @property
    def only_inspected(self) -> UnderTest:
        """The project for commands that serve nothing, so no packages are installed."""
        return replace(self, installs=False)

    @property
    def static_root(self) -> Path:
        """The folder of collected static files."""
        return self.var / "static"

    @property
    def media_root(self) -> Path:
        """The folder with links to uploaded files, beside new ones."""
        return self.var / "media"

    @property
    def health(self) -> str:
        """A path with status 200 while the site serves."""
        return self.description.health

    @property
    def ready(self) -> str:
        """A path with status 200 while the site serves and can use its database, if any."""
        return self.description.ready or self.health

    @property
    def overlaid(self) -> bool:
        """True if the kit's settings are laid over the project's own."""
        return not self.description.reads_environment

    @functools.cached_property
    def facts(self) -> Facts:
        """The inspection by the project's interpreter; raises BenchError if the project cannot be imported."""
        return self.once("facts", self._inspected)

    def _inspected(self) -> Facts:
        if not self.recorded:
            venv_overlay.kits()
        return inspection.inspect(self.project, database=self._rows_of_base)

    @property
    def _rows_of_base(self) -> str:
        """The URL of the SQLite file with the rows of a commit; empty for a project with its own rows."""
        if not self.base:
            return ""
        file = self.base.copied.get("default")
        if file and Path(file).is_file():
            return f"sqlite:///{file}"
        return ""

    def begin_at(self, start: str | None) -> None:
        """Have visitors begin at this page, if there is one."""
        self.memo[START] = start

    @functools.cached_property
    def names(self) -> dict[str, Any]:
        """Names about the project for templates: see `_names`."""
        return _names(self)

    @property
    def settings(self) -> str:
        """The settings module of the project's processes."""
        if self.overlaid:
            return PROBED
        return self.project.settings

    def environment(self, env: dict[str, str]) -> dict[str, str]:
        """The environment of one of the project's processes, of the kit's variables: names that its settings may read
        are renamed.
        """
        if not self.overlaid:
            return {**self.project.env, **env}
        files = {alias: str(self.copy_of(alias)) for alias in self.facts.database_files}
        files.pop("default", None)
        served = {
            **self.project.env,
            **renamed(env),
            "DJANGO_SETTINGS_MODULE": PROBED,
            "OVERLAID_SETTINGS": self.project.settings,
            **overlaid_asgi(self),
            "BENCHAPP_DATABASE_FILES": json.dumps(files),
            "BENCHAPP_FILES": str(self.var / FILES),
            "BENCHAPP_REMOTE_STORAGES": json.dumps(self.facts.remote_storages),
        }
        if self.facts.media_root:
            served["BENCHAPP_MEDIA_ROOT"] = str(self.media_root)
        return served | page_environment(self)

    @property
    def copied(self) -> dict[str, str]:
        """SQLite files by alias, of which copies are served; empty if `setup` makes the rows."""
        if self.description.generated:
            return {}
        # A checkout has no rows.
        if self.base:
            return self.base.facts.database_files
        return self.facts.database_files

    def copy_of(self, alias: str) -> Path:
        """The path of the copy of an SQLite database, or of the one with rows made by `setup`."""
        name = alias
        if self.description.generated and alias == "default":
            name = "benchapp"
        return self.var / "data" / f"{name}.sqlite3"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the results: on the environment and the start page."""
        notes = []
        if self.recorded and self.facts.debug:
            notes.append("the project's DEBUG is on: it is served with DEBUG off")
        if self.description.first_pages == (self.description.start,) != (HOME,):
            note = f"visitors begin at {self.description.start}, for / shows them no page"
            notes.append(f"{note}; name other pages: public = [...] in [tool.benchapp] of {FILE}")
        return tuple(notes)


def _names(project: UnderTest) -> dict[str, Any]:
    """Names about a project for templates.

    wsgi, asgi               module and name of each application, `module:name`; empty without one
    wsgi_module, wsgi_name   the parts of `wsgi`; of `asgi` the same
    wsgi_folder, wsgi_file   the path of the module of `wsgi`, relative to the project
    static_url, static_path  the path of static files, with a slash at the end and without
    media_url                the path of uploaded files; empty without them
    protected_url            the path of uploads that a view has the web server send; empty without them
    session_cookie           the name of the cookie of logged-in visitors; csrf_cookie likewise
    session_cookie_re        a regular expression (PCRE) of the name
    login_re                 a regular expression (PCRE) of paths of log-in forms, without the first slash
    health_paths             the paths of health checks
    health_re                a regular expression (PCRE) of the paths, without the first slash
    """
    description, checks = project.description, health_paths(project)
    applications = {"wsgi": description.wsgi or "", "asgi": description.asgi or ""}
    static_url, media_url, cookies = "/static/", "", (SESSION_COOKIE, CSRF_COOKIE)
    if project.overlaid or not description.wsgi:
        applications, static_url = project.facts.application, project.facts.static_url or static_url
    if project.overlaid:
        if "asgi" in applications:
            applications = {**applications, "asgi": ASGI}
        media_url, cookies = project.facts.media_url or "", (project.facts.session_cookie, project.facts.csrf_cookie)
        for setting, why in project.facts.unfit.items():
            raise BenchError(f"{project.folder}: {setting} {why}; {UNFIT}")
    return {
        **_parts("wsgi", applications.get("wsgi", "")),
        **_place(project.project, applications.get("wsgi", "")),
        **_parts("asgi", applications.get("asgi", "")),
        "static_url": static_url,
        "static_path": static_url[:-1],
        "media_url": media_url,
        "protected_url": description.protected,
        "session_cookie": cookies[0],
        "session_cookie_re": re.sub(r"[^\w-]", lambda character: f"\\x{ord(character[0]):02x}", cookies[0]),
        "csrf_cookie": cookies[1],
        "login_re": _login_re(project),
        "health_paths": checks,
        "health_re": "|".join(path[1:].replace(".", "[.]") for path in checks),
    }


def _login_re(project: UnderTest) -> str:
    """A regular expression of paths of forms to log in: the usual ones at any place, and those of the project."""
    named = []
    if project.description.login:
        named.append(project.description.login.url)
    if project.overlaid:
        named.append(project.facts.login)
    paths = [url.partition("?")[0][1:] for url in named if url.startswith("/")]
    own = [re.escape(path) for path in dict.fromkeys(paths) if not re.fullmatch(USUAL_LOGIN, path)]
    return "|".join([USUAL_LOGIN, *own])


def _parts(interface: str, application: str) -> dict[str, str]:
    """The names of an application `module:name` that is called by an interface."""
    module, _, name = application.partition(":")
    return {interface: application, f"{interface}_module": module, f"{interface}_name": name}


def _place(project: Project, application: str) -> dict[str, str]:
    """The place of the module of the WSGI application."""
    package, _, last = application.partition(":")[0].rpartition(".")
    below = package.replace(".", "/")
    place = {"wsgi_folder": below or ".", "wsgi_file": f"{last}.py"}
    for root in (".", *project.env.get("PYTHONPATH", "").split(":")):
        folder = Path(root, below)
        if (project.folder / folder / f"{last}.py").is_file():
            return {**place, "wsgi_folder": str(folder)}
    return place


def overlaid_asgi(project: UnderTest) -> dict[str, str]:
    """The variable that names the ASGI application which the kit's own wraps, if the project has one."""
    application = project.facts.application.get("asgi")
    if not application:
        return {}
    return {OVERLAID_ASGI: application}


def renamed(env: dict[str, str]) -> dict[str, str]:
    """The kit's variables under names that mean nothing in the settings of another project."""
    variables = {}
    for name, value in env.items():
        if name in SHARED_NAMES:
            name = f"{PREFIX}{name}"
        variables[name] = value
    return variables


def health_paths(project: UnderTest) -> tuple[str, ...]:
    """Paths for health checks only, with responses in maintenance, over plain HTTP and to an address."""
    return tuple(filter(PLAIN.fullmatch, project.description.health_checks)) or OWN_CHECKS


def page_headers(project: UnderTest) -> dict[str, str]:
    """The headers of all public pages, and Vary: Cookie, for servers that send a stored body.

    Headers whose value a server's configuration might read as more than text are left out: no such page is stored.
    """
    checks, inspected = project.description.health_checks, project.facts.pages
    pages = [page for page in inspected if page.status == 200 and page.path not in checks and page.is_html]
    first = pages[0].headers if pages else {}
    same = {}
    for name, value in first.items():
        everywhere = all(page.headers.get(name) == value for page in pages)
        if everywhere and TEXT.fullmatch(value) and name.lower() not in OF_ONE_RESPONSE:
            same[name] = value
    # A server with stored pages chooses by the session cookie, whatever the pages that were looked at say.
    return same | {"Vary": "Cookie"}


def page_environment(project: UnderTest) -> dict[str, str]:
    """Variables about the project's pages for the settings overlay."""
    description = project.description
    checks = health_paths(project)
    variables = {
        "BENCHAPP_HEALTH_PATHS": checks,
        "BENCHAPP_PUBLIC": description.public,
        "BENCHAPP_STALE": description.stale,
        "BENCHAPP_HARMLESS": description.harmless,
    }
    if checks == OWN_CHECKS:
        variables["BENCHAPP_OWN_CHECKS"] = checks
    encoded = {"BENCHAPP_PAGE_HEADERS": quote(msgspec.json.encode(page_headers(project)))}
    for name, value in variables.items():
        if value:
            # Compact JSON, without spaces: it stands in files of production, too.
            encoded[name] = msgspec.json.encode(value).decode()
    return encoded


def bypass_re(project: UnderTest, probed: bool) -> str:
    """A regular expression (PCRE), without the first slash, of beginnings of paths that bypass all caches.

    These are static files, health checks, the login form and all pages except the ones that may be cached; `probed`
    adds those of the probes. A web server's cache would let visitors of uncacheable pages wait for each other.
    """
    description = project.description
    paths = [project.names["static_url"], project.names["media_url"], *project.names["health_paths"]]
    if description.login:
        paths.append(description.login.url)
    bypassing = []
    for path in dict.fromkeys(paths):
        # Nothing begins as the home page does, and some projects have no uploads.
        if path in ("/", ""):
            continue
        end = PATH_END
        if path.endswith("/"):
            end = ""
        bypassing.append(re.escape(path[1:]) + end)
    expression = "|".join(bypassing)
    if not description.public or not project.overlaid:
        return expression
    public = []
    for path in description.public:
        if path == "/":
            public.append(PATH_END)
        else:
            public.append(re.escape(path.strip("/")) + BELOW)
    if probed:
        public.append(PROBES)
    return f"{expression}|(?!{'|'.join(public)})"


def refusal(project: UnderTest, stack: Stack, layers: tuple[Layer, ...]) -> str:
    """The reason why a project cannot be served by a stack with these layers, or an empty string."""
    for layer in layers:
        if layer.in_site and layer.name not in project.description.layers:
            return f"{layer.name}: {layer.in_site}"
    interface = stack.servers[0].interface
    if not project.names.get(interface):
        return f"the project has no {interface.upper()} application; name it as {interface} in [tool.benchapp]"
    return ""


def is_kits(folder: Path | None) -> bool:
    """True if a folder is the kit's own site, the default without a folder."""
    return folder is None or folder.resolve() == paths.KIT


def read_project(folder: Path | None, describe: Path | None = None) -> Project:
    """The project in a folder, the kit's own without one; raises BenchError as `description.read` does."""
    if folder is None or is_kits(folder):
        return description.read(paths.KIT, venv_overlay.python_of(programs.servers_venv()), describe)
    return description.read(folder, describe=describe)


def _at(base: UnderTest, ref: Ref) -> UnderTest:
    """A project at a commit, with the description and, while the packages are the same, the environment of now."""
    below = base.var / "refs"
    folder = refs.checkout(base.folder, ref, below)
    python = base.project.python
    if (digest := refs.packages_digest(folder)) != refs.packages_digest(base.folder):
        python = venv_overlay.of_listing(folder, python, below / f"venv-{digest[:12]}")
    described: Path | None = base.project.described
    if not description.describes(base.project.described):
        described = None
    opened = _opened(description.read(folder, python, described), base)
    opened.begin_at(base.memo.get(START))
    return opened


def open_project(folder: Path | None = None, describe: Path | None = None, *, plain: bool = False) -> UnderTest:
    """The project in a folder, the kit's own without one; raises BenchError if the project cannot be served.

    describe  another file with the description
    plain     run the project's own settings module, whatever variables it reads

    Facts are read here, so that an import error is reported before anything starts.
    """
    project = read_project(folder, describe)
    if is_kits(folder):
        if plain:
            raise BenchError("--plain: the demo site runs its own settings in any case; leave it out, or add --project")
        return UnderTest(project, paths.STATE)
    if plain:
        described = structs.replace(project.description, reads_environment=True)
        under_test = _opened(structs.replace(project, description=described), plain=True)
        return replace(under_test, plain=not project.description.reads_environment)
    return _opened(project)


def _opened(project: Project, base: UnderTest | None = None, *, plain: bool = False) -> UnderTest:
    """A project other than the kit's sites, or a commit of `base`; raises BenchError if it cannot be served."""
    for name in KIT_PACKAGES:
        folder = project.folder / name
        if not (folder / "__init__.py").is_file():
            continue
        if name != OF_KIT or not any((folder / app).is_dir() for app in APPS):
            raise BenchError(f"{project.folder}: its package {name} has the name of one of the kit's; rename it")
        # Without the overlay, no process of the project needs more of the kit than this copy.
        if not project.description.reads_environment:
            raise BenchError(
                f"{folder}: this copy would hide the rest of {name} while it is served; remove it: {INSTALL_OF_KIT}"
            )
    digest = hashlib.sha256(str(project.folder).encode()).hexdigest()[:8]
    var = paths.STATE / "projects" / f"{project.folder.name}-{digest}"
    under_test = UnderTest(project, var, str(project.folder), base=base)
    if not under_test.facts.application:
        why = "no application; write a wsgi.py, or"
        if problem := under_test.facts.application_problem:
            why = f"no application can be imported: {problem}; correct it, or"
        raise BenchError(f'{project.folder}: {why} name one: wsgi = "mysite.wsgi:application" in {FILE}')
    under_test.begin_at(under_test.facts.start)
    if under_test.overlaid:
        # What it says of them is read here, too: before a database is filled.
        _ = under_test.names
    elif not plain:
        inspection.require_environment(project)
    # A project has them in its own code, or not at all.
    in_sites = [name for name, layer in catalog.read().layers.items() if layer.in_site]
    if unknown := [name for name in project.description.layers if name not in in_sites]:
        raise BenchError(f"{project.folder / FILE}: layers names {unknown[0]}; use {', '.join(in_sites)}")
    if under_test.facts.stale_problem:
        raise BenchError(f"{project.folder / FILE}: [tool.benchapp.stale] {under_test.facts.stale_problem}; correct it")
    for entry in project.description.harmless:
        if "." in entry and not entry.startswith("cookie:") and entry not in under_test.facts.middleware:
            raise BenchError(f"{project.folder / FILE}: harmless names {entry}, which is not in MIDDLEWARE; correct it")
    return under_test


def recorded_project(named: UnderTest, recorded: str, describe: str = "") -> UnderTest:
    """The project that results name with its description; `named` is the command line's, which names no other."""
    if (recorded, describe) == (named.recorded, named.described):
        return named
    if named.recorded or named.described:
        began = " described by ".join(filter(None, (recorded or "the project of the kit", describe)))
        raise BenchError(f"it was begun with {began}; leave out --project and --config")
    folder = Path(recorded) if recorded else None
    file = Path(describe) if describe else None
    return open_project(folder, file)
