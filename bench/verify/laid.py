"""What the layers of a deployment say of themselves, and the same deployment once more with other values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.catalog import catalog, compose
from bench.catalog.manifest import Layer
from bench.verify.outcome import NotAsked
from bench.verify.suite import Context
from bench.verify.wire import Target

PAGES, PARTS = "pages", "parts"


def laid(context: Context) -> tuple[Layer, ...]:
    """The manifests of the layers on the deployment; raises BenchError for the name of no layer."""
    if context.running:
        return context.running.composition.layers
    return compose.in_own_cache(catalog.read().joined_layers("+".join(context.layers)), context.env)


def untold(context: Context) -> list[Layer]:
    """The layers that cannot be told of a write."""
    return [layer for layer in laid(context) if not layer.invalidation]


def keeps_pages(context: Context) -> bool:
    """Whether a layer keeps whole pages."""
    return any(layer.caches == PAGES for layer in laid(context))


def again(context: Context, changes: dict[str, Any]) -> Context:
    """A context of the same deployment once more, beside this one, with some values changed, until the suite ends.

    Several checks may ask for it. Raises NotAsked where the deployment is not the instrument's own.
    """
    if context.running is None:
        raise NotAsked("it needs a deployment of its own: verify a STACK instead of a --target")
    key = repr(sorted(changes.items()))
    if key not in context.beside:
        running = context.exits.enter_context(context.running.again(changes))
        target = Target.parse(running.url)
        context.beside[key] = replace(context, target=target, running=running, env=running.env, pages={}, seen=set())
    return context.beside[key]


def forget(context: Context) -> None:
    """Whoever asks for a deployment beside this one gets a new one from now on."""
    context.beside.clear()
