"""No visitor sees another visitor's page."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import permutations

from bench.verify import page_parser
from bench.verify.browser import Browser
from bench.verify.check import LAYER, check
from bench.verify.context import Context
from bench.verify.finding import Finding, Mismatch
from bench.verify.hits import new_path, paragraphs, render_id, require_probes, until_hit
from bench.verify.layer_facts import without_invalidation
from bench.verify.wire import Answer
from bench.verify.writer import new_rows, require_rows

ANONYMOUS = ""
AT_ONCE = 8
# A web server may check only once a second whether its open file still is the page.
COLD_S = 2.5
PAUSE_S = 0.05
# A token or a session has at least so many.
SECRET_CHARACTERS = 12
# How many pages two accounts are kept apart on.
MAX_PAGES = 12


@dataclass
class Visitor:
    """A visitor, with the tokens and cookies they got, to be compared with those of others.

    name   of the account, empty when anonymous
    proof  the text that only pages for them show
    """

    name: str
    browser: Browser
    proof: str = ""
    tokens: set[str] = field(default_factory=set)
    cookies: set[str] = field(default_factory=set)

    def read(self, path: str) -> Answer:
        """Request a page and note the tokens and cookies that came with it."""
        answer = self.browser.get(path)
        self.tokens |= page_parser.tokens(answer.text)
        given = {line.split(";")[0] for line in answer.all("Set-Cookie")}
        # A short one, such as of a language, may well be that of another visitor.
        self.cookies |= {pair for pair in given if len(pair.partition("=")[2]) >= SECRET_CHARACTERS}
        return answer

    @property
    def who(self) -> str:
        return self.name or "an anonymous visitor"


def visitors(context: Context) -> list[Visitor]:
    """Two logged-in accounts and an anonymous visitor."""
    found = [visitor(context, number) for number in (0, 1)]
    return [*found, Visitor(ANONYMOUS, Browser(context.target))]


def visitor(context: Context, number: int) -> Visitor:
    """The visitor of an account, logged in."""
    account = context.member(number)
    return Visitor(account.username, context.browser_of(number), context.site.proof(account))


@check("accounts-apart", stage=LAYER, thorough=True, accounts=2)
def accounts_apart(context: Context) -> Iterator[Finding]:
    """Two accounts and an anonymous visitor read public pages and their own; each is first once at a page that is not
    cached yet. None sees what only another's page shows, nor gets another's token or cookie."""
    site = context.site
    context.site.url("login")
    everybody = visitors(context)
    paths = list(dict.fromkeys([*site.proof_paths, *site.public_paths]))[:MAX_PAGES]
    for number in range(len(everybody)):
        order = [*everybody[number:], *everybody[:number]]
        for path in paths:
            # A query that nobody has sent makes even a page that is cached already a new one.
            new = f"{path}{'&' if '?' in path else '?'}visit={secrets.token_hex(4)}"
            for asked in (new, path):
                for visitor in order:
                    yield from _others(visitor, asked, visitor.read(asked), everybody, path in site.proof_paths)
    yield from _shared(everybody)


def _others(who: Visitor, path: str, answer: Answer, everybody: list[Visitor], own: bool) -> Iterator[Mismatch]:
    """What of others, or what not of their `own`, a visitor sees on a page."""
    text = answer.text
    for other in everybody:
        if other.proof and other is not who and other.proof in text:
            yield Mismatch(f"GET {path} by {who.who}: not what only {other.who} may see", other.proof)
    if own and who.proof and who.proof not in text:
        yield Mismatch(f"GET {path} by {who.who}: {who.proof}", f"status {answer.status} without it")


def _shared(everybody: list[Visitor]) -> Iterator[Mismatch]:
    """Tokens and cookies that one visitor got and another got, too."""
    for one, other in permutations(everybody, 2):
        if shared := (one.tokens & other.tokens) | (one.cookies & other.cookies):
            yield Mismatch(f"no token or cookie of {one.who} for {other.who}", ", ".join(sorted(shared)))


@check("orders", group="privacy", accounts=2)
def orders(context: Context) -> Iterator[Finding]:
    """Two accounts and an anonymous visitor read home, a list, a detail and a probe page in every order: each gets
    their own page, without another's name, token or cookie."""
    require_probes(context)
    cold = _cold_pages(context)
    everybody = visitors(context)
    names = {item.name for item in everybody} - {ANONYMOUS}
    lists, details = cold
    for number, order in enumerate(permutations(everybody)):
        for path in (context.site.url("home"), lists[number % len(lists)], details[number % len(details)], new_path()):
            # Each twice: the second answer may be a hit.
            for visitor in (*order, *order):
                yield from _foreign(context, visitor, path, visitor.read(path), names)
    yield from _shared(everybody)


def _cold_pages(context: Context) -> tuple[list[str], list[str]]:
    """Lists and details that nobody has requested yet, one for each order where the site has so many."""
    listed = context.site.url("section")
    details = [
        link
        for link in page_parser.parse(context.get(listed).text).links
        if re.fullmatch(rf"{re.escape(listed)}\d+/", link)
    ]
    pages = [f"{listed}page/{number}/" for number in range(3, 9)]
    pages = [path for path in pages if context.get(f"{path}?cold=1").status == 200]
    return pages or [listed], list(dict.fromkeys(details)) or [context.site.url("detail")]


def _foreign(context: Context, visitor: Visitor, path: str, answer: Answer, names: set[str]) -> Iterator[Mismatch]:
    """What in an answer is not for this visitor."""
    text = answer.text
    if foreign := [name for name in names - {visitor.name} if name in text]:
        yield Mismatch(f"GET {path} by {visitor.who}: not the name of another", ", ".join(foreign))
    if visitor.name and visitor.name not in text:
        yield Mismatch(f"GET {path} by {visitor.who}: their own name", f"status {answer.status} without it")
    if not visitor.name and "csrfmiddlewaretoken" in text:
        yield Mismatch(f"GET {path} by {visitor.who}: no CSRF token", "one")
    if not visitor.name and f"{context.site.session_cookie}=" in (answer.header("Set-Cookie") or ""):
        yield Mismatch(f"GET {path} by {visitor.who}: no session", f"Set-Cookie: {answer.header('Set-Cookie')}")


@check("cold-pages", group="privacy", accounts=1)
def cold_pages(context: Context) -> Iterator[Finding]:
    """An account is the first to read home, a list and details after a write: no other visitor gets its pages.

    Under a layer without invalidation it reads only details, of new rows.
    """
    require_rows(context)
    account = Visitor(context.member(0).username, context.browser_of(0))
    anonymous = Visitor(ANONYMOUS, Browser(context.target))
    shared = [] if without_invalidation(context) else [context.site.url("home"), context.site.url("section")]
    for path in shared:
        anonymous.read(path)
    with new_rows(context) as (_, (row,)):
        paths = [path for path in (*shared, row.author_page, row.post_page) if path]
        own = [(path, account.read(path)) for path in (*paths, *paths)]
        deadline = time.monotonic() + COLD_S
        others = [(path, answer) for path in paths for answer in _until(anonymous, path, row.title or "", deadline)]
    for visitor, answers in ((account, own), (anonymous, others)):
        for path, answer in answers:
            yield from _foreign(context, visitor, path, answer, {account.name})
    if given := {render_id(answer) for _, answer in own} & {render_id(answer) for _, answer in others} - {None}:
        yield Mismatch("no rendering for an account given to anybody else", f"{len(given)} of them")
    if shared_items := (account.tokens & anonymous.tokens) | (account.cookies & anonymous.cookies):
        yield Mismatch(f"no token or cookie of {account.who} for others", ", ".join(sorted(shared_items)))


def _until(visitor: Visitor, path: str, words: str, deadline: float) -> Iterator[Answer]:
    """The visitor's answers until one has these words or the time is over, and two more."""
    while True:
        answer = visitor.read(path)
        yield answer
        if words in answer.text or time.monotonic() > deadline:
            break
        time.sleep(PAUSE_S)
    yield visitor.read(path)
    yield visitor.read(path)


@check("signed-in-not-kept", group="privacy", accounts=1)
def signed_in_not_kept(context: Context) -> Iterator[Finding]:
    """Pages rendered for a logged-in visitor are never cached, and logged-in visitors never get cached pages."""
    require_probes(context)
    account, browser = context.member(0), context.browser_of(0)
    path = new_path()
    own = [browser.get(path) for _ in range(3)]
    until_hit(context, path, tries=4)
    others = [context.get(path) for _ in range(3)]
    own += [browser.get(path) for _ in range(3)]
    if len(set(map(render_id, own))) < len(own):
        yield Mismatch(f"GET {path} logged in, {len(own)} times: as many renderings", "a hit")
    if set(map(render_id, own)) & set(map(render_id, others)):
        yield Mismatch(f"GET {path} anonymously: no rendering for the logged-in visitor", "the same rendering")
    session = browser.cookies[context.site.session_cookie]
    for cookie in (
        f"{context.site.session_cookie}={session}",
        f"_ga=1;{context.site.session_cookie}={session}",
        f"{context.site.session_cookie}=; {context.site.session_cookie}={session}",
        f"_ga=1; {context.site.session_cookie}={session}; _gid=2",
        f'a="x y"; {context.site.session_cookie}={session}',
    ):
        if (got := paragraphs(context.get(path, {"Cookie": cookie})).get("user")) != account.username:
            yield Mismatch(f"GET {path} with Cookie: {cookie}: the page of {account.username}", f"that of {got}")


@check("own-token-works", group="privacy", accounts=2)
def own_token_works(context: Context) -> Iterator[Finding]:
    """An account's form works with its own token after another account and an anonymous visitor read the page."""
    post = context.site.url("commented")
    first, second, anonymous = visitors(context)
    for visitor in (first, anonymous, second, first, anonymous):
        visitor.read(post)
    form = page_parser.parse(second.read(post).text, post).comment_form()
    if form is None:
        yield Mismatch(f"GET {post} by {second.who}: a form for a comment", "none")
        return
    words = f"verified {secrets.token_hex(8)}"
    context.posts.append(post.rstrip("/").rpartition("/")[2])
    answer = second.browser.post(form.action, {**form.values, **dict.fromkeys(form.texts, words)})
    if not 300 <= answer.status < 400:
        yield Mismatch(f"POST {form.action} by {second.who} with its token: a redirect", f"status {answer.status}")
        return
    if words not in (page_shown := second.browser.follow(answer)).text:
        yield Mismatch(f"the page after it: the comment {words!r}", f"status {page_shown.status} without it")
    foreign = {**form.values, "csrfmiddlewaretoken": next(iter(first.tokens), "none")}
    if (got := second.browser.post(form.action, {**foreign, **dict.fromkeys(form.texts, words)}).status) != 403:
        yield Mismatch(f"POST {form.action} by {second.who} with another's token: status 403", f"status {got}")


@check("personal-at-once", group="privacy")
def personal_at_once(context: Context) -> Iterator[Finding]:
    """Visitors who request a page with a CSRF token at the same time each get their own token and cookie."""
    require_probes(context)
    path = new_path("odd/token")

    def visit(_: int) -> Visitor:
        visitor = Visitor(ANONYMOUS, Browser(context.target))
        visitor.read(path)
        return visitor

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(visit, range(AT_ONCE)))
    for what in ("tokens", "cookies"):
        given = [item for visitor in found for item in getattr(visitor, what)]
        if len(set(given)) < AT_ONCE:
            yield Mismatch(f"GET {path} by {AT_ONCE} at once: {AT_ONCE} {what}", f"{len(set(given))}")
