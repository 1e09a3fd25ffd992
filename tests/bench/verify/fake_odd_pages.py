"""The probe pages of the fake site: pages of any name, and answers that a cache must not store."""

from __future__ import annotations

import html
import json
import secrets
import uuid

from bench.inside.response_variants import CONTROLS, LIFETIMES, VARIES
from tests.bench.verify.fake_site import SiteHandler

SAYING = {
    "own-policy": {"Content-Security-Policy": "default-src 'none'"},
    "own-headers": {"Content-Language": "fr", "Link": "</>; rel=canonical"},
    "etag": {"ETag": '"an-etag"', "Last-Modified": "Sat, 01 Nov 2025 10:00:00 GMT"},
    "lasting": {"Cache-Control": "public, max-age=600"},
}
HTML = "text/html; charset=utf-8"
LARGE = 1_200_000


class OddPageHandler(SiteHandler):
    """One connection to a site with probe pages; its `send` is that of the layer."""

    def probe(self, path: str) -> None:
        if path == "/__probe__/entries":
            said = [("Cache-Control", "no-store")]
            self.send(200, json.dumps({"entries": len(self.stub.store)}), "application/json", said)
            return
        wrong, name = self.stub.wrong, path.removeprefix("/__probe__/").split("/")
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
