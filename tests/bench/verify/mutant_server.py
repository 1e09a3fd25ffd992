"""The real site over raw sockets, right or with one mutation: python -m tests.bench.verify.mutant_server PORT FOLDER

A master forks one worker, and another if the first is killed. `POST /__mutant__/` with a JSON object changes the worker
by the attributes of `Mutant`; a new worker has the same state. Faults of the wire are here, by name; faults of
responses and of the cache are in mutations.py.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import setup_testing_defaults

from tests.bench.verify import mutations
from tests.bench.verify.mutant_cache import RULES, Cache, Request, Response, rows_left

CONTROL = "/__mutant__/"
# Delay of a late response.
OPEN_S = 3.5
# The largest chunked body.
CHUNKED_BYTES = 1_500_000
# The longest wait for a request that nobody waits for any more.
SETTLED_S = 10.0


class Mutant:
    """The state of the site.

    wrong     names of mutations
    caches    whether a cache is in front
    log       the log file
    """

    def __init__(self, folder: Path):
        self.folder, self.state_file = folder, folder / "state.json"
        self.state: dict[str, Any] = {}
        self.wrong: set[str] = set()
        self.caches = self.hangs = self.is_later = self.behind = False
        self.kept: dict[str, Any] = {}
        self.requests = 0
        self.one = threading.Lock()
        # Number of requests in progress.
        self.open, self.ended = 0, threading.Condition()
        self.cache = Cache(folder / "store")
        if self.state_file.exists():
            self.change(json.loads(self.state_file.read_text()))
            # The first worker was killed.
            self.is_later = True

    def change(self, changes: dict[str, Any]) -> None:
        """Apply an object: `wrong` resets to these mutations, any other key changes one attribute."""
        cache = self.cache
        if "wrong" in changes:
            self.wrong, self.kept, self.requests, self.hangs, self.is_later = set(changes["wrong"]), {}, 0, False, False
            self.caches, self.behind = changes.get("caches", False), False
            cache = self.cache = Cache(self.folder / "store")
            cache.rules = RULES | {
                name: rule for wrong in self.wrong for name, rule in mutations.RULES.get(wrong, {}).items()
            }
        # A load balancer names the clients.
        self.behind = changes.get("behind", self.behind)
        if "ttl_s" in changes or "wrong" in changes:
            cache.empty()
        cache.ttl_s = changes.get("ttl_s", cache.ttl_s)
        if "service" in changes:
            is_up = changes["service"] == "up"
            self.kept["before"] = self.kept.get("before", {}) if is_up else cache.pages
            cache.pages = self.kept["before"] if is_up and "forgets-what-it-was-not-told" in self.wrong else {}
            cache.works, self.hangs = is_up and "no-hits-after" not in self.wrong, changes["service"] == "hangs"
        if "room" in changes:
            cache.has_room = changes["room"] and "full-disk-forever" not in self.wrong
        if changes.get("restart"):
            cache.pages = cache.purged if "restart-brings-back" in self.wrong else {}
        if changes.get("purge"):
            cache.purge()
        self.state |= {name: changes[name] for name in ("wrong", "caches", "ttl_s") if name in changes}
        self.state_file.write_text(json.dumps(self.state))

    @contextlib.contextmanager
    def responding(self) -> Iterator[None]:
        with self.ended:
            self.open += 1
        try:
            yield
        finally:
            with self.ended:
                self.open -= 1
                self.ended.notify_all()

    def settle(self) -> None:
        """Wait for requests given up by their clients, and remove the checks' rows."""
        with self.ended:
            self.ended.wait_for(lambda: self.open == 0, SETTLED_S)
        rows_left(remove=True)

    def respond(self, request: Request, render: Any) -> Response:
        """The response to a request, by the cache or by the site, with its mutations."""
        self.requests += 1
        response = self.cache.respond(request, lambda: render(request)) if self.caches else render(request)
        for name in [*mutations.ALWAYS, *self.wrong]:
            if name in mutations.AFTER:
                response = mutations.AFTER[name](self, request, response) or response
        return response


class SiteHandler(BaseHTTPRequestHandler):
    """Reads requests, and calls the site by WSGI (PEP 3333)."""

    mutant: Mutant
    site: Any

    def environ(self, request: Request) -> dict[str, Any]:
        host, _, port = request.header("host").partition(":")
        passed = {name: value for name, value in request.headers.items() if name != "transfer-encoding"}
        variables = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in passed.items()}
        if "believes-internal" in self.mutant.wrong and request.header("x-token-cookie"):
            variables["HTTP_COOKIE"] = request.header("x-token-cookie")
        environ = {
            **variables,
            "REQUEST_METHOD": request.method,
            "PATH_INFO": unquote_to_bytes(request.path.encode("latin-1")).decode("latin-1"),
            "RAW_URI": request.path,
            "REQUEST_URI": request.path,
            "QUERY_STRING": request.query,
            "SCRIPT_NAME": request.header("x-root-path") if "believes-prefix" in self.mutant.wrong else "",
            "CONTENT_TYPE": request.header("content-type"),
            "CONTENT_LENGTH": str(len(request.body)),
            "SERVER_NAME": host,
            "SERVER_PORT": port or "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": self.client(request),
            "wsgi.input": io.BytesIO(request.body),
            "wsgi.errors": sys.stderr,
        }
        setup_testing_defaults(environ)
        return environ

    def client(self, request: Request) -> str:
        """The address of the client, behind a load balancer the last one of X-Forwarded-For."""
        named = request.header("x-forwarded-for") if self.mutant.behind else ""
        words = named.split(", ")
        return (words[0] if "believes-first" in self.mutant.wrong else words[-1]) or request.client

    def called(self, request: Request) -> tuple[Response, Any]:
        """The head of the site's response, and its pieces."""
        head: list[Any] = []
        pieces = self.site(self.environ(request), lambda status, headers, *_: head.extend((status, headers)))
        return Response(int(head[0].split()[0]), tuple(head[1]), b""), pieces

    def render(self, request: Request) -> Response:
        head, pieces = self.called(request)
        body = b""
        try:
            for piece in pieces:
                body += piece
        except ConnectionAbortedError:
            if "keeps-broken" not in self.mutant.wrong:
                raise
            return replace(head, body=body)
        finally:
            getattr(pieces, "close", lambda: None)()
        return replace(head, body=body, streamed=not head.header("content-length") and head.status == 200)

    def given(self) -> dict[str, str]:
        """The headers; names with underscores are dropped, because CGI reads underscores as dashes."""
        pairs = [(name.lower(), value) for name, value in self.headers.items()]
        if "passes-underscores" in self.mutant.wrong:
            pairs = [(name.replace("_", "-"), value) for name, value in pairs]
        return {name: value for name, value in pairs if "_" not in name}

    @staticmethod
    def length(text: str, wrong: set[str]) -> int:
        """The value of Content-Length; raises ValueError for another text."""
        if text.isascii() and text.isdigit():
            return int(text)
        if "loose-lengths" in wrong:
            return 0
        raise ValueError(text)

    def read_body(self, wrong: set[str]) -> bytes:
        """The body; raises ValueError if malformed."""
        length, coding = self.headers.get("Content-Length"), self.headers.get("Transfer-Encoding", "")
        coded = "chunked" in coding
        if coding and not coded:
            raise ValueError("a coding that is not known")
        if ("body-left" in wrong and not coded) or (coded and "chunks-ignored" in wrong):
            return b""
        if not coded or (length and "length-wins" in wrong):
            return self.rfile.read(self.length(length or "0", wrong))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
            if len(body) > CHUNKED_BYTES and "endless-chunks" not in wrong:
                raise ValueError("a body that is too large")
        self.rfile.readline()
        return b"" if "chunks-dropped" in wrong else body


class Handler(SiteHandler):
    """One connection."""

    protocol_version = default_request_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        if "impatient" in self.mutant.wrong:
            self.timeout = 0.045
        super().setup()
        self.number = 0

    def log_message(self, *words: object) -> None:
        pass

    def log(self, line: str) -> None:
        with (self.mutant.folder / "logs" / "site.log").open("a") as log:
            log.write(line + "\n")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.respond
        raise AttributeError(name)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse an unreadable request, such as one with more than 100 headers."""
        wrong = self.mutant.wrong
        if "many-headers-close" in wrong:
            self.close_connection = True
        elif "takes-http2" in wrong and code == 505:
            self.wfile.write(b"\0\0\0\4\0\0\0\0\0")
        elif "repeats-protocol" in wrong:
            self.wfile.write(b"HTTP/1.1 x 400 Bad Request\r\n\r\n")
        else:
            super().send_error(502 if "many-headers-break" in wrong else code, message, explain)

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()
            return
        self.close_connection = True

    def respond(self) -> None:
        """Respond to one request."""
        wrong, target = self.mutant.wrong, self.requestline.split(" ")[1]
        self.number += 1
        path, _, query = target.partition("?")
        try:
            body = self.read_body(wrong if path != CONTROL else set())
        except ValueError:
            self.refuse(502 if "chunk-breaks" in wrong else 400)
            return
        port, client = self.server.server_address[1], self.client_address[0]
        request = Request(self.command, path, query, self.given(), body, port, client)
        if path == CONTROL:
            if b'"wrong"' in body:
                self.mutant.settle()
            self.mutant.change(json.loads(body))
            self.send(Response(200, (), json.dumps({"rows": rows_left()}).encode()))
            return
        if (status := self.refused(request)) is not None:
            if status:
                self.refuse(status)
            return
        if "upgrades" in wrong and request.header("upgrade"):
            self.send_response(101)
            self.end_headers()
        with self.mutant.responding():
            if "/halting/" in path:
                self.stream(request)
                return
            try:
                self.send(self.mutant.respond(request, self.render))
            except ConnectionAbortedError:
                self.hang_up()
        if "drops-pipelined" in wrong:
            self.rfile = self.connection.makefile("rb")

    def refused(self, request: Request) -> int | None:
        """The status of a refusal, 0 for a closed connection; None for a normal response."""
        wrong = self.mutant.wrong
        if "traces-handshakes" in wrong and not request.header("sec-websocket-protocol").isascii():
            self.log("Traceback (most recent call last):")
        if "logs-paths" in wrong and request.path.startswith("/%"):
            self.log(f"Not Found: {request.path}")
        if "logs-hosts" in wrong and "other.example" in request.header("host"):
            self.log("x" * 2000)
        if "reset-upload" in wrong and len(request.body) > 500_000:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return self.hang_up()
        if "bytes-kill" in wrong and not all(value.isascii() for value in request.headers.values()):
            return self.hang_up()
        if "refuses-chunks" in wrong and request.header("transfer-encoding"):
            return 411
        if not self.headers.get("Host") and self.request_version == "HTTP/1.1" and "any-host" not in wrong:
            return 400
        if "busy" in wrong and self.mutant.requests % 40 == 39:
            self.mutant.requests += 1
            return 503
        if "forgets-after-first" in wrong and self.number == 2:
            return 404
        both = request.header("transfer-encoding") and request.header("content-length")
        return 400 if both and not wrong & {"keeps-two-lengths", "length-wins", "chunks-ignored"} else None

    def refuse(self, status: int) -> None:
        self.close_connection = True
        self.send(Response(status, (("Content-Type", "text/plain"),), b"refused"))

    def hang_up(self) -> int:
        """End the connection without a response."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
        return 0

    def stream(self, request: Request) -> None:
        """Send the pieces of a response one by one."""
        head, pieces = self.called(request)
        if "halves-look-whole" in self.mutant.wrong:
            head, self.close_connection = head.without("content-length").having(Connection="close"), True
        self.send_head(head)
        for piece in pieces:
            self.wfile.write(piece)

    def send_head(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()

    def send(self, response: Response) -> None:
        wrong, body = self.mutant.wrong, response.body
        head, chunks = self.command == "HEAD", "chunks-for-1.0" in wrong
        length = str(len(body)) if not head or body else response.header("content-length") or "0"
        length = "1" if head and "head-other-length" in wrong else length
        response = response.without("content-length", "connection")
        response = response.having(Transfer_Encoding="chunked") if chunks else response.having(Content_Length=length)
        if response.status == 304:
            response = response.without("content-length")
        if self.close_connection or "closes" in wrong:
            response = response.having(Connection="close")
        self.close_connection = self.close_connection or bool(wrong & {"closes", "closes-silently"})
        self.send_head(response)
        if response.status != 304 and (not head or "head-with-body" in wrong):
            body = body or b"a body" * head
            body = body[: len(body) // 2] if "cuts-large" in wrong and len(body) > 1_000_000 else body
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunks else body)
        if self.request_version == "HTTP/1.0" and "open-after-1.0" in wrong:
            time.sleep(OPEN_S)
        if self.request_version == "HTTP/1.0" and "more-after-1.0" in wrong:
            self.wfile.write(b"more")


class Server(ThreadingHTTPServer):
    """Is quiet about clients who leave."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def serve(listener: socket.socket, folder: Path) -> None:
    """Serve as a worker."""
    from django.conf import settings

    from config.wsgi import application

    # Logging in costs nothing here.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *settings.PASSWORD_HASHERS]
    handler = type("Bound", (Handler,), {"mutant": Mutant(folder), "site": staticmethod(application)})
    server = Server(listener.getsockname(), handler, bind_and_activate=False)
    server.socket = listener
    server.serve_forever(poll_interval=0.02)


def main() -> None:
    """Keep one worker."""
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
    worker = 0

    def end(*_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    import config.wsgi  # noqa: F401 - before the fork, so that a new worker starts at once

    while True:
        worker = os.fork()
        if not worker:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            serve(listener, Path(sys.argv[2]))
        os.waitpid(worker, 0)


if __name__ == "__main__":
    main()
