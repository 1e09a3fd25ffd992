"""Accounts: login, the visitor's name on pages, comments, CSRF."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

from bench.verify import page_parser
from bench.verify.browser import Browser, require_password
from bench.verify.check import ACCOUNT, check
from bench.verify.checks.pages import wrong_location
from bench.verify.checks.public_pages import MAX_PAGES
from bench.verify.context import Context
from bench.verify.finding import Mismatch, NotTried
from bench.verify.page_parser import Form
from bench.verify.wire import Answer, BadAnswer

NO_FORM = "its page has no form for a comment: see comment"


@check("login-page")
def login_page(context: Context) -> Iterator[Mismatch]:
    """Each visitor gets their own login form: no two share a CSRF token or a cookie."""
    login = context.site.url("login")
    first, second = Browser(context.target), Browser(context.target)
    tokens = {first.token(login), second.token(login)}
    if tokens == {None} and not context.strict:
        raise NotTried(f"the form at {login} has no CSRF token")
    if None in tokens or len(tokens) != 2:
        yield Mismatch(f"GET {login} by two visitors: two CSRF tokens", f"{len(tokens - {None})}")
    if len({line.split(";")[0] for line in [*first.set_cookies, *second.set_cookies]}) != 2:
        yield Mismatch(f"GET {login} by two visitors: a cookie each", f"{first.set_cookies}, {second.set_cookies}")


@check("post-without-token")
def post_without_token(context: Context) -> Iterator[Mismatch]:
    """A POST without a CSRF token, with another visitor's token, or from another site gets a 403."""
    login = context.site.url("login")
    values = {"username": "nobody", "password": ""}
    visitor, other = Browser(context.target), Browser(context.target)
    token, foreign = visitor.token(login) or "", other.token(login) or ""
    if not token and not context.strict:
        raise NotTried(f"the form at {login} has no CSRF token")
    for what, answer in (
        ("without cookie and token", Browser(context.target).post(login, values)),
        ("without token", visitor.post(login, values)),
        ("with another visitor's token", visitor.post(login, {**values, "csrfmiddlewaretoken": foreign})),
        (
            "from another site",
            visitor.post(login, {**values, "csrfmiddlewaretoken": token}, {"Origin": "http://other.example"}),
        ),
    ):
        if answer.status != 403:
            yield Mismatch(f"POST {login} {what}: status 403", f"status {answer.status}")


@check("login", stage=ACCOUNT)
def login(context: Context) -> Iterator[Mismatch]:
    """An account logs in, gets an HttpOnly session cookie, and is redirected within the site."""
    path, account = context.site.url("login"), context.login_account()
    visitor = Browser(context.target)
    answer = visitor.log_in(path, account)
    require_password(context.site, answer)
    if not 300 <= answer.status < 400:
        yield Mismatch(f"POST {path} with the right password: a redirect", f"status {answer.status}")
        return
    yield from wrong_location(context, f"POST {path}", answer, None)
    cookie = next(
        (line for line in answer.all("Set-Cookie") if line.startswith(context.site.session_cookie + "=")), None
    )
    if cookie is None:
        yield Mismatch(f"POST {path}: Set-Cookie: {context.site.session_cookie}", f"{answer.header('Set-Cookie')}")
        return
    if "httponly" not in cookie.lower():
        yield Mismatch(f"POST {path}: a cookie with HttpOnly", cookie)
    context.browser = visitor


@check("own-name", stage=ACCOUNT)
def own_name(context: Context) -> Iterator[Mismatch]:
    """A logged-in visitor reads their own name where it stands, and no cache may share these answers."""
    visitor, proof = context.signed_in(), context.site.proof(context.login_account())
    for path in context.site.proof_paths:
        answer = visitor.get(path)
        if proof not in answer.text:
            yield Mismatch(f"GET {path} logged in: {proof}", f"status {answer.status} without it")
        control = (answer.header("Cache-Control") or "").lower()
        varies = "cookie" in (answer.header("Vary") or "").lower()
        if not varies and "private" not in control and "no-store" not in control:
            yield Mismatch(f"GET {path} logged in: Vary: Cookie", f"Vary: {answer.header('Vary')}")


@check("no-foreign-name", stage=ACCOUNT)
def no_foreign_name(context: Context) -> Iterator[Mismatch]:
    """Anonymous visitors get no name and no session of the logged-in visitor, who still gets their own pages."""
    signed_in, site = context.signed_in(), context.site
    proof = site.proof(context.login_account())
    named = [path for path in site.main_paths if site.description.shows_account(path)] or site.proof_paths
    # A page that nobody has requested is first cached, if it is, for the one who is logged in.
    fresh = [f"{path}?visitor={secrets.token_hex(4)}" for path in site.public_paths[:MAX_PAGES]]
    for path in (*named, *fresh):
        signed_in.get(path)
    for path in dict.fromkeys([*fresh, *site.plain_paths, *site.main_paths, *named, site.url("login")]):
        answer = context.get(path)
        if proof in answer.text:
            yield Mismatch(f"GET {path} anonymously: not the logged-in visitor's name", proof)
        if f"{context.site.session_cookie}=" in (answer.header("Set-Cookie") or "") and context.strict:
            yield Mismatch(f"GET {path} anonymously: no session", f"Set-Cookie: {answer.header('Set-Cookie')}")
    for path in named:
        if proof not in signed_in.get(path).text:
            yield Mismatch(f"GET {path} logged in, after an anonymous visitor: {proof}", "a page without it")


@check("comment", stage=ACCOUNT)
def comment(context: Context) -> Iterator[Mismatch]:
    """A comment shows at once for its author, and for others as soon as the page is rendered again."""
    visitor, post, form = context.signed_in(), _post(context), _comment_form(context)
    # Both read the page of the new comment first: a cached copy must not hide the comment from its author.
    last = context.site.urls.get("post_last", post)
    visitor.get(last)
    context.get(last)
    if form is None:
        yield Mismatch(f"GET {post} logged in: a form for a comment", "none")
        return
    words = f"verified {secrets.token_hex(8)}"
    values = {**form.values, **dict.fromkeys(form.texts, words)}
    answer = visitor.post(form.action, values)
    context.posts.append(_number(post))
    if not 300 <= answer.status < 400:
        yield Mismatch(f"POST {form.action}: a redirect", f"status {answer.status}")
        return
    yield from wrong_location(context, f"POST {form.action}", answer, None)
    shown = (answer.header("Location") or post).removeprefix(context.target.origin).split("#")[0]
    own = visitor.get(shown)
    if words not in own.text:
        yield Mismatch(f"GET {shown} by the author of a comment: the comment", f"status {own.status} without it")
    before = frozenset(context.seen)
    others = context.get(shown)
    # A layer may still serve its stale copy; a new rendering, with a new id, must have the comment.
    stale_hit = bool(context.layers) and (others.render_id is None or others.render_id in before)
    if words not in others.text and not stale_hit:
        yield Mismatch(f"GET {shown} after a comment: the comment", f"status {others.status}, rendered without it")


@check("comment-needs-login", stage=ACCOUNT)
def comment_needs_login(context: Context) -> Iterator[Mismatch]:
    """An anonymous comment is refused with a redirect to the login page."""
    if (form := _comment_form(context)) is None:
        raise NotTried(NO_FORM)
    visitor, login = Browser(context.target), context.site.url("login")
    own = {"csrfmiddlewaretoken": visitor.token(login) or ""}
    answer = visitor.post(form.action, {**form.values, **dict.fromkeys(form.texts, "by nobody"), **own})
    if not 300 <= answer.status < 400 or login not in (answer.header("Location") or ""):
        yield Mismatch(
            f"POST {form.action} without login: a redirect to {login}",
            f"status {answer.status}, Location {answer.header('Location')}",
        )
    else:
        yield from wrong_location(context, f"POST {form.action} without login", answer, None)


@check("comment-without-token", stage=ACCOUNT)
def comment_without_token(context: Context) -> Iterator[Mismatch]:
    """A logged-in visitor's comment without a CSRF token gets a 403."""
    if (form := _comment_form(context)) is None:
        raise NotTried(NO_FORM)
    values = {**form.values, **dict.fromkeys(form.texts, "without a token")}
    del values["csrfmiddlewaretoken"]
    answer = context.signed_in().post(form.action, values)
    if answer.status != 403:
        yield Mismatch(f"POST {form.action} without token: status 403", f"status {answer.status}")


@check("logout", stage=ACCOUNT)
def logout(context: Context) -> Iterator[Mismatch]:
    """Logging out ends the session: the name is gone, and the old cookie no longer works."""
    visitor, home = context.signed_in(), context.site.url("account", "home")
    form = _logout_form(visitor.get(home), home)
    if form is None:
        if not context.strict:
            raise NotTried(f"{home} has no form that logs out")
        yield Mismatch(f"GET {home} logged in: a form sent to the logout address", "none")
        return
    old = visitor.cookie_header()
    answer = visitor.post(form.action, form.values)
    if not 200 <= answer.status < 400:
        yield Mismatch(f"POST {form.action}: a redirect", f"status {answer.status}")
    menu = f">{context.login_account().username}<"
    for what, headers in (("after logging out", visitor.cookie_header()), ("with the old cookie", old)):
        after = context.get(home, headers)
        # The name may stand beside its comment; only logged-in visitors see the logout form.
        if _logout_form(after, home):
            yield Mismatch(f"GET {home} {what}: an anonymous page", f"a page for the logged-in visitor ({menu})")


def _logout_form(answer: Answer, path: str) -> Form | None:
    """The form of a page that logs out."""
    return next((form for form in page_parser.parse(answer.text, path).forms if "logout" in form.action), None)


def _comment_form(context: Context) -> Form | None:
    """The form for a comment as the account that is logged in gets it."""
    post = _post(context)
    return page_parser.parse(context.signed_in().get(post).text, post).comment_form()


def _post(context: Context) -> str:
    """The post to comment on."""
    return context.site.url("commented")


def _number(post: str) -> str:
    found = re.search(r"/(\d+)/$", post)
    if not found:
        raise BadAnswer(f"the probes name {post} as a page that takes comments; its path should end in its id")
    return found[1]
