"""uvicorn's HTTP in C, with limits, and for workers that are replaced without a loss.

https://www.uvicorn.org/settings/#implementation
"""

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# How long a worker that ends waits for the first request of a connection. By default it closes one at once whose request
# it has not read yet.
FIRST_REQUEST_S = 1
# The limit of a request's address and headers together. Default: none.
MAX_HEAD_BYTES = 65536


class Protocol(HttpToolsProtocol):
    """A connection of a client."""

    def on_message_begin(self):
        """A request begins."""
        super().on_message_begin()
        self.head_bytes = 0

    def on_url(self, url):
        """A part of its address has come."""
        self._limit(len(url))
        super().on_url(url)

    def on_header(self, name, value):
        """A header has come. Each counts for a little more than its bytes, because it takes memory itself."""
        self._limit(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _limit(self, more):
        self.head_bytes += more
        if self.head_bytes > MAX_HEAD_BYTES:
            # The response is a 400.
            raise HttpParserError("the head of the request is too large")

    def handle_websocket_upgrade(self):
        """A WebSocket's handshake has come. Its headers are ASCII (RFC 6455); another byte would end in a traceback."""
        if all(value.isascii() for name, value in self.headers if name.startswith(b"sec-websocket-")):
            super().handle_websocket_upgrade()
        else:
            self.send_400_response("Invalid HTTP request received.")

    def shutdown(self):
        """The worker ends."""
        if self.cycle is None:
            self.loop.call_later(FIRST_REQUEST_S, super().shutdown)
        else:
            super().shutdown()
