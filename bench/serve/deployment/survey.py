"""A survey of stacks, layers, services and sizes, and of their availability here, as one document."""

from __future__ import annotations

import platform
import sqlite3
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from msgspec import structs

from bench import paths, programs
from bench.errors import BenchError
from bench.serve.catalog import catalog, compatibility, sizes
from bench.serve.catalog.manifest import Layer, Service, Stack
from bench.serve.catalog.server import Server
from bench.serve.catalog.values import BENCH, Values
from bench.serve.deployment.case import CannotRun, Case, resolve
from bench.serve.deployment.database import NO_DATABASE, SQLITE
from bench.serve.project.opened import UnderTest

# Programs whose versions are read at the same time; a thread mostly waits.
THREADS = 8


def survey(project: UnderTest, chosen: Values | None = None) -> dict[str, Any]:
    """Every stack, layer and service with its availability here, under these values.

    `fits[stack][layer]` is null for a pair that can run here, else the reason; so is the `problem` of a size.
    """
    known = catalog.read()
    fits: dict[str, dict[str, str | None]] = {}
    limited = {}
    for name, size in known.sizes.items():
        if size.is_limited:
            limited[name] = {"title": size.title, "problem": sizes.problem(size) or None}
    versioned: list[Server | Service] = [*known.services.values()]
    for stack in known.stacks.values():
        versioned += stack.servers
    for layer in known.layers.values():
        versioned += layer.servers
    with ThreadPoolExecutor(THREADS) as threads:
        who = threads.submit(_who, project)
        _read_versions(threads, versioned)
        for name in known.stacks:
            fits[name] = dict.fromkeys(known.layers)
            for other in known.layers:
                case = resolve(project, name, other, database=NO_DATABASE, chosen=chosen)
                if isinstance(case, CannotRun):
                    fits[name][other] = case.reason
    return {
        "python": {"program": str(paths.PYTHON), "version": platform.python_version()},
        **who.result(),
        "stacks": {name: _stack(stack) for name, stack in known.stacks.items()},
        "layers": {name: _layer(layer) for name, layer in known.layers.items()},
        "services": {name: _service(service) for name, service in known.services.items()},
        "sizes": limited,
        "releases": {str(number): structs.asdict(release) for number, release in known.releases.items()},
        "fits": fits,
    }


def versions(cases: Iterable[Case], database_label: str) -> dict[str, str]:
    """The known versions of the servers and services of these cases, and of their database, by name."""
    known = catalog.read().services
    used: dict[str, Server | Service] = {}
    if database_label in known:
        used[database_label] = known[database_label]
    for case in cases:
        used |= {server.name: server for server in case.servers}
        used |= {service.name: service for service in case.services}
    with ThreadPoolExecutor(THREADS) as threads:
        _read_versions(threads, used.values())
    by_name = {}
    for name, item in used.items():
        if version := compatibility.installed_version(item):
            by_name[name] = version
    # A part of the very Python that runs the site.
    if database_label == SQLITE:
        by_name[SQLITE] = sqlite3.sqlite_version
    return by_name


def missing_web_server() -> str:
    """The web server of most stacks and its installation, if no stack's web server is usable here; otherwise empty.

    A web server can terminate TLS; without one of its modules it is not usable.
    """
    outermost = [stack.servers[-1] for stack in catalog.read().stacks.values()]
    fronts = [server for server in outermost if server.tls]
    if not fronts or any(map(compatibility.is_usable, fronts)):
        return ""
    ((name, _),) = Counter(server.name for server in fronts).most_common(1)
    front = next(server for server in fronts if server.name == name)
    return f"{name}: {compatibility.how_to_install(front)}"


def _read_versions(threads: Executor, items: Iterable[Server | Service]) -> None:
    """Look up the version of each program once; `programs.version` caches the results."""
    for command in dict.fromkeys(filter(None, map(compatibility.version_command, items))):
        threads.submit(programs.version, command)


def _who(project: UnderTest) -> dict[str, str | None]:
    """The user of the servers, with a notice if any; no user, and the reason, for servers that cannot run."""
    try:
        who = project.worker()
    except BenchError as error:
        return {"servers_run_as": None, "notice": str(error)}
    return {"servers_run_as": who.user, "notice": who.notice or None}


def _stack(stack: Stack) -> dict[str, Any]:
    return {
        "title": stack.title,
        "about": stack.about,
        "era": stack.era or None,
        "servers": [_server(server) for server in stack.servers],
        "declares": {item.check: item.reason for item in compatibility.declared((), stack)},
    }


def _layer(layer: Layer) -> dict[str, Any]:
    return {
        "title": layer.title,
        "about": layer.about,
        "place": layer.scope,
        "kind": layer.kind or None,
        "several_hosts": layer.several_hosts or None,
        "one_host": layer.one_host or None,
        "services": compatibility.services_of(layer, catalog.read().values[BENCH].names),
        "servers": [_server(server) for server in layer.servers],
    }


def _server(server: Server) -> dict[str, Any]:
    program = programs.find(server.programs, server.search)
    return {
        "name": server.name,
        "speaks": server.speaks,
        "program": program and str(program),
        "later": program is None and compatibility.is_installed_later(server),
        "version": compatibility.installed_version(server),
        "modules": {name: programs.module(globs) for name, globs in server.modules.items()},
    }


def _service(service: Service) -> dict[str, Any]:
    service = compatibility.as_installed(service)
    return {
        "title": service.title,
        "missing": compatibility.missing_programs(service),
        "install": compatibility.how_to_install(service),
        "version": compatibility.installed_version(service),
    }
