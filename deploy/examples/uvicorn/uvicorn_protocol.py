"""uvicorn's HTTP in C, for workers that are replaced without a loss. https://www.uvicorn.org/settings/#implementation"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# How long a worker that ends waits for the first request of a connection. By default it closes one at once whose request
# it has not read yet.
FIRST_REQUEST_S = 1

class Protocol(HttpToolsProtocol):
    """A connection of a client."""

    def shutdown(self):
        """The worker ends."""
        if self.cycle is None:
            self.loop.call_later(FIRST_REQUEST_S, super().shutdown)
        else:
            super().shutdown()
