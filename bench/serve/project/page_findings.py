"""What the pages of a project that were looked at will do to those who serve it: health checks and caches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from bench.serve.machine.http import HEALTHY
from bench.serve.project.description import FILE, Project
from bench.serve.project.findings import DOCS, Finding, hurts
from bench.serve.project.health import CORRECT, LET_IN, NAME_PAGES, is_refused, remedy, unnamed, way_in
from bench.serve.project.inspection import Facts, InspectedPage
from bench.words import plural

# What a layer may store by: https://www.rfc-editor.org/rfc/rfc9110#name-vary
# Requests with one of the last four bypass every layer.
VARY_ALLOWED = {"cookie", "accept-encoding", "authorization", "hx-request", "origin", "x-requested-with"}
REFUSES = re.compile(r"\b(private|no-store|no-cache)\b", re.I)
NONCE = "'nonce-"
# In words, where the name is none of a header.
OF_ALL = {"any": "all headers", "remote-addr": "the client's address", "host": "the host"}
REMEDIES = {
    "any": "let it read what it needs by name",
    "host": "name the site's one host in ALLOWED_HOSTS, and have the others redirected to it",
}
# Parameters that the page cache ignores where the settings do not say which.
CAMPAIGNS = ("utm_*", "fbclid", "gclid")
# Pages of which no cache can be shared, why, with `{}` for them, what to do, and names of its causes.
Reason = tuple[list[InspectedPage], str, str, tuple[str, ...]]


def of_pages(project: Project, facts: Facts) -> Iterator[Finding]:
    """Of pages that are named, of the health check, of pages that are not shown, and of what keeps pages out of
    caches."""
    said = project.description
    for page in facts.pages:
        # What pages need may be there after `build` alone: those are errors like those of other pages.
        if page.path not in (said.health, *said.public) or (page.status >= 500 and said.build):
            continue
        is_health = page.path == said.health
        if page.status != 200 and not (is_health and page.status in HEALTHY):
            what = f"GET {page.path} {page.words}" + ("" if page.error else ", not 200")
            name, link = "health" if is_health else "public", f"{DOCS}/topics/http/urls/"
            yield Finding("blocks", name, what, remedy(said, facts, page), link, page.cause_of_error)
        elif is_health and (page.path in ("/", *said.public) or page.queries):
            yield _no_health_check(page, unnamed(said, facts))
    yield from _shown(project, facts)
    yield from _given_to_others(facts.pages)
    yield from _reads([page for page in facts.pages if page.status < 500])
    yield from _cacheability([page for page in facts.pages if page.status == 200])
    yield from _parameters(facts)


def _no_health_check(page: InspectedPage, other: str) -> Finding:
    """A page that costs more than a health check may, and the path of one that does not."""
    queries = plural(page.queries, "database query", "database queries")
    queries = f"takes {queries}" if page.queries else "renders a page"
    there = "name it" if other else "give health checks a URL of their own that asks no database"
    return hurts(
        "health",
        f"GET {page.path}, by which health checks find out whether the site serves, {queries}",
        f'{there}: health = "{other or "/health/"}" in [tool.benchapp] of {FILE}; it is answered whatever host a '
        "balancer names",
        "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    )


def _shown(project: Project, facts: Facts) -> Iterator[Finding]:
    """Of pages that the visitors of a measurement do not get."""
    said, link = project.description, f"{DOCS}/topics/http/middleware/"
    pages = [page for page in facts.pages if page.path not in said.health_checks]
    if elsewhere := [page for page in pages if page.here not in (None, page.status)]:
        yield Finding(
            "blocks",
            "host name",
            f"{_where(elsewhere)}: status {elsewhere[0].here} for the host 127.0.0.1, which the kit asks for, and 200 "
            "for its own",
            f"{LET_IN}, or give the tenant that is measured that host",
            link,
        )
    blocking = () if said.build else (said.health, *said.public)
    errors = [page for page in facts.pages if page.status >= 500 and page.path not in blocking]
    for words in dict.fromkeys(page.words for page in errors):
        alike = [page for page in errors if page.words == words]
        yield hurts("error", f"GET {_where(alike)} {words}", CORRECT, link, alike[0].cause_of_error)
    for page in pages:
        if page.path == "/" != said.health and 200 != page.status < 500 and not (said.public or said.workloads):
            what = f"GET / {page.words}, and no page is named: only {said.start} is measured"
            missing = page.status == 404 and not is_refused(facts, page)
            what_to_do = NAME_PAGES.format("/...") if missing else way_in(page.status, page.location)
            yield hurts("public", what, what_to_do, link)


def _given_to_others(pages: Iterable[InspectedPage]) -> Iterator[Finding]:
    """Of pages that read their visitor's session or cookie, and that Django's own cache stores for everybody."""
    if shared := [page for page in pages if page.shared]:
        yield hurts(
            "cache_page",
            f"{_where(shared, 'shared')}: stored by Django's cache without Vary: Cookie, after the session or a cookie "
            "was read: visitors get each other's pages",
            "put vary_on_cookie inside of cache_page and UpdateCacheMiddleware first in MIDDLEWARE, or leave both to "
            "the layer page-cache",
            f"{DOCS}/topics/cache/#using-vary-headers",
            _line(shared, "shared"),
        )


def _cacheability(pages: list[InspectedPage]) -> Iterator[Finding]:
    """Why a cache cannot share pages among anonymous visitors, once for all pages of one cause."""
    for alike, what, what_to_do, causes in (*_by_cookies(pages), *_by_headers(pages)):
        if alike:
            what, link = what.replace("{}", _where(alike, *causes)), f"{DOCS}/topics/cache/#using-vary-headers"
            yield hurts("cacheability", what, what_to_do, link, _line(alike, *causes))
    if writing := [page for page in pages if page.session_written]:
        yield hurts(
            "sessions",
            f"{_where(writing, 'session')} write to anonymous visitors' sessions: a row or a cookie for each visit",
            "write to the session when a visitor does something, not when a page is read",
            f"{DOCS}/topics/http/sessions/#when-sessions-are-saved",
            _line(writing, "session"),
        )


def _reads(pages: Iterable[InspectedPage]) -> Iterator[Finding]:
    """What is read, other than cookies, so that no layer stores a page; once for all pages of one reader."""
    html = [page for page in pages if page.is_html]
    found: dict[tuple[str, str], list[InspectedPage]] = {}
    for page in html:
        # The others are stored nowhere, whatever they read.
        if page.cookies or REFUSES.search(page.cache_control or ""):
            continue
        for name, reader in page.readers.items():
            if name not in _varies_by(page) and not name.startswith("cookie:"):
                found.setdefault((name, reader), []).append(page)
    for (name, reader), alike in found.items():
        cause = _line(alike, f"header {name}")
        where = f" ({cause})" if cause else ""
        yield hurts(
            "cacheability",
            f"{len(alike)} of {plural(len(html), 'page is', 'pages are')} not cached, such as {alike[0].path}: "
            f"{reader or 'Django'} reads {OF_ALL.get(name, name.title())}{where}",
            REMEDIES.get(name)
            or f'if no page depends on it: harmless = ["{name.title()}"] in [tool.benchapp] of {FILE}',
            f"{DOCS}/topics/cache/#using-vary-headers",
            cause,
        )


def _by_cookies(pages: list[InspectedPage]) -> Iterator[Reason]:
    """What pages set and read."""
    for cookies in dict.fromkeys(page.cookies for page in pages if page.cookies):
        yield (
            [page for page in pages if page.cookies == cookies],
            f"cookie {' and '.join(cookies)}, set by {{}}: no cache may store that",
            "leave forms with a CSRF token, messages and writes to the session out of pages for everybody",
            (*cookies, "session"),
        )
    for cause in sorted(
        {name for page in pages if not page.cookies for name in page.causes if name.startswith("reads ")}
    ):
        cookie = cause.removeprefix("reads ")
        yield (
            [page for page in pages if cause in page.causes and not page.cookies],
            f"the cookie {cookie} is read by {{}}: no layer stores what reads one, for none has cookies in its keys",
            "let a script in the browser read it on pages for everybody; if no page depends on it: "
            f'harmless = ["cookie:{cookie}"] in [tool.benchapp] of {FILE}',
            (cause,),
        )


def _by_headers(pages: list[InspectedPage]) -> Iterator[Reason]:
    """What headers of pages without cookies forbid or make of little use."""
    pages = [page for page in pages if not page.cookies]
    yield (
        [page for page in pages if REFUSES.search(page.cache_control or "")],
        "Cache-Control forbids caches to share {}: private, no-store or no-cache",
        "leave never_cache and cache_control(private=True) for pages of one visitor",
        (),
    )
    yield (
        [page for page in pages if "cookie" in _varies_by(page) and not page.session_read],
        "Vary: Cookie on {}, which read no session: vary_on_cookie or middleware sets it",
        "take it off pages that are the same for everybody",
        ("vary",),
    )
    yield (
        [page for page in pages if page.session_read],
        "Vary: Cookie on {}, which read the session (request.user does, too): a cache that goes by it stores a page "
        "for each set of cookies, those of analytics included",
        "leave the session out of pages for everybody, or take a layer that looks at the session cookie alone",
        ("session",),
    )
    for name in dict.fromkeys(name for page in pages for name in sorted(_varies_by(page) - VARY_ALLOWED)):
        yield (
            [page for page in pages if name in _varies_by(page)],
            f"Vary: {name.title()} on {{}}: no layer helps these pages, for none has {name} in its keys",
            "give each language a path (i18n_patterns) and take LocaleMiddleware off the others"
            if name == "accept-language"
            else "let only the URLs that need it have it",
            (),
        )
    yield (
        [page for page in pages if NONCE in page.headers.get("Content-Security-Policy", "")],
        "a nonce in the Content-Security-Policy of {}: a cached page has the same for everybody",
        "allow scripts by their hash on pages for everybody, or leave these out of public",
        (),
    )


def _parameters(facts: Facts) -> Iterator[Finding]:
    """Parameters with which pages link to each other, as lists with several pages do, and which no cache knows."""
    known = [*(facts.settings.get("CACHING_QUERY") or ()), *(facts.settings.get("CACHING_QUERY_IGNORED") or CAMPAIGNS)]
    shareable = {page.path for page in facts.pages if page.status == 200 and page.is_html and not page.cookies}
    links: dict[str, set[str]] = {}
    for page in facts.pages:
        for path in shareable.intersection(page.linked_parameters):
            unknown = {name for name in page.linked_parameters[path] if not any(fnmatchcase(name, it) for it in known)}
            links.setdefault(path, set()).update(unknown)
    names = sorted(set().union(*links.values()))
    if names:
        example = next(path for path in sorted(links) if names[0] in links[path])
        named = ", ".join(f'"{name}"' for name in names)
        yield hurts(
            "CACHING_QUERY",
            f"links lead to {example}?{names[0]}=...: no layer caches a page with a query string",
            f"CACHING_QUERY = [{named}] in the settings has `page-cache` store a page for each value; name only those "
            "that your views check (docs/caching.md)",
            f"{DOCS}/topics/pagination/",
        )


def _varies_by(page: InspectedPage) -> set[str]:
    """The headers that it varies by, in small letters."""
    return set(re.split(r"[ ,]+", (page.vary or "").lower())) - {""}


def _line(pages: Iterable[InspectedPage], *names: str) -> str:
    """The first cause of these names that is a line."""
    causes = (page.causes.get(name, "") for page in pages for name in names)
    return next((cause for cause in causes if ":" in cause), "")


def _where(pages: Iterable[InspectedPage], *names: str) -> str:
    """The pages by the cause that each has of one of these names: `/, /about/ (base.html:12) and /blog/`."""
    found: dict[str, list[str]] = {}
    for page in pages:
        cause = next((page.causes[name] for name in names if name in page.causes), "")
        found.setdefault(cause, []).append(page.path)
    return " and ".join(", ".join(paths) + (f" ({cause})" if cause else "") for cause, paths in found.items())
