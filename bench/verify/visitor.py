"""A visitor of the site: keeps cookies, fills in forms and follows redirects as a browser does."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode, urljoin, urlsplit

from bench.errors import BenchError
from bench.serve.machine.http import BadResponse, Target
from bench.verify import page_parser, wire
from bench.verify.page_parser import NAMES, TEXTS, TOKEN, Form
from bench.verify.site import Account, Site
from bench.verify.wire import PageResponse

# Domain of the addresses of accounts made for checks (bench.serve.inside: verifyaccount).
MAIL = "@verify.invalid"
# A token or a session has at least so many.
SECRET_CHARACTERS = 12


class Visitor:
    """One visitor.

    cookies      the cookies the site has set so far
    set_cookies  every Set-Cookie line received
    tokens       every CSRF token on the pages read
    name, proof  name of the logged-in account, and the text shown only on its pages
    """

    def __init__(self, target: Target, cookies: dict[str, str] | None = None):
        self.target = target
        self.cookies = dict(cookies or {})
        self.set_cookies: list[str] = []
        self.tokens: set[str] = set()
        self.name = self.proof = ""

    @property
    def who(self) -> str:
        return self.name or "an anonymous visitor"

    @property
    def secrets(self) -> set[str]:
        """Tokens and cookies that nobody else may get."""
        return self.tokens.union(secret_cookies(self.set_cookies))

    def get(self, path: str, headers: dict[str, str] | None = None) -> PageResponse:
        """The response to GET; redirects are not followed."""
        response = self._exchange("GET", path, headers or {}, None)
        self.tokens |= page_parser.tokens(response.text)
        return response

    def post(self, path: str, values: dict[str, str], headers: dict[str, str] | None = None) -> PageResponse:
        """The response to a form sent with `values`; redirects are not followed."""
        # Browsers send Origin with every POST, so a server that loses the port or the scheme fails.
        given = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": self.target.origin,
            "Referer": self.target.origin + path,
            **(headers or {}),
        }
        return self._exchange("POST", path, given, urlencode(values).encode())

    def write_into(self, form: Form, words: str, **others: str) -> PageResponse:
        """The response to a form with `words` in all fields for text, and `others` by name."""
        return self.post(form.action, {**form.values, **dict.fromkeys(form.names(*TEXTS), words), **others})

    def follow(self, response: PageResponse) -> PageResponse:
        """The response to a redirect's Location, requested from this same target."""
        parts = urlsplit(response.header("Location") or "/")
        path = parts.path
        if parts.query:
            path = f"{path}?{parts.query}"
        return self.get(path)

    def token(self, path: str) -> str | None:
        """The CSRF token of the first form with one, or None; the cookie is stored."""
        form = page_parser.ParsedPage(self.get(path).text, path).form_with(TOKEN)
        if not form:
            return None
        return form.values[TOKEN]

    def comment_form(self, path: str) -> Form:
        """The comment form for this visitor; raises BadResponse if the page has none."""
        if form := page_parser.ParsedPage(self.get(path).text, path).comment_form():
            return form
        raise BadResponse(f"GET {path} by {self.who}: no form for a comment")

    def log_in(self, path: str, account: Account) -> PageResponse:
        """Fill in and send the login form at `path`; returns the response.

        Raises BadResponse if the page has no such form.
        """
        form = page_parser.ParsedPage(self.get(path).text, path).login_form()
        if form is None:
            raise BadResponse(f"GET {path}: no form with a name and a password")
        field, name = form.names(*NAMES)[0], account.username
        if form.kinds[field] == "email" and "@" not in name:
            name += MAIL
        values = {**form.values, field: name, form.names("password")[0]: account.password}
        return self.post(urljoin(path, form.action), values)

    def cookie_header(self) -> dict[str, str]:
        """The visitor's Cookie header; empty without cookies."""
        # A list, for checks that are made at the same time share a member.
        pairs = list(self.cookies.items())
        if not pairs:
            return {}
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in pairs)}

    def _exchange(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> PageResponse:
        response = wire.fetch(self.target, path, {**self.cookie_header(), **headers}, method=method, body=body)
        for line in response.all("Set-Cookie"):
            self.set_cookies.append(line)
            pair, *attributes = line.split(";")
            name, _, value = pair.strip().partition("=")
            self.cookies[name] = value
            if value.strip('"') == "" or any(item.strip().lower() == "max-age=0" for item in attributes):
                self.cookies.pop(name, None)
        return response


def secret_cookies(lines: Iterable[str]) -> list[str]:
    """NAME=VALUE of Set-Cookie lines; a short one, such as a language, is no secret."""
    pairs = [line.split(";")[0] for line in lines]
    return [pair for pair in pairs if len(pair.partition("=")[2]) >= SECRET_CHARACTERS]


def require_password(site: Site, response: PageResponse) -> None:
    """Raise BenchError if an account named by the project gets the login form again."""
    login = site.description.login
    if login and login.users_env and response.status == 200 and page_parser.ParsedPage(response.text).login_form():
        raise BenchError(
            f"the form at {login.url} refuses the account of {login.users_env[0]}: correct its NAME:PASSWORD, or make "
            "the account in that database"
        )


def log_in(target: Target, site: Site, account: Account) -> Visitor:
    """Log in a new visitor by the site's form; raises BadResponse on failure, NotTried without a form."""
    path = site.url("login")
    visitor = Visitor(target)
    response = visitor.log_in(path, account)
    require_password(site, response)
    if not response.redirects or site.session_cookie not in visitor.cookies:
        raise BadResponse(f"POST {path} with the right password: status {response.status}, no session")
    visitor.name, visitor.proof = account.username, site.proof(account)
    return visitor
