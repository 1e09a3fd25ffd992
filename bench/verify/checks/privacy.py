"""No visitor sees another visitor's page."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, cycle, permutations

from bench.verify import hits, page_parser
from bench.verify.check import LAYER
from bench.verify.check import check as any_check
from bench.verify.checks.accounts import write_comment
from bench.verify.context import Context
from bench.verify.expect import status
from bench.verify.mismatch import Finding, Mismatch
from bench.verify.page_parser import TOKEN
from bench.verify.rows import new_rows, require_rows
from bench.verify.site import MAX_PAGES
from bench.verify.visitor import Visitor
from bench.verify.wire import PageResponse

AT_ONCE = 8
# A web server may check only once a second whether its open file still is the page.
COLD_S = 2.5
PAUSE_S = 0.05
# A header of the servers' own in their configuration.
_INTERNAL = re.compile(r"\b[Xx]-[A-Za-z]+(?:-[A-Za-z]+)*")

check = partial(any_check, group="privacy")


def readers(context: Context) -> list[Visitor]:
    """Two logged-in accounts and an anonymous visitor."""
    return [context.member_visitor(0), context.member_visitor(1), Visitor(context.target)]


def _not_theirs(reader: Visitor, response: PageResponse, everybody: Iterable[Visitor], own: bool) -> Iterator[Finding]:
    """Findings on a visitor's page: secrets of others, or something missing of their `own`."""
    what, text = f"{response.sent and f'{response.sent.method} {response.sent.path!s}'} by {reader.who}", response.text
    for other in everybody:
        if other.proof and other is not reader and other.proof in text:
            yield response.wrong(f"not what only {other.who} may see", other.proof, what)
    if own and reader.proof and reader.proof not in text:
        yield response.wrong(reader.proof, f"status {response.status} without it", what)


def _shared(everybody: list[Visitor]) -> Iterator[Finding]:
    """Tokens and cookies given to more than one visitor."""
    for one, other in permutations(everybody, 2):
        if shared := one.secrets & other.secrets:
            yield Mismatch(f"no token or cookie of {one.who} for {other.who}", ", ".join(sorted(shared)))


@check("accounts-apart", group="behaviour", stage=LAYER, thorough=True, leak=True)
def accounts_apart(context: Context) -> Iterator[Finding]:
    """Two accounts and an anonymous visitor read public pages and their own; each is once the first at a page that is
    not cached yet. None sees contents of another's page, nor gets another's token or cookie."""
    site = context.site
    site.url("login")
    everybody = readers(context)
    paths = list(dict.fromkeys([*site.proof_paths, *site.public_paths]))[:MAX_PAGES]
    for number in range(len(everybody)):
        order = [*everybody[number:], *everybody[:number]]
        for path in paths:
            # A new query makes even a cached page a new one.
            new = hits.with_query(path, f"visit={secrets.token_hex(4)}")
            # Each process may have a separate cache: a page stored by one must get requests of others there.
            for requested, times in ((new, hits.TIMES), (path, 1)):
                for reader in order:
                    for _ in range(times):
                        yield from _not_theirs(reader, reader.get(requested), everybody, path in site.proof_paths)
    yield from _shared(everybody)


@check("orders", hits.require_probes)
def orders(context: Context) -> Iterator[Finding]:
    """Two accounts and an anonymous visitor read home, a list, a detail and a probe page in every order: each gets
    their own page, without another's name, token or cookie."""
    lists, details = _cold_pages(context)
    everybody = readers(context)

    def read(pages: Iterable[str]) -> list[Finding]:
        findings: list[Finding] = []
        for path, order in zip(pages, permutations(everybody), strict=False):
            # Each twice: the second response may be a hit.
            for reader in (*order, *order):
                findings += _not_theirs(reader, response := reader.get(path), everybody, own=True)
                findings += _anonymous(context, reader, response)
        return findings

    kinds = ([context.site.url("home")], lists, details, [hits.new_path() for _ in permutations(everybody)])
    with ThreadPoolExecutor(len(kinds)) as pool:
        for findings in pool.map(read, map(cycle, kinds)):
            yield from findings
    yield from _shared(everybody)


def _anonymous(context: Context, reader: Visitor, response: PageResponse) -> Iterator[Finding]:
    """Findings on traces of a session for an anonymous visitor."""
    if not reader.name:
        if TOKEN in response.text:
            yield response.wrong("no CSRF token for an anonymous visitor", "one")
        if f"{context.site.session_cookie}=" in (response.header("Set-Cookie") or ""):
            yield response.wrong("no session for an anonymous visitor", response.header("Set-Cookie"))


def _cold_pages(context: Context) -> tuple[list[str], list[str]]:
    """Lists and details without requests so far, one for each order if the site has enough."""
    listed = context.site.url("section")
    links = page_parser.ParsedPage(context.get(listed).text).links
    details = [link for link in links if re.fullmatch(rf"{re.escape(listed)}\d+/", link)]
    pages = []
    for number in range(3, 9):
        path = f"{listed}page/{number}/"
        if context.get(f"{path}?cold=1").status == 200:
            pages.append(path)
    return pages or [listed], list(dict.fromkeys(details)) or [context.site.url("detail")]


@check("cold-pages", require_rows, is_exclusive=True)
def cold_pages(context: Context) -> Iterator[Finding]:
    """An account is the first to read home, a list and details after a write: no other visitor gets its pages.

    Under a layer without invalidation the account reads only details of new rows.
    """
    account, other = context.member_visitor(0), Visitor(context.target)
    shared = [context.site.url("home"), context.site.url("section")]
    if hits.without_invalidation(context):
        shared = []
    for path in shared:
        other.get(path)
    with new_rows(context) as (_, (row,)):
        paths = [path for path in (*shared, row.author_page, row.post_page) if path]
        own = [account.get(path) for path in (*paths, *paths)]
        deadline = time.monotonic() + COLD_S
        others: list[PageResponse] = []
        for path in paths:
            others += _until(other, path, row.title or "", deadline)
    for reader, responses in ((account, own), (other, others)):
        for response in responses:
            yield from _not_theirs(reader, response, (account, other), own=True)
            yield from _anonymous(context, reader, response)
    if given := [response for response in others if response.render_id and hits.is_hit(response, own)]:
        yield given[0].wrong("no rendering for an account given to anybody else", f"{len(given)} of them")
    yield from _shared([account, other])


def _until(reader: Visitor, path: str, words: str, deadline: float) -> Iterator[PageResponse]:
    """The visitor's responses until one has these words or the time is over, and two more."""
    while True:
        response = reader.get(path)
        yield response
        if words in response.text or time.monotonic() > deadline:
            break
        time.sleep(PAUSE_S)
    yield reader.get(path)
    yield reader.get(path)


@check("signed-in-not-kept", hits.require_probes)
def signed_in_not_kept(context: Context) -> Iterator[Finding]:
    """Pages rendered for a logged-in visitor are never cached, and logged-in visitors never get cached pages."""
    visitor = context.member_visitor(0)
    path = hits.new_path()
    own = [visitor.get(path) for _ in range(hits.TIMES)]
    hits.until_hit(context, path, tries=4)
    others = hits.repeat(context, path)
    own += [visitor.get(path) for _ in range(hits.TIMES)]
    yield from hits.distinct(own, "renderings for a logged-in visitor")
    if any(hits.is_hit(response, own) for response in others):
        yield others[0].wrong("no rendering for the logged-in visitor", "the same rendering")
    name = context.site.session_cookie
    session = f"{name}={visitor.cookies[name]}"
    first = (f"_ga=1;{session}", f"{name}=; {session}", f"_ga=1; {session}; _gid=2", f'a="x y"; {session}')
    for cookie in (session, *first):
        yield from context.expect(path, hits.has_paragraph("user", visitor.name), headers={"Cookie": cookie})


@check("forged-internal", hits.require_probes)
def forged_internal(context: Context) -> Iterator[Finding]:
    """A client that forges an internal header of the servers with an account's session makes no page of this account
    for others."""
    session = context.site.session_cookie
    cookie = f"{session}={context.member_visitor(0).cookies[session]}"
    texts = [path.read_text("utf-8", "replace") for path in context.own.layout.conf.rglob("*") if path.is_file()]
    names = chain.from_iterable(map(_INTERNAL.findall, texts))
    for name in sorted({name.title() for name in names}):
        path = hits.new_path()
        hits.repeat(context, path, hits.TIMES, {name: cookie})
        yield from context.expect(
            path, hits.has_paragraph("user", "nobody"), when=f"after a client sent a session as {name}"
        )


@check("own-token-works", is_exclusive=True)
def own_token_works(context: Context) -> Iterator[Finding]:
    """An account's form works with its own token after another account and an anonymous visitor read the page."""
    post = context.site.url("commented")
    first, second, other = readers(context)
    for reader in (first, other, second, first, other):
        reader.get(post)
    form = second.comment_form(post)
    words, response = yield from write_comment(context, second, form)
    if response.redirects:
        foreign = second.write_into(form, words, **{TOKEN: next(iter(first.tokens), "none")})
        yield from context.judge(foreign, status(403), when="with another's token")


@check("personal-at-once", hits.require_tokens)
def personal_at_once(context: Context) -> Iterator[Finding]:
    """Visitors who request a page with a CSRF token at the same time each get their own token and cookie for a working
    form."""
    path = hits.path_with_response(does=["token"], bare=True)

    def visit(_: int) -> tuple[Visitor, PageResponse]:
        reader = Visitor(context.target)
        return reader, reader.post(path, {TOKEN: reader.token(path) or ""})

    with ThreadPoolExecutor(AT_ONCE) as pool:
        visits = list(pool.map(visit, range(AT_ONCE)))
    tokens: set[str] = set()
    cookies: set[str] = set()
    for reader, _ in visits:
        tokens |= reader.tokens
        if cookie := reader.cookies.get(context.site.token_cookie):
            cookies.add(cookie)
    for what, given in (("tokens", tokens), ("cookies", cookies)):
        if len(given) < AT_ONCE:
            yield Mismatch(f"GET {path} by {AT_ONCE} at once: {AT_ONCE} {what}", f"{len(given)}")
    for _, response in visits:
        yield from context.judge(response, status(200), when="with its own token")
