"""What the pages of a project that were looked at will do to those who serve it: health checks and caches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bench.project.description import FILE, Project
from bench.project.findings import DOCS, Finding, hurts
from bench.project.health import CORRECT, LET_IN, REFUSED, log_in, login, way_in
from bench.project.inspection import Facts, Page
from bench.project.under_test import PLAIN
from bench.words import plural

# A whole segment at the end of a path: `/health/` or `/up`, and not `/upload/`.
HEALTH = re.compile(
    r"/(health|live|ready)(z|y|iness|ness|[-_]?check)?/?$|/(up|ping|status|heartbeat|__(lb)?heartbeat__)/?$", re.I
)
# No path for health checks: an admin or a tool answers it.
OF_A_TOOL = re.compile(r"/([\w-]*admin|__debug__)/")
PARAMETER = "<"
# What a layer may store by: https://www.rfc-editor.org/rfc/rfc9110#name-vary
# Requests with one of the last four bypass every layer.
VARY_ALLOWED = {"cookie", "accept-encoding", "authorization", "hx-request", "origin", "x-requested-with"}
REFUSES = re.compile(r"\b(private|no-store|no-cache)\b", re.I)
NONCE = "'nonce-"


def of_pages(project: Project, facts: Facts) -> Iterator[Finding]:
    """Of the health check, of pages that are not shown, and of what keeps pages out of caches."""
    yield from _health(project, facts)
    yield from _shown(project, facts)
    for page in facts.pages:
        if page.path in project.description.public and page.status != 200:
            remedy = f"correct public in [tool.benchapp] of {FILE}"
            yield Finding(
                "blocks",
                "public",
                f"GET {page.path}, named as public, {page.words}" + ("" if page.error else ", not 200"),
                f"{CORRECT}, or {remedy}" if page.error else remedy,
                f"{DOCS}/topics/http/urls/",
                page.cause_of_error,
            )
    yield from _cacheability(facts.pages)


def _health(project: Project, facts: Facts) -> Iterator[Finding]:
    """Of the path that says whether the site serves."""
    health = next((page for page in facts.pages if page.path == project.description.health), None)
    # One that nobody named yet.
    bad = [page.path for page in facts.pages if page.status != 200]
    urls = (url for url in facts.urls if HEALTH.search(url) and PARAMETER not in url and url not in bad)
    fitting = (url for url in urls if not OF_A_TOOL.search(url))
    unnamed = "" if HEALTH.search(project.description.health) else next(fitting, "")
    if health and health.status != 200:
        led_to = _end(facts, health.location or "")
        path = unnamed or (led_to if led_to and PLAIN.fullmatch(led_to) else "/...")
        remedy = f'name a path that answers 200: health = "{path}" in [tool.benchapp] of {FILE}'
        if (url := login(led_to)) and url != health.path:
            remedy = f'{log_in(url)}; health = "{unnamed or url}", which needs none'
        elif health.status in REFUSED and (health.status != 404 or health.path in facts.urls):
            remedy = f"{LET_IN}, or {remedy}"
        yield Finding(
            "blocks",
            "health",
            f"GET {health.path} {health.words}" + ("" if health.error else ", not 200"),
            f"{CORRECT}, or {remedy}" if health.error else remedy,
            "https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
            health.cause_of_error,
        )
    elif health and (health.path in ("/", *project.description.public) or health.queries):
        queries = plural(health.queries, "database query", "database queries")
        queries = f"takes {queries}" if health.queries else "renders a page"
        there = "name it" if unnamed else "give health checks a URL of their own that asks no database"
        yield hurts(
            "health",
            f"GET {health.path}, by which health checks find out whether the site serves, {queries}",
            f'{there}: health = "{unnamed or "/health/"}" in [tool.benchapp] of {FILE}; it is answered whatever host a '
            "balancer names",
            f"{DOCS}/topics/http/urls/",
        )


def _end(facts: Facts, location: str) -> str:
    """Where a redirect leads at last, through the pages that were looked at."""
    leads = {page.path: page.location for page in facts.pages}
    while further := leads.pop(location.partition("?")[0], None):
        location = further
    return location


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
    errors = [page for page in pages if page.status >= 500 and page.path not in (said.health, *said.public)]
    for words in dict.fromkeys(page.words for page in errors):
        alike = [page for page in errors if page.words == words]
        yield hurts("error", f"GET {_where(alike)} {words}", CORRECT, link, alike[0].cause_of_error)
    for page in pages:
        if page.path == "/" != said.health and 200 != page.status < 500 and not (said.public or said.workloads):
            what = f"GET / {page.words}, and no page is named: {said.health} alone is measured"
            yield hurts("public", what, way_in(page.status, page.location), link)


def _cacheability(pages: Iterable[Page]) -> Iterator[Finding]:
    """Why a cache cannot share pages among anonymous visitors, once for all pages of one cause."""
    pages = [page for page in pages if page.status == 200]
    for cookies in dict.fromkeys(page.cookies for page in pages if page.cookies):
        yield from _uncacheable(
            [page for page in pages if page.cookies == cookies],
            f"cookie {' and '.join(cookies)}, set by {{}}: no cache may store that",
            "leave forms with a CSRF token, messages and writes to the session out of pages for everybody",
            (*cookies, "session"),
        )
    if writing := [page for page in pages if page.session_written]:
        yield hurts(
            "sessions",
            f"{_where(writing, 'session')} write to anonymous visitors' sessions: a row or a cookie for each visit",
            "write to the session when a visitor does something, not when a page is read",
            f"{DOCS}/topics/http/sessions/#when-sessions-are-saved",
            _line(writing, "session"),
        )
    pages = [page for page in pages if not page.cookies]
    for cause in sorted({name for page in pages for name in page.causes if name.startswith("reads ")}):
        yield from _uncacheable(
            [page for page in pages if cause in page.causes],
            f"the cookie {cause.removeprefix('reads ')} is read by {{}}: no layer stores what reads one, for none has "
            "cookies in its keys",
            "let a script in the browser read it on pages for everybody",
            (cause,),
        )
    yield from _by_headers(pages)


def _by_headers(pages: list[Page]) -> Iterator[Finding]:
    """What headers of pages without cookies forbid or make of little use."""
    yield from _uncacheable(
        [page for page in pages if REFUSES.search(page.cache_control or "")],
        "Cache-Control forbids caches to share {}: private, no-store or no-cache",
        "leave never_cache and cache_control(private=True) for pages of one visitor",
    )
    yield from _uncacheable(
        [page for page in pages if "cookie" in _varies_by(page) and not page.session_read],
        "Vary: Cookie on {}, which read no session: vary_on_cookie or middleware sets it",
        "take it off pages that are the same for everybody",
        ("vary",),
    )
    yield from _uncacheable(
        [page for page in pages if page.session_read],
        "Vary: Cookie on {}, which read the session (request.user does, too): a cache that goes by it stores a page "
        "for each set of cookies, those of analytics included",
        "leave the session out of pages for everybody, or take a layer that looks at the session cookie alone",
        ("session",),
    )
    for name in dict.fromkeys(name for page in pages for name in sorted(_varies_by(page) - VARY_ALLOWED)):
        yield from _uncacheable(
            [page for page in pages if name in _varies_by(page)],
            f"Vary: {name.title()} on {{}}: no layer helps these pages, for none has {name} in its keys",
            "give each language a path (i18n_patterns) and take LocaleMiddleware off the others"
            if name == "accept-language"
            else "let only the URLs that need it have it",
        )
    yield from _uncacheable(
        [page for page in pages if NONCE in page.headers.get("Content-Security-Policy", "")],
        "a nonce in the Content-Security-Policy of {}: a cached page has the same for everybody",
        "allow scripts by their hash on pages for everybody, or leave these out of public",
    )


def _varies_by(page: Page) -> set[str]:
    """The headers that it varies by, in small letters."""
    return set(re.split(r"[ ,]+", (page.vary or "").lower())) - {""}


def _uncacheable(pages: list[Page], what: str, remedy: str, causes: Iterable[str] = ()) -> Iterator[Finding]:
    """Why no cache can share these pages, if there are some: `{}` in `what` stands for them."""
    if pages:
        link = f"{DOCS}/topics/cache/#using-vary-headers"
        yield hurts("cacheability", what.replace("{}", _where(pages, *causes)), remedy, link, _line(pages, *causes))


def _line(pages: Iterable[Page], *names: str) -> str:
    """The first cause of these names that is a line."""
    causes = (page.causes.get(name, "") for page in pages for name in names)
    return next((cause for cause in causes if ":" in cause), "")


def _where(pages: Iterable[Page], *names: str) -> str:
    """The pages by the cause that each has of one of these names: `/, /about/ (base.html:12) and /blog/`."""
    found: dict[str, list[str]] = {}
    for page in pages:
        cause = next((page.causes[name] for name in names if name in page.causes), "")
        found.setdefault(cause, []).append(page.path)
    return " and ".join(", ".join(paths) + (f" ({cause})" if cause else "") for cause, paths in found.items())
