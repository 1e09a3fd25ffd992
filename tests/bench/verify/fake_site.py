"""A small site that answers rightly, or with a named mistake, for the tests of verify.

`FakeSite.wrong` holds the names of its mistakes; test_checks.py says which check must notice which.
"""

from __future__ import annotations

import hashlib
import html
import json
import secrets
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from urllib.parse import parse_qs

from bench.project.description import Description, Login
from bench.verify.expected import Expected
from bench.verify.site import UNKNOWN_PATH, Site, static_urls
from tests.bench.verify.fake_accounts import AccountHandler
from tests.bench.verify.fake_files import CSS, IMAGE, SCRIPT
from tests.bench.verify.fake_http import HttpHandler

BEYOND = ("/posts/page/999999999/", "/posts/page/0/", "/posts/999999999/")
REDIRECTS = {
    "/posts": (301, "/posts/"),
    "/posts/page/1/": (301, "/posts/"),
    "/posts/jump/?page=2": (302, "/posts/page/2/"),
}
URLS = {
    "home": "/",
    "authors": "/authors/",
    "posts": "/posts/",
    "posts_page": "/posts/page/2/",
    "login": "/login/",
    "account": "/",
    "health": "/healthz",
    "list": "/posts/page/2/",
    "detail": "/posts/1/",
    "section": "/posts/",
    "uncommented": "/authors/",
    "commented": "/posts/1/",
    "slash_redirect": "/posts",
    "posts_redirect": "/posts/page/1/",
    "jump_redirect": "/posts/jump/?page=2",
    **{f"{number}_beyond": path for number, path in enumerate(BEYOND)},
}
TITLES = {
    "/": "Home",
    "/authors/": "Authors",
    "/posts/": "Posts",
    "/posts/page/2/": "Posts, page 2",
    "/posts/1/": "The first post",
}

# Stands in for the site's commands: it makes accounts, renders the pages of pages.json and logs each command.
MANAGE = """
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "commands.log").open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + chr(10))
if sys.argv[1:3] == ["verifyaccount", "create"]:
    count = int(sys.argv[sys.argv.index("--count") + 1])
    print(json.dumps({"accounts": [{"username": f"verify-{n}-7f3a", "password": "right"} for n in range(count)]}))
if sys.argv[1] == "renderpages":
    print((here / "pages.json").read_text())
if sys.argv[1] == "writerow":
    # Its import takes four times as long as the start of Python.
    import urllib.request
    url = os.environ["FAKE_URL"] + "/__probe__/rows/" + "/".join(sys.argv[2:]) + "/"
    request = urllib.request.Request(url, b"", {"X-Command": "1"})
    print(urllib.request.urlopen(request).read().decode())
"""


def sources(folder: Path) -> Path:
    """Write the static files and the commands of the site to `folder`; returns the static directory."""
    static = folder / "static"
    static.mkdir()
    (static / "small.txt").write_bytes(b"s" * 98 + b"\n")
    (static / "large.txt").write_bytes(b"".join(b"%07d\n" % number for number in range(187_500)))
    (static / "app.css").write_text("body { color: #222 }\n" * 5)
    (static / "app.js").write_text("document.title\n")
    (static / "logo.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>\n')
    (folder / "manage.py").write_text(MANAGE)
    return static


class FakeSite:
    """The site: its pages, sessions and comments, and its mistakes."""

    def __init__(self, folder: Path):
        self.static = sources(folder)
        self.folder = folder
        self.wrong: set[str] = set()
        self.layer = "none"
        self.secret = secrets.token_hex(8)
        self.sessions: dict[str, str] = {}
        self.failures: Counter[str] = Counter()
        self.comments: list[tuple[str, str]] = []
        self.kept: dict[str, tuple] = {}
        self.leak = ""
        self.requests = 0
        self.only_thread = threading.Lock()
        self.fixed_token = self.token("same")

    @property
    def handler(self) -> type[HttpHandler]:
        """The class that answers its requests."""
        return SiteHandler

    def reset(self, *wrong: str) -> None:
        """Start anew with these mistakes."""
        self.wrong = set(wrong)
        self.failures.clear()
        self.sessions, self.comments, self.kept, self.leak, self.requests = {}, [], {}, "", 0

    def site(self) -> Site:
        """The site as `prepare` describes it: the pages without mistakes."""
        wrong, self.wrong = self.wrong, set()
        pages = {path: Expected(200, "text/html;charset=utf-8", self.page(path, "")) for path in TITLES}
        pages["/login/"] = Expected(200, "text/html;charset=utf-8", self.login_page("a-token", ""))
        pages["/healthz"] = Expected(200, "text/plain", "ok\n")
        for path, (status, location) in REDIRECTS.items():
            pages[path] = Expected(status, "text/html;charset=utf-8", "", location=location)
        for path in (UNKNOWN_PATH, *BEYOND):
            pages[path] = Expected(404, "text/html;charset=utf-8", self.not_found())
        self.wrong = wrong
        self.rows_are(pages)
        urls = URLS | static_urls(self.static, "/static/")
        return Site(
            urls,
            pages,
            self.static,
            Path(sys.executable),
            self.folder / "manage.py",
            description=Description(
                public=("/", "/posts/"),
                settings="config.settings",
                login=Login("/login/", page="/*"),
                reads_environment=True,
                strict=True,
            ),
            may_write=True,
            is_copy=True,
            interpreter={"python": sys.version.split()[0], "prefix": sys.prefix, "base_prefix": sys.base_prefix},
        )

    def rows_are(self, pages: dict[str, Expected]) -> None:
        """From now on the site's commands render these pages."""
        (self.folder / "pages.json").write_text(json.dumps({path: asdict(page) for path, page in pages.items()}))

    def token(self, cookie: str) -> str:
        """A CSRF token for a visitor with that cookie, another one each time."""
        salt = secrets.token_hex(4)
        return f"{salt}-{hashlib.sha256((salt + cookie + self.secret).encode()).hexdigest()}"

    def token_right(self, token: str, cookie: str) -> bool:
        salt = token.partition("-")[0]
        return bool(cookie) and token == f"{salt}-{hashlib.sha256((salt + cookie + self.secret).encode()).hexdigest()}"

    def page(self, path: str, user: str, cookie: str = "") -> str:
        """A page as `user` sees it, anonymous when empty."""
        body = f"<h1>{TITLES[path]}</h1><p>{'Some words, ' * 20}</p>"
        if path == "/posts/1/":
            body += "".join(f"<p><b>{html.escape(who)}</b> {html.escape(text)}</p>" for who, text in self.comments)
        if "other-content" in self.wrong and path == "/posts/":
            body = body.replace("Some", "Same", 1)
        token = f'<input type="hidden" name="csrfmiddlewaretoken" value="{self.token(cookie)}">'
        if user or ("token-on-pages" in self.wrong and path == "/"):
            body += f"<span>{html.escape(user) if 'nameless' not in self.wrong else 'You'}</span>"
            body += f'<form method="post" action="/logout/">{token}<button>Log out</button></form>'
        if user and path == "/posts/1/" and "no-form" not in self.wrong:
            body += f'<form method="post" action="/posts/1/comment/">{token}<textarea name="body"></textarea>'
            body += '<select name="rating"><option value="5">5</option><option value="4">4</option></select></form>'
        return self.frame(body)

    def login_page(self, token: str, username: str) -> str:
        return self.frame(
            f'<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{token}">'
            f'<input name="username" value="{html.escape(username)}"><input type="password" name="password"></form>'
        )

    def not_found(self) -> str:
        return self.frame("<h1>Page not found</h1>")

    def frame(self, body: str) -> str:
        image = "" if "no-image" in self.wrong else f'<img src="/static/{IMAGE}" alt="">'
        css = "app.css" if "unhashed" in self.wrong else CSS
        return (
            f'<!doctype html><link rel="stylesheet" href="/static/{css}"><script src="/static/{SCRIPT}"></script>'
            f"{image}{body}"
        )


class SiteHandler(AccountHandler):
    """One connection to the fake site."""

    stub: FakeSite

    def route(self, path: str) -> None:
        for mistake, (concerns, answer) in WRONG_ANSWERS.items():
            if mistake in self.stub.wrong and concerns(self, path):
                answer(self)
                return
        if path == "/__probe__/inside" and "no-probe" in self.stub.wrong:
            self.missing(path)
        elif path in VIEWS:
            VIEWS[path](self)
        elif self.command == "POST":
            self.post(path)
        elif path == "/static/staticfiles.json" and "serves-manifest" in self.stub.wrong:
            self.send(200, "{}", "application/json")
        elif path.startswith("/static/"):
            self.file(path.removeprefix("/static/"))
        elif path in GET_VIEWS:
            GET_VIEWS[path](self)
        elif path in TITLES:
            self.known_page(path)
        else:
            self.missing(path)

    def missing(self, path: str) -> None:
        """Answer to a path that the site does not have."""
        wrong = self.stub.wrong
        if path in BEYOND and "last-page-for-any" in wrong:
            self.html(200, self.stub.page("/posts/", ""))
        elif "plain-404" in wrong:
            self.send(404, "not here", "text/plain")
        else:
            self.html(200 if "soft-404" in wrong else 404, self.stub.not_found())

    def post(self, path: str) -> None:
        if path.startswith("/__probe__/form/"):
            self.html(200, self.stub.frame(f"<p>{self.values().get('username', '')}</p>"))
        else:
            super().post(path)

    def jump(self) -> None:
        self.redirect(f"/posts/page/{parse_qs(self.query)['page'][0]}/", 302)

    def failure(self) -> None:
        wrong = self.stub.wrong
        if "bare-500" in wrong:
            self.send(500, "Internal Server Error", "text/plain")
        else:
            text = "Traceback (most recent call last)" if "tells-500" in wrong else "<h1>It broke</h1>"
            self.html(200 if "soft-500" in wrong else 500, self.stub.frame(text))

    def inside(self) -> None:
        """What a worker reports of itself."""
        wrong, host = self.stub.wrong, self.headers["Host"]
        client = "" if "no-address" in wrong else "127.0.0.1"
        if "believes-address" in wrong:
            client = self.headers.get("X-Forwarded-For", client)
        found = {
            "python": "2.7.18" if "other-python" in wrong else sys.version.split()[0],
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "django_path": f"{sys.prefix}/lib/django",
            "user_id": 0 if "as-root" in wrong else 65534,
            "client": client,
            "scheme": self.scheme(),
            "host": host,
            "port": host.rpartition(":")[2],
            "headers": ["x-verify-name"] if "passes-underscores" in wrong and self.headers.get("X_Verify_Name") else [],
        }
        self.send(200, "<!doctype html>" if "probe-garbled" in wrong else json.dumps(found), "application/json")

    def scheme(self) -> str:
        """The scheme as the site sees it."""
        believed = {"believes-proto": "X-Forwarded-Proto", "believes-underscored-proto": "X_Forwarded_Proto"}
        names = [name for mistake, name in believed.items() if mistake in self.stub.wrong]
        return next((self.headers[name] for name in names if name in self.headers), "http")

    def connections(self) -> None:
        """A request that holds a connection of its database."""
        if "connections-run-out" in self.stub.wrong and self.stub.requests % 20 == 0:
            self.html(500, self.stub.not_found())
        else:
            self.send(200, "{}", "application/json")

    def prefix(self) -> str:
        wrong = self.stub.wrong
        if "believes-script-name" in wrong and self.headers.get("Script-Name"):
            return self.headers["Script-Name"]
        if "believes-underscores" in wrong and self.headers.get("SCRIPT_NAME"):
            return self.headers["SCRIPT_NAME"]
        return ""

    def known_page(self, path: str) -> None:
        stub, wrong = self.stub, self.stub.wrong
        user = self.user
        if "leaks" in wrong:
            # All visitors are greeted as the last logged-in one.
            stub.leak = user or stub.leak
            user = user or stub.leak
        if "anonymous-for-all" in wrong:
            user = user if path not in stub.kept else ""
            if not user:
                stub.kept[path] = ()
        text = stub.page(path, user, self.cookies.get("csrftoken", ""))
        if "late-for-author" in wrong and user:
            text = text.replace("verified", "")
        if "late-for-others" in wrong and not user:
            text = text.replace("verified", "")
        if "first-for-all" in wrong:
            # As a view that is cached without its visitor: whoever comes first is who all are.
            text = stub.kept.setdefault(f"{path}?{self.query}", (text,))[0]
        headers = []
        if user and "varies-not" not in wrong:
            headers.append(("Vary", "Cookie"))
        if "cookie-on-pages" in wrong:
            headers.append(("Set-Cookie", "seen=1; Path=/"))
        render_id, bare = uuid.uuid4().hex, "kept-bare" in wrong and not self.query
        if not bare:
            headers.append(("X-Frame-Options", "DENY"))
        if not self.cookies and not self.query and "keeps" in wrong:
            render_id, kept = stub.kept.setdefault(path, (render_id, text))
            text = kept if "kept-other-bytes" not in wrong else text + uuid.uuid4().hex
        self.html(200, text, headers, render_id=render_id, etag=True)


View = Callable[[SiteHandler], None]
# Path -> the view for any method.
VIEWS: dict[str, View] = {
    "/healthz": lambda site: site.send(200, "ok\n", "text/plain"),
    "/__probe__/inside": SiteHandler.inside,
    "/__probe__/connections": SiteHandler.connections,
    "/__probe__/failure": SiteHandler.failure,
}
GET_VIEWS: dict[str, View] = {
    "/login/": lambda site: site.login_form(
        "", 429 if site.stub.failures and "limits-the-form" in site.stub.wrong else 200
    ),
    "/posts": lambda site: site.redirect(site.prefix() + "/posts/", 301),
    "/posts/page/1/": lambda site: site.redirect(site.prefix() + "/posts/", 301),
    "/posts/jump/": SiteHandler.jump,
}
# Mistake -> the requests it concerns, and the wrong answer.
WRONG_ANSWERS: dict[str, tuple[Callable[[SiteHandler, str], bool], View]] = {
    "error-page": (lambda site, path: path == "/posts/", lambda site: site.html(500, site.stub.not_found())),
    "bytes-kill": (
        lambda site, path: not site.headers.get("X-Forwarded-Proto", "").isascii(),
        SiteHandler.hang_up,
    ),
    "odd-session-breaks": (
        lambda site, path: "\\000" in site.headers.get("Cookie", ""),
        lambda site: site.html(500, site.stub.not_found()),
    ),
    "open-redirect": (
        lambda site, path: site.target.startswith("//"),
        lambda site: site.redirect(site.target, 301),
    ),
    "odd-breaks": (lambda site, path: not path.isascii(), lambda site: site.html(500, site.stub.not_found())),
    "percent-breaks": (lambda site, path: site.raw == "/%", lambda site: site.html(500, site.stub.not_found())),
    "percent-dropped": (lambda site, path: site.raw == "/%", lambda site: site.known_page("/")),
    "odd-injects": (
        lambda site, path: "\r\n" in path,
        lambda site: site.send(404, "", "text/plain", [("X-Injected", "yes")]),
    ),
    "escapes": (
        lambda site, path: path.startswith("/static/") and ".." in path and path.endswith("manage.py"),
        lambda site: site.send(200, "execute_from_command_line", "text/plain"),
    ),
}


def commands(folder: Path) -> list[list[str]]:
    """The commands that the site ran, with their arguments."""
    log = folder / "commands.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
