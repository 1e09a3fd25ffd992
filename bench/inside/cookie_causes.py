"""Which line makes a page vary with the cookie, or sets one; `inspect_project` asks in the project's interpreter."""

import contextlib
import sys
from pathlib import Path

# Where Django acts for others: the line that asked for it is the cause.
FOR_OTHERS = ("django.http", "django.utils", "django.contrib.sessions", "django.middleware.csrf", "django.template")
# What calls a middleware or a view: the frames outside of it are of others.
CALLERS = ("django.core.handlers", "django.test")


@contextlib.contextmanager
def causes():
    """Yields a dictionary that gets the first cause of each: `session` (it was read), `vary`, or the name of a cookie.

    A cause is a line of a template or of the project, `base.html:12`, or the name of a package's module.
    """
    from django.conf import settings
    from django.contrib.sessions.backends.base import SessionBase
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
            (ResponseHeaders, "__setitem__", watched(ResponseHeaders.__setitem__, varies)),
            (HttpResponseBase, "set_cookie", watched(HttpResponseBase.set_cookie, lambda _, key, *more, **named: key)),
            # The middleware sets this cookie later.
            (csrf, "_add_new_csrf_cookie", watched(csrf._add_new_csrf_cookie, lambda _: settings.CSRF_COOKIE_NAME)),
        ):
            undo.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, replacement)
        yield found


def _cause(frame):
    """The innermost line of a template, of the project or of a package; else of Django, or empty."""
    from django.template.base import Node

    project, django = Path.cwd(), ""
    while frame is not None:
        module, node = frame.f_globals.get("__name__") or "", frame.f_locals.get("self")
        if module.startswith(CALLERS):
            break
        # By its type: to ask a lazy object for an attribute would evaluate it.
        if issubclass(type(node), Node) and getattr(node, "origin", None) and hasattr(node, "token"):
            return f"{node.origin.template_name}:{node.token.lineno}"
        path = Path(frame.f_code.co_filename)
        if project in path.parents and "site-packages" not in path.parts:
            return f"{path.relative_to(project)}:{frame.f_lineno}"
        if module.partition(".")[0] not in ("django", "contextlib", "asgiref"):
            return module
        if not module.startswith(FOR_OTHERS):
            django = django or module
        frame = frame.f_back
    return django
