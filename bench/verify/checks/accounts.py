"""Accounts: login, the visitor's name on pages, comments, CSRF."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

from bench.serve.machine.http import Route
from bench.verify import page_parser
from bench.verify.check import ACCOUNT, AFTER, check, excused, require_strict
from bench.verify.checks.page_content import leads_to
from bench.verify.context import Context
from bench.verify.expect import has, header, header_words, lacks, redirect, status
from bench.verify.mismatch import Figure, Finding, Mismatch
from bench.verify.page_parser import TOKEN, Form
from bench.verify.site import MAX_PAGES, Account
from bench.verify.visitor import Visitor, require_password
from bench.verify.wire import PageResponse

MAX_ATTEMPTS = 20
TOO_MANY = 429
# Passwords are slow to look at.
AT_ONCE = 4
# More accounts than an address may try, and two addresses.
MANY_ACCOUNTS = 60
# The address of a load balancer on this machine, which the site trusts.
BALANCER = "127.0.0.1"
ATTACKER, BYSTANDER = "203.0.113.20", "198.51.100.20"
FOREIGN_ORIGIN = {"Origin": "http://other.example"}
NO_TOKEN = {"no token": "the login form has no CSRF token"}
NO_LIMIT = {"no limit": f"the project looks at {MAX_ATTEMPTS} wrong passwords for an account: it has no limit"}
UP_TO_PROJECT = "how many accounts an address may try is up to the project"


@check("login-page", leak=True)
@excused(NO_TOKEN)
def login_page(context: Context) -> Iterator[Finding]:
    """Each visitor gets their own login form: no two share a CSRF token or a cookie."""
    login = context.site.url("login")
    visitors = [Visitor(context.target) for _ in range(2)]
    tokens = {visitor.token(login) for visitor in visitors} - {None}
    if not tokens:
        yield Mismatch(f"GET {login}: a form with a CSRF token", "none", excuse="no token")
        return
    lines = chain.from_iterable(visitor.set_cookies for visitor in visitors)
    cookies = {line.split(";")[0] for line in lines}
    for what, values in (("CSRF tokens", tokens), ("cookies", cookies)):
        if len(values) != len(visitors):
            yield Mismatch(f"GET {login} by {len(visitors)} visitors: as many {what}", f"{len(values)}")


@check("post-without-token")
@excused(NO_TOKEN)
def post_without_token(context: Context) -> Iterator[Finding]:
    """A POST without a CSRF token, with another visitor's token, or from another site gets a 403."""
    login = context.site.url("login")
    values = {"username": "nobody", "password": ""}
    visitor, other, stranger = (Visitor(context.target) for _ in range(3))
    token, foreign = visitor.token(login) or "", other.token(login) or ""
    if not token:
        yield Mismatch(f"GET {login}: a form with a CSRF token", "none", excuse="no token")
        return
    for who, what, sent, headers in (
        (stranger, "without cookie and token", {}, {}),
        (visitor, "without token", {}, {}),
        (visitor, "with another visitor's token", {TOKEN: foreign}, {}),
        (visitor, "from another site", {TOKEN: token}, FOREIGN_ORIGIN),
    ):
        response = who.post(login, {**values, **sent}, headers)
        if response.status != 403:
            yield response.wrong("status 403", what=f"POST {login} {what}")


@check("login", stage=ACCOUNT)
def login(context: Context) -> Iterator[Finding]:
    """An account logs in, gets an HttpOnly session cookie, and is redirected within the site."""
    path, account, session = context.site.url("login"), context.accounts.created[0], context.site.session_cookie
    visitor = Visitor(context.target)
    response = visitor.log_in(path, account)
    require_password(context.site, response)
    yield from context.judge(response, redirect, leads_to(context, None), when="with the right password")
    cookie = next((line for line in response.all("Set-Cookie") if line.startswith(f"{session}=")), "none")
    if response.redirects and "httponly" not in cookie.lower():
        yield response.wrong(f"Set-Cookie: {session} with HttpOnly", cookie)
    if response.redirects and session in visitor.cookies:
        context.visitor = visitor


@check("own-name", stage=ACCOUNT, leak=True)
def own_name(context: Context) -> Iterator[Finding]:
    """A logged-in visitor reads their own name; no cache may share these responses, nor a browser show them after a
    logout."""
    visitor, proof = context.signed_in(), context.site.proof(context.accounts.created[0])
    for path in context.site.proof_paths:
        response = visitor.get(path)
        yield from context.judge(response, has(proof), when="logged in, if the description names accounts")
        directives = response.names("Cache-Control")
        if "no-store" not in directives and not {"private", "no-cache"} <= directives:
            yield response.wrong("Cache-Control: private, no-cache", header_words(response, "Cache-Control"))


@check("no-foreign-name", stage=ACCOUNT, leak=True)
@excused({"session": ""})
def no_foreign_name(context: Context) -> Iterator[Finding]:
    """Anonymous visitors get no name and no session of the logged-in visitor, who still gets their own pages."""
    signed_in, site = context.signed_in(), context.site
    proof = site.proof(context.accounts.created[0])
    named = [path for path in site.main_paths if site.description.shows_account(path)] or site.proof_paths
    # If a page that nobody has requested is cached, then first for the logged-in visitor.
    fresh = [f"{path}?visitor={secrets.token_hex(4)}" for path in site.public_paths[:MAX_PAGES]]
    for path in (*named, *fresh):
        signed_in.get(path)
    for path in dict.fromkeys([*fresh, *site.plain_paths, *site.main_paths, *named, site.url("login")]):
        response = yield from context.expect(path, lacks(proof, what="not the logged-in visitor's name"))
        if f"{site.session_cookie}=" in (response.header("Set-Cookie") or ""):
            yield response.wrong("no session", header_words(response, "Set-Cookie"), excuse="session")
    for path in named:
        yield from context.judge(signed_in.get(path), has(proof), when="logged in, after an anonymous visitor")


@check("comment", stage=ACCOUNT)
def comment(context: Context) -> Iterator[Finding]:
    """A comment shows at once for its author, and for others with the next rendering."""
    visitor, post = context.signed_in(), context.site.url("commented")
    form = visitor.comment_form(post)
    # Both read the page of the new comment first: a cached copy must not hide the comment from its author.
    last = context.site.urls.get("post_last", post)
    visitor.get(last)
    context.get(last)
    words, response = yield from write_comment(context, visitor, form)
    if not response.redirects:
        return
    before = frozenset(context.render_ids)
    others = Visitor(context.target).follow(response)
    # A layer may still serve its stale copy; a new rendering, with a new id, must have the comment.
    stale_hit = bool(context.layers) and (others.render_id is None or others.render_id in before)
    if not stale_hit:
        yield from context.judge(others, has(words, what="the comment"), when="after a comment")


def write_comment(context: Context, visitor: Visitor, form: Form) -> Generator[Finding, None, tuple[str, PageResponse]]:
    """Write a comment and expect it at once; returns its words and the response."""
    words = f"verified {secrets.token_hex(8)}"
    response = visitor.write_into(form, words)
    yield from context.judge(response, redirect, leads_to(context, None))
    if response.redirects:
        yield from context.judge(visitor.follow(response), has(words, what="the comment"), when="by its author")
    return words, response


@check("comment-needs-login", stage=ACCOUNT)
def comment_needs_login(context: Context) -> Iterator[Finding]:
    """An anonymous comment is refused with a redirect to the login page."""
    form, login = context.signed_in().comment_form(context.site.url("commented")), context.site.url("login")
    visitor = Visitor(context.target)
    response = visitor.write_into(form, "by nobody", **{TOKEN: visitor.token(login) or ""})
    there = header("Location", lambda value: login in value, f"Location {login}")
    yield from context.judge(response, redirect, leads_to(context, None), there, when="without login")


@check("comment-without-token", stage=ACCOUNT)
def comment_without_token(context: Context) -> Iterator[Finding]:
    """A logged-in visitor's comment without a CSRF token gets a 403."""
    visitor = context.signed_in()
    form = visitor.comment_form(context.site.url("commented"))
    del form.values[TOKEN]
    yield from context.judge(visitor.write_into(form, "without a token"), status(403), when="without token")


@check("logout", stage=ACCOUNT)
@excused({"no form": "the page of an account has no form that logs out"})
def logout(context: Context) -> Iterator[Finding]:
    """Logging out ends the session: the name is gone, and the old cookie no longer works."""
    visitor, home = context.signed_in(), context.site.url("account", "home")
    form = _logout_form(visitor.get(home), home)
    if form is None:
        yield Mismatch(f"GET {home} logged in: a form sent to the logout address", "none", excuse="no form")
        return
    old = visitor.cookie_header()
    response = visitor.post(form.action, form.values)
    if not 200 <= response.status < 400:
        yield response.wrong("a redirect")
    for what, headers in (("after logging out", visitor.cookie_header()), ("with the old cookie", old)):
        after = context.get(home, headers)
        # The comment shows its author's name too; only logged-in visitors see the logout form.
        if _logout_form(after, home):
            yield after.wrong("an anonymous page", "a page for the logged-in visitor", f"GET {home} {what}")


def _logout_form(response: PageResponse, path: str) -> Form | None:
    """The logout form of a page."""
    return next((form for form in page_parser.ParsedPage(response.text, path).forms if "logout" in form.action), None)


@check("login-limit", stage=AFTER, thorough=True)
@excused(NO_LIMIT)
def login_limit(context: Context) -> Iterator[Finding]:
    """After 20 wrong passwords for an account, the login page and the admin's refuse it with 429 and Retry-After; both
    still show their forms."""
    context.site.require_writes()
    tried = {path: _fail_often(context, path) for path in _login_pages(context)}
    excuse = ""
    if all(response.status == 200 for _, response in tried.values()):
        excuse = "no limit"
    for path, (_, response) in tried.items():
        if response.status == 200:
            yield response.wrong(f"status 429 after {MAX_ATTEMPTS} wrong passwords", excuse=excuse)
        elif response.status != TOO_MANY:
            yield response.wrong("status 200 or 429 for a wrong password")
        elif response.header("Retry-After") is None:
            yield response.wrong("Retry-After", "none")
        yield from context.expect(path, status(200), when="after that")
    yield Figure("login_failures_allowed", max(failures for failures, _ in tried.values()))


@check("login-spellings", stage=AFTER, thorough=True)
@excused({**NO_LIMIT, "capitals": ""})
def login_spellings(context: Context) -> Iterator[Finding]:
    """An account refused after wrong passwords is refused however its name is spelt: with spaces around it, in
    capitals, with wide letters."""
    context.site.require_writes()
    path, name = _login_pages(context)[0], f"nobody-{secrets.token_hex(8)}"
    refused_last = _fail_often(context, path, name)[1]
    if refused_last.status == 200:
        yield refused_last.wrong(f"status {TOO_MANY} for {name!r}", excuse="no limit")
        return
    wide = name.replace("n", "\uff4e", 1)
    capitals = name.upper()
    for spelt in (f" {name}", f"{name} ", f"\t{name}", wide, f"{name}\u3000", capitals):
        response = Visitor(context.target).log_in(path, Account(spelt, "wrong"))
        if response.status == 200:
            excuse = {capitals: "capitals"}.get(spelt, "")
            yield response.wrong(f"status {TOO_MANY} for {spelt!r}, as for {name!r}", excuse=excuse)


@check("login-addresses", require_strict(UP_TO_PROJECT), stage=AFTER, thorough=True)
def login_addresses(context: Context) -> Iterator[Finding]:
    """Wrong passwords of one address for many accounts are refused with 429 in the end; other addresses still get in.

    Requests go to a clone of the deployment behind a load balancer, which names the address.
    """
    context.site.require_writes()
    path = _login_pages(context)[0]
    clone = context.clone({"listener": "behind"})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = list(pool.map(lambda _: _fail_from(clone, path, ATTACKER), range(MANY_ACCOUNTS)))
    if tried[-1].status != TOO_MANY:
        yield tried[-1].wrong(f"status 429 after wrong passwords for {MANY_ACCOUNTS} accounts from one address")
    other = _fail_from(clone, path, BYSTANDER)
    if other.status != 200:
        yield other.wrong("status 200 for a wrong password from another address after that")


def _fail_from(context: Context, path: str, address: str) -> PageResponse:
    """The response to a wrong password for a new account; a load balancer names the address, behind one of the client's
    invention."""
    named = f"2001:db8:{secrets.token_hex(2)}::7, {address}"
    via = Route(context.target.host, context.target.port, context.target.tls, (("X-Forwarded-For", named),))
    visitor = Visitor(replace(context.target, via=via, source=BALANCER))
    return visitor.log_in(path, Account(f"nobody-{secrets.token_hex(8)}", "wrong"))


def _login_pages(context: Context) -> list[str]:
    """The login pages of the site and of the admin; raises NotTried without any. A project's admin may have no login
    form."""
    site = context.site
    pages = site.paths("login")
    if admin := site.admin_login:
        page = page_parser.ParsedPage(Visitor(context.target).get(admin).text, admin)
        if page.login_form() and admin not in pages:
            pages.append(admin)
    return pages or [site.url("login")]


def _fail_often(context: Context, path: str, name: str = "") -> tuple[int, PageResponse]:
    """Send wrong passwords for an account, by default a new one, until refused or visited often; returns the count and
    the last response."""
    visitor, nobody = Visitor(context.target), Account(name or f"nobody-{secrets.token_hex(8)}", "wrong")
    for failures in range(MAX_ATTEMPTS):
        response = visitor.log_in(path, nobody)
        if response.status != 200:
            return failures, response
    return MAX_ATTEMPTS, response
