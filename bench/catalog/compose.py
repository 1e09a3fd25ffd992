"""Which layer fits which stack, and what can run on this machine: read from the folders, never from a list."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import paths, programs
from bench.catalog import manifest, values
from bench.catalog.manifest import NO_LAYER, Declaration, Layer, Server, Service, Stack
from bench.errors import BenchError

INSTALL = "`make servers` installs it on Debian and Ubuntu"
# How a layer's manifest names the service that the value `cache` chooses, and what an own cache is named by instead.
CHOSEN_CACHE = "{{ cache }}"
CACHE_URL = "CACHE_URL"
STACKS_LISTED = "`python -m bench list` prints all"
JOINED = "fragments+varnish"
OWN_CACHE = "its cache is that of the CACHE_URL given"


@dataclass(frozen=True)
class Skip:
    """Why a stack with a layer cannot run here."""

    reason: str


@dataclass(frozen=True)
class Composition:
    """A stack with its layers, found to fit and to be runnable here.

    programs  the program of each server, by the server's name
    modules   the modules of each server that loads some, by the server's name
    services  the services to start
    env       environment of the application server that stack and layers ask for (templates)
    notes     what a reader of the results must know, such as a service replaced by something else
    declares  checks that stack or layers declare they do not support
    """

    stack: Stack
    layers: tuple[Layer, ...]
    programs: dict[str, Path]
    modules: dict[str, dict[str, str]] = field(default_factory=dict)
    services: tuple[Service, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    declares: tuple[Declaration, ...] = ()

    @property
    def beside(self) -> dict[str, tuple[str, ...]]:
        """The programs that the layers run beside the servers, by name."""
        return {name: tuple(argv) for layer in self.layers for name, argv in layer.beside.items()}

    @property
    def servers(self) -> tuple[Server, ...]:
        """The chain: the servers of the stack, then those that layers put before it, the outermost last."""
        return chain(self.stack, self.layers)

    @property
    def layer_name(self) -> str:
        return "+".join(layer.name for layer in self.layers)


def stack(name: str) -> Stack:
    """The stack called `name`, or a variant of it, `name@processes=25` or `name@processes=5,threads=2`.

    A variant is a stack of its own in plans and results, so that one command compares several. Raises BenchError with
    the nearest name when there is no such stack, and for a value that does not exist.
    """
    plain, at, words = name.partition("@")
    if not plain:
        raise BenchError(f"stack {name!r}: no stack is named; {STACKS_LISTED}")
    found = _named(manifest.stacks(), plain, "stack")
    if not at:
        return found
    if not words:
        raise BenchError(f"stack {name}: nothing follows the @; write {plain}, or {plain}@processes=5 for a variant")
    changes = values.parse_changes(words.split(","), f"stack {name}:")
    values.read("bench").changed(changes, f"stack {name}:")
    reason = "; ".join(filter(None, (found.reason, f"asked for with {words}")))
    return replace(found, name=name, values={**found.values, **changes}, reason=reason)


def layers(names: str) -> tuple[Layer, ...]:
    """The layers of a `+` joined name, in the order written; raises BenchError for an unknown or a repeated one."""
    known = manifest.layers()
    parts = names.split("+")
    if "" in parts:
        raise BenchError(f"layer {names!r}: a name is missing; write one layer, or several as {JOINED}")
    if len(set(parts)) != len(parts):
        raise BenchError(f"layer {names}: a layer is named twice; name each once")
    if len(parts) > 1 and NO_LAYER in parts:
        raise BenchError(f"layer {names}: {NO_LAYER} cannot be joined with another layer")
    return tuple(_named(known, part, "layer") for part in parts)


def _named(known: dict[str, Any], name: str, kind: str) -> Any:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    raise BenchError(f"no {kind} called {name!r}; {hint}")


def chain(stack: Stack, layers: Iterable[Layer]) -> tuple[Server, ...]:
    """The servers of the stack with those that layers put before it, the outermost last."""
    return (*stack.servers, *(server for layer in layers for server in layer.servers))


def compose(
    stack: Stack,
    layers: Iterable[Layer],
    changes: dict[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Composition | Skip:
    """The stack with the layers laid over it, or the reason why it cannot run here.

    changes  values that the user changed: one of them names the service that layers in a cache use
    env      environment that the user gives the site: a cache of its own takes the place of that service
    """
    layers = in_own_cache(layers, env or {})
    for layer in layers:
        if reason := misfit(stack, layer):
            return Skip(reason)
    if reason := collision(stack, layers):
        return Skip(reason)
    found, modules = {}, {}
    for server in chain(stack, layers):
        program = programs.find(server.programs, server.search)
        if program is None:
            return Skip(f"program not installed: {' or '.join(server.programs)}; {server.hint or INSTALL}")
        found[server.name] = program
        modules[server.name] = {name: programs.module(globs) for name, globs in modules_of(server, layers).items()}
        for name, path in modules[server.name].items():
            if path is None:
                return Skip(f"module not installed: {name} of {server.name}; {server.hint or INSTALL}")
    names = {**values.read("bench").names, **stack.values, **(changes or {})}
    composed = _with_services(stack, layers, found, modules, names)
    if isinstance(composed, Skip) or CACHE_URL not in (env or {}):
        return composed
    known = manifest.layers()
    own = [layer.name for layer in layers if CHOSEN_CACHE in known[layer.name].services]
    return replace(composed, notes=(*composed.notes, *(f"{name}: {OWN_CACHE}" for name in own)))


def in_own_cache(layers: Iterable[Layer], env: Mapping[str, str]) -> tuple[Layer, ...]:
    """The layers as they are with the site's environment `env`: a CACHE_URL there is a cache without a service.

    One like the cache that a layer uses in place of a missing service is told and coalesces as little as that one.
    """
    return tuple(_in_own_cache(layer, env) for layer in layers)


def _in_own_cache(layer: Layer, env: Mapping[str, str]) -> Layer:
    if CACHE_URL not in env or CHOSEN_CACHE not in layer.services:
        return layer
    # An empty one means what the site has without any, a cache in the memory of each process.
    kind = _scheme(env[CACHE_URL].strip()) or "locmemcache"
    instead = [item for item in layer.without.values() if _scheme(item.get("env", {}).get(CACHE_URL, "")) == kind]
    services = tuple(name for name in layer.services if name != CHOSEN_CACHE)
    return replace(layer, services=services, **_otherwise(instead[0] if instead else {}))


def _scheme(url: str) -> str:
    return url.partition(":")[0]


def _otherwise(instead: Mapping[str, Any]) -> dict[str, str]:
    """What a layer says of itself that is other with what it uses instead of a service."""
    return {word: instead[word] for word in ("told", "coalesces") if word in instead}


def modules_of(server: Server, layers: Iterable[Layer]) -> dict[str, list[str]]:
    """The modules that the server loads, by itself and for the layers: globs by a short name each."""
    modules = dict(server.modules)
    for layer in layers:
        modules |= layer.modules.get(server.name, {})
    return modules


def misfit(stack: Stack, layer: Layer) -> str:
    """Why the layer can never be laid over the stack, or an empty string when it can.

    A layer of place `server` fits when a server of the chain has a snippet in the layer's folder.
    """
    if layer.place != "server" or any(layer.snippets(server.name) for server in stack.servers):
        return ""
    return f"{layer.name} needs {layer_needs(layer)}: it has no snippet for another server"


def collision(stack: Stack, layers: Iterable[Layer]) -> str:
    """Why these layers cannot be laid over each other on this stack, or an empty string when they can.

    A point of a server (`<server>.pages.conf`) holds one layer's snippet: two would each decide alone what is answered.
    """
    filled: dict[str, str] = {}
    for layer in layers:
        points = [point for server in stack.servers for point in layer.snippets(server.name)]
        for point in [*points, *(f"a server called {server.name}" for server in layer.servers)]:
            if point in filled:
                return f"{filled[point]} and {layer.name} both bring {point}: join layers that work in different places"
            filled[point] = layer.name
    return ""


def layer_needs(layer: Layer) -> str:
    """The servers that the layer has snippets for, in words."""
    dialects = sorted({path.name.split(".")[0] for path in layer.folder.iterdir() if path.name != "layer.toml"})
    return " or ".join(dialects) + " in the chain"


def _with_services(
    stack: Stack,
    layers: tuple[Layer, ...],
    found: dict[str, Path],
    modules: dict[str, dict[str, str]],
    names: dict[str, Any],
) -> Composition | Skip:
    known = manifest.services()
    services: dict[str, Service] = {}
    env, notes = dict(stack.env), []
    laid = []
    for layer in layers:
        env.update(layer.env)
        here = layer
        for name in services_of(layer, names):
            missing = missing_programs(known[name])
            if not missing:
                services[name] = known[name]
            elif name in layer.without:
                instead = layer.without[name]
                env.update(instead.get("env", {}))
                notes.append(f"{layer.name}: {instead['note']}")
                here = replace(here, **_otherwise(instead))
            else:
                return Skip(f"service {name}: program not installed: {', '.join(missing)}; {INSTALL}")
        laid.append(here)
    layers = tuple(laid)
    if stack.reason:
        notes.append(f"{stack.name}: {stack.reason}")
    declares = declared(stack.declares, layers, {server.name for server in chain(stack, layers)}, stack.name)
    return Composition(stack, layers, found, modules, tuple(services.values()), env, tuple(notes), declares)


def declared(
    of_stack: Iterable[Declaration], layers: tuple[Layer, ...], servers: Container[str] = (), stack_name: str = ""
) -> tuple[Declaration, ...]:
    """What stack and layers declare they do not support on a chain of these servers, on the stack of that name.

    What a layer declares `alone` holds only without another.
    """
    of_layers = (
        item
        for layer in layers
        for item in layer.declares
        if not (item.alone and len(layers) > 1)
        and (not item.server or item.server in servers)
        and (not item.stacks or stack_name.partition("@")[0] in item.stacks)
    )
    return (*of_stack, *of_layers)


def services_of(layer: Layer, names: dict[str, Any]) -> list[str]:
    """The services that the layer uses under these values; raises BenchError for one that does not exist."""
    found = [_replaced(name, {CHOSEN_CACHE: str(names["cache"])}) for name in layer.services]
    for name in found:
        _named(manifest.services(), name, "service")
    return found


def missing_programs(service: Service) -> list[str]:
    """The programs of the service that are not installed."""
    return [name for name in service.programs.values() if programs.find([name], service.search) is None]


def must_compose(
    stack_name: str,
    layer_names: str,
    changes: dict[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Composition:
    """The composition of these names; raises BenchError with the reason when it cannot run here."""
    composed = compose(stack(stack_name), layers(layer_names), changes, env)
    if isinstance(composed, Skip):
        raise BenchError(f"{stack_name} with layer {layer_names} cannot run here: {composed.reason}")
    return composed


def server_version(server: Server, program: Path) -> str | None:
    """The version that the server's program prints, or None when it declares no way to ask."""
    if not server.version:
        return None
    known = {"{{ program }}": str(program), "{{ venv }}": str(paths.VENV)}
    return programs.version(tuple(_replaced(item, known) for item in server.version))


def _replaced(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(name, value)
    return text
