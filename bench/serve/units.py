"""The systemd units of a production host: the data that their template reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import programs
from bench.catalog.compose import Composition
from bench.catalog.manifest import Server, Service
from bench.serve import render
from bench.serve.layout import Places
from bench.serve.render import Wiring, instance_name

# Where Debian puts the programs of services.
DEBIAN_PROGRAMS = Path("/usr/bin")


def units(composition: Composition, places: Places, wiring: Wiring) -> list[dict[str, Any]]:
    """A unit for each instance of a server, each sidecar of a layer and each service."""
    return [
        *(unit for server in composition.servers for unit in _of_server(server, composition, places, wiring)),
        *(_of_sidecar(name, words, composition, places) for name, words in composition.sidecars.items()),
        *(_of_service(service, composition, places) for service in composition.services),
    ]


def service_context(service: Service, composition: Composition, places: Places) -> dict[str, Any]:
    """The names that the templates of a service can use on the host."""
    found = {
        key: str(programs.find([name], service.search) or DEBIAN_PROGRAMS / name)
        for key, name in service.programs.items()
    }
    return render.service_context(service, found, composition, places, Path(places.store) / service.name)


def _of_server(server: Server, composition: Composition, places: Places, wiring: Wiring) -> list[dict[str, Any]]:
    chain = [item.name for item in composition.servers]
    index = chain.index(server.name)
    context = render.context_of(server, composition, places, wiring)
    shared = {
        "about": server.about,
        "check": " ".join(render.argv(server.check, context, f"{server.name} check")),
        "after": f"benchapp-{chain[index - 1]}.service" if index else "",
        "stop_signal": f"SIG{server.graceful}",
        "env": {key: render.text(text, context, server.name) for key, text in server.env.items()},
        # Only the application server learns the site's secrets.
        "environment_files": _environment_files(places) if index == 0 else [],
    }
    return [
        {
            **shared,
            "name": f"benchapp-{instance_name(server.name, number)}",
            "start": " ".join(render.argv(server.start, {**context, "listen": address}, f"{server.name} start")),
        }
        for number, address in enumerate(wiring.listens[server.name], 1)
    ]


def _of_sidecar(name: str, words: tuple[str, ...], composition: Composition, places: Places) -> dict[str, Any]:
    context = {**composition.settings, **vars(places), "python": places.python}
    return {
        "name": f"benchapp-{name}",
        "about": f"a program of layer {composition.layer_name}, beside the servers",
        "start": " ".join(render.argv(words, context, f"{composition.layer_name} sidecar")),
        "check": "",
        "after": "",
        "stop_signal": "SIGTERM",
        "env": {},
        "environment_files": _environment_files(places),
    }


def _of_service(service: Service, composition: Composition, places: Places) -> dict[str, Any]:
    """The service on the socket where servers and site look for it."""
    argv = render.argv(service.start, service_context(service, composition, places), service.name)
    return {
        "name": f"benchapp-{service.name}",
        "about": f"{service.title}, for layer {composition.layer_name}",
        # systemd needs quotes for an empty argument.
        "start": " ".join(word or '""' for word in argv),
        "check": "",
        "after": "",
        "stop_signal": f"SIG{service.stop}",
        "env": {},
        "environment_files": [],
    }


def _environment_files(places: Places) -> list[str]:
    return [f"{places.conf}/site.env", f"{places.conf}/secrets.env"]
