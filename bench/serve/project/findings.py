"""What the settings of a project will do to those who serve it: a rule for each, from its facts alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from bench.serve.project.inspection import Facts
from bench.serve.project.opened import UNFIT

DOCS = "https://docs.djangoproject.com/en/stable"
SETTINGS = f"{DOCS}/ref/settings/#"
PER_PROCESS_CACHE = "LocMemCache"
# Hosts of this machine, and all of them.
LOCAL = {"localhost", "127.0.0.1", "[::1]", "*"}
# Packages that choose a site by the host name.
TENANTS = re.compile(r"(django_(tenants|hosts|subdomains)|tenant_schemas|subdomains|multisite)\b")
# Django's per-site cache; and what adds Vary: Cookie to a response that comes out of it.
UPDATE_CACHE = "django.middleware.cache.UpdateCacheMiddleware"
VARIES_LATER = re.compile(r"(Session|Csrf\w*|Locale)\w*Middleware$")
# How databases say that the table of a cache is missing.
NO_TABLE = re.compile("no such table|does not exist|doesn't exist|ORA-00942")
# The last release with a fix of security in each branch that gets some, on 25 November 2026.
# https://www.djangoproject.com/download/
SECURE = {"5.2": 19, "6.0": 10, "6.1": 3}


class Finding(msgspec.Struct, frozen=True):
    """Something to change in a project.

    level   `blocks`: it cannot be served or measured so; `hurts`: its figures or its visitors suffer
    name    what it is about, one word or two
    what    what was found; where: the file and line, empty where it is in none
    remedy  what to do; link: where that is documented
    """

    level: Literal["blocks", "hurts"]
    name: str
    what: str
    remedy: str
    link: str
    where: str = ""


def hurts(name: str, what: str, remedy: str, link: str = "", where: str = "") -> Finding:
    """One that does not keep the project from being served; the link is to the setting of that name without one."""
    return Finding("hurts", name, what, remedy, link or SETTINGS + name.lower().replace("_", "-"), where)


def of_settings(facts: Facts, processes: int, threads: int, own_settings: bool) -> Iterator[Finding]:
    """All of them, for so many processes of so many threads.

    own_settings  caches and the age of connections come from variables that the kit sets where it serves
    """
    yield from _proxy(facts)
    yield from _hosts(facts)
    yield from _cookies(facts)
    yield from _site_cache(facts)
    yield from _caches(facts, 1 if own_settings else processes)
    yield from _static(facts)
    yield from _databases(facts, processes, threads, own_settings)
    yield from _release(facts)


def _proxy(facts: Facts) -> Iterator[Finding]:
    """What the site believes of the server in front of it."""
    said = facts.settings
    for_https = any(map(said.get, ("SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")))
    if for_https and not said.get("SECURE_PROXY_SSL_HEADER"):
        yield hurts(
            "SECURE_PROXY_SSL_HEADER",
            "behind a server that ends TLS every request looks like plain HTTP: a redirect to HTTPS never ends, and "
            "forms are refused for their origin",
            'set it to ("HTTP_X_FORWARDED_PROTO", "https") where that server overwrites the header; the kit does so',
        )
    if said.get("USE_X_FORWARDED_HOST"):
        yield hurts(
            "USE_X_FORWARDED_HOST",
            "the host of links comes from a header that any client can send, and a cache may store such a page",
            "leave it off where the server in front passes Host on, as those of the kit do",
        )
    if plain := [origin for origin in said.get("CSRF_TRUSTED_ORIGINS") or () if origin.startswith("http://")]:
        yield hurts(
            "CSRF_TRUSTED_ORIGINS",
            f"forms may come from pages over plain HTTP, which others can change on the way: {', '.join(plain)}",
            "name origins that begin with https://",
        )


def _hosts(facts: Facts) -> Iterator[Finding]:
    """What depends on the host of a request, which no key of a layer has, and on where the site is below it."""
    if prefix := facts.settings.get("FORCE_SCRIPT_NAME"):
        yield hurts(
            "FORCE_SCRIPT_NAME",
            f"all links begin with {prefix}, below which the kit's servers serve nothing",
            "leave it out where it is measured, by a variable of env_file; in production a server in front removes it",
        )
    if facts.settings.get("PREPEND_WWW"):
        yield hurts(
            "PREPEND_WWW",
            "a redirect to www. on every page; it is off while the kit serves over plain HTTP",
            "let the web server redirect: server_names has the name with www. alone",
        )
    apps = facts.settings.get("INSTALLED_APPS") or ()
    tenants = [name for name in (*apps, *facts.middleware) if TENANTS.match(name)]
    if tenants or (facts.sites or 0) > 1:
        why = f"{tenants[0]} chooses the site" if tenants else f"{facts.sites} sites share the database, chosen"
        yield hurts(
            "hosts",
            f"{why} by the host name: one is served here, 127.0.0.1, and layers would give one site's pages to others",
            "make the one that is measured the default, or give it the host 127.0.0.1; for production render each",
            f"{DOCS}/ref/contrib/sites/",
        )
    own = [name for name in facts.allowed_hosts if name not in LOCAL]
    if len(own) > 1:
        yield hurts(
            "ALLOWED_HOSTS",
            f"a production render answers one of its {len(own)} names, {own[0]}, and refuses the others with 400",
            f'name all that are served: render --set server_names="{" ".join(own)}"',
        )


def _cookies(facts: Facts) -> Iterator[Finding]:
    """What makes a browser refuse cookies on this machine."""
    for setting, name in (("SESSION_COOKIE_NAME", facts.session_cookie), ("CSRF_COOKIE_NAME", facts.csrf_cookie)):
        if name.startswith(("__Secure-", "__Host-")):
            yield hurts(
                setting,
                f"a browser takes {name} over HTTPS alone: nobody can log in over plain HTTP",
                "serve it with --set listener=tls, or take another name where it is measured (env_file)",
            )
    for setting in ("SESSION_COOKIE_DOMAIN", "CSRF_COOKIE_DOMAIN"):
        if domain := facts.settings.get(setting):
            yield hurts(
                setting,
                f"cookies are for {domain}: no browser sends them to 127.0.0.1, so it is unset over plain HTTP here",
                "leave it out unless several host names share a login",
            )


def _site_cache(facts: Facts) -> Iterator[Finding]:
    """What Django's per-site cache does with the pages of visitors who have a session."""
    names = facts.middleware
    if UPDATE_CACHE not in names:
        return
    outside = [name for name in names[: names.index(UPDATE_CACHE)] if VARIES_LATER.search(name)]
    if outside:
        what = f"it stores a page before {outside[0]} adds Vary: Cookie: visitors get each other's pages"
        remedy = "put UpdateCacheMiddleware first in MIDDLEWARE"
    elif any(VARIES_LATER.search(name) for name in names):
        what = "it stores pages of visitors who are signed in, too: they see no write of their own until one expires"
        remedy = "mark these pages private (cache_control(private=True)), or take the layer page-cache in its place"
    else:
        return
    link = f"{DOCS}/topics/cache/#order-of-middleware"
    yield hurts("UpdateCacheMiddleware", what, remedy, link)


def _caches(facts: Facts, processes: int) -> Iterator[Finding]:
    if processes > 1 and any(PER_PROCESS_CACHE in backend for backend in facts.caches.values()):
        yield hurts(
            "CACHES",
            f"a cache in the memory of one process, and {processes} processes: each has other values",
            "use memcached, Redis or the database",
            f"{DOCS}/topics/cache/#local-memory-caching",
        )
    for name, why in facts.silent.items():
        remedy = "start it, or name another where it is measured, by a variable of env_file"
        if name.startswith("CACHES") and NO_TABLE.search(why):
            remedy = "its table is missing: run ./manage.py createcachetable, and add that to setup in [tool.benchapp]"
        yield hurts(name.partition("[")[0], f"{name} does not answer: {why}", remedy)
    if facts.session_save_every_request:
        yield hurts(
            "SESSION_SAVE_EVERY_REQUEST",
            "every request of a visitor with a session writes to the database",
            "leave it off, or move sessions to a cache",
        )


def _static(facts: Facts) -> Iterator[Finding]:
    for setting, why in facts.unfit.items():
        yield Finding("blocks", setting, f"it {why}", UNFIT, SETTINGS + setting.lower().replace("_", "-"))
    if facts.static_url and not facts.static_hashed:
        yield hurts(
            "static files",
            "their names have no hash, so that no browser may keep them for long",
            "use ManifestStaticFilesStorage, or WhiteNoise's",
            f"{DOCS}/ref/contrib/staticfiles/#manifeststaticfilesstorage",
        )
    if facts.static_url and not facts.static_root:
        yield hurts(
            "STATIC_ROOT",
            "STATIC_ROOT is not set: collectstatic has no folder that a web server could serve",
            "set it to a folder outside version control",
        )


def _databases(facts: Facts, processes: int, threads: int, own_settings: bool) -> Iterator[Finding]:
    workers = processes * threads
    for alias, (transactions, journal) in facts.sqlite_modes.items():
        if (transactions, journal) != ("IMMEDIATE", "WAL") and alias not in facts.databases_in_memory:
            yield hurts(
                "SQLite",
                f"{alias}: transactions are {transactions} and the journal is {journal}: of several processes writes "
                "fail with 'database is locked'",
                'OPTIONS = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL"} (Django 5.1)',
                f"{DOCS}/ref/databases/#sqlite-notes",
            )
    if not own_settings and "asgi" in facts.application and any(age != 0 for age in facts.conn_max_age.values()):
        yield hurts(
            "CONN_MAX_AGE",
            "connections to the database persist: an ASGI server opens more and more of them",
            "set CONN_MAX_AGE = 0 where an ASGI server serves it, or use the driver's pool",
            f"{DOCS}/ref/databases/#persistent-database-connections",
        )
    pool = facts.pools.get("default", 0)
    needed = processes * pool if pool else workers
    if facts.max_connections is not None and needed > facts.max_connections:
        each = f"{processes} processes with a pool of {pool} each" if pool else f"{workers} threads"
        yield hurts(
            "connections",
            f"{each} may hold {needed} database connections, and it takes {facts.max_connections}",
            "serve with fewer threads or a smaller pool, or put a pooler in front of the database",
            f"{DOCS}/ref/databases/#connection-management",
        )


def _release(facts: Facts) -> Iterator[Finding]:
    if facts.log_files:
        yield hurts(
            "LOGGING",
            f"each process opens {facts.log_files[0]} as it starts, and ends where it may not: on a host the code's "
            "folder is read-only, and a folder that is missing is not made",
            "log to the console in production: the logs of the servers have it",
        )
    branch, _, patch = facts.django.rpartition(".")
    if facts.django.count(".") < 2:
        branch, patch = facts.django, "0"
    last = SECURE.get(branch)
    if not patch.isdecimal() or (last is None and branch > max(SECURE)) or (last is not None and int(patch) >= last):
        return
    newer = f"{branch}.{last}" if last is not None else f"{min(SECURE)}.{SECURE[min(SECURE)]}"
    yield hurts(
        "Django",
        f"{facts.django} is below {newer}, with known holes"
        if last is not None
        else f"{branch} gets no fixes of security",
        f"upgrade to {newer} or newer",
        "https://www.djangoproject.com/download/#supported-versions",
    )
