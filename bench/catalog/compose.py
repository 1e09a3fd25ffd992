"""Compose a stack with layers: do they fit each other, and can they run on this machine?"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from bench import paths, programs
from bench.catalog import catalog, values
from bench.catalog.manifest import CACHED, NO_LAYER, Declaration, Layer, Server, Service, Stack
from bench.catalog.values import BENCH, Values
from bench.errors import BenchError

INSTALL = "`make servers` installs it on Debian and Ubuntu"
# A layer's manifest writes the first for the service that the value `cache` names. The second, in the site's
# environment, names a cache of the user's own instead.
CHOSEN_CACHE = "{{ cache }}"
CACHE_URL = "CACHE_URL"
OWN_CACHE = "it uses the cache of the given CACHE_URL"
# What else refuses a stack with layers: the reason, or an empty string.
Refusal = Callable[[Stack, tuple[Layer, ...]], str]
_refusals: list[Refusal] = []
# A context in which servers are those of another Python, of the version given. bench.project.under_test brings it.
Using = Callable[[str], AbstractContextManager[object]]
_using: list[Using] = [lambda version: nullcontext()]
# Where Debian puts servers.
DEBIAN_PROGRAMS = Path("/usr/sbin")


@dataclass(frozen=True)
class CannotRun:
    """Why a stack with a layer cannot run here."""

    reason: str


@dataclass(frozen=True)
class Composition:
    """A stack with its layers, which fit each other, and the values they are served with.

    programs   the program of each server, by the server's name
    modules    the modules of each server that loads some, by the server's name
    services   the services to start
    env        environment of the application server that stack and layers ask for (templates)
    notes      what a reader of the results must know, such as a service replaced by something else
    declares   checks that stack or layers declare they do not support
    values     the file of values, with the user's changes
    given_env  environment of the site that the user gives; it wins over all other
    """

    stack: Stack
    layers: tuple[Layer, ...]
    programs: dict[str, Path]
    modules: dict[str, dict[str, str]] = field(default_factory=dict)
    services: tuple[Service, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    declares: tuple[Declaration, ...] = ()
    values: Values = field(default_factory=lambda: catalog.read().values[BENCH])
    given_env: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The names that templates use: the values of the file, those of the stack, the user's, and what they imply."""
        names = {**self.values.names, **self.stack.values, **self.values.changes}
        env = {**self.values.env, **self.given_env}
        flags = {"https_only": int(env.get("BENCHAPP_HTTPS") == "1"), "probed": env.get("BENCHAPP_PROBES") == "1"}
        return {**names, **values.derived(names), **flags}

    @property
    def breaks(self) -> dict[str, str]:
        """Faults of which visitors notice more than is expected, each with the reason; the stack's own reason wins."""
        names = {layer.name for layer in self.layers}
        of_layers = [item for layer in self.layers for item in layer.breaks]
        of_servers = [item for server in self.servers for item in server.breaks]
        declared = [*of_layers, *of_servers, *self.stack.breaks]
        declared = [item for item in declared if not item.layers or names & set(item.layers)]
        return {item.fault: item.reason for item in declared}

    @property
    def threads(self) -> int:
        """How many requests the application server handles at a time: its processes times the threads of each."""
        return int(self.settings["processes"]) * int(self.settings["threads"])

    @property
    def sidecars(self) -> dict[str, tuple[str, ...]]:
        """The programs that the layers run beside the servers, by name."""
        return {name: tuple(argv) for layer in self.layers for name, argv in layer.sidecars.items()}

    @property
    def servers(self) -> tuple[Server, ...]:
        """The chain: the servers of the stack, then those that layers put before it, the outermost last."""
        return chain(self.stack, self.layers)

    @property
    def caches(self) -> str:
        """What the layers cache: `pages`, `parts` of pages that are rendered for each visitor, or `nothing`."""
        found = {layer.caches for layer in self.layers}
        return max(found, key=CACHED.index, default="nothing")

    @property
    def layer_name(self) -> str:
        return "+".join(layer.name for layer in self.layers)


def chain(stack: Stack, layers: Iterable[Layer]) -> tuple[Server, ...]:
    """The servers of the stack with those that layers put before it, the outermost last."""
    return (*stack.servers, *(server for layer in layers for server in layer.servers))


def compose(
    stack_name: str,
    layer_names: str = NO_LAYER,
    changes: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Composition | CannotRun:
    """The stack with the layers (joined with `+`), or the reason why it cannot run here.

    changes  values that the user changes: one of them names the service that layers in a cache use
    env      environment that the user gives the site: a cache of its own takes the place of that service

    Raises BenchError for a name or a value that does not exist.
    """
    known, env = catalog.read(), env or {}
    stack, layers = known.stack(stack_name), in_own_cache(known.joined_layers(layer_names), env)
    chosen = known.values[BENCH].changed(changes or {})
    if reason := unfit(stack, layers):
        return CannotRun(reason)
    with _using[-1](stack.python):
        installed = _installed(stack, layers)
    if isinstance(installed, CannotRun):
        return installed
    found, modules = installed
    services = _with_services(stack, layers, {**chosen.names, **stack.values, **chosen.changes})
    if isinstance(services, CannotRun):
        return services
    own = [layer.name for layer in layers if CACHE_URL in env and CHOSEN_CACHE in known.layers[layer.name].services]
    notes = (*services.notes, *(f"{name}: {OWN_CACHE}" for name in own))
    return replace(services, programs=found, modules=modules, notes=notes, values=chosen, given_env=env)


def _installed(
    stack: Stack, layers: tuple[Layer, ...]
) -> tuple[dict[str, Path], dict[str, dict[str, str]]] | CannotRun:
    """The programs of the servers and their modules, by the servers' names; or which one is not installed."""
    found: dict[str, Path] = {}
    modules: dict[str, dict[str, str]] = {}
    for server in chain(stack, layers):
        program = programs.find(server.programs, server.search)
        if program is None:
            return CannotRun(f"program not installed: {' or '.join(server.programs)}; {server.hint or INSTALL}")
        found[server.name], modules[server.name] = program, {}
        for name, globs in modules_of(server, layers).items():
            path = programs.module(globs)
            if path is None:
                if stack.python:
                    return CannotRun(f"{server.name} has its module {name} for one Python, which is not {stack.python}")
                return CannotRun(f"module not installed: {name} of {server.name}; {server.hint or INSTALL}")
            modules[server.name][name] = path
    return found, modules


def compose_for_files(stack_name: str, layer_names: str, chosen: Values) -> Composition:
    """The stack with the layers under these values, whether or not its programs are installed here.

    A program that is missing is assumed to be where Debian puts it. Raises BenchError when a layer does not fit.
    """
    known = catalog.read()
    stack, layers = known.stack(stack_name), known.joined_layers(layer_names)
    if reason := unfit(stack, layers):
        raise BenchError(f"{stack_name} with layer {layer_names}: {reason}")
    servers = chain(stack, layers)
    services = dict.fromkeys(name for layer in layers for name in services_of(layer, chosen.names))
    return Composition(
        stack,
        layers,
        programs={
            server.name: programs.find(server.programs, server.search) or DEBIAN_PROGRAMS / server.programs[0]
            for server in servers
        },
        modules={server.name: _modules_for_files(server, layers) for server in servers},
        services=tuple(known.services[name] for name in services),
        env={**stack.env, **{name: value for layer in layers for name, value in layer.env.items()}},
        values=chosen,
    )


def _modules_for_files(server: Server, layers: Iterable[Layer]) -> dict[str, str]:
    """The modules found here, or the globs where they would be."""
    return {name: programs.module(globs) or globs[0] for name, globs in modules_of(server, layers).items()}


def in_own_cache(layers: Iterable[Layer], env: Mapping[str, str]) -> tuple[Layer, ...]:
    """The layers in the cache that CACHE_URL in the site's environment `env` names: it needs no service.

    If that cache is of the kind that replaces a missing service, it also invalidates and coalesces like that one.
    """
    return tuple(_in_own_cache(layer, env) for layer in layers)


def _in_own_cache(layer: Layer, env: Mapping[str, str]) -> Layer:
    if CACHE_URL not in env or CHOSEN_CACHE not in layer.services:
        return layer
    # With an empty CACHE_URL the site uses its default, a cache in the memory of each process.
    kind = _scheme(env[CACHE_URL].strip()) or "locmemcache"
    instead = [item for item in layer.without.values() if _scheme(item.get("env", {}).get(CACHE_URL, "")) == kind]
    services = tuple(name for name in layer.services if name != CHOSEN_CACHE)
    return structs.replace(layer, services=services, **_otherwise(instead[0] if instead else {}))


def _scheme(url: str) -> str:
    return url.partition(":")[0]


def _otherwise(instead: Mapping[str, Any]) -> dict[str, str]:
    """The facts of a layer that another cache in place of its service changes."""
    return {word: instead[word] for word in ("invalidation", "coalesces") if word in instead}


def modules_of(server: Server, layers: Iterable[Layer]) -> dict[str, list[str]]:
    """The modules that the server loads, by itself and for the layers: globs by a short name each."""
    modules = dict(server.modules)
    for layer in layers:
        modules |= layer.modules.get(server.name, {})
    return modules


def unfit(stack: Stack, layers: tuple[Layer, ...]) -> str:
    """Why the layers never fit the stack, or an empty string when they do."""
    found = next(filter(None, (misfit(stack, layer) for layer in layers)), "") or collision(stack, layers)
    return found or next(filter(None, (refusal(stack, layers) for refusal in _refusals)), "")


def refuse(refusal: Refusal) -> None:
    """From now on, refuse what this function gives a reason for: a project may not fit every stack and layer."""
    _refusals.append(refusal)


def serve_pythons(using: Using) -> None:
    """From now on, stacks that name another Python are served in this context."""
    _using.append(using)


def misfit(stack: Stack, layer: Layer) -> str:
    """Why the layer never fits the stack, or an empty string when it does.

    A layer of scope `server` fits when a server of the chain has a snippet in the layer's folder.
    """
    if layer.scope != "server" or any(layer.snippets(server.name) for server in stack.servers):
        return ""
    return f"{layer.name} needs {layer_needs(layer)}: it has no snippet for another server"


def collision(stack: Stack, layers: Iterable[Layer]) -> str:
    """Why these layers cannot be joined on this stack, or an empty string when they can.

    A point of a server (`<server>.pages.conf`) holds one layer's snippet: only one layer can decide which requests
    reach the application.
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


def _with_services(stack: Stack, layers: tuple[Layer, ...], names: dict[str, Any]) -> Composition | CannotRun:
    """The composition with its services, or what replaces those that are not installed; without its programs."""
    known = catalog.read()
    services: dict[str, Service] = {}
    env, notes, used = dict(stack.env), [], []
    for layer in layers:
        env.update(layer.env)
        here = layer
        for name in services_of(layer, names):
            missing = missing_programs(known.services[name])
            if not missing:
                services[name] = known.services[name]
            elif name in layer.without:
                instead = layer.without[name]
                env.update(instead.get("env", {}))
                notes.append(f"{layer.name}: {instead['note']}")
                here = structs.replace(here, **_otherwise(instead))
            else:
                return CannotRun(f"service {name}: program not installed: {', '.join(missing)}; {INSTALL}")
        used.append(here)
    if stack.reason:
        notes.append(f"{stack.name}: {stack.reason}")
    declares = declared(stack.declares, tuple(used), {server.name for server in chain(stack, used)}, stack.name)
    return Composition(stack, tuple(used), {}, {}, tuple(services.values()), env, tuple(notes), declares)


def declared(
    of_stack: Iterable[Declaration], layers: tuple[Layer, ...], servers: Container[str] = (), stack_name: str = ""
) -> tuple[Declaration, ...]:
    """What stack and layers declare they do not support on a chain of these servers, on the stack of that name.

    What a layer declares `standalone` holds only without another.
    """
    of_layers = (
        item
        for layer in layers
        for item in layer.declares
        if not (item.standalone and len(layers) > 1)
        and (not item.server or item.server in servers)
        and (not item.stacks or stack_name.partition("@")[0] in item.stacks)
    )
    return (*of_stack, *of_layers)


def services_of(layer: Layer, names: dict[str, Any]) -> list[str]:
    """The services that the layer uses under these values; raises BenchError for one that does not exist."""
    found = [_replaced(name, {CHOSEN_CACHE: str(names["cache"])}) for name in layer.services]
    return [catalog.read().service(name).name for name in found]


def missing_programs(service: Service) -> list[str]:
    """The programs of the service that are not installed."""
    return [name for name in service.programs.values() if programs.find([name], service.search) is None]


def must_compose(
    stack_name: str,
    layer_names: str = NO_LAYER,
    changes: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Composition:
    """Like `compose`; raises BenchError with the reason when it cannot run here."""
    composed = compose(stack_name, layer_names, changes, env)
    if isinstance(composed, CannotRun):
        raise BenchError(f"{stack_name} with layer {layer_names} cannot run here: {composed.reason}")
    return composed


def version_command(item: Server | Service) -> tuple[str, ...] | None:
    """The command that prints the version of a server or service; None without one, or where it is not installed."""
    if isinstance(item, Server):
        found = {"program": programs.find(item.programs, item.search)}
    else:
        found = {f"programs.{key}": programs.find([name], item.search) for key, name in item.programs.items()}
    if not item.version or None in found.values():
        return None
    known = {f"{{{{ {name} }}}}": str(path) for name, path in {**found, "venv": paths.VENV}.items()}
    return tuple(_replaced(word, known) for word in item.version)


def installed_version(item: Server | Service) -> str | None:
    """The version of a server or service here; None where it is not installed or there is no way to ask."""
    if isinstance(item, Server) and item.distribution:
        return programs.distribution_version(item.distribution)
    command = version_command(item)
    return programs.version(command) if command else None


def _replaced(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(name, value)
    return text
