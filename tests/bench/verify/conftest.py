"""The suite against the real site, right or with a mutation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.serve.catalog import catalog
from bench.serve.catalog.manifest import Layer
from bench.serve.catalog.names import NO_LAYER
from bench.serve.machine.http import Target
from bench.verify.context import Accounts, Context
from bench.verify.outcome import Outcome
from bench.verify.site import Site
from bench.verify.suite import Selection, run_suite

# The layer of the mutant.
KEPT = Layer(
    "kept",
    Path(),
    "Kept",
    "app",
    "Caches pages.",
    several_hosts="one cache",
    invalidation="a signal",
    services=("memory",),
    coalesces="a lock",
)


def verified(
    url: str,
    site: Site,
    layer: str | Layer = NO_LAYER,
    *,
    declared: dict[str, str] | None = None,
    running: Any = None,
    **selection: Any,
) -> list[Outcome]:
    """The outcomes of the suite."""
    chosen = Selection(
        **{name: value if isinstance(value, bool) else tuple(value) for name, value in selection.items()}
    )
    env = running.env if running else {}
    layers = (layer,) if isinstance(layer, Layer) else catalog.read().joined_layers(layer)
    context = Context(
        Target.parse(url), site, layers, Accounts(site, env), env, "stub", declared or {}, running=running
    )
    return run_suite(context, chosen)
