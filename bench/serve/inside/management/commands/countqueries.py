"""Count the database queries of pages in this process, without a server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.db import connections
from django.test import Client

from bench.serve.inside.management.commands import renderpages

# The layers of `benchapp.caching` that serve pages in Django.
SERVING = ("page-cache",)


class Command(renderpages.Command):
    """Prints how many queries each page runs on a cache miss, and on the next request."""

    help = (
        "Count the queries of pages for an anonymous visitor, cold and warm, with the caching layers of this "
        "environment; prints one JSON object."
    )

    def settings(self) -> dict[str, Any]:
        """The settings of this environment, on caches of this process: shared caches are neither read nor changed.

        Layers that store pages for a server are left out: they serve nothing themselves.
        """
        own = dict(settings.CACHES)
        for alias, cache in settings.CACHES.items():
            if not cache["BACKEND"].endswith("DummyCache"):
                own[alias] = {**cache, "BACKEND": renderpages.IN_MEMORY, "LOCATION": f"queries-{alias}"}
                own[alias].pop("OPTIONS", None)
        layers = {name: options for name, options in settings.CACHING_LAYERS.items() if name in SERVING}
        middleware = [name for name in settings.MIDDLEWARE if "debug_toolbar" not in name]
        return {"CACHES": own, "CACHING_LAYERS": layers, "MIDDLEWARE": middleware}

    def results(self, paths: list[str], often: bool, timeout_s: float) -> dict[str, Any]:
        client = renderpages.visitor()
        # Queries that a process runs once, on its first page, do not count.
        client.get(paths[0])
        return {path: _count(client, path) for path in paths}


def _count(client: Client, path: str) -> dict[str, int]:
    for cache in caches.all():
        cache.clear()
    return {"cold": _queries(client, path), "warm": _queries(client, path)}


def _queries(client: Client, path: str) -> int:
    number = 0

    def counting(execute, sql, parameters, many, context):
        nonlocal number
        number += 1
        return execute(sql, parameters, many, context)

    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(counting))
        response = client.get(path)
        if response.streaming:
            b"".join(response.streaming_content)
    return number
