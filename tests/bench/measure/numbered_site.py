"""A site on a real port that numbers its connections and counts its requests."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace


@contextmanager
def site(answer):
    """A server whose `answer(handler)` gives body and headers; each connection has a number."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def setup(self):
            super().setup()
            self.server.connections += 1
            self.number = self.server.connections

        def do_GET(self):
            self.server.asked[self.path] += 1
            body, headers = answer(self)
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.connections, server.asked = 0, Counter()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", server=server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
