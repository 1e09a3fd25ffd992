"""Compatibility of stacks, layers, servers, services and installed versions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from bench import paths, programs
from bench.serve.catalog.manifest import Layer, Service, Stack
from bench.serve.catalog.server import SERVERS, Declaration, Server

# A layer's manifest writes the first for the service that the value `cache` names. The second, in the site's
# environment, names a cache of the user's own instead.
CHOSEN_CACHE = "{{ cache }}"
CACHE_URL = "CACHE_URL"
NOT_INSTALLED = "program not installed"
# A block of a template.
BLOCK = re.compile(r"(?:{%-?|#%) *block (\w+)")


def chain(stack: Stack, layers: Iterable[Layer], listener: str) -> tuple[Server, ...]:
    """The servers of the stack, and those that layers put in front with this listener, the outermost last."""
    servers = list(stack.servers)
    for layer in layers:
        servers += [server for server in layer.servers if server.listener in ("", listener)]
    return tuple(servers)


def stack_problem(stack: Stack, layers: tuple[Layer, ...]) -> str:
    """The reason why the layers never fit the stack, or an empty string."""
    for layer in layers:
        if problem := layer_problem(stack, layer):
            return problem
    return collision(stack, layers)


def layer_problem(stack: Stack, layer: Layer) -> str:
    """The reason why the layer never fits the stack, or an empty string.

    A layer of scope `server` fits if the layer's folder has a file for a server of the chain.
    """
    if layer.scope != "server" or any(map(layer.files, stack.servers)):
        return ""
    there = sorted({path.parent.name for path in SERVERS.glob("*/*") if (layer.folder / path.name).is_file()})
    return f"{layer.name} needs {' or '.join(there)} in the chain"


def collision(stack: Stack, layers: Iterable[Layer]) -> str:
    """The reason why these layers cannot be joined on this stack, or an empty string.

    A block of a server's file is one layer's: only one layer can decide which requests reach the application.
    """
    filled: dict[str, str] = {}
    for layer in layers:
        points = []
        for server in stack.servers:
            for name, path in layer.files(server).items():
                points += [f"the block {block} of {name}" for block in BLOCK.findall(path.read_text("utf-8"))]
        points += [f"a server called {server.name}" for server in layer.servers]
        for point in points:
            if point in filled:
                return f"{filled[point]} and {layer.name} both bring {point}: join layers that work in different places"
            filled[point] = layer.name
    return ""


def in_own_cache(layer: Layer, env: Mapping[str, str]) -> Layer:
    """The layer in the cache of CACHE_URL in the site's environment `env`, without a service.

    A cache of the kind that replaces a missing service also invalidates and coalesces like that kind. Without the
    variable, or for a layer that does not use the cache, the same layer.
    """
    if CACHE_URL not in env or CHOSEN_CACHE not in layer.services:
        return layer
    # With an empty CACHE_URL the site uses its default, a cache in the memory of each process.
    kind = env[CACHE_URL].strip().partition(":")[0] or "locmemcache"
    services = tuple(name for name in layer.services if name != CHOSEN_CACHE)
    for instead in layer.without.values():
        if instead.get("env", {}).get(CACHE_URL, "").partition(":")[0] == kind:
            return structs.replace(layer, services=services, **fallback_facts(instead))
    return structs.replace(layer, services=services)


def fallback_facts(instead: Mapping[str, Any]) -> dict[str, str]:
    """The facts of a layer that change with another cache in place of its service."""
    return {word: instead[word] for word in ("invalidation", "coalesces") if word in instead}


def modules_of(server: Server, layers: Iterable[Layer]) -> dict[str, list[str]]:
    """The modules that the server loads, by itself and for the layers: globs by short names."""
    modules = dict(server.modules)
    for layer in layers:
        modules |= layer.modules.get(server.name, {})
    return modules


def declared(layers: tuple[Layer, ...], stack: Stack | None = None) -> tuple[Declaration, ...]:
    """The checks that a stack, its servers and layers declare unsupported; without a stack, declarations of the layers
    for every stack.

    A declaration of a layer with `standalone` holds only without another layer.
    """
    name = ""
    servers = []
    if stack:
        name = stack.name.partition("@")[0]
        servers = [server.name for server in stack.servers]
    of_layers = []
    for item in itertools.chain.from_iterable(layer.declares for layer in layers):
        joined = item.standalone and len(layers) > 1
        elsewhere = (item.server and item.server not in servers) or (item.stacks and name not in item.stacks)
        if not joined and not elsewhere:
            of_layers.append(item)
    if stack is None:
        return tuple(of_layers)
    joined_servers = list(stack.servers)
    for layer in layers:
        joined_servers += layer.servers
    return (*_of_servers(joined_servers), *stack.declares, *of_layers)


def _of_servers(chain: Sequence[Server]) -> Iterator[Declaration]:
    """The declarations of a chain's servers, the innermost first, that hold behind the servers before each."""
    for position, server in enumerate(chain, start=1):
        before = {outer.name for outer in chain[position:]}
        for item in server.declares:
            if not before & set(item.unless_behind):
                yield item


def services_of(layer: Layer, names: dict[str, Any]) -> list[str]:
    """The services of the layer under these values."""
    return [name.replace(CHOSEN_CACHE, str(names["cache"])) for name in layer.services]


def missing_programs(service: Service) -> list[str]:
    """The programs of the service that are missing here."""
    return [name for name in service.programs.values() if programs.find([name], service.search) is None]


def as_installed(service: Service) -> Service:
    """The service in the form of the Debian release whose programs are installed here; the usual form without any."""
    known = (service, *map(service.in_debian, service.debian))
    return next((form for form in known if not missing_programs(form)), service)


def version_command(item: Server | Service) -> tuple[str, ...] | None:
    """The command that prints the version of a server or service; None without one, or if not installed."""
    places: dict[str, Path | None] = {"venv": paths.VENV}
    if isinstance(item, Server):
        places["program"] = programs.find(item.programs, item.search)
    else:
        for key, name in item.programs.items():
            places[f"programs.{key}"] = programs.find([name], item.search)
    if not item.version or None in places.values():
        return None
    words = []
    for word in item.version:
        for name, path in places.items():
            word = word.replace(f"{{{{ {name} }}}}", str(path))
        words.append(word)
    return tuple(words)


def is_usable(server: Server) -> bool:
    """True if the program of the server and its modules are installed here."""
    if programs.find(server.programs, server.search) is None:
        return False
    return all(programs.module(globs) for globs in server.modules.values())


def how_to_install(item: Server | Service) -> str:
    """Describe how to install a missing program."""
    if isinstance(item, Server) and item.hint:
        return item.hint
    if isinstance(item, Server) and (extra := _extra_of(item)):
        return f"`{programs.install_extra(extra)}` installs it from the clone, {programs.OTHER_EXTRAS}"
    return f"`apt-get install {' '.join(item.packages)}` installs it on Debian and Ubuntu"


def not_installed(service: Service) -> str:
    """The missing programs of a service, and how to install them, in words."""
    missing = ", ".join(missing_programs(service))
    return f"service {service.name}: {NOT_INSTALLED}: {missing}; {how_to_install(service)}"


def is_installed_later(server: Server) -> bool:
    """True if the server comes with the servers' packages, which are installed when first needed."""
    return _extra_of(server) == programs.SERVERS and not programs.servers_venv().is_dir()


def _extra_of(server: Server) -> str:
    """The extra of benchapp with all packages of a server; empty if no extra has them."""
    for extra, requirements in programs.requirements().items():
        packages = {programs.package(line) for line in requirements}
        if packages.issuperset(server.requirements or (server.distribution,)):
            return extra
    return ""


def installed_version(item: Server | Service) -> str | None:
    """The version of a server or service here; None if it is not installed or cannot tell."""
    if isinstance(item, Server) and item.distribution:
        return programs.distribution_version(item.distribution)
    command = version_command(item)
    if not command:
        return None
    return programs.version(command)
