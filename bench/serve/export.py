"""Write a case's files into a directory: for this machine, or for a production host with systemd units and a
note that says how to install them. Nothing is started."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import paths
from bench.catalog import fit
from bench.catalog.manifest import Layer, Server, Service
from bench.catalog.sizes import Size
from bench.catalog.values import Values
from bench.errors import BenchError
from bench.machine import ports
from bench.serve import logs, overlaid, render, units
from bench.serve.case import Case
from bench.serve.layout import LOOPBACK, Layout, Places, fresh_directory
from bench.serve.render import Wiring
from bench.serve.units import Unit

# Where a stack without a TLS listener listens in production.
PLAIN_PORT = 8000
HTTPS_PORT = 443
# Inner servers that listen on TCP get these ports in production.
INNER_PORTS = range(8001, 8999)

# How the web server is asked. Not over HTTP/2, where curl 7.88 may fail at a good answer.
# https://github.com/curl/curl/issues/10634
CURL = "curl --http1.1 --silent --show-error --fail --output /dev/null --max-time 10"

SYSTEMD = paths.DEPLOY / "common" / "systemd"
TIMERS = paths.DEPLOY / "common" / "timers"
HOST = paths.DEPLOY / "common" / "production"


def write(case: Case, target: Path) -> list[Path]:
    """Write the files into `target`; returns them, sorted. When one cannot be written, none is left behind.

    The units of a production host are limited to the size of the case.
    """
    with whole(target.absolute()) as folder:
        if case.values.places:
            return sorted(_write_for_host(case, folder))
        return sorted(_write_for_this_machine(case, folder, ports.free_port()))


def idle_changes(case: Case, usual: Values) -> list[str]:
    """The names that the user changed from `usual` and that change no file, such as `http2` of a server without it."""
    idle = {}
    for name in case.values.changes:
        before = _with_value(case, name, usual.names[name])
        if before.settings[name] != case.settings[name]:
            idle[name] = before
    files = _contents(case) if idle else {}
    return [name for name, before in idle.items() if _contents(before) == files]


def _with_value(case: Case, name: str, value: Any) -> Case:
    values = case.values
    changes = {key: text for key, text in values.changes.items() if key != name}
    return replace(case, values=replace(values, names={**values.names, name: value}, changes=changes))


def too_large_cache(case: Case) -> str:
    """Why a cache in memory leaves too little of the size for all else, or an empty string."""
    starts = [word for server in case.servers for word in server.start]
    starts += [word for service in case.services for word in service.start]
    size, memory_mb = case.size, int(case.settings["cache_memory_mb"])
    if (
        not size.is_limited
        or memory_mb <= size.burstable_mb // 2
        or not any("cache_memory_mb" in word for word in starts)
    ):
        return ""
    return f"size {size.name} has {size.burstable_mb} MB for all, and the cache may take {memory_mb} MB of them"


def _contents(case: Case) -> dict[str, str]:
    """The text of each file that something reads, by its path."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        if case.values.places:
            written = _write_for_host(case, folder)
        else:
            written = _write_for_this_machine(case, folder, PLAIN_PORT)
        files = {
            str(path.relative_to(folder)): path.read_text("utf-8").replace(directory, "") for path in sorted(written)
        }
    if case.values.places:
        included = {name for server in case.servers for name in render.server_files(server, case)}
        while unread := {name for name in included & files.keys() if not _is_named(name, files)}:
            files = {name: text for name, text in files.items() if name not in unread}
    return files


def _is_named(name: str, files: dict[str, str]) -> bool:
    """Whether another file names this one, as that which includes it does: a unit, or a server's own."""
    return any(Path(name).name in text for other, text in files.items() if other != name)


def lost_tls(case: Case) -> str:
    """Why production of a stack that ends TLS by itself does not with this layer, or an empty string."""
    front, own = case.servers[-1], case.stack.servers[-1]
    if not case.values.places or front is own or not _with_listener(case)[1]:
        return ""
    if not own.tls:
        return ""
    return f"layer {case.layer_name}: {front.name} ends no TLS, so that redirect and HTTP/2 go with it"


def wrong_port(case: Case) -> str:
    """Why the port of a site behind a balancer is hardly the one that is meant, or an empty string."""
    values = case.values
    if values.names["listener"] != "behind" or not values.places or production_places(values).port != HTTPS_PORT:
        return ""
    return f"listener=behind: plain HTTP on port {HTTPS_PORT}; another is `port` under [places] of a values file"


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """`target`, made or empty; when the block fails, nothing is left in it.

    Raises BenchError when it holds something, cannot be made, or is full.
    """
    was_there = target.is_dir()
    fresh_directory(target)
    try:
        yield target
    except BaseException as error:
        for path in target.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not was_there:
            target.rmdir()
        if isinstance(error, OSError):
            raise BenchError(
                f"{target}: cannot be written: {error.strerror}; make room, or name another directory"
            ) from None
        raise


def production_places(values: Values) -> Places:
    """The `[places]` of the values; raises BenchError that names what is missing or unknown."""
    try:
        return Places(**values.places)
    except TypeError as error:
        raise BenchError(f"deploy/values/{values.name}.toml [places]: {str(error).partition('() ')[2]}") from None


def _with_listener(case: Case) -> tuple[Case, bool]:
    """The case with values that its outermost server can serve; and whether another server must end TLS."""
    values, front = case.values, case.servers[-1]
    if values.places and values.names["listener"] == "plain":
        # No server terminates TLS: a site that requires HTTPS would redirect every client to itself forever.
        values = replace(values.changed({"redirect": "off"}), env={**values.env, "BENCHAPP_HTTPS": "0"})
    if values.names["listener"] == "behind":
        # The server in front, and else the site, redirect what came to it over plain HTTP.
        values = values.changed({"redirect": "off"})
    terminated = values.names["listener"] == "tls" and not front.tls
    if terminated:
        # Nor does a server without TLS redirect to it.
        values = values.changed({"redirect": "off"})
    if terminated and front not in case.stack.servers:
        if not values.places:
            raise BenchError(f"layer {case.layer_name}: {front.name} has no TLS listener; use listener=plain")
        # TLS ends before all of them, so none behind speaks it.
        values = values.changed({"listener": "plain"})
    return replace(case, values=values), terminated


def _write_for_this_machine(case: Case, target: Path, port: int) -> list[Path]:
    case, _ = _with_listener(case)
    layout = Layout(target, target / "run")
    places = layout.places(case.project, case.project.worker(), port)
    return render.write_files(case, places, _wire(case, places), layout.conf)


def _write_for_host(case: Case, target: Path) -> list[Path]:
    case, places, wiring = in_production(case, LOOPBACK)
    written = render.write_files(case, places, wiring, target)
    return written + _write_host_files(case, places, wiring, target)


def in_production(case: Case, bind: str) -> tuple[Case, Places, Wiring]:
    """The case as production runs it, its places and the addresses of its servers.

    bind  the address of a stack whose TLS another server ends
    """
    case, terminated = _with_listener(case)
    places = production_places(case.values)
    case = _with_host_programs(case, places)
    if terminated:
        case = replace(case, env={**case.env, "BENCHAPP_BEHIND_PROXY": "1"})
        places = replace(places, bind=bind, port=PLAIN_PORT)
    return case, places, _wire(case, places)


def _wire(case: Case, places: Places) -> Wiring:
    return render.wire(case, places, iter(INNER_PORTS).__next__)


def _with_host_programs(case: Case, places: Places) -> Case:
    """The case with programs of virtual environments here replaced by those of the host's."""
    environments = (*case.project.servers_in, paths.VENV)
    moved = {
        name: Path(places.venv) / "bin" / program.name if any(map(program.is_relative_to, environments)) else program
        for name, program in case.programs.items()
    }
    modules = {server.name: _host_modules(server, case, places) for server in case.servers}
    return replace(case, programs=moved, modules=modules)


def _host_modules(server: Server, case: Case, places: Places) -> dict[str, str]:
    """Where the modules of a server are on the host; its own commands there build some of them."""
    found = dict(case.modules[server.name])
    for venv in (*case.project.servers_in, paths.VENV):
        found = {name: path.replace(str(venv), places.venv) for name, path in found.items()}
    built = {name: render.text(text, places.names, server.name) for name, text in server.host_modules.items()}
    return {**found, **built}


def _write_host_files(case: Case, places: Places, wiring: Wiring, target: Path) -> list[Path]:
    """Write units, environment and install note for the host."""
    found = units.units(case, places, wiring)
    context = {**host_context(case, places, wiring, found), **slice_context(case.size)}
    return [*write_context(context, target), *overlaid.write(case, target)]


def write_context(context: dict[str, Any], target: Path, left_out: Collection[str] = ()) -> list[Path]:
    """Write a host's own files, units and scripts into `target`, but for those `left_out`; returns them.

    context  the names that they can use, by host_context and slice_context
    """
    found = context["units"]
    left_out = {*left_out, *([] if context["ends_tls"] else ["benchapp-certificate"])}
    left_out |= set() if context["sysctls"] else {"sysctl.conf"}
    sources = {target / source.name: source for source in sorted(HOST.glob("[!_]*")) if source.name not in left_out}
    sources |= {target / "systemd" / name: SYSTEMD / name for name in ("benchapp.target", "benchapp.slice")}
    timers = [source for name in context["timers"] for source in sorted(TIMERS.glob(f"benchapp-{name}.*"))]
    sources |= {target / "timers" / source.name: source for source in timers}
    for path, source in sources.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(render.text(source.read_text("utf-8"), context, str(source)), "utf-8")
    of_units = {target / "systemd" / f"{unit.name}.service": (SYSTEMD / "server.service", unit) for unit in found}
    of_units |= {
        target / "systemd" / name: (SYSTEMD / "server.socket", unit) for unit in found for name in unit.sockets
    }
    for path, (source, unit) in of_units.items():
        path.write_text(render.text(source.read_text("utf-8"), {**context, "unit": unit}, str(source)), "utf-8")
    return [*sources, *of_units]


def slice_context(size: Size) -> dict[str, Any]:
    """What the slice of all units may use."""
    if not size.is_limited:
        return {"size_title": ", unlimited", "limits": []}
    memory = [f"MemoryLow={size.guaranteed_mb}M", f"MemoryMax={size.burstable_mb}M", "MemorySwapMax=0"]
    return {"size_title": f": size {size.name}", "limits": [*memory, f"CPUQuota={size.cpus:.0%}"]}


def host_context(case: Case, places: Places, wiring: Wiring, found: list[Unit]) -> dict[str, Any]:
    """The names that the host's files can use."""
    front, values = case.servers[-1], case.values
    return {
        **case.settings,
        **places.names,
        **overlaid.names(case, places),
        "title": case.stack.title,
        "stack": case.stack.name,
        "layer": case.layer_name,
        "layer_title": " and ".join(layer.title for layer in case.layers),
        "units": found,
        "users": list(dict.fromkeys(unit.user for unit in found)),
        "front_user": units.web_user(case, places),
        "one_user": units.web_user(case, places) == places.user,
        "same_user": [layer.same_user for layer in case.layers if layer.same_user],
        "services": [f"benchapp-{service.name}" for service in case.services],
        "chosen_cache": any(fit.CHOSEN_CACHE in layer.services for layer in case.layers),
        "packages": packages(case.servers, case.services, case.layers),
        "build_packages": [package for server in case.servers for package in server.build_packages],
        "distribution_services": [server.packages[0] for server in case.servers if server.packages],
        "checked_units": units.checked(found),
        "sysctls": {name: value for server in case.servers for name, value in server.sysctls.items()},
        **logs.names(case, found, places.logs),
        "tls_units": [unit for unit in found if unit.name == f"benchapp-{front.name}"],
        "joined_certificates": [server.certificate for server in case.servers if server.certificate],
        "host_commands": _host_commands(case, places, wiring),
        "release_commands": _host_commands(case, replace(places, project="$release", venv="$venv"), wiring),
        "application_units": [unit for unit in found if unit.environment_files],
        "ready_now": (now := f"{CURL} {asked(case, places)}"),
        # Not curl's own `--retry`: a 502 with Retry-After, as the web server answers, ends it or has it wait as long.
        "ready_soon": f'timeout 30 sh -c "until {now}; do sleep 1; done"',
        "ends_tls": render.ends_tls(case),
        **_of_places(case),
        "https": values.env.get("BENCHAPP_HTTPS") == "1",
        "proxied": render.text(front.proxied, places.names, front.name),
        "env": _site_env(case, places),
        "site_files": units.environment_files(case, places),
        "site_credentials": units.credentials(case, places),
    }


def asked(case: Case, places: Places) -> str:
    """The words with which curl asks the host's own web server whether the site is ready."""
    name, path = case.settings["server_name"], case.project.ready
    if render.ends_tls(case):
        # No certificate authority is asked: this is the host itself.
        return f"--insecure --resolve {name}:{places.port}:{LOOPBACK} https://{name}:{places.port}{path}"
    return f"--header 'Host: {name}' http://{places.bind}:{places.port}{path}"


def _of_places(case: Case) -> dict[str, Any]:
    """What rests on files that servers look for, where they do.

    webroots    the directory from which plain HTTP answers a certificate authority; none where that asks for none
    maintained  whether a file switches the site off
    """
    settings, used = case.settings, render.names_used(case)
    asked = render.ends_tls(case) and settings["redirect"] == "on" and "acme_webroot" in used
    return {
        "webroots": [settings["acme_webroot"]] if asked else [],
        "maintained": settings["maintenance"] == "on" and "maintenance_file" in used,
    }


def packages(servers: Sequence[Server], services: Sequence[Service], layers: Sequence[Layer]) -> list[str]:
    """The Debian packages of servers, of services and of what the layers need of the servers, each once."""
    named = [package for server in servers for package in server.packages]
    named += [package for service in services for package in service.packages]
    named += [package for layer in layers for server in servers for package in layer.packages.get(server.name, [])]
    return list(dict.fromkeys(named))


def _host_commands(case: Case, places: Places, wiring: Wiring) -> list[str]:
    """The commands to run once on the host for the servers."""
    project = overlaid.names(case, places)
    return [
        render.text(words, {**project, **render.context_of(server, case, places, wiring)}, server.name)
        for server in case.servers
        for words in server.host
    ]


def _site_env(case: Case, places: Places) -> dict[str, str]:
    """The environment of the site on the host, without its secrets."""
    of_services = {
        key: render.text(text, units.service_context(service, case, places), service.name)
        for service in case.services
        for key, text in service.env.items()
    }
    # Each release collects its static files below itself, so that no variable names one place for all.
    django = {overlaid.SETTINGS: case.project.project.settings}
    env = overlaid.environment(case, {**of_services, **django, **render.site_env(case, places)}, places)
    return {**env, **case.given_env}
