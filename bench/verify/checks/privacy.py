"""Nobody sees another's page."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import permutations

from bench.verify import page
from bench.verify.browser import SESSION_COOKIE, Browser
from bench.verify.laid import untold
from bench.verify.outcome import Finding
from bench.verify.probes import fresh, kept, must_have_probes, rendering, shown
from bench.verify.rows import made
from bench.verify.suite import Context, Mismatch, check
from bench.verify.wire import Answer

ANONYMOUS = ""
AT_ONCE = 8
# A web server may look only once a second whether the file that it keeps open is still the page's.
COLD_S = 2.5
PAUSE_S = 0.05


@dataclass
class Visitor:
    """Somebody who reads: what they were given, to be compared with what others were given.

    name  of the account, empty when anonymous
    """

    name: str
    browser: Browser
    tokens: set[str] = field(default_factory=set)
    cookies: set[str] = field(default_factory=set)

    def read(self, path: str) -> Answer:
        """Ask for a page and note the tokens and cookies that came with it."""
        answer = self.browser.get(path)
        for form in page.read(answer.text, path).forms:
            if token := form.values.get("csrfmiddlewaretoken"):
                self.tokens.add(token)
        self.cookies |= {line.split(";")[0] for line in answer.all("Set-Cookie")}
        return answer

    @property
    def who(self) -> str:
        return self.name or "nobody in particular"


def visitors(context: Context) -> list[Visitor]:
    """Two accounts that are logged in, and an anonymous visitor."""
    found = [Visitor(context.member(number).username, context.browser_of(number)) for number in (0, 1)]
    return [*found, Visitor(ANONYMOUS, Browser(context.target))]


@check("orders", group="privacy", accounts=2)
def orders(context: Context) -> Iterator[Finding]:
    """Two accounts and an anonymous visitor read home, a list, a detail and a probe page in every order: each gets the
    own page, with no name, token or cookie of another."""
    must_have_probes(context)
    everybody = visitors(context)
    names = {item.name for item in everybody} - {ANONYMOUS}
    lists, details = _cold_pages(context)
    for number, order in enumerate(permutations(everybody)):
        for path in (context.site.url("home"), lists[number % len(lists)], details[number % len(details)], fresh()):
            # Each twice: the second answer is the one that may have been kept.
            for visitor in (*order, *order):
                yield from _foreign(visitor, path, visitor.read(path), names)
    for one, other in permutations(everybody, 2):
        if shared := (one.tokens & other.tokens) | (one.cookies & other.cookies):
            yield Mismatch(f"no token or cookie of {one.who} for {other.who}", ", ".join(sorted(shared)))


def _cold_pages(context: Context) -> tuple[list[str], list[str]]:
    """Lists and details, one for each order where the site has so many, that nobody has asked for yet."""
    listed = context.site.url("posts")
    details = [link for link in page.read(context.get(listed).text).links if re.fullmatch(r"/posts/\d+/", link)]
    pages = [f"{listed}page/{number}/" for number in range(3, 9)]
    pages = [path for path in pages if context.get(f"{path}?cold=1").status == 200]
    return pages or [listed], list(dict.fromkeys(details)) or [context.site.url("post_with_comments", "post")]


def _foreign(visitor: Visitor, path: str, answer: Answer, names: set[str]) -> Iterator[Mismatch]:
    """What there is in an answer that is not for this visitor."""
    text = answer.text
    if foreign := [name for name in names - {visitor.name} if name in text]:
        yield Mismatch(f"GET {path} by {visitor.who}: not the name of another", ", ".join(foreign))
    if visitor.name and visitor.name not in text:
        yield Mismatch(f"GET {path} by {visitor.who}: the own name", f"status {answer.status} without it")
    if not visitor.name and "csrfmiddlewaretoken" in text:
        yield Mismatch(f"GET {path} by {visitor.who}: no CSRF token", "one")
    if not visitor.name and f"{SESSION_COOKIE}=" in (answer.header("Set-Cookie") or ""):
        yield Mismatch(f"GET {path} by {visitor.who}: no session", f"Set-Cookie: {answer.header('Set-Cookie')}")


@check("cold-pages", group="privacy", accounts=1)
def cold_pages(context: Context) -> Iterator[Finding]:
    """Home, a list and details that an account is the first to read after a write are not kept as the account saw
    them; of a layer that cannot be told of a write, the details of what is new."""
    account = Visitor(context.member(0).username, context.browser_of(0))
    anonymous = Visitor(ANONYMOUS, Browser(context.target))
    shared = [] if untold(context) else [context.site.url("home"), context.site.url("posts")]
    for path in shared:
        anonymous.read(path)
    with made(context) as (_, (row,)):
        paths = [path for path in (*shared, row.author_page, row.post_page) if path]
        own = [(path, account.read(path)) for path in (*paths, *paths)]
        deadline = time.monotonic() + COLD_S
        others = [(path, answer) for path in paths for answer in _until(anonymous, path, row.title or "", deadline)]
    for visitor, answers in ((account, own), (anonymous, others)):
        for path, answer in answers:
            yield from _foreign(visitor, path, answer, {account.name})
    if given := {rendering(answer) for _, answer in own} & {rendering(answer) for _, answer in others} - {None}:
        yield Mismatch("no rendering for an account given to another", f"{len(given)} of them")
    if shared_items := (account.tokens & anonymous.tokens) | (account.cookies & anonymous.cookies):
        yield Mismatch(f"no token or cookie of {account.who} for others", ", ".join(sorted(shared_items)))


def _until(visitor: Visitor, path: str, words: str, deadline: float) -> Iterator[Answer]:
    """What the visitor is given until it has these words, or the time is over, and twice more then."""
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
    """What is rendered for who is logged in is never kept, and who is logged in is never given what was kept."""
    must_have_probes(context)
    account, browser = context.member(0), context.browser_of(0)
    path = fresh()
    own = [browser.get(path) for _ in range(3)]
    kept(context, path, tries=4)
    others = [context.get(path) for _ in range(3)]
    own += [browser.get(path) for _ in range(3)]
    if len(set(map(rendering, own))) < len(own):
        yield Mismatch(f"GET {path} logged in, {len(own)} times: as many renderings", "one that was kept")
    if set(map(rendering, own)) & set(map(rendering, others)):
        yield Mismatch(f"GET {path} anonymously: no rendering of who is logged in", "the same rendering")
    session = browser.cookies[SESSION_COOKIE]
    for cookie in (
        f"{SESSION_COOKIE}={session}",
        f"_ga=1;{SESSION_COOKIE}={session}",
        f"{SESSION_COOKIE}=; {SESSION_COOKIE}={session}",
        f"_ga=1; {SESSION_COOKIE}={session}; _gid=2",
        f'a="x y"; {SESSION_COOKIE}={session}',
    ):
        if (got := shown(context.get(path, {"Cookie": cookie})).get("user")) != account.username:
            yield Mismatch(f"GET {path} with Cookie: {cookie}: the page of {account.username}", f"that of {got}")


@check("own-token-works", group="privacy", accounts=2)
def own_token_works(context: Context) -> Iterator[Finding]:
    """A form works with its own token for one account after another account and an anonymous visitor read it."""
    first, second, anonymous = visitors(context)
    post = context.site.url("post_with_comments", "post")
    for visitor in (first, anonymous, second, first, anonymous):
        visitor.read(post)
    form = page.read(second.read(post).text, post).form("/comment/")
    if form is None:
        yield Mismatch(f"GET {post} by {second.who}: a form sent to {post}comment/", "none")
        return
    words = f"verified {secrets.token_hex(8)}"
    context.posts.append(post.rstrip("/").rpartition("/")[2])
    answer = second.browser.post(form.action, {**form.values, **dict.fromkeys(form.texts, words)})
    if not 300 <= answer.status < 400:
        yield Mismatch(f"POST {form.action} by {second.who} with the own token: a redirect", f"status {answer.status}")
        return
    if words not in (page_shown := second.browser.follow(answer)).text:
        yield Mismatch(f"the page after it: the comment {words!r}", f"status {page_shown.status} without it")
    foreign = {**form.values, "csrfmiddlewaretoken": next(iter(first.tokens), "none")}
    if (got := second.browser.post(form.action, {**foreign, **dict.fromkeys(form.texts, words)}).status) != 403:
        yield Mismatch(f"POST {form.action} by {second.who} with another's token: status 403", f"status {got}")


@check("personal-at-once", group="privacy")
def personal_at_once(context: Context) -> Iterator[Finding]:
    """Of several who ask at once for a page with a CSRF token, each gets a token and a cookie of its own."""
    must_have_probes(context)
    path = fresh("odd/token")

    def ask(_: int) -> Visitor:
        visitor = Visitor(ANONYMOUS, Browser(context.target))
        visitor.read(path)
        return visitor

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(ask, range(AT_ONCE)))
    for what in ("tokens", "cookies"):
        given = [item for visitor in found for item in getattr(visitor, what)]
        if len(set(given)) < AT_ONCE:
            yield Mismatch(f"GET {path} by {AT_ONCE} at once: {AT_ONCE} {what}", f"{len(set(given))}")
