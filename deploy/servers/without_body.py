"""The project's WSGI application; no body follows the headers of a response to HEAD.

Django leaves that to the server (PEP 3333), and this one has no setting for it. Over a connection that a web server in
front keeps open, the bytes of the body would be read as the beginning of the next visitor's response.
https://www.rfc-editor.org/rfc/rfc9110#section-9.3.2
"""

from importlib import import_module

project = getattr(import_module("{{ wsgi_module }}"), "{{ wsgi_name }}")


def application(environ, start_response):
    """Call the project; a response to HEAD is ended as soon as its headers are known."""
    if environ["REQUEST_METHOD"] != "HEAD":
        return project(environ, start_response)

    started = []

    def start(*arguments):
        started.append(arguments)
        return start_response(*arguments)

    pieces = project(environ, start)
    try:
        if not started:
            # A generator sends its headers before its first piece.
            next(iter(pieces), b"")
    finally:
        if hasattr(pieces, "close"):
            pieces.close()
    return []
