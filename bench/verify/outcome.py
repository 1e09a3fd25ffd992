"""Outcomes of checks on one deployment, and skipped cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from bench.means import means

# Group of checks -> the proof that a pass gives, in the order of running and printing. `behaviour` holds for any site;
# the others are about layers.
GROUPS = {
    "behaviour": "the site gives right responses",
    "caching": "the layer caches cacheable pages and nothing else",
    "privacy": "no visitor sees another visitor's page",
    "web": "made-up cookies, query strings and hosts neither split nor flood the cache",
    "freshness": "a write shows soon, and stale pages do not come back",
    "stampede": "many requests at once cost few renderings",
    "bytes": "a cached response equals the rendered one in every byte and header",
    "names": "odd URLs break nothing, read no other file and share no cache entry",
    "files": "no client reads a partial page while pages are rewritten",
    "advisories": "published faults of cache middleware and Vary stay fixed",
}


@dataclass(frozen=True)
class Outcome:
    """Outcome of one check on one deployment."""

    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    check: Annotated[str, means("Name of the check.")]
    ok: Annotated[bool, means("False if a response was wrong.")]
    expected: Annotated[str | None, means("The right response; null unless a response was wrong.")] = None
    got: Annotated[str | None, means("The wrong response; null unless a response was wrong.")] = None
    known_limitation: Annotated[
        str | None, means("The reason why the stack or layer declares no support, or null.")
    ] = None
    group: Annotated[str, means("Group of the check: behaviour, caching, privacy, ...")] = "behaviour"
    figures: Annotated[
        dict[str, float | None] | None, means("Figure the check measured -> its value; the unit is in the name.")
    ] = None
    request: Annotated[
        str | None,
        means(
            "The first wrong response's request, as a curl command for `up --port 8000`; null unless curl can send it."
        ),
    ] = None
    serve: Annotated[str | None, means("The command that serves this request again; null for a --target.")] = None
    skipped: Annotated[str | None, means("Reason of a skipped check, which is not a pass; null if it ran.")] = None

    @property
    def deployment(self) -> tuple[str, str]:
        """The stack and the layer."""
        return self.stack, self.layer

    @property
    def word(self) -> str:
        """`failed`, `known limitation`, `skipped` or `passed`."""
        if not self.ok:
            return "failed"
        if self.known_limitation:
            return "known limitation"
        if self.skipped:
            return "skipped"
        return "passed"


@dataclass(frozen=True)
class Skip:
    """A requested case that cannot run here."""

    stack: Annotated[str, means("Name of the stack.")]
    layer: Annotated[str, means("Name of the layer.")]
    workload: Annotated[str | None, means("Name of the workload, null when all workloads are skipped.")]
    reason: Annotated[str, means("Reason why it cannot run here.")]
    size: Annotated[str | None, means("Name of the resource limit, null when all sizes are skipped.")] = None
