"""Every caching layer, in one table: its options, its middleware, and how it drops stale pages.

CACHING_LAYERS names the active layers with their options, for example
`{"staticgenerator": {"root": Path("/var/cache/pages"), "max_mb": 64}}`. CACHING_SECONDS is the time to live of all.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from benchapp.caching.invalidation import pages_invalidated

HERE = "benchapp.caching"
MARK_OUTDATED = f"{HERE}.purge.outdated.MarkOutdated"


@dataclass(frozen=True)
class Layer:
    """One caching strategy.

    receiver  dotted path of the function that drops stale pages
    outer     middleware outside of sessions and all else that sets cookies or Vary
    inner     middleware inside of all that
    options   what the layer has to know: the kind of each option by its name
    optional  options that may be absent
    """

    receiver: str
    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)


# The outermost first.
LAYERS = {
    "varnish": Layer(
        receiver=f"{HERE}.purge.http.purge",
        outer=(MARK_OUTDATED,),
        options={"purge_url": "url", "generation_file": "file"},
    ),
    "nginx-microcache": Layer(
        receiver=f"{HERE}.purge.nginx_files.purge",
        outer=(f"{HERE}.cache_control.AllowSharedCaching", MARK_OUTDATED),
        options={"directory": "directory", "generation_file": "file"},
    ),
    "apache-cache": Layer(
        receiver=f"{HERE}.purge.outdated.purge",
        outer=(MARK_OUTDATED,),
        options={"generation_file": "file"},
    ),
    "staticgenerator": Layer(
        receiver=f"{HERE}.stores.files.purge",
        outer=(f"{HERE}.stores.files.StoreInFiles",),
        options={"root": "directory"},
        optional={"max_mb": "megabytes"},
    ),
    "nginx-memcached": Layer(
        receiver=f"{HERE}.stores.memcached.purge",
        outer=(f"{HERE}.stores.memcached.StoreInMemcached",),
        options={"address": "memcached"},
    ),
    "uwsgi-cache": Layer(
        receiver=f"{HERE}.stores.uwsgi.purge",
        outer=(f"{HERE}.stores.uwsgi.StoreInUwsgi",),
    ),
    "site-middleware": Layer(
        receiver=f"{HERE}.django_cache.purge",
        outer=(f"{HERE}.django_cache.UpdateCache",),
        inner=(f"{HERE}.django_cache.FetchFromCache",),
    ),
    "view-cache": Layer(receiver=f"{HERE}.django_cache.purge"),
    "fragments": Layer(receiver=f"{HERE}.fragments.purge"),
}


def outer_middleware(active: Container[str]) -> list[str]:
    """The middleware of the active layers that goes outside of all that sets cookies or Vary, each once."""
    return list(dict.fromkeys(path for name, layer in LAYERS.items() if name in active for path in layer.outer))


def inner_middleware(active: Container[str]) -> list[str]:
    """The middleware of the active layers that goes inside of all that sets cookies or Vary."""
    return [path for name, layer in LAYERS.items() if name in active for path in layer.inner]


def connect() -> None:
    """Connect the active layers to invalidations, the inner before the outer.

    An outer layer must not be filled again from a stale page of an inner one.
    """
    for name in reversed(LAYERS):
        if is_active(name):
            pages_invalidated.connect(import_string(LAYERS[name].receiver), dispatch_uid=_uid(name))


def disconnect() -> None:
    """Disconnect all layers."""
    for name in LAYERS:
        pages_invalidated.disconnect(dispatch_uid=_uid(name))


def is_active(name: str) -> bool:
    """Whether CACHING_LAYERS names the layer."""
    return name in settings.CACHING_LAYERS


def options(name: str) -> Mapping[str, Any]:
    """The options of an active layer."""
    return settings.CACHING_LAYERS[name]


def _uid(name: str) -> str:
    return f"caching.{name}"
