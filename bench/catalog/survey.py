"""What stacks, layers, services and sizes there are and what can run here, as one document."""

from __future__ import annotations

from typing import Any

from bench import paths, programs
from bench.catalog import catalog, compose, manifest, sizes
from bench.catalog.values import BENCH
from bench.errors import BenchError
from bench.host import identity


def survey() -> dict[str, Any]:
    """Every stack, layer and service with what can run here.

    `fits[stack][layer]` is null when the two can run here, else the reason why not; so is the `problem` of a size.
    """
    known = catalog.read()
    return {
        "python": {"program": str(paths.PYTHON), "version": programs.version((str(paths.PYTHON), "--version"))},
        **_who(),
        "stacks": {
            name: {"title": stack.title, "about": stack.about, "servers": _servers(stack.servers)}
            for name, stack in known.stacks.items()
        },
        "layers": {
            name: {
                "title": layer.title,
                "about": layer.about,
                "place": layer.place,
                "services": compose.services_of(layer, known.values[BENCH].names),
                "servers": _servers(layer.servers),
            }
            for name, layer in known.layers.items()
        },
        "services": {name: _service(service) for name, service in known.services.items()},
        "sizes": {
            name: {"title": size.title, "problem": sizes.problem(size) or None} for name, size in known.sizes.items()
        },
        "fits": {
            stack: {layer: _reason(compose.compose(stack, layer)) for layer in known.layers} for stack in known.stacks
        },
    }


def _who() -> dict[str, str | None]:
    """Who servers run as and what had to be worked around; nobody and why, when nobody can run them."""
    try:
        who = identity.worker()
    except BenchError as error:
        return {"servers_run_as": None, "notice": str(error)}
    return {"servers_run_as": who.user, "notice": who.notice or None}


def _reason(composed: compose.Composition | compose.Skip) -> str | None:
    return composed.reason if isinstance(composed, compose.Skip) else None


def _servers(chain: tuple[manifest.Server, ...]) -> list[dict[str, Any]]:
    servers = []
    for server in chain:
        program = programs.find(server.programs, server.search)
        servers.append(
            {
                "name": server.name,
                "speaks": server.speaks,
                "program": str(program) if program else None,
                "version": compose.server_version(server, program) if program else None,
                "modules": {name: programs.module(globs) for name, globs in server.modules.items()},
            }
        )
    return servers


def _service(service: manifest.Service) -> dict[str, Any]:
    missing = compose.missing_programs(service)
    found = {key: str(programs.find([name], service.search)) for key, name in service.programs.items()}
    version = None
    if service.version and not missing:
        version = programs.version(tuple(_program(word, found) for word in service.version))
    return {"title": service.title, "missing": missing, "version": version}


def _program(word: str, found: dict[str, str]) -> str:
    for key, path in found.items():
        word = word.replace(f"{{{{ programs.{key} }}}}", path)
    return word
