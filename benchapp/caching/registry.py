"""Every caching layer, in one table: its options, its middleware, and how it drops stale pages.

CACHING_LAYERS names the active layers with their options, for example
`{"staticgenerator": {"root": Path("/var/cache/pages"), "max_mb": 64}}`. A project adds a layer by the dotted name of a
Layer. CACHING_SECONDS is the time to live of all.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Layer:
    """One caching strategy.

    purge     dotted name of the function that drops stale pages; its argument is a StalePages
    outer     dotted names of middleware outside of sessions and all else that sets cookies or Vary, the outermost first
    options   the layer's options: the kind of each by name
    optional  options that may be absent
    entries   dotted name of the function that counts the entries of a store that only the site's processes reach
    """

    purge: str
    outer: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)
    entries: str = ""


HERE = "benchapp.caching"
MARK = f"{HERE}.external.cacheable_header.MarkCacheable"
OWN_COOKIES = f"{HERE}.external.cacheable_header.own_cookies"
# The layers of the app by their short names, the outermost first.
LAYERS = {
    "varnish": Layer(f"{HERE}.external.http.purge", (MARK,), {"purge_url": "url", "generation_file": "file"}),
    "nginx-microcache": Layer(
        f"{HERE}.external.nginx_files.purge", (MARK,), {"directory": "directory", "generation_file": "file"}
    ),
    "apache-cache": Layer(f"{HERE}.external.cacheable_header.purge", (OWN_COOKIES, MARK), {"generation_file": "file"}),
    "staticgenerator": Layer(
        f"{HERE}.stores.files.purge",
        (f"{HERE}.stores.files.middleware",),
        {"root": "directory"},
        optional={"max_mb": "megabytes"},
    ),
    "nginx-memcached": Layer(
        f"{HERE}.stores.memcached.purge",
        (f"{HERE}.stores.memcached.middleware",),
        {"address": "memcached"},
        optional={"prefix": "word"},
    ),
    "uwsgi-cache": Layer(
        f"{HERE}.stores.uwsgi.purge",
        (f"{HERE}.stores.uwsgi.middleware",),
        entries=f"{HERE}.stores.uwsgi.entries",
    ),
    "page-cache": Layer(f"{HERE}.django_cache.purge", (f"{HERE}.django_cache.middleware",)),
}


def layer_of(name: str) -> Layer:
    """The layer of a short name, or of the dotted name of a Layer. Raises ImproperlyConfigured for an unknown name."""
    if name in LAYERS:
        return LAYERS[name]
    unknown = f"CACHING_LAYERS: {name!r} is no layer: use {', '.join(LAYERS)}, or the dotted name of a Layer"
    try:
        layer = import_string(name)
    except ImportError as error:
        raise ImproperlyConfigured(f"{unknown} ({error})") from error
    if not isinstance(layer, Layer):
        raise ImproperlyConfigured(unknown)
    return layer


def in_order(names: Collection[str]) -> list[str]:
    """The names of layers, the outermost first; a project's layers are inside of the app's."""
    built_in = [name for name in LAYERS if name in names]
    return built_in + [name for name in names if name not in LAYERS]


def outer_middleware(names: Collection[str]) -> list[str]:
    """The middleware of these layers, each once, the outermost first; the innermost marks pages as private."""
    middleware: list[str] = []
    for name in in_order(names):
        middleware += layer_of(name).outer
    return [*dict.fromkeys(middleware), f"{HERE}.request_reads.MarkPrivate"]


def drop_stale_pages(stale: StalePages, **kwargs: object) -> None:
    """Receiver of `pages_invalidated`: every active layer drops its stale pages, the inner before the outer.

    An outer layer must not be filled again from a stale page of an inner layer. A layer that fails is logged.
    """
    for name in reversed(in_order(app_settings.CACHING_LAYERS)):
        try:
            import_string(layer_of(name).purge)(stale)
        except Exception:
            logger.exception("%s: %s not invalidated", name, stale)


def entries() -> int:
    """The number of entries in the stores of active layers that only the site's processes reach."""
    counts = [layer_of(name).entries for name in app_settings.CACHING_LAYERS]
    return sum(import_string(count)() for count in counts if count)


def is_active(name: str) -> bool:
    """True if CACHING_LAYERS names the layer."""
    return name in app_settings.CACHING_LAYERS


def options(name: str) -> Mapping[str, Any]:
    """The options of an active layer."""
    return app_settings.CACHING_LAYERS[name]
