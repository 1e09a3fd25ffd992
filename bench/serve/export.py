"""Render a stack's files into a directory: for this machine, or with production's values to take to a host, with
systemd units and a note that says how to install them. Nothing is started."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from bench import paths, programs
from bench.catalog import compose, manifest
from bench.catalog.compose import Composition
from bench.catalog.values import Values
from bench.errors import BenchError
from bench.host import identity, ports
from bench.serve import deployment, render
from bench.serve.render import Places, Wiring, instance_name

# Where a stack that speaks no TLS listens in production.
LOOPBACK, PLAIN_PORT = "127.0.0.1", 8000

UNITS = paths.DEPLOY / "common" / "systemd"
HOST = paths.DEPLOY / "common" / "production"


def write(composition: Composition, target: Path) -> list[Path]:
    """Write the files into `target`; returns them, sorted. When one cannot be written, none is left behind."""
    target, chosen = target.absolute(), composition.values
    front = composition.servers[-1]
    if chosen.places and chosen.names["listener"] == "plain":
        # Nobody ends TLS: a site that insists on HTTPS would send every client round and round.
        chosen = dataclasses.replace(chosen.changed({"redirect": "off"}), env={**chosen.env, "BENCHAPP_HTTPS": "0"})
    without_tls = chosen.names["listener"] == "tls" and not render.has_tls(front, composition)
    if without_tls and front not in composition.stack.servers:
        if not chosen.places:
            raise BenchError(f"layer {composition.layer_name}: {front.name} has no TLS listener; use listener=plain")
        # TLS ends before all of them, so none behind speaks it.
        chosen = chosen.changed({"listener": "plain", "redirect": "off"})
    was_there = target.is_dir()
    render.fresh_directory(target)
    try:
        return _write(composition, chosen, target, without_tls)
    except BaseException:
        for path in target.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not was_there:
            target.rmdir()
        raise


def _write(composition: Composition, chosen: Values, target: Path, without_tls: bool) -> list[Path]:
    if not chosen.places:
        places = deployment.bench_places(target, target / "run", identity.worker(), ports.free_port())
        conf = target / "conf"
    else:
        places = production_places(chosen)
        conf = target
        composition = _with_host_programs(composition, places)
        if without_tls:
            composition, places = _behind_a_terminator(composition, places)
    next_port = iter(range(8001, 8999)).__next__
    wiring = render.wire(composition.servers, places, render.settings(composition, chosen), next_port)
    written = render.write_files(composition, places, wiring, chosen, conf)
    if chosen.places:
        written += _write_host_files(composition, places, wiring, chosen, target)
    return sorted(written)


def _behind_a_terminator(composition: Composition, places: Places) -> tuple[Composition, Places]:
    """The same for a stack that speaks no TLS: on loopback, for a server in front of it that ends TLS."""
    env = {**composition.env, "BENCHAPP_BEHIND_PROXY": "1"}
    return dataclasses.replace(composition, env=env), dataclasses.replace(places, bind=LOOPBACK, port=PLAIN_PORT)


def production_places(chosen: Values) -> Places:
    """The `[places]` of the values; raises BenchError that names what is missing or unknown."""
    try:
        return Places(**chosen.places)
    except TypeError as error:
        raise BenchError(f"deploy/values/{chosen.name}.toml [places]: {str(error).partition('() ')[2]}") from None


def _with_host_programs(composition: Composition, places: Places) -> Composition:
    """The composition with programs of this virtual environment replaced by those of the host's."""
    moved = {
        name: Path(places.venv) / "bin" / program.name if program.is_relative_to(paths.VENV) else program
        for name, program in composition.programs.items()
    }
    modules = {server.name: _host_modules(server, composition, places) for server in composition.servers}
    return dataclasses.replace(composition, programs=moved, modules=modules)


def _host_modules(server: manifest.Server, composition: Composition, places: Places) -> dict[str, str]:
    """The modules of a server where they are on the host; those that are built there, where its commands put them."""
    found = {
        name: path.replace(str(paths.VENV), places.venv) for name, path in composition.modules[server.name].items()
    }
    put = {name: render.text(text, vars(places), server.name) for name, text in server.host_modules.items()}
    return {**found, **put}


def _write_host_files(
    composition: Composition, places: Places, wiring: Wiring, chosen: Values, target: Path
) -> list[Path]:
    units = [unit for server in composition.servers for unit in _units(server, composition, places, wiring, chosen)]
    units += _units_of_sidecars(composition, places, chosen) + _units_of_services(composition, places, chosen)
    context = {
        **render.settings(composition, chosen),
        **vars(places),
        "python": places.python,
        "title": composition.stack.title,
        "stack": composition.stack.name,
        "layer": composition.layer_name,
        "layer_title": " and ".join(layer.title for layer in composition.layers),
        "units": units,
        "services": [f"benchapp-{service.name}" for service in composition.services],
        "chosen_cache": any(compose.CHOSEN_CACHE in layer.services for layer in composition.layers),
        "packages": _packages(composition),
        "distribution_services": [server.packages[0] for server in composition.servers if server.packages],
        "host_commands": _host_commands(composition, places, wiring, chosen),
        "ends_tls": chosen.names["listener"] == "tls" and render.has_tls(composition.servers[-1], composition),
        "https": chosen.env.get("BENCHAPP_HTTPS") == "1",
        "proxied": render.text(composition.servers[-1].proxied, vars(places), composition.servers[-1].name),
        "env": _site_env(composition, places, chosen),
    }
    written = []
    for folder, sources in ((target / "systemd", [UNITS / "benchapp.target"]), (target, sorted(HOST.iterdir()))):
        folder.mkdir(exist_ok=True)
        for source in sources:
            path = folder / source.name
            path.write_text(render.text(source.read_text("utf-8"), context, str(source)), "utf-8")
            written.append(path)
    source = UNITS / "server.service"
    for unit in units:
        path = target / "systemd" / f"{unit['name']}.service"
        path.write_text(render.text(source.read_text("utf-8"), {**context, "unit": unit}, str(source)), "utf-8")
        written.append(path)
    return written


def _units(
    server: manifest.Server, composition: Composition, places: Places, wiring: Wiring, chosen: Values
) -> list[dict[str, Any]]:
    """What the unit template needs of each instance of one server."""
    chain = [item.name for item in composition.servers]
    index = chain.index(server.name)
    context = render.context_of(server, composition, places, wiring, chosen)
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


def _packages(composition: Composition) -> list[str]:
    """The Debian packages of servers, services and what the layers need of the servers, each once."""
    named = [package for item in (*composition.servers, *composition.services) for package in item.packages]
    named += [
        package
        for layer in composition.layers
        for server in composition.servers
        for package in layer.packages.get(server.name, [])
    ]
    return list(dict.fromkeys(named))


def _host_commands(composition: Composition, places: Places, wiring: Wiring, chosen: Values) -> list[str]:
    """What else has to be run on the host, once, for the servers."""
    return [
        render.text(words, render.context_of(server, composition, places, wiring, chosen), server.name)
        for server in composition.servers
        for words in server.host
    ]


def _units_of_sidecars(composition: Composition, places: Places, chosen: Values) -> list[dict[str, Any]]:
    context = {**render.settings(composition, chosen), **vars(places), "python": places.python}
    return [
        {
            "name": f"benchapp-{name}",
            "about": f"a program of layer {composition.layer_name}, beside the servers",
            "start": " ".join(render.argv(words, context, f"{composition.layer_name} sidecar")),
            "check": "",
            "after": "",
            "stop_signal": "SIGTERM",
            "env": {},
            "environment_files": _environment_files(places),
        }
        for name, words in composition.sidecars.items()
    ]


def _units_of_services(composition: Composition, places: Places, chosen: Values) -> list[dict[str, Any]]:
    """Each service as a unit of its own, on the socket where servers and site look for it."""
    return [
        {
            "name": f"benchapp-{service.name}",
            "about": f"{service.title}, for layer {composition.layer_name}",
            # systemd needs a word that is empty in quotes.
            "start": " ".join(
                word or '""'
                for word in render.argv(service.start, _service_context(service, places, chosen), service.name)
            ),
            "check": "",
            "after": "",
            "stop_signal": f"SIG{service.stop}",
            "env": {},
            "environment_files": [],
        }
        for service in composition.services
    ]


def _service_context(service: manifest.Service, places: Places, chosen: Values) -> dict[str, Any]:
    found = {
        key: str(programs.find([name], service.search) or Path("/usr/bin") / name)
        for key, name in service.programs.items()
    }
    return render.service_context(service, found, places, chosen, Path(places.store) / service.name)


def _environment_files(places: Places) -> list[str]:
    return [f"{places.conf}/site.env", f"{places.conf}/secrets.env"]


def _site_env(composition: Composition, places: Places, chosen: Values) -> dict[str, str]:
    context = {**render.settings(composition, chosen), **vars(places)}
    of_services = {
        key: render.text(text, _service_context(service, places, chosen), service.name)
        for service in composition.services
        for key, text in service.env.items()
    }
    templates = {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "BENCHAPP_STATIC_ROOT": places.static_root,
        "BENCHAPP_CACHE_SECONDS": str(chosen.names["cache_seconds"]),
        **chosen.env,
        **composition.env,
    }
    rendered = {key: render.text(text, context, f"environment {key}") for key, text in templates.items()}
    return {**of_services, **rendered}
