"""The forms of the fake site: login, logout and comments."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from tests.bench.verify.fake_files import FileHandler

if TYPE_CHECKING:
    from tests.bench.verify.fake_site import FakeSite

PASSWORD = "right"


class AccountHandler(FileHandler):
    """One connection to a site with accounts."""

    stub: FakeSite

    def login_form(self, username: str, status: int) -> None:
        stub = self.stub
        cookie = self.cookies.get("csrftoken") or secrets.token_hex(8)
        token = stub.token(cookie)
        if "shared-token" in stub.wrong:
            cookie, token = "same", stub.fixed_token
        headers = [("Vary", "Cookie"), ("Set-Cookie", f"csrftoken={cookie}; Path=/; Max-Age=1000")]
        self.html(status, stub.login_page(token, username), headers)

    def post(self, path: str) -> None:
        stub, wrong = self.stub, self.stub.wrong
        values = self.values()
        given = values.get("csrfmiddlewaretoken") or self.headers.get("X-CSRFToken", "")
        right = stub.token_right(given, self.cookies.get("csrftoken", "")) or (given and "any-token" in wrong)
        if "no-csrf" not in wrong and not (right and self.origin_right()):
            self.html(500 if "upload-breaks" in wrong else 403, stub.frame("<h1>Refused</h1>"))
        elif path == "/login/":
            self.log_in(values)
        elif path == "/logout/":
            if "session-lives" not in wrong:
                stub.sessions.pop(self.cookies.get("sessionid", ""), None)
            self.redirect("/", 302, [("Set-Cookie", 'sessionid=""; Path=/; Max-Age=0')])
        elif path == "/posts/1/comment/":
            self.comment(values)
        else:
            self.html(405, stub.frame("<h1>Not allowed</h1>"))

    def values(self) -> dict[str, str]:
        """The fields of the form that was sent."""
        found = parse_qs(self.body.decode("latin-1"), keep_blank_values=True)
        return {name: items[0] for name, items in found.items()}

    def origin_right(self) -> bool:
        """Whether the form comes from the site's own origin, as the site sees it."""
        wrong, origin = self.stub.wrong, self.headers.get("Origin")
        scheme, host = "http", self.headers.get("Host")
        if "believes-proto" in wrong:
            scheme = self.headers.get("X-Forwarded-Proto", scheme)
        if "believes-host" in wrong:
            host = self.headers.get("X-Forwarded-Host", host)
        return origin is None or origin == f"{scheme}://{host}"

    def log_in(self, values: dict[str, str]) -> None:
        stub, wrong = self.stub, self.stub.wrong
        if values.get("password") == "wrong":
            stub.failures[values["username"]] += 1
            if stub.failures[values["username"]] > 5 and "logins-unlimited" not in wrong:
                self.html(
                    429, stub.frame("<h1>Too many</h1>"), [("Retry-After", "300")][: "limit-without-time" not in wrong]
                )
                return
        if values.get("password") != PASSWORD or "login-fails" in wrong:
            self.login_form(values.get("username", ""), 200)
            return
        session = secrets.token_hex(8)
        stub.sessions[session] = values["username"]
        attributes = "" if "cookie-for-scripts" in wrong else "; HttpOnly"
        to = "http://other.example/" if "login-elsewhere" in wrong else "/"
        self.redirect(to, 302, [("Set-Cookie", f"sessionid={session}; Path=/{attributes}")])

    def comment(self, values: dict[str, str]) -> None:
        stub, wrong = self.stub, self.stub.wrong
        if not self.user and "anonymous-comments" not in wrong:
            self.redirect("/login/?next=/posts/1/", 302)
            return
        if "comment-lost" not in wrong:
            stub.comments.append((self.user, values.get("body", "")))
        self.redirect("/posts/1/#comments", 302)
