"""Responses to an anonymous visitor, rendered in process, with the lines that read or set cookies or keep the page
out of caches; a part of inspect_project."""

import contextlib
import itertools
import sys
import traceback

import inspect_kit
from error_words import in_words, line_of
from inspect_links import linked_parameters
from time_limit import NoResponse, time_limit

# The kit's own requests for pages.
HERE = "127.0.0.1"
# An address of no host, as a load balancer requests a server by: https://www.rfc-editor.org/rfc/rfc5737
ADDRESS = "192.0.2.1"
LOCAL = (*inspect_kit.module_of_caching("local_hosts.py").LOCAL, "*")
# If Django acts for others, the calling line is the cause.
FOR_OTHERS = ("django.http", "django.utils", "django.contrib.sessions", "django.middleware.csrf", "django.template")
# What calls a middleware or a view: the frames outside of it are of others.
CALLERS = ("django.core.handlers", "django.test")
# Of Django and Python: the code that calls them is the cause.
PLUMBING = ("django", "contextlib", "asgiref", "functools", "collections", "_collections_abc", "copy", "json")
# No layer sees the reads of these, if they come first.
OUTSIDE = ("django.middleware.security.SecurityMiddleware", "whitenoise.middleware.WhiteNoiseMiddleware")
TOOLBAR = "debug_toolbar."
# The beginnings of names of what a visitor may have another value of.
OF_VISITOR = ("session", "reads ", "header ")
# Attributes of a request that say nothing of the visitor, or what the keys of Django's cache have.
OF_DJANGO = {"environ", "csrf_processing_done", "csrf_cookie_needs_update", "LANGUAGE_CODE"}
# Static files that the page which is rendered now names and no finder has: name -> the line that names it.
MISSING_STATIC = {}


def usable_databases():
    """The aliases of databases that can be connected to: pages may not need the others."""
    from django.db import connections

    aliases = []
    for alias in connections:
        with contextlib.suppress(Exception):
            connections[alias].ensure_connection()
            aliases.append(alias)
    return aliases


def page(path, aliases, harmless, timeout_s):
    """Render a path of the site's own host for an anonymous visitor, note use of the session, and roll these databases
    back; `here` is the status under the host 127.0.0.1.
    """
    from django.conf import settings

    host = next((name.lstrip(".") for name in settings.ALLOWED_HOSTS if name not in LOCAL), HERE)
    rendered = _requested(path, host, aliases, harmless, timeout_s)
    if host == HERE or rendered["status"] != 200:
        return rendered
    return {**rendered, "here": _requested(path, HERE, aliases, harmless, timeout_s)["status"]}


def status_by_address(path, aliases, timeout_s):
    """The status of a health check for a load balancer: over plain HTTP, and under the address of a server."""
    return _requested(path, ADDRESS, aliases, (), timeout_s)["status"]


def _requested(path, host, aliases, harmless, timeout_s, undone=None):
    from django.conf import settings
    from django.db import connections, transaction
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    # A load balancer requests a server by its address.
    secure = host != ADDRESS and bool(settings.SECURE_SSL_REDIRECT)
    client = Client(raise_request_exception=False, HTTP_HOST=host)
    MISSING_STATIC.clear()
    with contextlib.ExitStack() as stack:
        for alias in aliases:
            stack.enter_context((undone or rolled_back)(transaction, alias))
        queries = ()
        if aliases:
            queries = stack.enter_context(CaptureQueriesContext(connections["default"]))
        noted = stack.enter_context(causes())
        readers = stack.enter_context(readers_of(harmless, noted))
        response = _response(client, path, secure, timeout_s)
        if getattr(response, "streaming", False):
            # It may never end.
            response.close()
    if not undone and _refuses_to_be_inside(response, transaction):
        return _requested(path, host, aliases, harmless, timeout_s, rolled_back_unseen)
    session = getattr(getattr(response, "wsgi_request", None), "session", None)
    # The first cause of each.
    first_causes = dict(reversed(noted))
    error = None
    if getattr(response, "exc_info", None):
        error = in_words(response.exc_info[1])
    return {
        "path": path,
        "status": response.status_code,
        "location": response.headers.get("Location"),
        "vary": response.headers.get("Vary"),
        "cache_control": response.headers.get("Cache-Control"),
        "headers": dict(response.headers.items()),
        "cookies": sorted(response.cookies),
        "session_read": bool(getattr(session, "accessed", False)),
        "session_written": bool(getattr(session, "modified", False)),
        "queries": len(queries),
        "causes": {name: cause for name, cause in first_causes.items() if cause},
        "readers": readers,
        "shared": "shared" in first_causes,
        "shared_part": "shared-part" in first_causes,
        "missing_static": dict(MISSING_STATIC),
        "linked_parameters": _linked_parameters(path, host, response),
        "error": error,
    }


def _linked_parameters(path, host, response):
    """The parameters in links of an HTML page, by the paths of the links; empty for another response."""
    is_html = response.headers.get("Content-Type", "").startswith("text/html")
    if response.status_code != 200 or response.streaming or not is_html:
        return {}
    return linked_parameters(path, host, response.content.decode("utf-8", "replace"))


def _response(client, path, secure, timeout_s):
    """The response to GET; if the page hangs, or the project's own page for errors fails, too, one with the error."""
    from django.http import HttpResponseServerError

    try:
        with time_limit(timeout_s):
            return client.get(path, secure=secure)
    except (Exception, NoResponse) as error:
        failure = HttpResponseServerError()
        failure.exc_info = (type(error), error, None)
        return failure


@contextlib.contextmanager
def rolled_back(transaction, alias):
    """A transaction that ends without a trace, and may contain the project's durable ones."""
    block = transaction.atomic(using=alias)
    # As django.test.TestCase marks its own, around what it rolls back.
    block._from_testcase = True
    with block:
        yield
        transaction.set_rollback(True, using=alias)


@contextlib.contextmanager
def rolled_back_unseen(transaction, alias):
    """The same without a block of Django's, for transactions of a project that refuse outer ones."""
    connection = transaction.get_connection(alias)
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    try:
        yield
    finally:
        connection.rollback()
        connection.set_autocommit(True)


def _refuses_to_be_inside(response, transaction):
    """True if a transaction of the project's own kind raised the error of a page as it began."""
    raised = getattr(response, "exc_info", None)
    if not raised:
        return False
    frames = list(traceback.walk_tb(raised[1].__traceback__))
    return bool(frames) and isinstance(frames[-1][0].f_locals.get("self"), transaction.Atomic)


@contextlib.contextmanager
def causes():
    """Yields a list that gets names with their causes, in their order: `session` (read), `vary`, the name of a cookie
    that is set, or `shared` and `shared-part`: Django's own cache stores a page or part for everybody after one was
    read. A cause is a line of a template or of the project, `base.html:12`, or the name of a package's module.
    """
    from django.conf import settings
    from django.contrib.sessions.backends.base import SessionBase
    from django.http.response import HttpResponseBase, ResponseHeaders
    from django.middleware import csrf

    noted = []

    def watched(function, name_of):
        def wrapper(*args, **kwargs):
            # Whatever goes wrong here is not the project's fault.
            with contextlib.suppress(Exception):
                if name := name_of(*args, **kwargs):
                    noted.append((name, cause_of(sys._getframe(1))))
            return function(*args, **kwargs)

        return wrapper

    def varies(headers, name, value, **more):
        if name.lower() == "vary" and "cookie" in str(value).lower():
            return "vary"
        return None

    read = property(watched(SessionBase._session.fget, lambda session: "session"))
    with contextlib.ExitStack() as undo:
        for owner, name, replacement in (
            (SessionBase, "_session", read),
            (ResponseHeaders, "__setitem__", watched(ResponseHeaders.__setitem__, varies)),
            (HttpResponseBase, "set_cookie", watched(HttpResponseBase.set_cookie, lambda _, key, *more, **named: key)),
            *_watched_cache(noted),
            # The middleware sets this cookie later.
            (csrf, "_add_new_csrf_cookie", watched(csrf._add_new_csrf_cookie, lambda _: settings.CSRF_COOKIE_NAME)),
        ):
            undo.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, replacement)
        yield noted


def _watched_cache(noted):
    """Replacements in Django's caches of pages and parts: owner, name, function."""
    from django.middleware import cache
    from django.templatetags.cache import CacheNode

    learn = cache.learn_cache_key
    before_view, read = 0, set()

    def begun(request, *args, **named):
        """Called by cache_page and FetchFromCacheMiddleware before the view. A stored page is rendered all the same."""
        nonlocal before_view, read
        before_view, read = len(noted), {"unknown"}
        # Whatever goes wrong here is not the project's fault.
        with contextlib.suppress(Exception):
            read = _reads_of_attributes(request)

    def learned(request, response, *args, **named):
        """Called by cache_page and UpdateCacheMiddleware just before they store a page."""
        # Whatever goes wrong here is not the project's fault.
        with contextlib.suppress(Exception):
            for place, (name, cause) in enumerate(noted):
                # No page depends on most headers that middleware reads, as for a log, nor on what it only leaves in
                # attributes of the request that nothing reads afterwards.
                is_unused = place < before_view and (name.startswith("header ") or not read)
                if name.startswith(OF_VISITOR) and not is_unused and not _is_in_key(name, response):
                    noted.append(("shared", cause))
                    break
        return learn(request, response, *args, **named)

    yield cache, "get_cache_key", begun
    yield cache, "learn_cache_key", learned
    yield CacheNode, "render", _watched_part(noted, CacheNode.render)


def _reads_of_attributes(request):
    """A set, to be filled with the names of attributes from middleware, such as `user`, when they are read."""
    from django.http import HttpRequest

    # Others are of the class, though the request keeps their values.
    given = {name for name in vars(request) if not name.startswith("_") and not hasattr(type(request), name)}
    by_middleware = given - set(vars(HttpRequest())) - OF_DJANGO
    names = set()

    class Watched(type(request)):
        def __getattribute__(self, name):
            if name in by_middleware:
                names.add(name)
            return super().__getattribute__(name)

    request.__class__ = Watched
    return names


def _is_in_key(name, response):
    """True if Django's cache stores a page for each value of what was read."""
    from django.conf import settings

    # The key has the address, and the language, which a cookie or header chooses.
    if name == "header host":
        return True
    if settings.USE_I18N and name in ("header accept-language", f"reads {settings.LANGUAGE_COOKIE_NAME}"):
        return True
    varies = response.headers.get("Vary", "").lower().replace(",", " ").split()
    kind, _, header = name.partition(" ")
    if kind == "header":
        return header in varies
    return "cookie" in varies


def _watched_part(noted, render):
    """A replacement of the tag {% cache %} that finds parts stored for everybody, without a visitor's name."""

    def wrapper(node, context):
        if node.vary_on:
            return render(node, context)
        before = len(noted)
        _forget_user(context)
        try:
            # A part that has been stored before is rendered all the same.
            return node.nodelist.render(context)
        finally:
            for name, cause in noted[before:]:
                if name.startswith(OF_VISITOR):
                    noted.append(("shared-part", cause))
                    break

    return wrapper


def _forget_user(context):
    """Have the user read from the session once more, if a template shows the user."""
    from django.utils.functional import SimpleLazyObject, empty

    request = context.get("request")
    user = getattr(request, "user", None)
    if isinstance(user, SimpleLazyObject):
        user._wrapped = empty
        vars(request).pop("_cached_user", None)


@contextlib.contextmanager
def readers_of(harmless, noted):
    """Yields a dictionary that gets each read of the visitor that keeps the page out of the layers, by the layers'
    names (`cookie:theme`, `user-agent`), each with its reader, `site1.country.Country`.

    `noted` gets the line of each as `reads NAME` of a cookie, `header NAME` of another. The request is watched at the
    place of CachingMiddleware.
    """
    from django.conf import settings
    from django.test import override_settings

    middleware = [name for name in settings.MIDDLEWARE if not name.startswith(TOOLBAR)]
    first = list(itertools.takewhile(OUTSIDE.__contains__, middleware))
    ours = f"{__name__}.{watch_reads.__name__}"
    names = [name for name in settings.ALLOWED_HOSTS if name == "*" or name not in LOCAL]
    several = len({name.lstrip(".") for name in names}) > 1 or any(name.startswith((".", "*")) for name in names)
    left_out = {"scheme"}
    if not several:
        left_out.add("host")
    for entry in harmless:
        # Names of cookies have large letters, too.
        left_out.add(entry if entry.startswith("cookie:") else entry.lower())
    readers = {}

    def note(name):
        frames = list(_own_frames(sys._getframe(2)))
        if name not in left_out and not _is_harmless(frames, harmless):
            readers.setdefault(name, _reader(frames))
            key = f"header {name}"
            if name.startswith("cookie:"):
                key = name.replace("cookie:", "reads ")
            noted.append((key, cause_of(sys._getframe(2))))

    _NOTES.append(note)
    try:
        with override_settings(MIDDLEWARE=[*first, ours, *middleware[len(first) :]]):
            yield readers
    finally:
        _NOTES.remove(note)


# Who is told of a read; the last one.
_NOTES = []


def watch_reads(get_response):
    """Middleware that watches the reads of a request, by the rule of the layers."""
    watched = inspect_kit.module_of_caching("watched.py")

    class ReportedReads(watched.Reads):
        """The names that are read, each reported at once."""

        def note(self, name):
            # Whatever goes wrong here is not the project's fault.
            with contextlib.suppress(Exception):
                if not self.is_paused and not _is_usual(name, sys._getframe(1)):
                    _NOTES[-1](name)

    def middleware(request):
        absent = frozenset({"authorization", "hx-request", "origin", "x-requested-with"})
        reads = ReportedReads({}, absent)
        watch = watched.Watch(request, reads)
        try:
            return get_response(request)
        finally:
            watch.end()

    return middleware


def _is_usual(name, frame):
    """True if Django's own middleware reads this of each request; see `private_apis.reads_of_django`."""
    from django.conf import settings
    from django.middleware.common import CommonMiddleware
    from django.middleware.csrf import CsrfViewMiddleware

    while _is_ours(frame):
        frame = frame.f_back
    if frame.f_code is CommonMiddleware.process_request.__code__:
        return name != "user-agent" or not settings.DISALLOWED_USER_AGENTS
    return frame.f_code is CsrfViewMiddleware._get_secret.__code__


def _own_frames(frame):
    """The frames from here to the middleware or view that Django called."""
    while frame is not None and not _module(frame).startswith(CALLERS):
        if not _is_ours(frame):
            yield frame
        frame = frame.f_back


def _is_harmless(frames, harmless):
    """True if one of the frames is of middleware that the project declares as harmless."""
    for frame in frames:
        for entry in harmless:
            module, _, name = entry.rpartition(".")
            owner = type(frame.f_locals.get("self", frame))
            if module and module == _module(frame) and owner.__name__ in (name, "frame"):
                return True
    return False


def _reader(frames):
    """The middleware, or the view, that reads: `site1.country.Country`; empty for Django itself."""
    for frame in reversed(frames):
        module = _module(frame)
        if module.partition(".")[0] in PLUMBING:
            continue
        owner = frame.f_locals.get("self")
        name = frame.f_code.co_name
        if owner is not None:
            name = type(owner).__qualname__
        return f"{module}.{name}"
    return ""


def _module(frame):
    return frame.f_globals.get("__name__") or ""


def _is_ours(frame):
    """True if a frame is of the watching code."""
    return _module(frame) == __name__ or _module(frame).startswith(inspect_kit.OF_CACHING)


def cause_of(frame):
    """The innermost line of a template, of the project or of a package; else of Django, or empty."""
    django = ""
    while frame is not None:
        module = _module(frame)
        if module.startswith(CALLERS):
            break
        if _is_ours(frame):
            frame = frame.f_back
            continue
        if line := line_of(frame, frame.f_lineno):
            return line
        if module.partition(".")[0] not in PLUMBING:
            return module
        if not module.startswith(FOR_OTHERS):
            django = django or module
        frame = frame.f_back
    return django
