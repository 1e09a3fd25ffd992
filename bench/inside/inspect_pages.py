"""What an anonymous visitor gets at a path, asked in process; a part of inspect_project."""

import contextlib

from cookie_causes import causes
from error_words import in_words


def usable_databases():
    """The aliases of databases that can be connected to: pages may not need the others."""
    from django.db import connections

    found = []
    for alias in connections:
        with contextlib.suppress(Exception):
            connections[alias].ensure_connection()
            found.append(alias)
    return found


def page(path, settings, aliases):
    """What an anonymous visitor gets at a path, and what the page did to the session, all of it rolled back in these
    databases."""
    from django.db import connections, transaction
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    host = next((name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"), "localhost")
    client = Client(raise_request_exception=False, HTTP_HOST=host)
    with contextlib.ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(rolled_back(transaction, alias))
        queries = stack.enter_context(CaptureQueriesContext(connections["default"]))
        found = stack.enter_context(causes())
        answer = client.get(path, secure=bool(settings.SECURE_SSL_REDIRECT))
        if getattr(answer, "streaming", False):
            # It may never end.
            answer.close()
    session = getattr(getattr(answer, "wsgi_request", None), "session", None)
    return {
        "path": path,
        "status": answer.status_code,
        "location": answer.headers.get("Location"),
        "vary": answer.headers.get("Vary"),
        "cache_control": answer.headers.get("Cache-Control"),
        "headers": dict(answer.headers.items()),
        "cookies": sorted(answer.cookies),
        "session_read": bool(getattr(session, "accessed", False)),
        "session_written": bool(getattr(session, "modified", False)),
        "queries": len(queries.captured_queries),
        "causes": {name: cause for name, cause in found.items() if cause},
        "error": in_words(answer.exc_info[1]) if getattr(answer, "exc_info", None) else None,
    }


@contextlib.contextmanager
def rolled_back(transaction, alias):
    """A transaction that ends without a trace."""
    with transaction.atomic(using=alias):
        yield
        transaction.set_rollback(True, using=alias)
