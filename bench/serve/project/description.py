"""The description of a Django project: `[tool.benchapp]` in pyproject.toml, every key optional.

Other facts are detected: settings by running manage.py, Python by its virtual environment, the rest by `inspection`.
The paths of `python`, `env_file` and workloads are relative to the folder of the file.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dotenv.parser
import msgspec

from bench.errors import BenchError, hint
from bench.serve.project import environments, run_command, venv_overlay
from bench.words import joined

FILE = "pyproject.toml"
HOME = "/"
# What is found in a project, and no key of its description.
START = "start"
# What a release needs, too, of what manage.py sets: the rest may be secret.
FROM_MANAGE = ("DJANGO_CONFIGURATION", "PYTHONPATH")
# Folders that have packages of others, and how many settings modules a message names.
NOT_OWN = {"node_modules", "site-packages", ".git", *environments.FOLDERS}
MAX_SETTINGS = 4
# Settings for production, by a word in their module's name.
PRODUCTION = re.compile(r"(?<![a-z])(production|prod|prd|live|deploy(ment)?)(?![a-z])")
# The default of a variable, as a wsgi.py has it for its settings. A variable that it sets in any case may tell the
# settings of servers from those of commands.
DEFAULT_VARIABLE = re.compile(r"""^(?:os\.)?environ\.setdefault\(\s*["'](\w+)["']\s*,\s*["']([^"'\\]*)["']""", re.M)
# Names of variables with a secret.
SECRET = re.compile("SECRET|KEY|PASS|TOKEN|DSN")
# A URL with a user, and perhaps a password.
CREDENTIALS = re.compile(r"://[^/\s]*@")
_APPLICATION = re.compile(r"[\w.]+[:.]\w+")


class Requests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.benchapp.workloads.NAME]`: requests of visitors, from one source.

    urls    steps in their order, such as paths (bench.measure.run.workload)
    file    a file with a step in each line
    har     a HAR 1.2 file, saved by a browser
    log     an access log
    fields  the format of the log's lines, `{host} [{time}] "{request}" {} {status}`; a known format when None
    title   the name in reports; the source when None
    """

    urls: tuple[str, ...] = ()
    file: str | None = None
    har: str | None = None
    log: str | None = None
    fields: str | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        if sum(map(bool, (self.urls, self.file, self.har, self.log))) != 1:
            raise ValueError("a workload has one of urls, file, har and log")
        if self.fields is not None and not self.log:
            raise ValueError("fields are those of a log: name it, or leave them out")


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.benchapp.login]`: two accounts, so that leaks between them can be proved impossible.

    url        the path of the login form
    proof      a text that only the signed-in user's page shows, with {name} for the account
    page       the path of a page with the proof; with * at the end all public ones below have the proof, too
    users_env  variables of the environment, NAME:PASSWORD in each; when empty, accounts are made for a check
    superuser  whether the made accounts have all rights, for pages of an admin
    """

    url: str
    proof: str = "{name}"
    page: str = "/"
    users_env: tuple[str, ...] = ()
    superuser: bool = False

    @property
    def account(self) -> str:
        """The path of a page that shows the signed-in user."""
        return self.page.rstrip("*")

    def __post_init__(self) -> None:
        if "*" in self.page.removesuffix("/*"):
            raise ValueError(f"page is {self.page!r}: * may only stand at the end, after /")
        if len(self.users_env) not in (0, 2):
            raise ValueError(f"users_env names {len(self.users_env)} variables: two accounts are needed")
        if self.users_env and self.superuser:
            raise ValueError("superuser is for accounts that are made: those of users_env have the rights they have")


class Write(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.benchapp.write]`: a command of manage.py that changes one public page.

    command  the words, as for a shell
    page     the path of the changed page
    """

    command: str
    page: str


# What cron has for the names of times. A week begins on Monday, as systemd has it.
NAMED_TIMES = {"hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 1", "monthly": "0 0 1 * *"}
_EACH_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_MINUTES = re.compile(r"\*:0/([1-9]|[1-5]\d)")
# The name of a worker or job, of which those of units and containers are made.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


class Worker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.benchapp.workers.NAME]`: a program beside the servers, such as a worker of a task queue.

    command  the words, as for a shell: `manage.py db_worker`, or a program of the project's packages
    single   whether only one may run, whatever the number of hosts, such as a scheduler
    """

    command: str
    single: bool = False


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.benchapp.jobs.NAME]`: a repeated command.

    command   as of a worker
    schedule  hourly, daily, weekly, monthly, a time of day such as 04:30, or `*:0/15` for each 15 minutes
    """

    command: str
    schedule: str = "daily"

    def __post_init__(self) -> None:
        is_pattern = _EACH_DAY.fullmatch(self.schedule) or _MINUTES.fullmatch(self.schedule)
        if self.schedule not in NAMED_TIMES and not is_pattern:
            names = ", ".join(NAMED_TIMES)
            raise ValueError(f"schedule is {self.schedule!r}: write {names}, 04:30, or *:0/15 for each 15 minutes")

    @property
    def cron(self) -> str:
        """The schedule in the words of cron."""
        if self.schedule in NAMED_TIMES:
            return NAMED_TIMES[self.schedule]
        if match := _EACH_DAY.fullmatch(self.schedule):
            return f"{int(match[2])} {int(match[1])} * * *"
        return f"*/{self.schedule.rpartition('/')[2]} * * * *"


# A path without a way out of the project, nor what a list of files to leave out takes for a pattern.
_INSIDE = re.compile(r"(?!.*\.\.)[\w.][\w./-]*")
# A path of folders, such as /protected/.
FOLDERS = re.compile(r"(/[\w-]+)+/")
# Of a page that a write makes stale: `{name}` is looked up in the row, and `*` covers all pages below.
_STALE = re.compile(r"(/|\{[\w.]+\})([^*?#{}\s\"\\$]|\{[\w.]+\})*\*?")
# A path as a request has it, which every server can have in its configuration, quoted.
NO_ESCAPES = re.compile(r"[!#%-\[\]-~]+")
# https://docs.djangoproject.com/en/stable/ref/checks/
CHECK_ID = re.compile(r"\w+\.[DIWEC]\d{3}")
_MODEL = re.compile(r"\w+\.\w+")
# A header, a cookie, or the path of a middleware.
_HARMLESS = re.compile(r"[A-Za-z0-9-]+|cookie:[\w.-]+|[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.benchapp]`: facts that detection does not find, or gets wrong.

    settings            the settings module; the one that manage.py sets when None
    wsgi                `module:application`; WSGI_APPLICATION of the settings when None
    asgi                `module:application`; ASGI_APPLICATION of the settings when None
    python              the interpreter; when None the virtual environment's, else the kit's
    health              a path with status 200 while the site serves
    ready               a path with status 200 while the database can be used, too; `health` when None
    env_file            a file of NAME=value lines for the environment; no file when None
    setup               commands of manage.py that fill a new database
    build               commands of manage.py after collectstatic, such as one that compresses the files of pages
    check               a command of manage.py that fails with one line if the site cannot be served on its database
    generated           `setup` makes all rows: an SQLite file or private cluster of the kit is filled by `setup`
    rows                a command of manage.py that prints the number of rows of each table, and their `seed`, as JSON
    public              paths of pages that anonymous visitors share: only these and pages below may be cached
    harmless            headers, cookies (`cookie:NAME`) and middleware (by path) that read something of a visitor
                        although no page depends on the value
    stale               model, `app.Model` -> pages that a write of a row makes stale (benchapp.caching.stale_rules)
    allow               ids of Django's checks for production that may fail, such as security.W004; another one stops
                        a deploy
    ignore              ids of findings that `doctor` leaves out (`doctor --list`)
    reads_environment   the settings read the variables of `benchapp_overlay.settings` themselves, which is then not
                        laid over, and the code has the invalidation of the layers
    strict              faults that `verify` excuses in other projects, since they or Django cause them, are wrong
    image               files and folders of the code for a container image; all except history and environment
                        when empty
    protected           the path below which X-Accel-Redirect names files of MEDIA_ROOT for the web server to send
    backup              a command of manage.py that writes a backup of the database into the folder that follows; the
                        kit makes backups of SQLite and PostgreSQL when None
    restore             a command of manage.py that puts a backup back, whose file follows
    layers              layers in the project's own templates and views: the kit gives them the cache
    workloads           requests of visitors, by name; the pages of `public` when empty
    workers, jobs       programs beside the servers, and repeated commands, by name
    login, write        lets `verify` prove that accounts see their own pages, and that pages become fresh

    `start`, the page at which visitors begin, is found by inspection: no key of the file.
    """

    settings: str | None = None
    wsgi: str | None = None
    asgi: str | None = None
    python: str | None = None
    health: str = HOME
    ready: str | None = None
    env_file: str | None = None
    setup: tuple[str, ...] = ("migrate --noinput",)
    build: tuple[str, ...] = ()
    check: str = "check --database default"
    generated: bool = False
    rows: str | None = None
    public: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    stale: dict[str, tuple[str, ...]] = {}
    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    reads_environment: bool = False
    strict: bool = False
    image: tuple[str, ...] = ()
    protected: str = ""
    backup: str | None = None
    restore: str | None = None
    layers: tuple[str, ...] = ()
    workloads: dict[str, Requests] = {}
    workers: dict[str, Worker] = {}
    jobs: dict[str, Job] = {}
    login: Login | None = None
    write: Write | None = None
    start: str = HOME

    @property
    def health_checks(self) -> tuple[str, ...]:
        """Paths for health checks only, `health` and `ready`: no page of visitors."""
        named = dict.fromkeys((self.health, self.ready or self.health))
        return tuple(path for path in named if path not in (HOME, self.start, *self.public))

    @property
    def first_pages(self) -> tuple[str, ...]:
        """The named public pages; without any, the page at which visitors begin."""
        return self.public or (self.start,)

    def shows_account(self, path: str) -> bool:
        """True if the page of a path shows who is signed in."""
        if not self.login:
            return False
        account = self.login.account
        return path == account or (self.login.page.endswith("*") and path.startswith(account))

    @property
    def invalidates(self) -> bool:
        """True if the layers know the stale pages of a write."""
        return self.reads_environment or bool(self.stale)

    def __post_init__(self) -> None:
        for name in ("setup", "build"):
            for command in getattr(self, name):
                _must_be_words(name, command)
        for name in ("check", "rows", "backup", "restore"):
            _must_be_words(name, getattr(self, name) or "")
        paths = [self.health, self.ready or self.health, *self.public]
        if self.login:
            paths += [self.login.url, self.login.page]
        if self.write:
            _must_be_words("write.command", self.write.command)
            paths.append(self.write.page)
        for name, worker in self.workers.items():
            _must_be_command(f"workers.{name}", name, worker.command)
        for name, job in self.jobs.items():
            _must_be_command(f"jobs.{name}", name, job.command)
        for name in self.allow:
            if not CHECK_ID.fullmatch(name):
                raise ValueError(f"allow names {name!r}: write ids of Django's checks, such as security.W004")
        if self.restore and not self.backup:
            raise ValueError("restore puts back what backup has written: name that, too")
        for name in self.image:
            if not _INSIDE.fullmatch(name):
                raise ValueError(f"image names {name!r}: write names of files and folders in the project")
        if self.protected and not FOLDERS.fullmatch(self.protected):
            raise ValueError(f"protected is {self.protected!r}: write a path such as /protected/")
        for name, application in (("wsgi", self.wsgi), ("asgi", self.asgi)):
            if application and not _APPLICATION.fullmatch(application):
                raise ValueError(f'{name} is {application!r}: write it as "module:application"')
        for path in paths:
            if not path.startswith("/"):
                raise ValueError(f"{path!r} is no path: it begins with /")
            if not NO_ESCAPES.fullmatch(path):
                raise ValueError(f'{path!r} is no path: percent-encode letters beyond ASCII, spaces, ", \\ and $')
        for entry in self.harmless:
            if not _HARMLESS.fullmatch(entry):
                raise ValueError(
                    f'harmless names {entry!r}: write a header, "cookie:NAME", or a middleware as MIDDLEWARE has it'
                )
        for model, pages in self.stale.items():
            if not _MODEL.fullmatch(model):
                raise ValueError(f'stale names {model!r}: write a model as "app.Model"')
            for page in pages:
                # The value of a field may end with a slash, as that of get_absolute_url does.
                if not _STALE.fullmatch(page) or (page.endswith("*") and not page.endswith(("/*", "}*"))):
                    raise ValueError(f"stale: {page!r} is no page: it begins with /, or ends with /*")


def _must_be_words(where: str, command: str) -> list[str]:
    """The words of a command; raises ValueError if a shell could not read it."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError(f"{where} is {command!r}: {str(error).lower()}") from None


def _must_be_command(where: str, name: str, command: str) -> None:
    """Raises ValueError for a name or a command that a worker or job cannot have."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where}: name it by at most 31 of a-z, 0-9 and -, a letter first")
    words = _must_be_words(f"{where}.command", command)
    if not words or (len(words) == 1 and words[0].startswith("python")) or "\n" in command:
        raise ValueError(f"{where}.command is {command!r}: write one such as 'manage.py clearsessions'")


class Project(msgspec.Struct, frozen=True):
    """A Django project on this machine.

    folder       the folder of manage.py
    settings     the settings module
    python       the interpreter with the project's packages
    env          the variables of `env_file`, those that manage.py reads from a file, defaults of wsgi.py, and
                 `from_manage`
    described    the file of the description; paths there are relative to the file's folder
    from_manage  variables that manage.py sets: the class of the settings, and folders of modules, relative to
                 `folder`; and defaults of wsgi.py, except secrets
    """

    folder: Path
    description: Description
    settings: str
    python: Path
    env: dict[str, str]
    described: Path
    from_manage: dict[str, str] = {}

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders of the project's modules."""
        names = self.env.get("PYTHONPATH", "").split(":")
        return (self.folder, *(self.folder / name for name in names if name))


def read_description(folder: Path, describe: Path | None = None) -> tuple[Description, Path]:
    """Read the description of a project and its file: the project's own, or `describe`. No code of the project runs.

    Raises BenchError, in one line, without a project or for a wrong description.
    """
    folder = Path(os.path.normpath(folder.absolute()))
    manage = folder / "manage.py"
    try:
        there = manage.is_file()
    except OSError as error:
        raise _unreadable(folder, error) from None
    if folder.is_file():
        raise BenchError(f"--project {folder}: a file; name its folder: --project {folder.parent}")
    if not folder.exists():
        raise BenchError(f"--project {folder}: no such folder")
    if not there:
        below = " or ".join(map(str, _projects_below(folder)))
        raise BenchError(
            f"{folder}: no manage.py there; name {below or 'the folder of a Django project, which has one'}"
        )
    if describe is not None and not describe.is_file():
        raise BenchError(f"--config {describe}: no such file; name one with [tool.benchapp]")
    described = folder / FILE
    if describe:
        described = Path(os.path.normpath(describe.absolute()))
    return _description(described, is_required=describe is not None), described


def read(folder: Path, python: Path | None = None, describe: Path | None = None) -> Project:
    """The project in a folder, run by `python`, else by the interpreter that the description names or the project has.

    `describe` is another file with the description.

    Raises BenchError, in one line, without a project, for a wrong description, or if manage.py chooses no settings.
    """
    folder = Path(os.path.normpath(folder.absolute()))
    words, described = read_description(folder, describe)
    python = python or _python(folder, words, described)
    env = _variables(words, described)
    set_there: dict[str, str] = {}
    if not words.settings:
        set_there = _chosen(folder, python, env)
    settings = words.settings or set_there.pop("DJANGO_SETTINGS_MODULE")
    from_manage = {name: set_there.pop(name) for name in FROM_MANAGE if name in set_there}
    if "PYTHONPATH" not in {**env, **from_manage} and (below := _folder_of(folder, settings)):
        from_manage["PYTHONPATH"] = below
    project = Project(folder, words, settings, python, {**set_there, **from_manage, **env}, described, from_manage)
    defaults = _wsgi_defaults(project.roots, settings, words)
    for name, value in defaults.items():
        if name not in project.env and not SECRET.search(name) and not CREDENTIALS.search(value):
            from_manage[name] = value
    return msgspec.structs.replace(project, env={**defaults, **project.env}, from_manage=from_manage)


def _chosen(folder: Path, python: Path, env: dict[str, str]) -> dict[str, str]:
    """The variables set by manage.py: DJANGO_SETTINGS_MODULE and others.

    manage.py runs to the point where Django takes over. Raises BenchError if it sets no settings or cannot be run.
    """
    known = _settings_modules(folder)
    first = next(iter(known), "...")
    name_them = f'write settings = "{first}" into [tool.benchapp] of {FILE}'
    if len(known) > 1:
        name_them += f", or {joined(known[1:MAX_SETTINGS], 'or')}"
    # The inspection of the project follows.
    run_command.warm_up_for_scripts(python)
    try:
        response, why = run_command.run_probe_script(python, "chosen_settings.py", [], folder, env)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{folder / 'manage.py'}: {python} cannot run it: {error}; {name_them}") from None
    variables: dict[str, str] = msgspec.json.decode(response or b"{}")
    if "DJANGO_SETTINGS_MODULE" not in variables:
        remedy = name_them
        cannot_import_django = "django" in why.lower() and "Error" in why
        if cannot_import_django or environments.lacks_package(folder, why):
            remedy = environments.remedy(folder, python, why)
        raise BenchError(f"{folder / 'manage.py'}: {why or 'it sets no DJANGO_SETTINGS_MODULE'}; {remedy}")
    return {name: value for name, value in variables.items() if value}


def _wsgi_defaults(roots: Sequence[Path], settings: str, words: Description) -> dict[str, str]:
    """The defaults of variables in wsgi.py, or else asgi.py, without that of the settings module.

    The site has them when it is served, so that its commands and the inspection need them, too.
    """
    modules = [application.partition(":")[0] for application in (words.wsgi, words.asgi) if application]
    around = settings.split(".")
    for length in range(len(around), -1, -1):
        modules += [".".join([*around[:length], kind]) for kind in ("wsgi", "asgi")]
    for module, root in itertools.product(modules, roots):
        file = root / f"{module.replace('.', '/')}.py"
        if os.access(file, os.R_OK):
            defaults = dict(DEFAULT_VARIABLE.findall(file.read_text("utf-8", "replace")))
            defaults.pop("DJANGO_SETTINGS_MODULE", None)
            return defaults
    return {}


def _projects_below(folder: Path) -> list[Path]:
    """The folders with a manage.py at the first level below this one that has any, as in a repository of parts."""
    for pattern in ("*/manage.py", "*/*/manage.py", "*/*/*/manage.py"):
        folders = [path.parent for path in sorted(folder.glob(pattern))]
        own = [path for path in folders if not NOT_OWN & set(path.relative_to(folder).parts)]
        if own:
            return own
    return []


def _settings_modules(folder: Path) -> list[str]:
    """Modules that look like settings, production's first."""
    files: list[Path] = []
    for pattern in ("*/settings.py", "*/settings/*.py", "settings/*.py"):
        files += folder.glob(pattern)
    names: list[str] = []
    for path in sorted(files):
        parts = path.relative_to(folder).with_suffix("").parts
        is_module = all(map(str.isidentifier, parts)) and path.stem not in ("__init__", "test", "tests")
        if is_module and not NOT_OWN & set(parts):
            names.append(".".join(parts))
    return sorted(names, key=lambda name: not PRODUCTION.search(name))


def _folder_of(folder: Path, settings: str) -> str:
    """The folder with the settings, such as `src`; empty for settings at the project's root or elsewhere."""
    package = settings.partition(".")[0]
    if (folder / package).exists() or (folder / f"{package}.py").exists():
        return ""
    for path in folder.glob(f"*/{package}/__init__.py"):
        return path.parents[1].name
    return ""


def _unreadable(path: Path, error: OSError) -> BenchError:
    return BenchError(f"{path}: cannot be read: {error.strerror}; correct its rights")


def describes(path: Path) -> bool:
    """True if a file has `[tool.benchapp]`."""
    try:
        return "benchapp" in msgspec.toml.decode(path.read_bytes()).get("tool", {})
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, AttributeError):
        return False


def _description(path: Path, is_required: bool) -> Description:
    """Read the description in a file; empty if the file has none, unless it must."""
    table: dict[str, Any] | None = None
    try:
        if path.is_file():
            table = msgspec.toml.decode(path.read_bytes()).get("tool", {}).get("benchapp")
    except OSError as error:
        raise _unreadable(path, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}; correct it") from None
    if table is None:
        if is_required:
            raise BenchError(f"--config {path}: it has no [tool.benchapp]; begin one in it, or name another file")
        return Description()
    if not isinstance(table, dict):
        raise BenchError(f"{path}: tool.benchapp is no table; begin it with [tool.benchapp]")
    keys = [name for name in Description.__struct_fields__ if name != START]
    if unknown := table.keys() - set(keys):
        name = min(unknown)
        raise BenchError(f"{path}: [tool.benchapp] has no {name}; {hint(name, keys)}")
    try:
        return msgspec.convert(table, Description)
    except msgspec.ValidationError as error:
        raise BenchError(f"{path}: [tool.benchapp] {error}; correct it") from None


def _python(folder: Path, words: Description, described: Path) -> Path:
    if words.python:
        # Not resolved: a virtual environment is known by the path of its interpreter.
        python = described.parent / words.python
        if not python.is_file():
            raise BenchError(f"{python}: no such interpreter; correct python in [tool.benchapp] of {described}")
        return python
    return environments.interpreter(folder) or venv_overlay.kits().python


def _variables(words: Description, described: Path) -> dict[str, str]:
    """The variables of the environment file, read like python-dotenv, without expansion."""
    if not words.env_file:
        return {}
    path = described.parent / words.env_file
    remedy = f"correct env_file in [tool.benchapp] of {described}, or its rights"
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}; {remedy}") from None
    except UnicodeDecodeError:
        raise BenchError(f"{path}: it is not UTF-8; {remedy}") from None
    variables = {}
    for binding in dotenv.parser.parse_stream(io.StringIO(text)):
        if binding.error or (binding.key and binding.value is None) or "\0" in (binding.value or ""):
            raise BenchError(f"{path}:{binding.original.line}: not NAME=value; correct the line")
        if binding.key:
            variables[binding.key] = binding.value or ""
    return variables
