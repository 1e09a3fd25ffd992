"""Findings: pages that no cache stores, and costs of each request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import chain

from bench.serve.project.description import FILE
from bench.serve.project.findings.finding import DOCS, PRIVATE_DOCS, RENDER, WARNING, Examination, Occurrence, finding
from bench.serve.project.findings.wording import first_line, listed
from bench.serve.project.inspection import HEALTH, InspectedPage
from bench.words import joined, plural

# What a layer may store by: https://www.rfc-editor.org/rfc/rfc9110#name-vary
# Requests with one of the last four bypass every layer.
VARY_ALLOWED = {"cookie", "accept-encoding", "authorization", "hx-request", "origin", "x-requested-with"}
REFUSES = re.compile(r"\b(private|no-store|no-cache)\b", re.I)
NONCE = "'nonce-"
OF_ACCOUNTS = re.compile(r"\b((log|sign)[-_]?(in|up)|register|password([-_]?\w+)*)\b", re.I)
# In words, if the name is not a header's.
OF_ALL = {"any": "all headers", "remote-addr": "the client's address", "host": "the host"}
REMEDIES = {
    "any": "let it read what it needs by name",
    "host": "name the site's one host in ALLOWED_HOSTS, and have the others redirected to it",
}
# Parameters that the page cache ignores if the settings do not say which.
CAMPAIGNS = ("utm_*", "fbclid", "gclid")
CACHE_DOCS = f"{DOCS}/topics/cache/#using-vary-headers"
IN_FORMS = "leave forms with a CSRF token, messages and writes to the session out of pages for everybody"


def _pages(examination: Examination) -> list[InspectedPage]:
    """The pages that a cache may store, except forms of accounts and health checks, which nobody wants stored."""
    shown = [page for page in examination.pages if page.status == 200 and not HEALTH.search(page.path)]
    return [page for page in shown if page.path != examination.facts.login and not OF_ACCOUNTS.search(page.path)]


def _without_cookies(examination: Examination) -> list[InspectedPage]:
    """The pages that set no cookie, except those of one visitor, which are right as they are."""
    return [page for page in _pages(examination) if not page.cookies and not _is_personal(page)]


def _is_personal(page: InspectedPage) -> bool:
    """True if the page shows one visitor's data, such as orders, and no cache may share the page."""
    return page.session_read and REFUSES.search(page.cache_control or "") is not None


def _varies_by(page: InspectedPage) -> set[str]:
    """The headers in a page's Vary, in small letters."""
    return set(re.split(r"[ ,]+", (page.vary or "").lower())) - {""}


@finding(
    "uncached-templates",
    WARNING,
    'put them into ("django.template.loaders.cached.Loader", [...]), or leave loaders out: Django then caches them',
    link=f"{DOCS}/ref/templates/api/#django.template.loaders.cached.Loader",
    setting="TEMPLATES",
)
def uncached_templates(examination: Examination) -> Iterator[Occurrence]:
    """Each request compiles templates again."""
    if not examination.facts.uncached_loaders or examination.only_in_debug("TEMPLATES"):
        return
    if examination.facts.debug and _has_cached_loader(examination):
        return
    yield Occurrence(
        "loaders names no cached loader: each request reads and compiles its templates again",
        examination.line("TEMPLATES", "loaders"),
    )


def _has_cached_loader(examination: Examination) -> bool:
    """True if the settings have a cached loader that is not in use here, as in a project that looks at DEBUG."""
    statements = chain.from_iterable(examination.facts.statements.values())
    files = {statement.file for statement in statements}
    lines = chain.from_iterable(map(examination.source, files))
    return any("loaders.cached" in line for line in lines)


@finding("cookie-set", WARNING, IN_FORMS, link=PRIVATE_DOCS, found_in=RENDER)
def cookie_set(examination: Examination) -> Iterator[Occurrence]:
    """A page sets a cookie, so no cache may store it."""
    pages = _pages(examination)
    own = {examination.facts.csrf_cookie, examination.facts.session_cookie, "messages"}
    for cookies in dict.fromkeys(page.cookies for page in pages if page.cookies):
        alike = [page for page in pages if page.cookies == cookies]
        causes = (*cookies, "session")
        remedy = ""
        if own.isdisjoint(cookies):
            remedy = "set it when the visitor chooses something, not on each page"
        yield Occurrence(
            f"{listed(alike, *causes)} set the cookie {joined(cookies)}: no cache may store that",
            first_line(alike, *causes),
            remedy,
        )


@finding("cookie-read", WARNING, "", link=PRIVATE_DOCS, found_in=RENDER)
def cookie_read(examination: Examination) -> Iterator[Occurrence]:
    """A page reads a cookie, so no layer stores it."""
    by_cause: dict[str, list[InspectedPage]] = {}
    for page in _without_cookies(examination):
        for cause in page.causes:
            if cause.startswith("reads "):
                by_cause.setdefault(cause, []).append(page)
    for cause, alike in sorted(by_cause.items()):
        cookie = cause.removeprefix("reads ")
        yield Occurrence(
            f"{listed(alike, cause)} read the cookie {cookie}: no layer stores them, because no cache key has cookies",
            first_line(alike, cause),
            "let a script in the browser read it on pages for everybody; if no page depends on it: "
            f'harmless = ["cookie:{cookie}"] in [tool.benchapp] of {FILE}',
        )


@finding("header-read", WARNING, "", link=PRIVATE_DOCS, found_in=RENDER)
def header_read(examination: Examination) -> Iterator[Occurrence]:
    """A page reads a header, the client's address or the host, so no layer stores it."""
    html = [page for page in _pages(examination) if page.is_html]
    pages_by_reader: dict[tuple[str, str], list[InspectedPage]] = {}
    for page in html:
        # The others are stored nowhere, whatever they read.
        if page.cookies or REFUSES.search(page.cache_control or ""):
            continue
        for name, reader in page.readers.items():
            if name not in _varies_by(page) and not name.startswith("cookie:"):
                pages_by_reader.setdefault((name, reader), []).append(page)
    for (name, reader), alike in pages_by_reader.items():
        cause = first_line(alike, f"header {name}")
        header = name.title()
        reads = f"{reader or 'Django'} reads {OF_ALL.get(name, header)}"
        if cause:
            reads += f" ({cause})"
        yield Occurrence(
            f"{len(alike)} of {plural(len(html), 'page is', 'pages are')} not cached, such as {alike[0].path}: {reads}",
            cause,
            REMEDIES.get(name) or f'if no page depends on it: harmless = ["{header}"] in [tool.benchapp] of {FILE}',
        )


@finding(
    "not-shared",
    WARNING,
    "use never_cache and cache_control(private=True) only for pages of one visitor",
    link=f"{DOCS}/topics/cache/#controlling-cache-using-other-headers",
    found_in=RENDER,
)
def not_shared(examination: Examination) -> Iterator[Occurrence]:
    """Cache-Control forbids caches to share a page."""
    pages = [page for page in _without_cookies(examination) if REFUSES.search(page.cache_control or "")]
    if pages:
        yield Occurrence(f"Cache-Control forbids caches to share {listed(pages)}: private, no-store or no-cache")


@finding("vary-cookie", WARNING, "take it off pages that are the same for everybody", link=CACHE_DOCS, found_in=RENDER)
def vary_cookie(examination: Examination) -> Iterator[Occurrence]:
    """A page varies by cookie although it reads no session."""
    pages = [page for page in _without_cookies(examination) if "cookie" in _varies_by(page) and not page.session_read]
    if pages:
        yield Occurrence(
            f"Vary: Cookie on {listed(pages, 'vary')}, which read no session: vary_on_cookie or middleware sets it",
            first_line(pages, "vary"),
        )


@finding(
    "session-read",
    WARNING,
    "leave the session out of pages for everybody, or use a layer that looks at the session cookie only",
    link=CACHE_DOCS,
    found_in=RENDER,
)
def session_read(examination: Examination) -> Iterator[Occurrence]:
    """A page reads the session, so it varies by all cookies."""
    pages = [page for page in _without_cookies(examination) if page.session_read]
    if pages:
        yield Occurrence(
            f"Vary: Cookie on {listed(pages, 'session')}, which read the session (request.user does, too): caches "
            "that honour Vary keep one copy per combination of cookies, analytics cookies included",
            first_line(pages, "session"),
        )


@finding("vary-other", WARNING, "set it only for the URLs that need it", link=CACHE_DOCS, found_in=RENDER)
def vary_other(examination: Examination) -> Iterator[Occurrence]:
    """A page varies by a header that no cache key has."""
    pages = _without_cookies(examination)
    by_name: dict[str, list[InspectedPage]] = {}
    for page in pages:
        for name in sorted(_varies_by(page) - VARY_ALLOWED):
            by_name.setdefault(name, []).append(page)
    for name, alike in by_name.items():
        remedy = ""
        if name == "accept-language":
            remedy = "give each language a path (i18n_patterns) and take LocaleMiddleware off the others"
        yield Occurrence(
            f"Vary: {name.title()} on {listed(alike)}: no layer helps these pages, because no cache key has {name}",
            remedy=remedy,
        )


@finding(
    "nonce-on-page",
    WARNING,
    "allow scripts by their hash on pages for everybody, or leave these out of public",
    link=PRIVATE_DOCS,
    found_in=RENDER,
)
def nonce_on_page(examination: Examination) -> Iterator[Occurrence]:
    """A page for everybody has a nonce, which a cached copy repeats."""
    pages = [page for page in _without_cookies(examination) if NONCE in page.headers.get("Content-Security-Policy", "")]
    if pages:
        yield Occurrence(
            f"a nonce in the Content-Security-Policy of {listed(pages)}: a cached page has the same for everybody"
        )


@finding(
    "session-written",
    WARNING,
    "write to the session when a visitor does something, not when a page is read",
    link=f"{DOCS}/topics/http/sessions/#when-sessions-are-saved",
    found_in=RENDER,
)
def session_written(examination: Examination) -> Iterator[Occurrence]:
    """A page writes to the session of a visitor who only reads."""
    pages = [page for page in _pages(examination) if page.session_written]
    if pages:
        yield Occurrence(
            f"{listed(pages, 'session')} write to anonymous visitors' sessions: a row or a cookie for each visit",
            first_line(pages, "session"),
        )


@finding("query-parameters", WARNING, "", link="docs/caching.md#query-strings", found_in=RENDER)
def query_parameters(examination: Examination) -> Iterator[Occurrence]:
    """Pages link to each other with parameters that no cache knows, as lists with several pages do."""
    settings = examination.facts.settings
    known = [*(settings.get("CACHING_QUERY") or ()), *(settings.get("CACHING_QUERY_IGNORED") or CAMPAIGNS)]
    shareable = {page.path for page in _without_cookies(examination) if page.is_html}
    links: dict[str, set[str]] = {}
    for page in examination.pages:
        for path in shareable.intersection(page.linked_parameters):
            for name in page.linked_parameters[path]:
                if not any(fnmatchcase(name, pattern) for pattern in known):
                    links.setdefault(path, set()).add(name)
    names = sorted(set().union(*links.values()))
    if names:
        example = next(path for path in sorted(links) if names[0] in links[path])
        named = ", ".join(f'"{name}"' for name in names)
        yield Occurrence(
            f"links lead to {example}?{names[0]}=...: no layer caches a page with a query string",
            remedy=f"CACHING_QUERY = [{named}] in the settings has `page-cache` store a page for each value; name only "
            "those that your views check (benchapp's docs/caching.md)",
        )
