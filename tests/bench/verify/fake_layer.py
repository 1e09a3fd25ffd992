"""The fake site with probe pages and a cache in front, which is right or makes a named mistake.

`FakeLayer.wrong` holds the names of its mistakes; test_layers.py says which check must notice which.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from urllib.parse import unquote

from tests.bench.verify.fake_http import HttpHandler
from tests.bench.verify.fake_odd_pages import HTML, OddPageHandler
from tests.bench.verify.fake_site import FakeSite

FORBIDDEN = {"private", "no-store", "no-cache", "max-age=0", "s-maxage=0"}
EARLY = {"max-age=5", "max-age=-5", "must-revalidate"}


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


class LayerHandler(OddPageHandler):
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
        elif path.startswith("/__probe__/") and path != "/__probe__/inside":
            self.probe(path)
        elif "serves-own-files" in wrong and path == "/index.html":
            self.send(200, "an index", HTML)
        elif "serves-own-keys" in wrong and path == "generation" and self.may_be_answered():
            self.send(200, secrets.token_hex(16), HTML)
        else:
            super().route(path)

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
            and not self.raw.startswith(("/static/", "/login/", "/healthz", "/__probe__/inside"))
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
