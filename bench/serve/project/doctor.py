"""What will hurt when a project is served and measured: where it is, how bad, what to do, each with a link."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from bench import paths
from bench.serve.machine.identity import worker
from bench.serve.project import environments
from bench.serve.project.description import FILE, Project
from bench.serve.project.findings import DOCS, LOCAL, Finding, hurts, of_settings
from bench.serve.project.inspection import DeploymentCheck, Facts
from bench.serve.project.page_findings import of_pages

# Settings for production, by a word in their module's name.
PRODUCTION = re.compile(r"(?<![a-z])(production|prod|prd|live|deploy(ment)?)(?![a-z])")
# Databases that a private one of PostgreSQL can take the place of.
PRIVATE = re.compile(r"postg|psql|sqlite3")
# In the project's code, what servers or stacks have to do for it.
CODE = {
    "X-Accel-Redirect": (
        re.compile(r"X-Accel-Redirect|X-Sendfile|import sendfile"),
        "a view has the web server send a file, which not every server does, and none without `protected`",
        "answer with FileResponse, or name that place as `protected` in [tool.benchapp]",
    ),
    "WebSockets": (
        re.compile(r"\b(ProtocolTypeRouter|URLRouter|WebsocketConsumer|websocket\.accept)\b"),
        "only stacks with an ASGI server carry WebSockets, and no layer or workload asks for one",
        "take a stack that `list` shows with WebSockets; the others answer the handshake with 400",
    ),
    "lifespan": (
        re.compile(r"""["']lifespan(\.startup)?["']|@asynccontextmanager\s+async def lifespan"""),
        "the kit starts ASGI servers with the lifespan protocol off: what it sets up at the start is not there",
        "set it up in AppConfig.ready, or when it is first used",
    ),
}
MAX_FILES = 5000
# What has another value in each process.
RANDOM = re.compile(r"\b(get_random_\w+|token_\w+|urandom|uuid4)\(")
# The setting that a finding without a line of its own is about, where it has another name.
SETTINGS_OF = {
    **dict.fromkeys(("database", "SQLite", "CONN_MAX_AGE", "connections"), "DATABASES"),
    "hosts": "INSTALLED_APPS",
    "static files": "STORAGES",
    "UpdateCacheMiddleware": "MIDDLEWARE",
}


def examine(project: Project, facts: Facts, processes: int, threads: int) -> list[Finding]:
    """All findings for a project that so many processes of so many threads serve, what blocks first."""
    own_settings = project.description.reads_environment
    source = facts.database_files.get("default")
    # In place of an SQLite file that is not there yet, and of one in memory, the kit fills one.
    no_file = "default" in facts.databases_in_memory or (source is not None and not Path(source).is_file())
    filled_by_kit = project.description.generated or no_file
    unfilled = filled_by_kit and bool(facts.migrations_left)
    if unfilled:
        # Nor are its pages what they will be.
        facts = structs.replace(facts, pages=tuple(page for page in facts.pages if page.status < 500))
    found = [
        *_folder(project),
        *_description(project, facts),
        *_application(facts, own_settings),
        *_database(facts, unfilled),
        *of_pages(project, facts),
        *of_settings(facts, processes, threads, own_settings),
        *_uploads(facts, own_settings),
        *_checks(facts, own_settings),
        *_code(project),
        *_secret_key(project, facts),
    ]

    def line(it: Finding) -> str:
        return it.where or facts.lines.get(SETTINGS_OF.get(it.name, it.name), "")

    return sorted((structs.replace(it, where=line(it)) for it in found), key=lambda finding: finding.level)


def _folder(project: Project) -> Iterator[Finding]:
    if odd := paths.odd_characters(project.folder):
        yield Finding(
            "blocks",
            "folder",
            f"not every server can work in a folder with {odd} in its name: {project.folder}",
            "rename it, or move the project; files that are rendered for production name a folder of the host",
            "https://pubs.opengroup.org/onlinepubs/9699919799/basedefs/V1_chap03.html#tag_03_282",
        )
    if os.geteuid() == 0:
        user = worker()
        closed = [
            path for path in _sources(project) if not (stat := path.stat()).st_mode & 4 and stat.st_uid != user.uid
        ]
        if closed and user.uid != 0:
            yield Finding(
                "blocks",
                "files",
                f"{len(closed)} files cannot be read by user {user.user}, which the servers run as",
                f"chmod o+r them, chown them to {user.user}, or set BENCH_USER to their owner",
                "https://docs.python.org/3/library/os.html#os.chmod",
                str(closed[0].relative_to(project.folder)),
            )


def _sources(project: Project) -> Iterator[Path]:
    """The Python files of the project, without those of environments and of other packages."""
    left_out = {*environments.FOLDERS, "node_modules", "site-packages", ".git"}
    number = 0
    for folder, names, files in os.walk(project.folder):
        names[:] = [
            name for name in names if name not in left_out and not (Path(folder) / name / "pyvenv.cfg").exists()
        ]
        for name in files:
            if name.endswith(".py") and number < MAX_FILES:
                number += 1
                yield Path(folder) / name


def _code(project: Project) -> Iterator[Finding]:
    """What the project's code asks of servers, each with the first line that does."""
    left = dict(CODE)
    if project.folder == paths.KIT:
        return
    for path in _sources(project):
        text = path.read_text("utf-8", errors="replace") if os.access(path, os.R_OK) else ""
        for name, (pattern, what, remedy) in list(left.items()):
            if match := pattern.search(text):
                line = text.count("\n", 0, match.start()) + 1
                where = f"{path.relative_to(project.folder)}:{line}"
                yield hurts(name, what, remedy, f"{DOCS}/howto/deployment/", where)
                del left[name]


def _secret_key(project: Project, facts: Facts) -> Iterator[Finding]:
    path, _, number = facts.lines.get("SECRET_KEY", "").rpartition(":")
    if path and RANDOM.search(_statement((project.folder / path).read_text("utf-8", "replace"), int(number))):
        yield hurts(
            "SECRET_KEY",
            "where nothing gives it, each process makes one of its own, and whom one lets in the others do not know",
            "give all of them one, by a variable of env_file or the file that the settings read",
        )


def _statement(text: str, number: int) -> str:
    """The statement that begins at this line: it goes on until its parentheses are closed."""
    first, *others = text.splitlines()[number - 1 :]
    statement = first
    for line in others:
        if statement.count("(") <= statement.count(")"):
            break
        statement += line
    return statement


def _description(project: Project, facts: Facts) -> Iterator[Finding]:
    if facts.stale_problem:
        found = f"[tool.benchapp.stale] {facts.stale_problem}"
        yield Finding("blocks", "stale", found, f"correct it in {FILE}", f"{DOCS}/ref/models/fields/", FILE)
    if other := production_settings(project):
        yield hurts(
            "settings",
            f"manage.py names {project.settings}, and {other} is beside it: which of them serves in production?",
            f'say so: settings = "{other}" in [tool.benchapp] of {FILE}, with its variables in env_file',
            f"{DOCS}/topics/settings/",
            "manage.py",
        )


def production_settings(project: Project) -> str:
    """The module of settings for production beside those that manage.py names, or in their package, which nobody has
    chosen; empty without one."""
    if project.description.settings or PRODUCTION.search(project.settings):
        return ""
    around = (project.settings, project.settings.rpartition(".")[0])
    # Beside `shop.dev` stand settings; beside `shop.settings` a module `deploy` may be anything.
    for root, name in itertools.product(project.roots, around):
        folder = root / name.replace(".", "/")
        modules = sorted(path.stem for path in folder.glob("*.py") if name and path.stem.isidentifier())
        for other in (f"{name}.{stem}" for stem in modules if PRODUCTION.search(stem)):
            if "settings" in other or "config" in other or "settings" not in project.settings:
                return other
    return ""


def _application(facts: Facts, own_settings: bool) -> Iterator[Finding]:
    if not facts.application:
        yield Finding(
            "blocks",
            "application",
            "the settings name neither WSGI_APPLICATION nor ASGI_APPLICATION, and no wsgi.py is beside or above them",
            f'name one: wsgi = "mysite.wsgi:application" in [tool.benchapp] of {FILE}',
            f"{DOCS}/howto/deployment/wsgi/",
        )
    if facts.application_problem:
        yield hurts(
            "application",
            f"it cannot be imported: {facts.application_problem}",
            "correct it, or remove it: stacks that need it skip the project",
            f"{DOCS}/howto/deployment/asgi/",
        )
    if own_settings and not facts.debug and not LOCAL.intersection(facts.allowed_hosts):
        yield Finding(
            "blocks",
            "ALLOWED_HOSTS",
            f"a request to 127.0.0.1 is refused: ALLOWED_HOSTS is {', '.join(facts.allowed_hosts) or 'empty'}",
            'add "127.0.0.1" where the project is measured, by a variable of the environment',
            f"{DOCS}/ref/settings/#allowed-hosts",
        )
    elif "*" in facts.allowed_hosts:
        yield hurts(
            "ALLOWED_HOSTS",
            "ALLOWED_HOSTS has *: any Host header is believed, and a cache may store a page with a foreign name in it",
            "name your own hosts",
        )


def _database(facts: Facts, unfilled: bool) -> Iterator[Finding]:
    if facts.database_error:
        yield Finding(
            "blocks",
            "database",
            f"the database cannot be used: {facts.database_error}",
            _database_remedy(facts),
            f"{DOCS}/ref/databases/",
        )
    elif unfilled:
        yield hurts(
            "database",
            "it is not filled yet: pages that need it were not looked at",
            "look with --database sqlite or postgresql, which the commands of setup fill",
            f"{DOCS}/topics/migrations/",
        )
    elif facts.migrations_left:
        yield Finding(
            "blocks",
            "migrations",
            f"{facts.migrations_left} migrations are not applied to the database",
            f"run ./manage.py migrate, or have the kit fill a database: generated = true in [tool.benchapp] of {FILE}",
            f"{DOCS}/topics/migrations/",
        )
    for where, problem in facts.lint:
        yield hurts(
            "migration",
            f"the version that still serves breaks or waits while it is applied: {problem}",
            "divide it: add what is new, deploy, then remove what is old",
            "https://github.com/3YOURMIND/django-migration-linter/blob/main/docs/incompatibilities.md",
            where,
        )


def _database_remedy(facts: Facts) -> str:
    if not facts.database_error or not facts.database_error.startswith("OperationalError"):
        return "correct DATABASES in its settings"
    if PRIVATE.search(facts.databases.get("default", "")):
        return "start it, or add --database postgresql: a private one that the commands of setup fill"
    return "start it, or name another of its kind: --database URL"


def _uploads(facts: Facts, own_settings: bool) -> Iterator[Finding]:
    """Whether web servers send the files that visitors upload, and whether a release would take them with it."""
    if not facts.media_root:
        return
    if facts.media_url and not own_settings:
        what = f"{facts.media_url} is a 404 on stacks without a web server that sends files; Django sends none"
        remedy = "take a stack with such a server, or a storage elsewhere"
    else:
        why = "a view answers at MEDIA_URL" if facts.media_view else "no path of its own below the site"
        what = f"MEDIA_ROOT is {facts.media_root}, and no web server of the kit sends what is in it: {why}"
        remedy = 'set MEDIA_URL = "/media/", unless a view or another server sends uploads'
    yield hurts("MEDIA_URL", what, remedy, f"{DOCS}/howto/static-files/deployment/")
    if own_settings:
        yield hurts(
            "MEDIA_ROOT",
            f"uploads are in {facts.media_root}: where that is in a release, they go with it",
            "have MEDIA_ROOT come from a variable of the environment, and name a folder outside of releases",
        )


def _checks(facts: Facts, own_settings: bool) -> Iterator[Finding]:
    """What Django's own deployment checks say, once for each name: none of them keeps the site from serving.

    own_settings  what concerns security comes from variables that a render for production sets
    """
    said: dict[str, list[DeploymentCheck]] = {}
    for check in facts.checks:
        if not (own_settings and check.id.startswith("security.")):
            said.setdefault(check.id, []).append(check)
    for name, (first, *others) in sorted(said.items()):
        named = (facts.lines[word] for word in re.findall("[A-Z_]+", first.text) if word in facts.lines)
        yield hurts(
            name,
            first.text.splitlines()[0].split(". ")[0].rstrip(".") + (f", and {len(others)} more" if others else ""),
            first.hint.splitlines()[0] if first.hint else "see ./manage.py check --deploy",
            f"{DOCS}/ref/checks/",
            first.where or next(named, ""),
        )
