"""The fake site with probe pages and a cache in front, which is right or makes a named mistake.

`FakeLayer.wrong` holds the names of its mistakes; test_layers.py says which check must notice which.
"""

from __future__ import annotations

import html
import json
import secrets
import uuid
from pathlib import Path
from urllib.parse import unquote

from probes.response_variants import CONTROLS, LIFETIMES, VARIES
from tests.bench.verify.fake_http import HttpHandler
from tests.bench.verify.fake_site import FakeSite, SiteHandler

SAYING = {
    "own-policy": {"Content-Security-Policy": "default-src 'none'"},
    "own-headers": {"Content-Language": "fr", "Link": "</>; rel=canonical"},
    "etag": {"ETag": '"an-etag"', "Last-Modified": "Sat, 01 Nov 2025 10:00:00 GMT"},
    "lasting": {"Cache-Control": "public, max-age=600"},
}
FORBIDDEN = {"private", "no-store", "no-cache", "max-age=0", "s-maxage=0"}
EARLY = {"max-age=5", "max-age=-5", "must-revalidate"}
HTML = "text/html; charset=utf-8"
LARGE = 1_200_000


class FakeLayer(FakeSite):
    """A site under a layer."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.store: dict[str, tuple] = {}

    @property
    def handler(self) -> type[HttpHandler]:
        return LayerHandler

    def reset(self, *wrong: str) -> None:
        super().reset(*wrong)
        self.store = {}


class LayerHandler(SiteHandler):
    """One connection to it. It looks a page up before it renders it, and stores it when it sends it."""

    stub: FakeLayer

    def html(self, status: int, text: str, headers: list = (), **more: object) -> None:
        super().html(status, text if text.endswith("</html>") else f"{text}</html>", headers, **more)

    def route(self, path: str) -> None:
        wrong = self.stub.wrong
        if "flooded" in wrong and "utm_source" in self.query:
            self.stub.store.clear()
        if "cookies-flood" in wrong and "csrftoken=" in self.headers.get("Cookie", ""):
            self.stub.store.clear()
        kept = self.stub.store.get(self.key()) if self.may_be_answered() else None
        if kept:
            self.answer_kept(*self.as_kept(*kept))
        elif "raw-names-break" in wrong and not self.raw.isascii():
            self.send(500, "", HTML)
        elif path.startswith("/probe/") and path != "/probe/inside":
            self.probe(path)
        elif "serves-own-files" in wrong and path == "/index.html":
            self.send(200, "an index", HTML)
        elif "serves-own-keys" in wrong and path == "generation" and self.may_be_answered():
            self.send(200, secrets.token_hex(16), HTML)
        else:
            super().route(path)

    # ------------------------------------------------------------------ the layer

    def host_right(self) -> bool:
        right = super().host_right()
        if not right and "hosts-flood" in self.stub.wrong:
            self.stub.store.clear()
        return right

    def key(self) -> str:
        wrong, key = self.stub.wrong, self.raw
        if "unquotes-keys" in wrong:
            key = unquote(key).replace("//", "/")
        if "lower-keys" in wrong:
            key = key.lower()
        if "short-keys" in wrong:
            key = key[:200]
        if "keeps-queries" in wrong:
            key += f"?{self.query}"
        if "query-sorted" in wrong:
            key += "?" + "&".join(sorted(self.query.split("&")))
        if "keeps-hosts" in wrong:
            key += f"|{self.headers.get('Host', '')}"
        if "cuts-raw" in wrong and not key.isascii():
            key = "".join(letter for letter in key if letter.isascii()).replace("//", "/")
        if "some-cookies-variants" in wrong and "_ga=" in self.headers.get("Cookie", "") and secrets.randbelow(3) == 0:
            key += secrets.token_hex(8)
        if "cookie-variants" in wrong:
            key += f"|{self.headers.get('Cookie', '')}"
        return key

    def has_session(self, *, answering: bool) -> bool:
        wrong, cookie = self.stub.wrong, self.headers.get("Cookie", "")
        if "keeps-sessions" in wrong or (answering and "answers-signed-in" in wrong):
            return False
        return cookie.startswith("sessionid") if "first-cookie-only" in wrong else "sessionid" in cookie

    def may_be_answered(self) -> bool:
        wrong = self.stub.wrong
        methods = ("GET", "HEAD", "POST", "PUT", "DELETE") if "keeps-posts" in wrong else ("GET", "HEAD")
        return (
            self.command in methods
            and (not self.query or wrong & {"query-ignored", "keeps-queries", "query-sorted"})
            and ("Authorization" not in self.headers or "answers-authorized" in wrong)
            and not self.has_session(answering=True)
            and not self.raw.startswith(("/static/", "/login/", "/healthz", "/probe/inside"))
        )

    def may_be_stored(self, status: int, kind: str, headers: dict[str, str]) -> bool:
        wrong = self.stub.wrong
        control = headers.get("cache-control", "")
        if "keeps-spelt" not in wrong:
            control = "".join(control.lower().split())
        directives = {part.partition('="')[0] for part in control.split(",")}
        varies = {part.strip().lower() for part in headers.get("vary", "").split(",") if part.strip()}
        return (
            "keeps-nothing" not in wrong
            and self.may_be_answered()
            and (self.command == "GET" or wrong & {"keeps-posts", "keeps-heads"})
            and ("Authorization" not in self.headers or "keeps-authorized" in wrong)
            and not self.has_session(answering=False)
            and (status == 200 or "keeps-statuses" in wrong)
            and ("set-cookie" not in headers or "keeps-cookies" in wrong)
            and (not directives & FORBIDDEN or "keeps-private" in wrong)
            and (not (directives & EARLY or headers.keys() & {"age", "expires"}) or "keeps-early" in wrong)
            and (varies <= {"cookie", "accept-encoding"} or self.keeps_varied(varies))
        )

    def keeps_varied(self, varies: set[str]) -> bool:
        return ("keeps-vary-star" in self.stub.wrong) if "*" in varies else ("keeps-variants" in self.stub.wrong)

    def as_kept(self, status: int, body: bytes, kind: str, headers: list) -> tuple:
        wrong = self.stub.wrong
        if "kept-cut" in wrong or ("cuts-large-pages" in wrong and len(body) > 1_000_000):
            body = body[: len(body) // 2]
        if "loses-headers" in wrong:
            headers = [(name, value) for name, value in headers if name in ("X-Frame-Options", "Vary")]
        if "adds-age" in wrong:
            headers = [*headers, ("Cache-Control", "max-age=60")]
        if "kept-as-html" in wrong:
            kind = HTML
        if "kept-coded" in wrong:
            headers = [*headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        return status, body, kind, headers

    def answer_kept(self, status: int, body: bytes, kind: str, headers: list) -> None:
        """The cached page, or the part of it that is requested."""
        asked, tag = self.headers.get("Range"), self.headers.get("If-None-Match")
        if asked and status == 200:
            self.part(body[1:] + b" " if "other-parts" in self.stub.wrong else body, asked, kind, headers)
        elif tag == "*" or (tag and "any-tag-matches" in self.stub.wrong):
            super().send(304, b"", kind, headers)
        else:
            super().send(status, body, kind, headers)

    def of_kept(self, body: bytes) -> bytes:
        """What is kept of an answer."""
        wrong = self.stub.wrong
        if "keeps-parts" in wrong and "Range" in self.headers:
            return body[:100]
        heads = self.command == "HEAD" and "keeps-heads" in wrong
        return b"" if heads or ("keeps-unmodified" in wrong and "If-None-Match" in self.headers) else body

    def send(self, status: int, body: str | bytes, kind: str, headers: list = (), *, whole: bool = True) -> None:
        body = body.encode() if isinstance(body, str) else body
        first = "reads-first-vary" in self.stub.wrong
        names = {name.lower(): value for name, value in (reversed(headers) if first else headers)}
        if (whole or "keeps-streams" in self.stub.wrong) and self.may_be_stored(status, kind, names):
            self.stub.store[self.key()] = (status, self.of_kept(body), kind, list(headers))
        super().send(status, body, kind, headers)

    # ------------------------------------------------------------------ the probes

    def probe(self, path: str) -> None:
        if path == "/probe/entries":
            said = [("Cache-Control", "no-store")]
            self.send(200, json.dumps({"entries": len(self.stub.store)}), "application/json", said)
            return
        wrong, name = self.stub.wrong, path.removeprefix("/probe/").split("/")
        if "odd-names-break" in wrong and "\0" in path:
            self.send(500, "", HTML)
        elif not path.endswith("/") or (self.command not in ("GET", "HEAD") and name[0] != "form"):
            self.send(404 if not path.endswith("/") else 405, "", HTML)
        elif name[0] == "odd":
            self.odd(name[1], path)
        elif name[0] == "large":
            self.send(200, self.text(path, "x" * LARGE), HTML, self.usual())
        elif name[0] in ("page", "coded", "form"):
            self.send(200, self.text(path), HTML, self.usual())
        else:
            self.send(404, "", HTML)

    def usual(self) -> list[tuple[str, str]]:
        return [("X-Frame-Options", "DENY"), ("Vary", "Cookie")]

    def text(self, path: str, filling: str = "some words " * 20, end: str = "") -> str:
        shown = {
            "render-id": uuid.uuid4().hex,
            "method": self.command,
            "path": path,
            "query": self.query,
            "user": self.user or "nobody",
            "authorization": self.headers.get("Authorization", ""),
        }
        lines = [f'<p id="{name}">{html.escape(value)}</p>' for name, value in shown.items()]
        return "\n".join(["<!doctype html>", *lines, filling, end, "</html>", ""])

    def odd(self, kind: str, path: str) -> None:
        text = self.text(path)
        if kind.startswith("status-"):
            self.send(int(kind[7:]), text, HTML, [*self.usual(), ("Location", "/")])
        elif kind in ("set-cookie", "session", "token"):
            self.cookie(kind, path)
        elif kind == "vary-two-lines":
            self.send(200, text, HTML, [*self.usual(), ("Vary", "*")])
        elif kind == "streaming":
            self.send(200, text, HTML, self.usual(), whole=False)
        elif kind == "breaking":
            self.breaking(text)
        elif kind == "latin":
            body = text.replace("some words", "d\u00e9j\u00e0 vu").encode("latin-1")
            self.send(200, body, "text/html; charset=iso-8859-1", self.usual())
        elif kind == "plain-text":
            self.send(200, text, "text/plain; charset=utf-8", self.usual())
        else:
            said = (
                {"Cache-Control": CONTROLS[kind]} if kind in CONTROLS else SAYING.get(kind) or LIFETIMES.get(kind, {})
            )
            said = said | ({"Vary": VARIES[kind]} if kind in VARIES else {})
            self.send(200, text, HTML, [item for item in self.usual() if item[0] not in said] + list(said.items()))

    def cookie(self, kind: str, path: str) -> None:
        cookie = "same" if "shares-token" in self.stub.wrong else secrets.token_hex(8)
        token = f'<form><input type="hidden" name="csrfmiddlewaretoken" value="{cookie}"></form>'
        text = self.text(path, end=token if kind == "token" else "")
        self.send(200, text, HTML, [*self.usual(), ("Set-Cookie", f"{kind}={cookie}")])

    def breaking(self, text: str) -> None:
        half = text[: len(text) // 2].encode()
        if "keeps-broken" in self.stub.wrong:
            self.stub.store[self.key()] = (200, half, HTML, self.usual())
        self.send_response(200)
        self.send_header("Content-Type", HTML)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(half)
        self.close_connection = True
