"""Database queries of a request, counted outside the requests that are measured.

The site's own command renders the workload's pages in its own process under the layer's environment and counts, with
an empty cache (cold) and with a filled one (warm). The front shows whether a warm request reaches the application: an
answer with the render id of the one before, or with none, came from a cache and cost no query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from http.client import HTTPMessage
from typing import Any

import msgspec

from bench.errors import BenchError
from bench.machine import http
from bench.project import commands
from bench.project.under_test import UnderTest
from bench.serve.deployment import Running

HTML = "text/html"


class QueryCounter:
    """Counts for one deployment after another; once for a layer, or for a stack with it."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Any] = {}

    def per_request(self, running: Running, stack: str, layer: str, addresses: tuple[str, ...]) -> float | None:
        """Queries of a request to these addresses, on average; None when they cannot be counted."""
        project = running.case.project
        files = project.names["static_url"]
        pages = tuple(dict.fromkeys(address for address in addresses if not address.startswith(files)))
        counts = self._once((layer, pages), lambda: count(project, running.env, pages) if pages else {})
        cached = self._once((stack, layer, pages), lambda: answered_by_a_cache(running.url, pages))
        if counts is None or cached is None:
            return None
        times = Counter(addresses)
        total: int = sum(times[page] * counts[page]["warm"] for page in pages if page not in cached)
        return round(total / len(addresses), 3)

    def _once(self, key: tuple[object, ...], find: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]


def count(project: UnderTest, env: dict[str, str], pages: Iterable[str]) -> dict[str, dict[str, int]] | None:
    """Page -> its queries `cold` and `warm`, counted by the site's command in this environment; None when it fails."""
    try:
        printed = commands.manage(project, ["countqueries", *pages], env["DATABASE_URL"], project.worker(), env=env)
        return msgspec.json.decode(printed, type=dict[str, dict[str, int]])
    except (BenchError, msgspec.DecodeError, KeyError):
        return None


def answered_by_a_cache(url: str, pages: Iterable[str]) -> set[str] | None:
    """The pages whose second answer came from a cache; None when one of them was not answered."""
    found = set()
    for page in pages:
        try:
            first, second = (http.headers(url, page) for _ in range(2))
        except http.VisitError:
            return None
        if HTML in (second.get("Content-Type") or "") and _render_id(second) in (None, _render_id(first)):
            found.add(page)
    return found


def _render_id(headers: HTTPMessage) -> str | None:
    return headers.get("X-Render-Id")
