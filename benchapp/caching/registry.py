"""Every caching layer, in one table: its options, its middleware, and how it drops stale pages.

CACHING_LAYERS names the active layers with their options, for example
`{"staticgenerator": {"root": Path("/var/cache/pages"), "max_mb": 64}}`. CACHING_SECONDS is the time to live of all.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from benchapp.caching.invalidation import StalePages

logger = logging.getLogger(__name__)

HERE = "benchapp.caching"
MARK = f"{HERE}.outside.marks.MarkCacheable"
# Inside of the layers, and innermost: what a page read of its visitor.
MARK_PRIVATE, WATCH_HEADERS = f"{HERE}.reads.MarkPrivate", f"{HERE}.reads.watch_headers"


@dataclass(frozen=True)
class Layer:
    """One caching strategy.

    purge     dotted path of the function that drops stale pages
    outer     middleware outside of sessions and all else that sets cookies or Vary
    options   what the layer has to know: the kind of each option by its name
    optional  options that may be absent
    """

    purge: str
    outer: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)


# The outermost first.
LAYERS = {
    "varnish": Layer(
        purge=f"{HERE}.outside.http.purge",
        outer=(MARK,),
        options={"purge_url": "url", "generation_file": "file"},
    ),
    "nginx-microcache": Layer(
        purge=f"{HERE}.outside.nginx_files.purge",
        outer=(MARK,),
        options={"directory": "directory", "generation_file": "file"},
    ),
    "apache-cache": Layer(
        purge=f"{HERE}.outside.marks.purge",
        outer=(f"{HERE}.outside.marks.own_cookies", MARK),
        options={"generation_file": "file"},
    ),
    "staticgenerator": Layer(
        purge=f"{HERE}.stores.files.purge",
        outer=(f"{HERE}.stores.files.middleware",),
        options={"root": "directory"},
        optional={"max_mb": "megabytes"},
    ),
    "nginx-memcached": Layer(
        purge=f"{HERE}.stores.memcached.purge",
        outer=(f"{HERE}.stores.memcached.middleware",),
        options={"address": "memcached"},
    ),
    "uwsgi-cache": Layer(
        purge=f"{HERE}.stores.uwsgi.purge",
        outer=(f"{HERE}.stores.uwsgi.middleware",),
    ),
    "site-middleware": Layer(
        purge=f"{HERE}.django_cache.purge",
        outer=(f"{HERE}.django_cache.middleware",),
    ),
    "view-cache": Layer(purge=f"{HERE}.django_cache.purge"),
    "fragments": Layer(
        purge=f"{HERE}.fragments.purge",
        outer=(f"{HERE}.fragments.report_stored_nonces",),
    ),
}


def outer_middleware(active: Collection[str]) -> list[str]:
    """The middleware of the active layers that goes outside of all that sets cookies or Vary, each once."""
    found = [path for name, layer in LAYERS.items() if name in active for path in layer.outer]
    return list(dict.fromkeys([*found, *([MARK_PRIVATE] if active else [])]))


def inner_middleware(active: Collection[str]) -> list[str]:
    """The middleware of the active layers that goes inside of all else."""
    return [WATCH_HEADERS] if active else []


def drop_stale_pages(stale: StalePages, **kwargs: object) -> None:
    """Receiver of `pages_invalidated`: every active layer drops its stale pages, the inner before the outer.

    An outer layer must not be filled again from a stale page of an inner one. A layer that fails is logged.
    """
    for name in filter(is_active, reversed(LAYERS)):
        try:
            import_string(LAYERS[name].purge)(stale)
        except Exception:
            logger.exception("%s: %s not invalidated", name, stale)


def is_active(name: str) -> bool:
    """Whether CACHING_LAYERS names the layer."""
    return name in settings.CACHING_LAYERS


def options(name: str) -> Mapping[str, Any]:
    """The options of an active layer."""
    return settings.CACHING_LAYERS[name]
