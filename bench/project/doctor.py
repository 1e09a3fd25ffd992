"""What will hurt when a project is served and measured, each with a remedy and a link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from bench import paths
from bench.catalog.server import Server
from bench.project.description import FILE, Project
from bench.project.inspection import Facts, Page

DOCS = "https://docs.djangoproject.com/en/stable"
HASHED = ("ManifestStaticFilesStorage", "CompressedManifestStaticFilesStorage")
LOCAL = {"localhost", "127.0.0.1", "[::1]", "*"}
HEALTH = re.compile(r"/(health|live|ready|up|ping|status|heartbeat)[a-z_-]*/?$", re.I)
PARAMETER = "<"
PER_PROCESS_CACHE = "LocMemCache"
VARIES = re.compile(r"(^|[ ,])cookie([ ,]|$)", re.I)
REFUSES = re.compile(r"\b(private|no-store|no-cache)\b", re.I)


class Advice(msgspec.Struct, frozen=True):
    """Something to change in a project.

    level   `blocks`: it cannot be served or measured so; `hurts`: its figures or its visitors suffer
    name    what it is about, one word or two
    what    what was found; remedy: what to do; link: where that is documented
    """

    level: Literal["blocks", "hurts"]
    name: str
    what: str
    remedy: str
    link: str


def examine(
    project: Project, facts: Facts, processes: int, threads: int, servers: Iterable[Server] = ()
) -> list[Advice]:
    """All advice for a project that so many processes of so many threads serve, what blocks first.

    servers  whose configuration files the project may have, each once
    """
    found = [
        *_folder(project),
        *_description(facts),
        *_application(facts, project.description.reads_environment),
        *_database(facts, processes * threads),
        *_pages(project, facts),
        *_settings(facts, processes),
        *_uploads(facts, project.description.reads_environment),
        *_behind_a_proxy(facts),
        *_security(facts),
        *_limits(project, servers),
    ]
    return sorted(found, key=lambda advice: advice.level)


def _folder(project: Project) -> Iterator[Advice]:
    if odd := paths.odd_characters(project.folder):
        yield Advice(
            "blocks",
            "folder",
            f"not every server can work in a folder with {odd} in its name: {project.folder}",
            "rename it, or move the project; files that are rendered for production name a folder of the host",
            "https://pubs.opengroup.org/onlinepubs/9699919799/basedefs/V1_chap03.html#tag_03_282",
        )


def _description(facts: Facts) -> Iterator[Advice]:
    if facts.stale_problem:
        found = f"[tool.benchapp.stale] {facts.stale_problem}"
        yield Advice("blocks", "stale", found, f"correct it in {FILE}", f"{DOCS}/ref/models/fields/")


def _application(facts: Facts, own_settings: bool) -> Iterator[Advice]:
    if not facts.application:
        yield Advice(
            "blocks",
            "application",
            "the settings name neither WSGI_APPLICATION nor ASGI_APPLICATION",
            f'name one: wsgi = "mysite.wsgi:application" in [tool.benchapp] of {FILE}',
            f"{DOCS}/howto/deployment/wsgi/",
        )
    if facts.debug:
        yield Advice(
            "hurts",
            "DEBUG",
            "DEBUG is on, but off while the kit serves: it keeps every query in memory, and errors show the settings",
            "set DEBUG = False for serving, by a variable of the environment",
            f"{DOCS}/ref/settings/#debug",
        )
    if own_settings and not facts.debug and not LOCAL.intersection(facts.allowed_hosts):
        yield Advice(
            "blocks",
            "ALLOWED_HOSTS",
            f"a request to 127.0.0.1 is refused: ALLOWED_HOSTS is {', '.join(facts.allowed_hosts) or 'empty'}",
            'add "127.0.0.1" where the project is measured, by a variable of the environment',
            f"{DOCS}/ref/settings/#allowed-hosts",
        )
    elif "*" in facts.allowed_hosts:
        yield Advice(
            "hurts",
            "ALLOWED_HOSTS",
            "ALLOWED_HOSTS has *: any Host header is believed, and a cache may store a page with a foreign name in it",
            "name your own hosts",
            f"{DOCS}/ref/settings/#allowed-hosts",
        )


def _database(facts: Facts, workers: int) -> Iterator[Advice]:
    link = f"{DOCS}/ref/databases/"
    if facts.database_error:
        yield Advice("blocks", "database", f"the database cannot be used: {facts.database_error}", "start it", link)
    elif facts.migrations_left:
        yield Advice(
            "blocks",
            "migrations",
            f"{facts.migrations_left} migrations are not applied to the database",
            "run ./manage.py migrate",
            f"{DOCS}/topics/migrations/",
        )
    if "asgi" in facts.application and any(age != 0 for age in facts.conn_max_age.values()):
        yield Advice(
            "hurts",
            "CONN_MAX_AGE",
            "connections to the database persist: an ASGI server opens more and more of them",
            "set CONN_MAX_AGE = 0 where an ASGI server serves it, or use the driver's pool",
            f"{DOCS}/ref/databases/#persistent-database-connections",
        )
    if facts.max_connections is not None and workers > facts.max_connections:
        yield Advice(
            "hurts",
            "connections",
            f"{workers} threads may each hold a database connection, and it takes {facts.max_connections}",
            "serve with fewer threads, or put a pooler in front of the database",
            f"{DOCS}/ref/databases/#connection-management",
        )


def _health(project: Project, facts: Facts) -> Iterator[Advice]:
    """Of the path that says whether the site serves."""
    health = next((page for page in facts.pages if page.path == project.description.health), None)
    if health and health.status != 200:
        ends = f" to {health.location}, not 200" if health.location else "" if health.error else ", not 200"
        correct = "correct it, or " if health.error else ""
        yield Advice(
            "blocks",
            "health",
            f"GET {health.path} {health.status_words}{ends}",
            f'{correct}name a path that answers 200: health = "/..." in [tool.benchapp] of {FILE}',
            "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
        )
    elif health and (health.path in ("/", *project.description.public) or health.queries):
        queries = f"takes {health.queries} database queries" if health.queries else "renders a page"
        # One that nobody named yet.
        unnamed = next((url for url in facts.urls if HEALTH.search(url) and PARAMETER not in url), "/health/")
        there = "name it" if unnamed in facts.urls else "give health checks a URL of their own that asks no database"
        yield Advice(
            "hurts",
            "health",
            f"GET {health.path}, by which health checks find out whether the site serves, {queries}",
            f'{there}: health = "{unnamed}" in [tool.benchapp] of {FILE}',
            f"{DOCS}/topics/http/urls/",
        )


def _pages(project: Project, facts: Facts) -> Iterator[Advice]:
    yield from _health(project, facts)
    for page in facts.pages:
        if page.path in project.description.public and page.status != 200:
            yield Advice(
                "blocks",
                "public",
                f"GET {page.path}, named as public, is answered with status {page.status}, not 200",
                f"correct public in [tool.benchapp] of {FILE}",
                f"{DOCS}/topics/http/urls/",
            )
    yield from _cacheability(facts.pages)


def _cacheability(pages: Iterable[Page]) -> Iterator[Advice]:
    """Why a cache cannot share pages among anonymous visitors, once for all pages of one cause."""
    pages = [page for page in pages if page.status == 200]
    setting: dict[tuple[str, ...], list[Page]] = {}
    for page in pages:
        if page.cookies:
            setting.setdefault(page.cookies, []).append(page)
    for cookies, alike in setting.items():
        yield Advice(
            "hurts",
            "cacheability",
            f"cookie {' and '.join(cookies)}, set by {_where(alike, *cookies, 'session')}: no cache may store that",
            "leave forms with a CSRF token, messages and writes to the session out of pages for everybody",
            f"{DOCS}/topics/cache/#using-vary-headers",
        )
    yield from _session_written(pages)
    yield from _by_headers([page for page in pages if not page.cookies])


def _by_headers(pages: list[Page]) -> Iterator[Advice]:
    """What headers of pages without cookies forbid or make of little use."""
    if refusing := [page.path for page in pages if REFUSES.search(page.cache_control or "")]:
        yield Advice(
            "hurts",
            "cacheability",
            f"Cache-Control forbids caches to share {', '.join(refusing)}: private, no-store or no-cache",
            "leave never_cache and cache_control(private=True) for pages of one visitor",
            f"{DOCS}/topics/http/decorators/#caching",
        )
    if varying := [page for page in pages if VARIES.search(page.vary or "") and not page.session_read]:
        yield Advice(
            "hurts",
            "cacheability",
            f"Vary: Cookie on {_where(varying, 'vary')}, which read no session: vary_on_cookie or middleware sets it",
            "take it off pages that are the same for everybody",
            f"{DOCS}/topics/cache/#using-vary-headers",
        )
    if reading := [page for page in pages if page.session_read]:
        yield Advice(
            "hurts",
            "cacheability",
            f"Vary: Cookie on {_where(reading, 'session')}, which read the session (request.user does, too): "
            "a cache that goes by it stores a page for each set of cookies, those of analytics included",
            "leave the session out of pages for everybody, or take a layer that looks at the session cookie alone",
            f"{DOCS}/topics/cache/#using-vary-headers",
        )


def _where(pages: Iterable[Page], *names: str) -> str:
    """The pages by the cause that each has of one of these names: `/, /about/ (base.html:12) and /blog/`."""
    found: dict[str, list[str]] = {}
    for page in pages:
        cause = next((page.causes[name] for name in names if name in page.causes), "")
        found.setdefault(cause, []).append(page.path)
    return " and ".join(", ".join(paths) + (f" ({cause})" if cause else "") for cause, paths in found.items())


def _session_written(pages: Iterable[Page]) -> Iterator[Advice]:
    if writing := [page for page in pages if page.session_written]:
        yield Advice(
            "hurts",
            "sessions",
            f"{_where(writing, 'session')} write to anonymous visitors' sessions: a row or a cookie for each visit",
            "write to the session when a visitor does something, not when a page is read",
            f"{DOCS}/topics/http/sessions/#when-sessions-are-saved",
        )


def _settings(facts: Facts, processes: int) -> Iterator[Advice]:
    if processes > 1 and any(PER_PROCESS_CACHE in backend for backend in facts.caches.values()):
        yield Advice(
            "hurts",
            "CACHES",
            f"a cache in the memory of one process, and {processes} processes: each has other values",
            "use memcached, Redis or the database",
            f"{DOCS}/topics/cache/#local-memory-caching",
        )
    if facts.session_save_every_request:
        yield Advice(
            "hurts",
            "sessions",
            "SESSION_SAVE_EVERY_REQUEST: every request of a visitor with a session writes to the database",
            "leave it off, or move sessions to a cache",
            f"{DOCS}/ref/settings/#session-save-every-request",
        )
    if facts.static_url and not (facts.static_storage or "").endswith(HASHED):
        yield Advice(
            "hurts",
            "static files",
            "their names have no hash, so that no browser may keep them for long",
            "use ManifestStaticFilesStorage, or WhiteNoise's",
            f"{DOCS}/ref/contrib/staticfiles/#manifeststaticfilesstorage",
        )
    if facts.static_url and not facts.static_root:
        yield Advice(
            "hurts",
            "STATIC_ROOT",
            "STATIC_ROOT is not set: collectstatic has no folder that a web server could serve",
            "set it to a folder outside version control",
            f"{DOCS}/ref/settings/#static-root",
        )


def _uploads(facts: Facts, own_settings: bool) -> Iterator[Advice]:
    """Whether web servers send the files that visitors upload, and whether a release would take them with it."""
    link = f"{DOCS}/howto/static-files/deployment/"
    if facts.media_url and not own_settings:
        yield Advice(
            "hurts",
            "MEDIA_URL",
            f"{facts.media_url} is a 404 on stacks without a web server that sends files; Django sends none",
            "take a stack with such a server, or a storage elsewhere",
            link,
        )
    elif facts.media_root:
        what = "no path of its own below the site" if not facts.media_url else "its settings choose the folder alone"
        yield Advice(
            "hurts",
            "MEDIA_URL",
            f"MEDIA_ROOT is {facts.media_root}, and no web server of the kit sends what is in it: {what}",
            'set MEDIA_URL = "/media/", unless a view or another server sends uploads'
            if not facts.media_url
            else "leave out reads_environment, or have another server send uploads",
            link,
        )
    if facts.media_root and own_settings:
        yield Advice(
            "hurts",
            "MEDIA_ROOT",
            f"uploads are in {facts.media_root}: where that is in a release, they go with it",
            "have MEDIA_ROOT come from a variable of the environment, and name a folder outside of releases",
            f"{DOCS}/ref/settings/#media-root",
        )


def _behind_a_proxy(facts: Facts) -> Iterator[Advice]:
    """What the site believes of the server in front of it."""
    if facts.meant_for_https and not facts.proxy_ssl_header:
        yield Advice(
            "hurts",
            "SECURE_PROXY_SSL_HEADER",
            "behind a server that ends TLS every request looks like plain HTTP: a redirect to HTTPS never ends, and "
            "forms are refused for their origin",
            'set it to ("HTTP_X_FORWARDED_PROTO", "https") where that server overwrites the header; the kit does so',
            f"{DOCS}/ref/settings/#secure-proxy-ssl-header",
        )
    if facts.forwarded_host:
        yield Advice(
            "hurts",
            "USE_X_FORWARDED_HOST",
            "the host of links comes from a header that any client can send, and a cache may store such a page",
            "leave it off where the server in front passes Host on, as those of the kit do",
            f"{DOCS}/ref/settings/#use-x-forwarded-host",
        )
    if plain := [origin for origin in facts.trusted_origins if origin.startswith("http://")]:
        yield Advice(
            "hurts",
            "CSRF_TRUSTED_ORIGINS",
            f"forms may come from pages over plain HTTP, which others can change on the way: {', '.join(plain)}",
            "name origins that begin with https://",
            f"{DOCS}/ref/settings/#csrf-trusted-origins",
        )


def _security(facts: Facts) -> Iterator[Advice]:
    """Django's own deployment checks of security: cookies, HTTPS, HSTS, the secret key."""
    for check in facts.checks:
        if check.id == "security.W018" or not (check.error or check.id.startswith("security.")):
            continue
        yield Advice(
            "blocks" if check.error else "hurts",
            check.id,
            check.text.splitlines()[0].split(". ")[0].rstrip("."),
            check.hint.splitlines()[0] if check.hint else "see ./manage.py check --deploy",
            f"{DOCS}/ref/checks/#security",
        )


def _limits(project: Project, servers: Iterable[Server]) -> Iterator[Advice]:
    """Limits that a server's configuration in the project's folder does not set."""
    for server in servers:
        path = project.folder / server.config
        if not server.limits.settings or not path.is_file():
            continue
        text = path.read_text("utf-8", errors="replace")
        for name, without in server.limits.settings.items():
            if not re.search(rf"^\s*{re.escape(name)}\s*=", text, re.M):
                yield Advice(
                    "hurts",
                    server.config,
                    f"{server.name} has no {name}: {without}",
                    f"set {name} in {path.name}",
                    server.limits.link,
                )
