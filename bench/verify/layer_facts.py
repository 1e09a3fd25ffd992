"""Facts about the layers of a deployment, from their manifests, and a clone of the deployment with other values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.catalog.manifest import Layer
from bench.verify.cacheability import obstacle
from bench.verify.context import Context
from bench.verify.finding import NotTried
from bench.verify.hits import new_path
from bench.verify.wire import Answer, Target

# What a layer caches, as its manifest says it.
PAGES, PARTS = "pages", "parts"
# Headers that views give single pages, as Django's cache_page does.
OF_CACHES = ("Cache-Control", "Expires")


def layers_of(context: Context) -> tuple[Layer, ...]:
    """The manifests of the deployment's layers."""
    return context.layers


def in_its_code(context: Context) -> list[Layer]:
    """The layers of which the project's own code says what they cache, for how long, and until which write.

    With the kit's variables it reads the kit's time to live, and invalidates like the kit's layers.
    """
    return [] if context.site.description.reads_environment else [it for it in layers_of(context) if it.in_site]


def without_invalidation(context: Context) -> list[Layer]:
    """The layers that no write invalidates: only the time to live ends their stale pages."""
    return [layer for layer in layers_of(context) if not layer.invalidation or layer in in_its_code(context)]


def caches_pages(context: Context) -> bool:
    """Whether a layer caches whole pages."""
    return any(layer.caches == PAGES for layer in layers_of(context))


def obstacle_here(context: Context, *answers: Answer) -> str | None:
    """What stops caches from storing a page by these answers, the last one rendered, or the layers here: a store of
    bodies has no place for its headers."""
    why = next(filter(None, map(obstacle, answers)), None)
    if why or context.strict or not any(layer.bodies for layer in layers_of(context)):
        return why
    usual = context.get(new_path())
    own = [name for name in OF_CACHES if answers[-1].header(name) and not usual.header(name)]
    return f"it has {' and '.join(own)} of its own, and the layer stores bodies alone" if own else None


def require_visible_hits(context: Context) -> None:
    """Raise NotTried where only the project's own code caches its pages: a hit of `cache_page` has a new id."""
    inside = in_its_code(context)
    if inside and not any(layer.caches == PAGES and layer not in inside for layer in layers_of(context)):
        raise NotTried("which pages are cached is up to the project's own code, and no answer shows it")


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
