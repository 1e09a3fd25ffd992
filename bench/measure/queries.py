"""Database queries of a request, counted outside the requests that are measured.

The site's own command renders the workload's pages in its own process under the layer's environment and counts, with
an empty cache (cold) and with a filled one (warm). The front shows whether a warm request reaches the application: an
answer with the render id of the one before, or with none, came from a cache and cost no query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from http.client import HTTPMessage

import msgspec

from bench.errors import BenchError
from bench.machine import http
from bench.project import commands
from bench.project.under_test import UnderTest
from bench.serve.deployment import Running

STATIC = "/static/"
HTML = "text/html"


class QueryCounter:
    """Counts for one deployment after another; once for a layer, or for a stack with it."""

    def __init__(self) -> None:
        self._rendered: dict[tuple[str, tuple[str, ...]], dict[str, dict[str, int]] | None] = {}
        self._cached: dict[tuple[str, str, tuple[str, ...]], set[str] | None] = {}

    def per_request(self, running: Running, stack: str, layer: str, addresses: tuple[str, ...]) -> float | None:
        """Queries of a request to these addresses, on average; None when they cannot be counted."""
        pages = tuple(dict.fromkeys(address for address in addresses if not address.startswith(STATIC)))
        counts = self._counts(running, layer, pages)
        cached = self._answered_by_a_cache(running, stack, layer, pages)
        if counts is None or cached is None:
            return None
        times = Counter(addresses)
        total = sum(times[page] * counts[page]["warm"] for page in pages if page not in cached)
        return round(total / len(addresses), 3)

    def _counts(self, running: Running, layer: str, pages: tuple[str, ...]) -> dict[str, dict[str, int]] | None:
        key = (layer, pages)
        if key not in self._rendered:
            self._rendered[key] = count(running.case.project, running.env, pages) if pages else {}
        return self._rendered[key]

    def _answered_by_a_cache(self, running: Running, stack: str, layer: str, pages: tuple[str, ...]) -> set[str] | None:
        key = (stack, layer, pages)
        if key not in self._cached:
            self._cached[key] = answered_by_a_cache(running.url, pages)
        return self._cached[key]


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
