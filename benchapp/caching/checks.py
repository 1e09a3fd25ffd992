"""System checks: settings, options of layers, the order of middleware, and a cache that all workers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.checks import ERROR, CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from benchapp.caching import harmless, registry, stale_rules
from benchapp.caching.conf import INNER, OUTER, app_settings

# They set cookies or Vary, so a layer has to see their responses.
INSIDE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)
# These may stand outside of the layers: they choose no page by what they read.
SEEN_NOWHERE = ("django.middleware.", "whitenoise.", "benchapp.", "config.static_files.", "debug_toolbar.")
MAX_SECONDS = 31_536_000
MAX_PORT = 65_535


def _is_list(value: object) -> bool:
    """True if a value is a collection of texts; one text is a likely mistake."""
    return isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(item, str) for item in value)


def _is_seconds(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SECONDS


def _are_paths(value: object) -> bool:
    return _is_list(value) and all(urlsplit(page).path.startswith("/") for page in value)


def _is_port(value: object) -> bool:
    """True for the number of a port, which may be a text, and for an empty text."""
    if value == "":
        return True
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return (is_number or (isinstance(value, str) and value.isdecimal())) and 1 <= int(value) <= MAX_PORT


def _are_headers(value: object) -> bool:
    return isinstance(value, Mapping) and _is_list([*value, *value.values()])


def _is_harmless(value: object) -> bool:
    return _is_list(value) and all(map(harmless.is_entry, value))


# Of each setting: whether its value can be used, and the words for one that can.
TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "CACHING_LAYERS": (lambda value: isinstance(value, Mapping), "a dictionary of layers with their options"),
    "CACHING_SECONDS": (_is_seconds, f"a whole number from 1 to {MAX_SECONDS}"),
    "CACHING_PUBLIC": (_are_paths, "a list of paths, each of which begins with a slash"),
    "CACHING_STALE": (lambda value: isinstance(value, Mapping), "a dictionary of models with lists of pages"),
    "CACHING_QUERY": (_is_list, "a list of names of parameters"),
    "CACHING_QUERY_IGNORED": (_is_list, "a list of names of parameters"),
    "CACHING_X_CACHE": (lambda value: isinstance(value, bool), "True or False"),
    "CACHING_PORT": (_is_port, 'a port such as 8443, or ""'),
    "CACHING_SCHEME": (lambda value: value in ("", "http", "https"), '"http", "https" or ""'),
    "CACHING_HARMLESS": (_is_harmless, 'a list such as ["User-Agent", "cookie:theme", "mysite.middleware.Log"]'),
    "CACHING_PAGE_HEADERS": (_are_headers, "a dictionary of headers with their values, both texts"),
}
SESSIONS_IN_CACHE = "django.contrib.sessions.backends.cache"
OPTIONS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "url": (str, "an address such as http://127.0.0.1:6081 or unix:/run/purge"),
    "memcached": (str, "an address such as 127.0.0.1:11211 or unix:/run/memcached"),
    "directory": (Path, "a pathlib.Path"),
    "file": (Path, "a pathlib.Path"),
    "megabytes": (int, "a whole number of megabytes"),
    "word": (str, "a word"),
}


def errors() -> list[CheckMessage]:
    """The mistakes with which no server starts: those of all checks that the project has not silenced."""
    messages = [*check_settings(), *check_layers(), *check_middleware(), *check_cache()]
    return [message for message in messages if message.level >= ERROR and not message.is_silenced()]


@register
def check_settings(**kwargs: object) -> list[CheckMessage]:
    """caching.E001: a wrong value; caching.E002: an unknown model or field, or no page, in CACHING_STALE.

    caching.E008: harmless middleware that is missing from MIDDLEWARE, or without Pause and Resume around it.
    """
    messages = [
        Error(f"{name} is {getattr(app_settings, name)!r}: use {expected}.", id="caching.E001")
        for name, (is_good, expected) in TYPES.items()
        if not is_good(getattr(app_settings, name))
    ]
    if _is_harmless(app_settings.CACHING_HARMLESS):
        messages += _misplaced_harmless()
    for label, pages in stale_rules.rules().items():
        if problem := stale_rules.problem(label, pages):
            messages.append(Error(f"CACHING_STALE: {problem}.", id="caching.E002"))
    return messages


def _misplaced_harmless() -> Iterator[Error]:
    names = list(settings.MIDDLEWARE)
    inside = names[names.index(OUTER) :] if OUTER in names else names
    for name in harmless.harmless_middleware():
        if name not in names:
            yield Error(f"CACHING_HARMLESS: {name} is not in MIDDLEWARE.", id="caching.E008")
        elif not harmless.is_between(name, inside):
            hint = f"Put {harmless.PAUSE} before it, and {harmless.RESUME} behind it."
            message = f"CACHING_HARMLESS: what {name} reads is watched."
            yield Error(message, hint=hint, id="caching.E008")


@register
def check_layers(**kwargs: object) -> list[CheckMessage]:
    """caching.E003: an unknown layer, or part of one; caching.E004: a missing, unknown or wrong option of a layer."""
    messages: list[CheckMessage] = []
    for name, options in _layers().items():
        try:
            layer = registry.layer_of(name)
        except ImproperlyConfigured as error:
            messages.append(Error(f"{error}.", id="caching.E003"))
            continue
        for missing in _missing_parts(layer):
            messages.append(Error(f"CACHING_LAYERS: {name}: {missing}.", id="caching.E003"))
        if not isinstance(options, Mapping):
            messages.append(Error(f"CACHING_LAYERS: {name}: its options are no dictionary.", id="caching.E004"))
            continue
        for problem in _wrong_options(layer, options):
            messages.append(Error(f"CACHING_LAYERS: {name}: {problem}.", id="caching.E004"))
    return messages


def _missing_parts(layer: registry.Layer) -> Iterator[str]:
    """The functions and middleware of a project's own layer that cannot be imported."""
    for path in filter(None, (layer.purge, *layer.outer, layer.entries)):
        try:
            import_string(path)
        except ImportError as error:
            yield f"{path!r} cannot be imported ({error})"


def _wrong_options(layer: registry.Layer, options: Mapping[str, Any]) -> Iterator[str]:
    kinds = {**layer.options, **layer.optional}
    for option in sorted(layer.options.keys() - options.keys()):
        yield f"the option {option!r} is missing"
    for option, value in options.items():
        if option not in kinds:
            yield f"{option!r} is no option: use {', '.join(kinds) or 'none'}"
        elif kinds[option] in OPTIONS:
            kind, expected = OPTIONS[kinds[option]]
            if not isinstance(value, kind):
                yield f"the option {option!r} is {value!r}: use {expected}"


@register
def check_middleware(**kwargs: object) -> list[CheckMessage]:
    """caching.E005: the outer middleware is too far in; caching.E006: the inner middleware is missing.

    caching.W001: no layer can work without the outer middleware; caching.W002: the inner middleware is not last;
    caching.W004: middleware that no layer sees.
    """
    if not _layers():
        return []
    names = list(settings.MIDDLEWARE)
    if OUTER not in names:
        hint = f"Add {OUTER} before sessions, and {INNER} as the last entry."
        return [Warning("MIDDLEWARE has no caching layer: no page is cached.", hint=hint, id="caching.W001")]
    messages: list[CheckMessage] = []
    for name in names[: names.index(OUTER)]:
        if _is_inside(name):
            hint = f"Put {OUTER} before it."
            messages.append(Error(f"MIDDLEWARE: no caching layer sees what {name} does.", hint=hint, id="caching.E005"))
        elif not name.startswith(SEEN_NOWHERE) and name not in app_settings.CACHING_HARMLESS:
            message = f"MIDDLEWARE: {name} stands outside of {OUTER}: no layer sees what it reads of a visitor."
            hint = "Put it further in, or name it in CACHING_HARMLESS if no page depends on it."
            messages.append(Warning(message, hint=hint, id="caching.W004"))
    if INNER not in names:
        message = "MIDDLEWARE: pages would be cached that depend on their visitor."
        messages.append(Error(message, hint=f"Add {INNER} as the last entry.", id="caching.E006"))
    elif names[-1] != INNER:
        message = f"MIDDLEWARE: what {', '.join(names[names.index(INNER) + 1 :])} reads counts as read by the page."
        messages.append(Warning(message, hint=f"Put {INNER} last.", id="caching.W002"))
    return messages


def _is_inside(name: str) -> bool:
    """True if middleware is one of INSIDE, or inherits from one."""
    try:
        middleware = import_string(name)
        return isinstance(middleware, type) and issubclass(middleware, tuple(map(import_string, INSIDE)))
    except ImportError:
        # Django says so itself.
        return False


@register
def check_cache(**kwargs: object) -> list[CheckMessage]:
    """caching.E007: no cache has the alias; caching.W003: a cache per process, or a cache that keeps nothing."""
    if "page-cache" not in _layers():
        return []
    alias = settings.CACHE_MIDDLEWARE_ALIAS
    if alias not in settings.CACHES:
        return [Error(f"CACHE_MIDDLEWARE_ALIAS: CACHES has no {alias!r}.", id="caching.E007")]
    try:
        backend = import_string(settings.CACHES[alias]["BACKEND"])
    except (ImportError, KeyError):
        return []
    if issubclass(backend, DummyCache):
        message = f"The cache {alias!r} keeps nothing: page-cache stores no page."
    elif issubclass(backend, LocMemCache):
        message = f"The cache {alias!r} is one of each process: a write leaves stale pages in the other workers."
    else:
        return []
    hint = "Use a cache that all workers share: Redis, memcached, files or a table of the database."
    return [Warning(message, hint=hint, id="caching.W003")]


@register
def check_sessions(**kwargs: object) -> list[CheckMessage]:
    """caching.W005: a write that makes most of the site stale empties the memcached with the sessions."""
    options = _layers().get("nginx-memcached")
    if not isinstance(options, Mapping) or settings.SESSION_ENGINE != SESSIONS_IN_CACHE:
        return []
    locations = settings.CACHES.get(settings.SESSION_CACHE_ALIAS, {}).get("LOCATION", ())
    if options.get("address") not in ([locations] if isinstance(locations, str) else locations):
        return []
    message = f"Sessions are in the memcached of nginx-memcached at {options['address']}: a write empties it."
    hint = "Use django.contrib.sessions.backends.cached_db, or another cache for SESSION_CACHE_ALIAS."
    return [Warning(message, hint=hint, id="caching.W005")]


def _layers() -> Mapping[str, Any]:
    """The active layers; empty for a value that `check_settings` refuses."""
    layers = app_settings.CACHING_LAYERS
    return layers if isinstance(layers, Mapping) else {}
