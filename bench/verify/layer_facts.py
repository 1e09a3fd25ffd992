"""Facts about the layers of a deployment, from their manifests, and a clone of the deployment with other values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.catalog import catalog, compose
from bench.catalog.manifest import Layer
from bench.verify.context import Context
from bench.verify.finding import NotTried
from bench.verify.wire import Target

# What a layer caches, as its manifest says it.
PAGES, PARTS = "pages", "parts"


def layers_of(context: Context) -> tuple[Layer, ...]:
    """The manifests of the deployment's layers; raises BenchError when no layer has that name."""
    if context.running:
        return context.running.composition.layers
    return compose.in_own_cache(catalog.read().joined_layers("+".join(context.layers)), context.env)


def without_invalidation(context: Context) -> list[Layer]:
    """The layers that no write invalidates: only the time to live ends their stale pages."""
    return [layer for layer in layers_of(context) if not layer.invalidation]


def caches_pages(context: Context) -> bool:
    """Whether a layer caches whole pages."""
    return any(layer.caches == PAGES for layer in layers_of(context))


def clone(context: Context, changes: dict[str, Any]) -> Context:
    """A context of the same deployment brought up once more with some values changed, until the suite ends.

    Checks that ask for the same changes share it. Raises NotTried where the instrument did not bring the site up.
    """
    if context.running is None:
        raise NotTried("it needs a deployment of its own: verify a STACK instead of a --target")
    key = repr(sorted(changes.items()))
    if key not in context.clones:
        running = context.exits.enter_context(context.running.again(changes))
        target = Target.parse(running.url)
        context.clones[key] = replace(context, target=target, running=running, env=running.env, pages={}, seen=set())
    return context.clones[key]


def forget_clones(context: Context) -> None:
    """Give the next check that asks for a clone a new one."""
    context.clones.clear()
