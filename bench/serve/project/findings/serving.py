"""Findings: problems that keep the site, or a page of it, from being served."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bench import paths
from bench.serve.machine.http import HEALTHY
from bench.serve.machine.identity import worker
from bench.serve.project.description import FILE
from bench.serve.project.findings.code import production_settings, python_files
from bench.serve.project.findings.files import FIND_STATIC
from bench.serve.project.findings.finding import (
    DESCRIPTION_DOCS,
    DOCS,
    ERROR,
    RENDER,
    SERVED_DOCS,
    SETTINGS_DOCS,
    WARNING,
    Examination,
    Occurrence,
    finding,
)
from bench.serve.project.findings.wording import listed
from bench.serve.project.health import CORRECT, LET_IN, NAME_PAGES, is_refused, login, remedy, way_in
from bench.serve.project.inspection import InspectedPage
from bench.serve.project.opened import UNFIT
from bench.words import first_names, plural

# Packages that choose a site by the host name.
TENANTS = re.compile(r"(django_(tenants|hosts|subdomains)|tenant_schemas|subdomains|multisite)\b")


@finding(
    "folder-name",
    ERROR,
    "rename it, or move the project; files that are rendered for production name a folder of the host",
    link="https://pubs.opengroup.org/onlinepubs/9699919799/basedefs/V1_chap03.html#tag_03_282",
)
def folder_name(examination: Examination) -> Iterator[Occurrence]:
    """The name of the project's folder has characters that some servers cannot have in their configuration."""
    folder = examination.project.folder
    if odd := paths.odd_characters(folder):
        yield Occurrence(f"not every server can work in a folder with {odd} in its name: {folder}")


@finding("unreadable-files", ERROR, "", link="https://docs.python.org/3/library/os.html#os.chmod")
def unreadable_files(examination: Examination) -> Iterator[Occurrence]:
    """The user of the servers cannot read files of the project."""
    if os.geteuid() != 0:
        return
    user = worker()
    if user.uid == 0:
        return
    closed: list[Path] = []
    for path in python_files(examination.project.folder):
        stat = path.stat()
        if not stat.st_mode & 4 and stat.st_uid != user.uid:
            closed.append(path)
    if closed:
        yield Occurrence(
            f"user {user.user}, which the servers run as, cannot read {plural(len(closed), 'file')}",
            str(closed[0].relative_to(examination.project.folder)),
            f"chmod o+r them, chown them to {user.user}, or set BENCH_USER to their owner",
        )


@finding(
    "no-application",
    ERROR,
    f'write a wsgi.py, as `django-admin startproject` does, and name it: wsgi = "mysite.wsgi:application" in {FILE}',
    link=f"{DOCS}/howto/deployment/wsgi/#the-application-object",
)
def no_application(examination: Examination) -> Iterator[Occurrence]:
    """The project has no WSGI or ASGI application that can be imported."""
    facts = examination.facts
    if facts.application:
        return
    if facts.application_problem:
        yield Occurrence(f"it cannot be imported: {facts.application_problem}", remedy="correct it")
        return
    yield Occurrence(
        "the settings name neither WSGI_APPLICATION nor ASGI_APPLICATION, and no wsgi.py is next to or above them"
    )


@finding(
    "broken-application",
    WARNING,
    "correct it, or remove it: stacks that need it skip the project",
    link=f"{DOCS}/howto/deployment/asgi/#the-application-object",
)
def broken_application(examination: Examination) -> Iterator[Occurrence]:
    """One of two applications cannot be imported."""
    facts = examination.facts
    if facts.application and facts.application_problem:
        yield Occurrence(f"it cannot be imported: {facts.application_problem}")


@finding("stale-unknown", ERROR, f"correct it in {FILE}", link=DESCRIPTION_DOCS)
def stale_unknown(examination: Examination) -> Iterator[Occurrence]:
    """The description names a model or field that the project does not have."""
    if problem := examination.facts.stale_problem:
        yield Occurrence(f"[tool.benchapp.stale] {problem}", FILE)


@finding(
    "host-refused",
    ERROR,
    'add "127.0.0.1" for measurements, by a variable of the environment',
    setting="ALLOWED_HOSTS",
)
def host_refused(examination: Examination) -> Iterator[Occurrence]:
    """ALLOWED_HOSTS refuses requests to this machine."""
    facts = examination.facts
    if examination.own_settings and not facts.debug and facts.public_hosts == facts.allowed_hosts:
        named = ", ".join(facts.allowed_hosts) or "empty"
        yield Occurrence(f"ALLOWED_HOSTS is {named}: requests to 127.0.0.1 are refused")


@finding("unfit-static-url", ERROR, UNFIT, setting="STATIC_URL")
def unfit_static_url(examination: Examination) -> Iterator[Occurrence]:
    """STATIC_URL is no path that a web server can serve."""
    if problem := examination.facts.unfit.get("STATIC_URL"):
        yield Occurrence(f"STATIC_URL {problem}")


@finding("unfit-cookie-name", ERROR, UNFIT, link=f"{SETTINGS_DOCS}session-cookie-name")
def unfit_cookie_name(examination: Examination) -> Iterator[Occurrence]:
    """A cookie has a name that no cookie can have."""
    for setting, problem in examination.facts.unfit.items():
        if setting != "STATIC_URL":
            yield Occurrence(f"{setting} {problem}", examination.line(setting))


def _problem_of(page: InspectedPage) -> str:
    if page.error:
        return f"GET {page.path} {page.words}"
    return f"GET {page.path} {page.words}, not 200"


def _named_pages(examination: Examination) -> Iterator[InspectedPage]:
    """The pages that the description names, without pages that `build` may still have to make."""
    description = examination.project.description
    for page in examination.pages:
        named = page.path in (description.health, *description.public)
        if named and not (page.status >= 500 and description.build):
            yield page


@finding("health-page", ERROR, "", link=DESCRIPTION_DOCS, found_in=RENDER)
def health_page(examination: Examination) -> Iterator[Occurrence]:
    """The page of health checks does not respond with 200."""
    description = examination.project.description
    for page in _named_pages(examination):
        # A row that makes it a page may be missing.
        may_have_rows = page.status == 404 and page.path in examination.facts.urls
        if may_have_rows and not examination.facts.rows_as_served:
            continue
        if page.path == description.health and page.status not in HEALTHY:
            advice = remedy(description, examination.facts, page)
            yield Occurrence(_problem_of(page), page.cause_of_error, advice)


@finding("public-page", ERROR, "", link=DESCRIPTION_DOCS, found_in=RENDER)
def public_page(examination: Examination) -> Iterator[Occurrence]:
    """A page that the description calls public does not respond with 200."""
    description = examination.project.description
    for page in _named_pages(examination):
        if page.path != description.health and page.status != 200:
            advice = remedy(description, examination.facts, page)
            yield Occurrence(_problem_of(page), page.cause_of_error, advice)


@finding(
    "other-host",
    ERROR,
    f"{LET_IN}, or give the tenant that is measured that host",
    link=SERVED_DOCS,
    found_in=RENDER,
)
def other_host(examination: Examination) -> Iterator[Occurrence]:
    """A page exists for the site's own host only, not for this machine's."""
    pages = [page for page in _pages_of_visitors(examination) if page.here not in (None, page.status)]
    if pages:
        yield Occurrence(
            f"{listed(pages)}: status {pages[0].here} for the host 127.0.0.1, which the kit uses, and 200 for the "
            "site's own host"
        )


def _pages_of_visitors(examination: Examination) -> list[InspectedPage]:
    health_checks = examination.project.description.health_checks
    return [page for page in examination.pages if page.path not in health_checks]


@finding(
    "static-file-error",
    ERROR,
    FIND_STATIC,
    link=f"{DOCS}/ref/contrib/staticfiles/#manifeststaticfilesstorage",
    found_in=RENDER,
)
def static_file_error(examination: Examination) -> Iterator[Occurrence]:
    """A page names a static file that no finder has, and the storage of static files makes an error of that."""
    facts = examination.facts
    if not facts.static_strict or examination.project.description.build:
        return
    causes: dict[str, str] = {}
    pages = [page for page in facts.pages if page.missing_static and not page.location]
    for page in pages:
        for name, cause in page.missing_static.items():
            causes.setdefault(name, facts.missing_static.get(name, cause))
    if pages:
        paths = first_names([page.path for page in pages])
        yield Occurrence(
            f"{paths}: a 500, because no finder has {first_names(list(causes))}", next(iter(causes.values()))
        )


@finding("page-error", WARNING, CORRECT, link=f"{DOCS}/howto/error-reporting/#server-errors", found_in=RENDER)
def page_error(examination: Examination) -> Iterator[Occurrence]:
    """A page is an error."""
    # Those pages and services that do not respond are other findings.
    judged = list(_named_pages(examination))
    silent = tuple(examination.facts.silent.values())
    by_error: dict[str, list[InspectedPage]] = {}
    for page in examination.pages:
        if page.status < 500 or page in judged or (page.error or "").startswith(silent):
            continue
        # One error at several lines is one problem.
        by_error.setdefault(page.words.removesuffix(f" ({page.cause_of_error})"), []).append(page)
    for words, alike in by_error.items():
        yield Occurrence(f"GET {listed(alike)} {words}", alike[0].cause_of_error)


@finding("home-not-shown", WARNING, "", link=DESCRIPTION_DOCS, found_in=RENDER)
def home_not_shown(examination: Examination) -> Iterator[Occurrence]:
    """Visitors do not get the home page, and the description names no other."""
    description = examination.project.description
    if description.health == "/" or description.public or description.workloads:
        return
    for page in _pages_of_visitors(examination):
        if page.path == "/" and 200 != page.status < 500:
            start = ""
            if description.start != "/":
                start = description.start
            is_missing = page.status == 404 and not is_refused(examination.facts, page)
            # The last target of redirects, which may be the form to log in.
            end = page.location
            if page.location and login(start):
                end = start
            advice = way_in(page.status, end)
            if is_missing or (start and page.location and not login(end)):
                advice = NAME_PAGES.format(start or "/...")
            yield Occurrence(
                f"GET / {page.words}, and no page is named: only {description.start} is measured", remedy=advice
            )


@finding(
    "script-name",
    WARNING,
    "leave FORCE_SCRIPT_NAME out for measurements, by a variable of env_file; in production a server in front removes "
    "the prefix",
    setting="FORCE_SCRIPT_NAME",
)
def script_name(examination: Examination) -> Iterator[Occurrence]:
    """All links begin with a prefix below which the kit's servers serve nothing."""
    if prefix := examination.facts.settings.get("FORCE_SCRIPT_NAME"):
        yield Occurrence(f"all links begin with {prefix}, below which the kit's servers serve nothing")


@finding(
    "site-by-host",
    WARNING,
    "make the measured site the default, or give it the host 127.0.0.1; for production render each site",
    link=f"{DOCS}/ref/contrib/sites/#module-django.contrib.sites",
    setting="INSTALLED_APPS",
)
def site_by_host(examination: Examination) -> Iterator[Occurrence]:
    """The host name of a request chooses one of several sites."""
    facts = examination.facts
    apps = facts.settings.get("INSTALLED_APPS") or ()
    tenants = [name for name in (*apps, *facts.middleware) if TENANTS.match(name)]
    if not tenants and (facts.sites or 0) < 2:
        return
    chooser = f"{facts.sites} sites share the database, chosen"
    if tenants:
        chooser = f"{tenants[0]} chooses the site"
    yield Occurrence(
        f"{chooser} by the host name: only the site of 127.0.0.1 is served here, and a layer would mix the sites' pages"
    )


@finding("other-names", WARNING, "", setting="ALLOWED_HOSTS")
def other_names(examination: Examination) -> Iterator[Occurrence]:
    """The site has several host names, and a host serves only the names in a file of values."""
    names = examination.facts.public_hosts
    if len(names) > 1:
        yield Occurrence(
            f"{len(names)} names: a host refuses those that its file of values does not have",
            remedy=f'write all into a file of values: server_names = "{" ".join(names)}", and under [env] '
            f'ALLOWED_HOSTS = "{",".join(names)}"',
        )


@finding(
    "prepend-www",
    WARNING,
    "let the web server redirect: put only the name with www. into server_names",
    setting="PREPEND_WWW",
)
def prepend_www(examination: Examination) -> Iterator[Occurrence]:
    """Django redirects each page to www."""
    if examination.facts.settings.get("PREPEND_WWW"):
        yield Occurrence("each page redirects to www.; this is off while the kit serves over plain HTTP")


@finding("production-settings", WARNING, "", link=f"{DOCS}/topics/settings/#designating-the-settings")
def which_settings(examination: Examination) -> Iterator[Occurrence]:
    """The project has other settings for production than the inspected ones."""
    project = examination.project
    if other := production_settings(project):
        yield Occurrence(
            f"manage.py names {project.settings}, and there is {other}, too: which of them serves in production?",
            "manage.py",
            f'say so: settings = "{other}" in [tool.benchapp] of {FILE}, with its variables in env_file',
        )


@finding(
    "websockets",
    WARNING,
    "choose a stack that passes WebSockets on; the others refuse the handshake",
    link="docs/stacks.md#asgi-servers",
)
def websockets(examination: Examination) -> Iterator[Occurrence]:
    """The project serves WebSockets, which only ASGI servers can."""
    if where := examination.code.get("websockets"):
        yield Occurrence("only stacks with an ASGI server serve WebSockets, and no layer or workload uses one", where)


@finding(
    "lifespan",
    WARNING,
    "set up in AppConfig.ready, or at the first use",
    link="https://asgi.readthedocs.io/en/latest/specs/lifespan.html",
)
def lifespan(examination: Examination) -> Iterator[Occurrence]:
    """The application uses the lifespan protocol of ASGI, which the kit's servers have off."""
    if where := examination.code.get("lifespan"):
        yield Occurrence("ASGI servers run with lifespan off: your lifespan handler never runs", where)


@finding(
    "too-many-workers",
    WARNING,
    "serve with fewer processes, such as --set processes=auto, or with more memory",
    link="docs/production.md#day-by-day",
    found_in=RENDER,
)
def too_many_workers(examination: Examination) -> Iterator[Occurrence]:
    """The processes of the site need more memory than there is."""
    each_mb = examination.facts.worker_mb
    if each_mb is None or each_mb * examination.processes <= examination.memory_mb:
        return
    yield Occurrence(
        f"{plural(examination.processes, 'process', 'processes')} of {each_mb:.0f} MiB need "
        f"{each_mb * examination.processes:.0f} MiB, and there are {examination.memory_mb:.0f} MiB for them"
    )
