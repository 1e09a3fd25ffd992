"""Database queries of a request, counted outside of measured requests."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bench.errors import BenchError
from bench.measure.records.records import CaseRecord
from bench.serve.deployment.deployment import Running
from bench.serve.machine import http
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest

# Marks that tell a rendered page from a cached one.
HTML, RENDER_ID = "text/html", "X-Render-Id"


def per_request(running: Running, case: CaseRecord, addresses: tuple[str, ...]) -> float | None:
    """Database queries of a request to these addresses, on average; None if they cannot be counted.

    Queries are counted once for a layer, and responses of a cache once for a stack with a layer.
    """
    project = running.case.project
    files = project.names["static_url"]
    pages = tuple(dict.fromkeys(address for address in addresses if not address.startswith(files)))
    if not pages:
        return 0.0
    of_layer = ("queries", project.folder, case.layer, pages)
    counts = project.once(of_layer, lambda: count_queries(project, running.env, pages))
    of_stack = ("cached", case.stack, case.layer, pages)
    cached = project.once(of_stack, lambda: served_by_a_cache(running.url, pages))
    if counts is None or cached is None:
        return None
    rendered = set(pages) - cached
    total = sum(counts[page]["warm"] for page in addresses if page in rendered)
    return round(total / len(addresses), 3)


def count_queries(project: UnderTest, env: dict[str, str], pages: Iterable[str]) -> dict[str, dict[str, int]] | None:
    """Page -> its queries with an empty cache (`cold`) and with a filled one (`warm`); None if the command fails.

    The site's command renders the pages in process, in this environment.
    """
    try:
        printed = commands.manage(project, ["countqueries", *pages], env, project.worker())
        return msgspec.json.decode(printed, type=dict[str, dict[str, int]])
    except (BenchError, msgspec.DecodeError, KeyError):
        return None


def served_by_a_cache(url: str, pages: Iterable[str]) -> set[str] | None:
    """The pages whose second response came from a cache; None if one of them had no response.

    A response with the render id of the previous one, or without an id, came from a cache and cost no query.
    """
    cached = set()
    for page in pages:
        try:
            first, second = (http.page(url, page) for _ in range(2))
        except http.VisitError:
            return None
        is_page, rendered = HTML in (second.header("Content-Type") or ""), second.header(RENDER_ID)
        if is_page and rendered in (None, first.header(RENDER_ID)):
            cached.add(page)
    return cached
