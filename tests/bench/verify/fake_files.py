"""The static files of the fake site, served rightly or with a named mistake."""

from __future__ import annotations

import contextlib
import email.utils
import socket

from tests.bench.verify.fake_http import HttpHandler

CSS, SCRIPT, IMAGE = "app.0123456789ab.css", "app.123456789abc.js", "logo.23456789abcd.svg"


class FileHandler(HttpHandler):
    """One connection to a site with static files."""

    def file(self, name: str) -> None:
        stub, wrong = self.stub, self.stub.wrong
        plain = {CSS: "app.css", SCRIPT: "app.js", IMAGE: "logo.svg"}.get(name, name)
        path = stub.static / plain
        if (
            "/" in plain
            or "\0" in plain
            or len(plain) > 200
            or not path.is_file()
            or (name == CSS and "no-css" in wrong)
        ):
            self.send(404, "no such file", "text/plain")
            return
        content = path.read_bytes()
        if "short-small" in wrong and name == "small.txt":
            content = content[:-1]
        kinds = {".txt": "text/plain", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
        kind = kinds[path.suffix]
        if "octets" in wrong:
            kind = "application/octet-stream"
        lasting = name != plain if "plain-immutable" not in wrong else True
        lifetime = "max-age=315360000, public, immutable" if lasting and "short-lived" not in wrong else "max-age=60"
        headers = [("Cache-Control", lifetime)]
        if "no-validator" not in wrong:
            modified = email.utils.formatdate(path.stat().st_mtime, usegmt=True)
            headers.append(("Last-Modified", modified))
            if self.headers.get("If-Modified-Since") == modified and "never-304" not in wrong:
                self.send(304, b"", kind, headers)
                return
        part = self.headers.get("Range")
        if part and "no-ranges" not in wrong:
            self.part(content, part, kind, headers)
            return
        if "gzip-other-file" in wrong and "gzip" in self.headers.get("Accept-Encoding", ""):
            content = b"other"
        if "cuts-large" in wrong and len(content) > 1_000_000:
            self.cut(content)
            return
        self.send(200, content, kind, headers)

    def hang_up(self) -> None:
        """Close the connection without an answer, as a worker does that dies."""
        self.close_connection = True

    def cut(self, content: bytes) -> None:
        """Give up on a slow client."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        self.connection.settimeout(0.05)
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.send(200, content, "text/plain")
