"""What an anonymous visitor gets at a path, asked in process, and which line makes the page vary with cookies, reads
or sets one; a part of inspect_project."""

import contextlib
import sys

from error_words import in_words, line_of
from inspect_links import linked_parameters

# As the kit asks for pages.
HERE = "127.0.0.1"
LOCAL = (HERE, "localhost", "[::1]", "*")
# Where Django acts for others: the line that asked for it is the cause.
FOR_OTHERS = ("django.http", "django.utils", "django.contrib.sessions", "django.middleware.csrf", "django.template")
# What calls a middleware or a view: the frames outside of it are of others.
CALLERS = ("django.core.handlers", "django.test")


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
    """What an anonymous visitor gets at a path of the site's own host, and what the page did to the session, all of it
    rolled back in these databases; `here` is the status where 127.0.0.1 is asked for it."""
    host = next((name.lstrip(".") for name in settings.ALLOWED_HOSTS if name not in LOCAL), HERE)
    found = _asked(path, host, settings, aliases)
    return (
        found
        if host == HERE or found["status"] != 200
        else {**found, "here": _asked(path, HERE, settings, aliases)["status"]}
    )


def _asked(path, host, settings, aliases):
    from django.db import connections, transaction
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(raise_request_exception=False, HTTP_HOST=host)
    with contextlib.ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(rolled_back(transaction, alias))
        queries = stack.enter_context(CaptureQueriesContext(connections["default"])) if aliases else ()
        found = stack.enter_context(causes())
        answer = _answer(client, path, bool(settings.SECURE_SSL_REDIRECT))
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
        "queries": len(queries),
        "causes": {name: cause for name, cause in found.items() if cause},
        "shared": "shared" in found,
        "linked_parameters": _linked_parameters(path, host, answer),
        "error": in_words(answer.exc_info[1]) if getattr(answer, "exc_info", None) else None,
    }


def _linked_parameters(path, host, answer):
    """The parameters in links of an HTML page, by the paths that they lead to; none of another response."""
    is_html = answer.headers.get("Content-Type", "").startswith("text/html")
    if answer.status_code != 200 or answer.streaming or not is_html:
        return {}
    return linked_parameters(path, host, answer.content.decode("utf-8", "replace"))


def _answer(client, path, secure):
    """The answer to GET; where the project's own page for errors fails, too, one that has the error."""
    from django.http import HttpResponseServerError

    try:
        return client.get(path, secure=secure)
    except Exception as error:
        answer = HttpResponseServerError()
        answer.exc_info = (type(error), error, None)
        return answer


@contextlib.contextmanager
def rolled_back(transaction, alias):
    """A transaction that ends without a trace."""
    with transaction.atomic(using=alias):
        yield
        transaction.set_rollback(True, using=alias)


@contextlib.contextmanager
def causes():
    """Yields a dictionary that gets the first cause of each: `session` (it was read), `vary`, the name of a cookie that
    is set, `reads NAME` of one that is read, or `shared`: Django's own cache stores for everybody what was read of one.
    A cause is a line of a template or of the project, `base.html:12`, or the name of a package's module.
    """
    from django.conf import settings
    from django.contrib.sessions.backends.base import SessionBase
    from django.core.handlers.wsgi import WSGIRequest
    from django.http.response import HttpResponseBase, ResponseHeaders
    from django.middleware import csrf

    found = {}

    def watched(function, name_of):
        def wrapper(*args, **kwargs):
            # Whatever goes wrong here is not the project's fault.
            with contextlib.suppress(Exception):
                if name := name_of(*args, **kwargs):
                    found.setdefault(name, _cause(sys._getframe(1)))
            return function(*args, **kwargs)

        return wrapper

    def varies(headers, name, value, **more):
        return "vary" if name.lower() == "vary" and "cookie" in str(value).lower() else None

    read = property(watched(SessionBase._session.fget, lambda session: "session"))
    with contextlib.ExitStack() as undo:
        for owner, name, replacement in (
            (SessionBase, "_session", read),
            (WSGIRequest, "COOKIES", _watched_cookies(WSGIRequest, watched)),
            (ResponseHeaders, "__setitem__", watched(ResponseHeaders.__setitem__, varies)),
            (HttpResponseBase, "set_cookie", watched(HttpResponseBase.set_cookie, lambda _, key, *more, **named: key)),
            *_watched_cache(found, watched),
            # The middleware sets this cookie later.
            (csrf, "_add_new_csrf_cookie", watched(csrf._add_new_csrf_cookie, lambda _: settings.CSRF_COOKIE_NAME)),
        ):
            undo.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, replacement)
        yield found


def _watched_cache(found, watched):
    """What takes the place of two functions of Django's cache of pages: an owner, a name and a replacement each."""
    from django.middleware import cache

    def learned(request, response, *args, **named):
        """Called by cache_page and UpdateCacheMiddleware just before they store a page."""
        read = [name for name in found if name == "session" or name.startswith("reads ")]
        if read and "cookie" not in response.headers.get("Vary", "").lower():
            found.setdefault("shared", found[read[0]])

    # A page that has been stored before is rendered all the same.
    yield cache, "get_cache_key", lambda *args, **named: None
    yield cache, "learn_cache_key", watched(cache.learn_cache_key, learned)


def _watched_cookies(request_class, watched):
    """What takes the place of a request's attribute COOKIES."""
    from django.conf import settings
    from django.utils.functional import cached_property

    known = (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME, "messages")

    def reads(_, name, *default):
        # Those of analytics change no page.
        return None if name in known or name.startswith(("_", "utm_")) else f"reads {name}"

    class Cookies(dict):
        """The cookies of a request, with the ways in which views read one."""

        __getitem__ = watched(dict.__getitem__, reads)
        __contains__ = watched(dict.__contains__, reads)
        get = watched(dict.get, reads)

    parsed = vars(request_class)["COOKIES"].func
    cookies = cached_property(lambda request: Cookies(parsed(request)))
    cookies.__set_name__(request_class, "COOKIES")
    return cookies


def _cause(frame):
    """The innermost line of a template, of the project or of a package; else of Django, or empty."""
    django = ""
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith(CALLERS):
            break
        if line := line_of(frame, frame.f_lineno):
            return line
        if module.partition(".")[0] not in ("django", "contextlib", "asgiref"):
            return module
        if not module.startswith(FOR_OTHERS):
            django = django or module
        frame = frame.f_back
    return django
