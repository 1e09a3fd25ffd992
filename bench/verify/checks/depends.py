"""No layer gives one client's page to another: pairs of clients that differ in one property, on probe pages and on the
project's pages.

The right page of each client is rendered by the same servers, past every layer. A page that is the same for clients
that differ in everything needs no more tests. Of any other page, each client is once the first to request it cold.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TypeVar

from bench.verify import hits
from bench.verify.check import check
from bench.verify.context import Context
from bench.verify.in_process import ExpectedPage, as_in_process
from bench.verify.mismatch import NEEDS_PROBES, Finding, NotTried
from bench.verify.odd_clients import (
    USUAL,
    OddClient,
    by_address,
    by_cookies,
    by_headers,
    by_host,
    by_language,
    by_token,
    merged,
)
from bench.verify.site import MAX_PAGES
from bench.verify.wire import PageResponse

PURGE = "/__probe__/purge/"
# A server with pages in files may look only once a second if its open file is still current.
COLD_S = 2.5
# Requests of each client: a layer may store a page at its second request.
TIMES = 2
# The status of a host that the site does not serve.
REFUSED_HOST = 400
# How many pages are compared at a time.
AT_ONCE = 4

Clients = Callable[[Context], Iterable[OddClient]]
Shown = TypeVar("Shown")


@check("depends-address", hits.require_probes, group="caching", leak=True)
def depends_address(context: Context) -> Iterator[Finding]:
    """A page that depends on the client's address is served to clients of this address only."""
    yield from _apart(context, by_address, ["meta REMOTE_ADDR", "peer", "X-Forwarded-For"])


@check("depends-host", hits.require_probes, group="caching", leak=True)
def depends_host(context: Context) -> Iterator[Finding]:
    """A page that depends on the host, however the host is read and written, is served to requests for this host
    only."""
    yield from _refused_names(context)
    yield from _apart(context, by_host, ["absolute", "meta HTTP_HOST", "Host", "meta SERVER_PORT"])


@check("depends-token", hits.require_probes, group="caching", leak=True)
def depends_token(context: Context) -> Iterator[Finding]:
    """A page with the CSRF cookie of a visitor is served to nobody else."""
    yield from _apart(context, by_token, [f"cookie {context.site.token_cookie}", "meta CSRF_COOKIE"])


@check("depends-cookies", hits.require_probes, group="caching", leak=True)
def depends_cookies(context: Context) -> Iterator[Finding]:
    """A page that depends on a cookie (a theme, country or campaign) is served to clients with this cookie
    only."""
    yield from _apart(context, by_cookies, ["cookie theme", "cookie utm_campaign"])


@check("depends-headers", hits.require_probes, group="caching", leak=True)
def depends_headers(context: Context) -> Iterator[Finding]:
    """A page that depends on a header, read in middleware or a view, is served to clients with the same header only,
    and no cache chooses the language of a page that the site chooses otherwise."""
    yield from _chosen_languages(context)
    shows = ["User-Agent", "CF-IPCountry", "Accept", "meta CONTENT_TYPE", "Sec-CH-UA-Mobile", "X-Forwarded-Host"]
    yield from _apart(context, by_headers, ["meta SERVER_PROTOCOL", "meta SCRIPT_NAME", *shows])


def _refused_names(context: Context) -> Iterator[NotTried]:
    """The names that the servers accept and the site refuses: no page under these names can be compared."""
    for client in by_host(context):
        if not client.alias and client.get(context, context.site.url("home"), _nobody()).status == REFUSED_HOST:
            remedy = "give all names, as --env ALLOWED_HOSTS=127.0.0.1,a.example,b.example"
            yield NotTried(f"the site refuses {client.name} with {REFUSED_HOST}: {remedy}")


def _apart(context: Context, clients: Clients, shows: Sequence[str]) -> Iterator[Finding]:
    """Findings on the pages of these clients."""
    if dependent := _dependent_pages(context):
        context.require_exclusive()
    for path in dependent[:MAX_PAGES]:
        for client in clients(context):
            yield from _of_project(context, path, client)
    if left := dependent[MAX_PAGES:]:
        yield NotTried(f"{len(left)} more pages depend on the client, such as {left[0]}: {MAX_PAGES} are compared")
    usual = _shown(context, USUAL, shows)
    for client in clients(context):
        for show in shows:
            yield from _probed(context, client.showing(show), show, usual.get(show))
        for other in client.like:
            yield from _probed(context, other, shows[0], usual.get(shows[0]))


def _chosen_languages(context: Context) -> Iterator[Finding]:
    """Findings on pages that are the same for clients who name a language: a layer may look for it by itself."""
    dependent = _dependent_pages(context)
    for path in _pages(context):
        if path in dependent:
            continue
        for client in by_language():
            right = _rendered(context, path, client)
            if not right.same(_expected(context, client.get(context, path))):
                # Nothing else writes meanwhile, and no page is old.
                context.require_exclusive()
                yield from _both_orders(context, path, client, right, _rendered(context, path, USUAL))


def _probed(context: Context, client: OddClient, show: str, usual: str | None) -> Iterator[Finding]:
    """Findings on new probe pages that show one property of the request; `usual` is the usual client's text."""
    odd = _shown(context, client, [show]).get(show)
    if odd is None or usual is None or odd == usual:
        return
    for order, clients in _orders(client, odd, usual):
        path = hits.path_with_response(shows=[show])
        for sender, allowed in clients:
            for _ in range(TIMES):
                response = sender.get(context, path)
                if (got := response.paragraphs.get(show)) not in allowed:
                    what = f"GET a page that shows {show}, {order} with {client.name}"
                    yield response.wrong(allowed[0], str(got), what)
                    return


def _orders(client: OddClient, odd: Shown, usual: Shown) -> Iterator[tuple[str, list[tuple[OddClient, list[Shown]]]]]:
    """Both orders of an odd client and the usual one, in words: the clients, each with the responses allowed to it."""
    allowed_to_odd = [odd]
    if client.alias:
        allowed_to_odd.append(usual)
    clients = [(client, allowed_to_odd), (USUAL, [usual])]
    yield "after a client", clients
    yield "after the usual client, by one", clients[::-1]


def _shown(context: Context, client: OddClient, shows: Sequence[str]) -> Mapping[str, str]:
    """The texts of a page rendered for this client, by the property they show; empty if the client gets no page."""
    return client.get(context, hits.path_with_response(shows=shows), _nobody()).paragraphs


def _pages(context: Context) -> list[str]:
    """The project's public pages, including pages refused to the usual client, except pages that change by
    themselves."""
    site = context.site
    paths = list(site.description.public)
    if site.has_database:
        paths += site.plain_paths
    left_out = set(site.description.health_checks)
    if site.has_database:
        left_out |= {path for path, page in site.pages.items() if page.varies}
    return [path for path in dict.fromkeys(paths) if path not in left_out]


def _dependent_pages(context: Context) -> list[str]:
    """The pages with another text for clients with every difference at once, pages without `private` first."""
    strangers = merged(context)

    def depends(path: str) -> bool:
        return any(_differing(context, path, client) for client in strangers)

    with context.lock:
        if context.dependent is None:
            paths = _pages(context)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                shown = list(pool.map(partial(_shows_session, context), paths))
                context.showing_session = frozenset(compress(paths, shown))
                answers = list(pool.map(depends, paths))
            context.dependent = sorted(
                compress(paths, answers), key=lambda path: "private" in context.get(path).names("Cache-Control")
            )
        return context.dependent


def _shows_session(context: Context, path: str) -> bool:
    """True if a session of nobody changes the page, as in a project with another menu for visitors with a session."""
    known = _known(context, path)
    return known is not None and not known.same(_rendered(context, path, USUAL))


def _known(context: Context, path: str) -> ExpectedPage | None:
    """The page as rendered in process, if it was."""
    if not context.site.has_database:
        return None
    return context.site.pages.get(path)


def _of_project(context: Context, path: str, client: OddClient) -> Iterator[Finding]:
    """Findings on a page of the project, for each header and cookie that changes the page."""
    if not (right := _differing_where_served(context, path, client)):
        return
    pairs = []
    for single in client.singles():
        if rendered := _differing_where_served(context, path, single):
            pairs.append((single, rendered))
    for single, rendered in pairs or [(client, right)]:
        yield from _both_orders(context, path, single, *rendered)


def _differing_where_served(context: Context, path: str, client: OddClient) -> tuple[ExpectedPage, ExpectedPage] | None:
    """The two different pages; None if equal, or if the site refuses the client's host."""
    pages = _differing(context, path, client)
    if pages and pages[0].status != REFUSED_HOST:
        return pages
    return None


def _differing(context: Context, path: str, client: OddClient) -> tuple[ExpectedPage, ExpectedPage] | None:
    """The pages rendered for this client and for the usual one; None if equal."""
    odd = _rendered(context, path, client)
    known = _known(context, path)
    if known is not None and known.same(odd):
        return None
    usual = _rendered(context, path, USUAL)
    if usual.same(odd):
        return None
    # A text that changes with each rendering is no difference.
    again = _rendered(context, path, USUAL)
    usual = ExpectedPage(usual.status, usual.content_type, usual.body, (again.body,), usual.location)
    odd_again = _rendered(context, path, client)
    odd = ExpectedPage(odd.status, odd.content_type, odd.body, (odd_again.body,), odd.location)
    if usual.same(odd) or usual.same(odd_again):
        return None
    return (odd, usual)


def _rendered(context: Context, path: str, client: OddClient) -> ExpectedPage:
    """The page as rendered for this client past every layer: with a session of nobody, or, if the session changes the
    page, with a new query string."""
    if path not in context.showing_session:
        return _expected(context, client.get(context, path, _nobody()))
    first = _expected(context, client.get(context, hits.with_query(path, _nobody())))
    again = _expected(context, client.get(context, hits.with_query(path, _nobody())))
    # The page may show its query string.
    return replace(first, again=(again.body,))


def _expected(context: Context, response: PageResponse) -> ExpectedPage:
    text = as_in_process(response.text, context.target)
    return ExpectedPage(response.status, response.content_type, text, location=response.header("Location"))


def _nobody() -> str:
    """A new session of nobody."""
    return f"nobody{secrets.token_hex(8)}"


def _both_orders(
    context: Context, path: str, client: OddClient, odd: ExpectedPage, usual: ExpectedPage
) -> Iterator[Finding]:
    for order, clients in _orders(client, odd, usual):
        _make_cold(context)
        for sender, allowed in clients:
            for _ in range(TIMES):
                response = sender.get(context, path)
                got = _expected(context, response)
                if not any(right.same(got) and right.location == got.location for right in allowed):
                    wanted, actual_text = allowed[0].difference(got.body) or ("another response", "the same text")
                    words = f"status {allowed[0].status}, {wanted}"
                    what = f"GET {path}, {order} with {client.name}"
                    yield response.wrong(words, f"status {got.status}, {actual_text}", what)
                    return


def _make_cold(context: Context) -> None:
    """Take all pages out of the layers."""
    if hits.without_invalidation(context):
        context.own.empty_layer()
        return
    response = context.get(PURGE, method="POST", body=b"")
    if response.status != 200:
        raise NotTried(NEEDS_PROBES)
    if hits.stores_bodies(context):
        time.sleep(COLD_S)
