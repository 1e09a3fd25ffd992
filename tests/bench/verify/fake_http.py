"""The HTTP side of the fake sites: read requests and send answers, rightly or with a mistake of `stub.wrong`."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

HOSTS = ("127.0.0.1", "localhost")


class AnswerHandler(BaseHTTPRequestHandler):
    """Sends answers; `stub` is the fake site and `user` the visitor."""

    stub: Any
    user = ""

    def redirect(self, location: str, status: int, headers: list[tuple[str, str]] = ()) -> None:
        if "port-lost" in self.stub.wrong:
            location = f"http://127.0.0.1{location}"
        if "absolute" in self.stub.wrong:
            location = f"http://{self.headers.get('Host')}{location}"
        self.send(status, b"", "text/html; charset=utf-8", [*headers, ("Location", location)])

    def html(self, status: int, text: str, headers: list = (), *, render_id: str = "", etag: bool = False) -> None:
        wrong = self.stub.wrong
        headers = list(headers)
        if "no-render-id" not in wrong:
            headers.append(("X-Render-Id", "same" if "same-render-id" in wrong else render_id or uuid.uuid4().hex))
        if etag and not self.user:
            tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'
            headers.append(("ETag", tag))
            given = self.headers.get("If-None-Match")
            if (given == tag and "never-304" not in wrong) or (given and "always-304" in wrong):
                self.send(304, b"", "text/html; charset=utf-8", headers)
                return
        kind = "text/html; charset=latin-1" if "other-charset" in wrong else "text/html; charset=utf-8"
        self.send(status, text, kind, headers)

    def send(self, status: int, body: str | bytes, kind: str, headers: list = ()) -> None:
        wrong = self.stub.wrong
        body = body.encode() if isinstance(body, str) else body
        headers = [("Content-Type", kind), *headers]
        head = self.command == "HEAD"
        coded = "gzip" in self.headers.get("Accept-Encoding", "") and not (kind == "text/css" and "plain-css" in wrong)
        if coded and status == 200 and len(body) > 50:
            headers.append(("Content-Encoding", "gzip"))
            body = gzip.compress(body) if "gzip-not" not in wrong else body
            if "gzip-varies-not" not in wrong:
                headers.append(("Vary", "Accept-Encoding"))
        if head and "head-without-type" in wrong:
            headers = headers[1:]
        chunks = "chunks-for-1.0" in wrong
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        length = 1 if head and "head-other-length" in wrong else len(body)
        self.send_header(*(("Transfer-Encoding", "chunked") if chunks else ("Content-Length", str(length))))
        if self.close_connection or "closes" in wrong:
            self.send_header("Connection", "close")
        self.end_headers()
        if head and "head-with-body" not in wrong:
            return
        if status == 304:
            return
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunks else body)
        if self.request_version == "HTTP/1.0" and "open-after-1.0" in wrong:
            time.sleep(0.8)

    def part(self, content: bytes, asked: str, kind: str, headers: list[tuple[str, str]]) -> None:
        first, _, last = asked.removeprefix("bytes=").partition("-")
        if not (first + last).isdecimal() or (first and last and int(first) > int(last)):
            self.send(503 if "odd-range-fails" in self.stub.wrong else 416, b"", kind)
            return
        start = int(first) if first else len(content) - int(last)
        end = min(int(last) + 1 if first and last else len(content), len(content))
        if start >= len(content):
            self.send(416, b"", kind, [("Content-Range", f"bytes */{len(content)}")])
            return
        total = len(content) if "wrong-total" not in self.stub.wrong else 1
        self.send(206, content[start:end], kind, [*headers, ("Content-Range", f"bytes {start}-{end - 1}/{total}")])


class HttpHandler(AnswerHandler):
    """One connection to a fake site; `stub` is the site, and `route` its answer to a path."""

    protocol_version = default_request_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        if "impatient" in self.stub.wrong:
            self.timeout = 0.02
        super().setup()
        self.number = 0

    def log_message(self, *words: object) -> None:
        pass

    def __getattr__(self, name: str):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that cannot be read, such as one with more than 100 headers."""
        if "many-headers-close" in self.stub.wrong:
            self.close_connection = True
        elif "takes-http2" in self.stub.wrong and code == 505:
            self.wfile.write(b"\0\0\0\4\0\0\0\0\0")
        elif "repeats-protocol" in self.stub.wrong:
            self.wfile.write(b"HTTP/1.1 x 400 Bad Request\r\n\r\n")
        else:
            super().send_error(502 if "many-headers-break" in self.stub.wrong else code, message, explain)

    def handle(self) -> None:
        with self.stub.only_thread if "one-thread" in self.stub.wrong else contextlib.nullcontext():
            super().handle()

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()
            return
        self.close_connection = True

    def answer(self) -> None:
        stub, wrong = self.stub, self.stub.wrong
        stub.requests += 1
        self.number += 1
        # requestline, because the handler collapses the slashes at the beginning of its path.
        self.target = self.requestline.split(" ")[1]
        parts = urlsplit(self.target if not self.target.startswith("//") else "/" + self.target)
        self.raw, self.query = parts.path.removeprefix("/") if self.target.startswith("//") else parts.path, parts.query
        self.cookies = dict(
            item.strip().partition("=")[::2] for item in self.headers.get("Cookie", "").split(";") if "=" in item
        )
        if self.refused():
            return
        self.user = stub.sessions.get(self.cookies.get("sessionid", ""), "")
        if "busy" in wrong and stub.requests % 40 == 0:
            self.send(503, "busy", "text/plain")
        elif "forgets-after-first" in wrong and self.number == 2:
            self.html(404, stub.not_found())
        else:
            self.route(unquote(self.raw, "latin-1"))
        if "closes" in wrong or "closes-silently" in wrong:
            self.close_connection = True
        if "drops-pipelined" in wrong:
            self.rfile = self.connection.makefile("rb")

    def refused(self) -> bool:
        """Refuse what a site refuses, or break; false when the request is read and can be answered."""
        stub, wrong = self.stub, self.stub.wrong
        if "reset-upload" in wrong and int(self.headers.get("Content-Length") or 0) > 500_000:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            self.connection.close()
            return True
        if "logs-paths" in wrong and self.path.startswith("/%"):
            with stub.log.open("a") as log:
                log.write(f"Not Found: {self.path}\n")
        if not self.host_right():
            if "logs-hosts" in wrong:
                with stub.log.open("ab") as log:
                    log.write(b"x" * 2000)
            self.refuse(400)
            return True
        if "refuses-chunks" in wrong and self.headers.get("Transfer-Encoding"):
            self.refuse(411)
            return True
        if self.two_lengths() and not wrong & {"keeps-two-lengths", "length-wins", "chunks-ignored"}:
            self.refuse(400)
            return True
        if "upgrades" in wrong and self.headers.get("Upgrade"):
            self.send_response(101)
            self.end_headers()
        try:
            self.body = self.read_body()
        except ValueError:
            self.refuse(502 if "chunk-breaks" in wrong else 400)
            return True
        return False

    def refuse(self, status: int) -> None:
        """Answer with this status and close the connection."""
        self.close_connection = True
        self.send(status, "refused", "text/plain")

    def two_lengths(self) -> bool:
        return "Transfer-Encoding" in self.headers and "Content-Length" in self.headers

    def host_right(self) -> bool:
        host = self.headers.get("Host")
        if "any-host" in self.stub.wrong:
            return True
        if host is None:
            return self.request_version == "HTTP/1.0"
        return host.rpartition(":")[0] in HOSTS

    def read_body(self) -> bytes:
        wrong, length = self.stub.wrong, self.headers.get("Content-Length")
        coded = "chunked" in self.headers.get("Transfer-Encoding", "")
        if "body-left" in wrong and not coded:
            return b""
        if coded and "chunks-ignored" in wrong:
            return b""
        if coded and not (length and "length-wins" in wrong):
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return b"" if "chunks-dropped" in wrong else body
        return self.rfile.read(int(length or 0))

    def route(self, path: str) -> None:
        raise NotImplementedError


class Server(ThreadingHTTPServer):
    """Takes 100 clients at once and is quiet about those who leave."""

    request_queue_size = 256
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextlib.contextmanager
def serving(stub: Any) -> Iterator[str]:
    """Serve a fake site with its `handler` on a free port; yields its URL."""
    handler = type("Handler", (stub.handler,), {"stub": stub})
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
