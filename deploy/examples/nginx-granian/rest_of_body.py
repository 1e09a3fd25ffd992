"""The project's WSGI application; the rest of a request's body is read before its response ends.

An application may respond without reading the body, as Django does to a form without a token. granian would close the
connection while the client still writes. The kernel then resets the connection, and the client, or a web server in
front, loses the response.
https://www.rfc-editor.org/rfc/rfc9112#section-9.6
"""

from importlib import import_module

project = getattr(import_module("config.wsgi"), "application")

# A longer body is refused by losing the connection.
LONGEST_BYTES = 10485760
PIECE_BYTES = 65536

class Response:
    """The pieces of a response; then the rest of the body is read and dropped."""

    def __init__(self, pieces, body):
        self.pieces = pieces
        self.body = body

    def __iter__(self):
        # A response in pieces may be made from the body.
        yield from self.pieces

        left = LONGEST_BYTES
        while left > 0:
            piece = self.body.read(PIECE_BYTES)
            if not piece:
                return
            left -= len(piece)

    def close(self):
        if hasattr(self.pieces, "close"):
            self.pieces.close()

def application(environ, start_response):
    """Call the project; only a request with a body has a rest of it."""
    pieces = project(environ, start_response)
    if environ.get("CONTENT_LENGTH") or "HTTP_TRANSFER_ENCODING" in environ:
        return Response(pieces, environ["wsgi.input"])
    return pieces
