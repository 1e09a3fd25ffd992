"""What stacks, layers, services and sizes there are and what can run here, as one document."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from bench import paths, programs
from bench.catalog import catalog, compose, sizes
from bench.catalog.compose import CannotRun, Composition
from bench.catalog.manifest import Layer, Server, Service, Stack
from bench.catalog.values import BENCH
from bench.errors import BenchError
from bench.machine import identity

# Programs that are asked their version at the same time; a thread mostly waits.
THREADS = 8


def survey() -> dict[str, Any]:
    """Every stack, layer and service with what can run here.

    `fits[stack][layer]` is null when the two can run here, else the reason why not; so is the `problem` of a size.
    """
    known = catalog.read()
    servers = [server for stack in known.stacks.values() for server in stack.servers]
    servers += [server for layer in known.layers.values() for server in layer.servers]
    with ThreadPoolExecutor(THREADS) as threads:
        who = threads.submit(_who)
        _ask_versions(threads, [*servers, *known.services.values()])
        fits = {name: {layer: _problem(name, layer) for layer in known.layers} for name in known.stacks}
    return {
        "python": {"program": str(paths.PYTHON), "version": platform.python_version()},
        **who.result(),
        "stacks": {name: _stack(stack) for name, stack in known.stacks.items()},
        "layers": {name: _layer(layer) for name, layer in known.layers.items()},
        "services": {name: _service(service) for name, service in known.services.items()},
        "sizes": {
            name: {"title": size.title, "problem": sizes.problem(size) or None} for name, size in known.sizes.items()
        },
        "fits": fits,
    }


def versions(compositions: Iterable[Composition], services: Iterable[str] = ()) -> dict[str, str]:
    """The known versions of the servers and services of these compositions, and of more services, by name."""
    known = catalog.read().services
    used: dict[str, Server | Service] = {name: known[name] for name in services if name in known}
    for composition in compositions:
        used |= {server.name: server for server in composition.servers}
        used |= {service.name: service for service in composition.services}
    with ThreadPoolExecutor(THREADS) as threads:
        _ask_versions(threads, used.values())
    return {name: version for name, item in used.items() if (version := compose.installed_version(item))}


def _ask_versions(threads: Executor, items: Iterable[Server | Service]) -> None:
    """Ask each program its version once; `programs.version` caches the answers."""
    for command in dict.fromkeys(filter(None, map(compose.version_command, items))):
        threads.submit(programs.version, command)


def _who() -> dict[str, str | None]:
    """The user that servers run as, with a notice if there is one; no user, and the reason, when they cannot run."""
    try:
        who = identity.worker()
    except BenchError as error:
        return {"servers_run_as": None, "notice": str(error)}
    return {"servers_run_as": who.user, "notice": who.notice or None}


def _problem(stack: str, layer: str) -> str | None:
    composed = compose.compose(stack, layer)
    return composed.reason if isinstance(composed, CannotRun) else None


def _stack(stack: Stack) -> dict[str, Any]:
    return {
        "title": stack.title,
        "about": stack.about,
        "era": stack.era or None,
        "servers": [_server(server) for server in stack.servers],
        "declares": {item.check: item.reason for item in stack.declares},
    }


def _layer(layer: Layer) -> dict[str, Any]:
    return {
        "title": layer.title,
        "about": layer.about,
        "place": layer.scope,
        "kind": layer.kind or None,
        "several_hosts": layer.several_hosts or None,
        "one_host": layer.one_host or None,
        "services": compose.services_of(layer, catalog.read().values[BENCH].names),
        "servers": [_server(server) for server in layer.servers],
    }


def _server(server: Server) -> dict[str, Any]:
    program = programs.find(server.programs, server.search)
    return {
        "name": server.name,
        "speaks": server.speaks,
        "program": str(program) if program else None,
        "version": compose.installed_version(server),
        "modules": {name: programs.module(globs) for name, globs in server.modules.items()},
    }


def _service(service: Service) -> dict[str, Any]:
    return {
        "title": service.title,
        "missing": compose.missing_programs(service),
        "version": compose.installed_version(service),
    }
