"""The project's WSGI application; the rest of a request's body is read before the response is sent.

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

def application(environ, start_response):
    """Call the project; only a request with a body has a rest of it."""
    response = project(environ, start_response)
    has_body = environ.get("CONTENT_LENGTH") or "HTTP_TRANSFER_ENCODING" in environ
    # Django's streams may be made from the body while they are sent.
    if has_body and not getattr(response, "streaming", False):
        drop(environ["wsgi.input"])
    return response

def drop(body):
    """Read what is left of a body."""
    left = LONGEST_BYTES
    while left > 0:
        piece = body.read(PIECE_BYTES)
        if not piece:
            return
        left -= len(piece)
