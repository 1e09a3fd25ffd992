"""Every caching layer, in one table: its options, its middleware, and how it drops stale pages.

CACHING_LAYERS names the active layers with their options, for example
`{"staticgenerator": {"root": Path("/var/cache/pages"), "max_mb": 64}}`. CACHING_SECONDS is the time to live of all.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.module_loading import import_string

from benchapp.caching.conf import app_settings
from benchapp.caching.invalidation import StalePages

logger = logging.getLogger(__name__)

HERE = "benchapp.caching"


@dataclass(frozen=True)
class Layer:
    """One caching strategy. Names of modules and middleware are below this package.

    module    its `purge` drops stale pages
    outer     middleware outside of sessions and all else that sets cookies or Vary
    options   what the layer has to know: the kind of each option by its name
    optional  options that may be absent
    """

    module: str
    outer: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)


MARK = "outside.marks.MarkCacheable"
OWN_COOKIES = "outside.marks.own_cookies"
# The outermost first.
LAYERS = {
    "varnish": Layer("outside.http", (MARK,), {"purge_url": "url", "generation_file": "file"}),
    "nginx-microcache": Layer("outside.nginx_files", (MARK,), {"directory": "directory", "generation_file": "file"}),
    "apache-cache": Layer("outside.marks", (OWN_COOKIES, MARK), {"generation_file": "file"}),
    "staticgenerator": Layer(
        "stores.files", ("stores.files.middleware",), {"root": "directory"}, optional={"max_mb": "megabytes"}
    ),
    "nginx-memcached": Layer("stores.memcached", ("stores.memcached.middleware",), {"address": "memcached"}),
    "uwsgi-cache": Layer("stores.uwsgi", ("stores.uwsgi.middleware",)),
    "page-cache": Layer("django_cache", ("django_cache.middleware",)),
    "view-cache": Layer("django_cache"),
    "fragments": Layer("fragments", ("fragments.report_stored_nonces",)),
}


def outer_middleware(active: Collection[str]) -> list[str]:
    """The middleware of the active layers that goes outside of all that sets cookies or Vary, each once."""
    found = [name for layer in LAYERS if layer in active for name in LAYERS[layer].outer]
    # Inside of the layers, it marks what is not everybody's.
    return [f"{HERE}.{name}" for name in dict.fromkeys([*found, *(["reads.MarkPrivate"] if active else [])])]


def inner_middleware(active: Collection[str]) -> list[str]:
    """The middleware of the active layers that goes inside of all else: it watches what a page reads of its visitor."""
    return [f"{HERE}.reads.watch_headers"] if active else []


def drop_stale_pages(stale: StalePages, **kwargs: object) -> None:
    """Receiver of `pages_invalidated`: every active layer drops its stale pages, the inner before the outer.

    An outer layer must not be filled again from a stale page of an inner one. A layer that fails is logged.
    """
    for name in filter(is_active, reversed(LAYERS)):
        try:
            import_string(f"{HERE}.{LAYERS[name].module}.purge")(stale)
        except Exception:
            logger.exception("%s: %s not invalidated", name, stale)


def is_active(name: str) -> bool:
    """Whether CACHING_LAYERS names the layer."""
    return name in app_settings.CACHING_LAYERS


def options(name: str) -> Mapping[str, Any]:
    """The options of an active layer."""
    return app_settings.CACHING_LAYERS[name]
