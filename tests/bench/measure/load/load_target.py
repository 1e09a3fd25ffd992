"""A tiny site on a real port for the tests of load: responds rightly, or wrongly as named by the path."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b"x" * 500
SLOW_S = 0.2


class Target(ThreadingHTTPServer):
    """A site with responses by path.

    requests     path -> requests
    order        the paths in order of requests
    connections  number so far
    broken       if set, every later response is a 503
    body         of every page
    pause_s      before every response: waiting visitors cost no CPU time
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, address: str = "127.0.0.1"):
        super().__init__((address, port), Handler)
        self.requests: Counter[str] = Counter()
        self.order: list[str] = []
        self.connections = 0
        self.broken = threading.Event()
        self.body = BODY
        self.pause_s = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def process_request(self, request, client_address) -> None:
        self.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request, client_address) -> None:
        """Load tools close connections in the middle when they end."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: sent apart, each response would wait 40 ms for a delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Target

    def do_GET(self) -> None:
        self.server.requests[self.path] += 1
        self.server.order.append(self.path)
        if self.path == "/drop":
            # Half-closed first, so that the client sees an end rather than a reset.
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        elif self.path == "/hang":
            threading.Event().wait(30)
        else:
            if self.path == "/slow":
                time.sleep(SLOW_S)
            self.close_connection = self.close_connection or self.path == "/close"
            self._respond()

    def _respond(self) -> None:
        if self.server.pause_s:
            time.sleep(self.server.pause_s)
        status = 503 if self.server.broken.is_set() else {"/503": 503, "/302": 302}.get(self.path, 200)
        body = self.server.body
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        # A client of HTTP/1.0 waits for the end of the connection unless this header keeps it open.
        self.send_header("Connection", "close" if self.close_connection else "keep-alive")
        if status == 302:
            self.send_header("Location", "/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@contextlib.contextmanager
def target(pause_s: float = 0.0, address: str = "127.0.0.1") -> Iterator[Target]:
    """The site on a free port, stopped at the end."""
    server = Target(address=address)
    server.pause_s = pause_s
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    # As a separate process: python -m tests.bench.measure.load.load_target PORT
    Target(int(sys.argv[1])).serve_forever()
