"""The systemd units of a production host: the data that their template reads. Here is the one rule for users: what a
unit alone writes or reads belongs to the unit's user."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.serve.catalog.manifest import Service
from bench.serve.catalog.server import Server
from bench.serve.deployment import render, takeover
from bench.serve.deployment.case import Case
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.render import instance_name
from bench.serve.machine.supervise import Address
from bench.serve.production import project_files
from bench.serve.production.split import HostRole
from bench.serve.project import background

# Ports below need a capability.
FIRST_FREE_PORT = 1024
LOW_PORTS = "CAP_NET_BIND_SERVICE"
ACCESS, NO_LOG = "{{ access_log }}", "off"
# Other logs, as templates name them.
OTHER_LOG = re.compile(r"(\{\{ logs \}\}/[\w.-]+)")


@dataclass(frozen=True)
class Unit:
    """One systemd unit, as deploy/production/one-host/server.service reads it.

    site          it is one of the site's processes, with its environment and secrets
    check         the configuration test of a server, or empty
    good_status   the exit status of `check` for a good configuration
    bad_output    a regular expression that finds a bad one in its output, or empty
    loads         a command line that imports the application, of its server only
    after         units that start before it and stop after it, or empty
    reload        command lines that reload it, none where it cannot
    reconfigures  whether those have it read its own files again, not only the site's code
    loses         why those can lose requests, or empty: they lose none
    executes      the signal on which it executes its program's file again, or empty
    pid_file      the file with the number of its main process, if that is another one then
    renew         the command line that has it run another release, or empty: it is restarted, which loses no request,
                  or there is no other way
    replaced      how many of its processes that replaces, as a number, or empty: all but the main one
    ends_tls      it reads the private key
    capability    what root can and it needs, too, or empty
    type          when systemd takes it as started: `notify`, when it says so, `forking`, when its first process has
                  ended, or `exec`
    socket        where systemd listens for it, as ListenStream= says it, or empty
    instance      the words with which curl asks it, where it is one of several that listen by themselves
    socket_file   the socket file that it makes itself and leaves behind when it is killed, or empty
    command       what systemd starts: `start`, so that it takes its socket from systemd or makes one of its own name
    own_socket    the socket file that `command` makes, to which `socket_file` is a link, or empty
    loaded        how many of its processes load the application
    added         words added to `command` where it stands in for another
    has_stand_in  a second unit of the same command can serve beside it, so that a restart makes no request wait
    secrets       it gets the site's user, environment and secrets without being part of a release
    stands_in     the unit beside which this one serves while that restarts, or empty
    worker        it runs a worker of the project, which finishes its job and ends before another release serves
    """

    name: str
    about: str
    start: str
    user: str
    site: bool = False
    check: str = ""
    good_status: int = 0
    bad_output: str = ""
    loads: str = ""
    after: str = ""
    reload: tuple[str, ...] = ()
    reconfigures: bool = False
    loses: str = ""
    executes: str = ""
    pid_file: str = ""
    renew: str = ""
    replaced: str = ""
    stop_signal: str = "SIGTERM"
    env: dict[str, str] = field(default_factory=dict)
    ends_tls: bool = False
    capability: str = ""
    type: str = "exec"
    socket: str = ""
    instance: str = ""
    socket_file: str = ""
    command: str = ""
    own_socket: str = ""
    loaded: int = 0
    added: tuple[str, ...] = ()
    has_stand_in: bool = False
    secrets: bool = False
    stands_in: str = ""
    worker: bool = False

    @property
    def stand_in(self) -> Unit:
        """The unit that serves beside this one while it restarts."""
        name = f"{self.name}-standin"
        command = " ".join([self.command, *self.added])
        found = replace(self, name=name, stands_in=self.name, has_stand_in=False, command=command)
        if not self.own_socket:
            return found
        own = self.own_socket.replace(self.name, name)
        return replace(found, command=self.command.replace(self.own_socket, own), own_socket=own)

    @property
    def stopped_by(self) -> str:
        """How it may end when it is stopped, as SuccessExitStatus= says it."""
        return f"{self.stop_signal} {int(signal.Signals[self.stop_signal])}"


@dataclass(frozen=True)
class Log:
    """The log files of one server.

    user     of the unit that writes them
    rotates  whether the server rotates them itself
    reopen   the command after which it writes new ones; empty: it cannot
    """

    files: tuple[str, ...]
    user: str
    rotates: bool
    reopen: str


def units(placed: Placed, share: HostRole | None = None) -> list[Unit]:
    """A unit for each instance of a server, each sidecar of a layer and each service: all, or those of a host."""
    case = placed.case
    servers, services = (share.servers, share.services) if share else (case.servers, case.services)
    return [
        *(unit for server in servers for unit in _of_server(server, placed)),
        *(_of_sidecars(placed) if share is None or share.application else ()),
        *(_of_workers(placed, share is None or share.first) if share is None or share.application else ()),
        *(_of_service(service, placed) for service in services),
        *(_of_exporter(server, placed) for server in with_metrics(servers, case) if _exporter(server)),
    ]


def with_metrics(servers: Sequence[Server], case: Case) -> list[Server]:
    """The servers that have figures for monitoring, with `metrics` on."""
    return [server for server in servers if server.metrics and case.settings["metrics"] == "on"]


def _exporter(server: Server) -> tuple[str, ...]:
    return server.metrics.start if server.metrics else ()


def _of_exporter(server: Server, placed: Placed) -> Unit:
    """The exporter of a server's figures, as the user of the server."""
    places = placed.places
    context = {**render.site_context(placed), "run": places.run_of(server.name)}
    words = render.argv(_exporter(server), context, f"{server.name} metrics")
    about = f"the figures of {server.name} for Prometheus"
    name, after = f"{places.name}-{server.name}-metrics", f"{places.name}-{server.name}.service"
    return Unit(name, about, " ".join(words), user=server_user(server, placed), after=after)


def server_user(server: Server, placed: Placed) -> str:
    """Who a server runs as: the application as its own user, web servers as another; one where a layer needs that."""
    case = placed.case
    application = server is case.servers[0] or any(layer.same_user for layer in case.layers)
    return placed.places.user if application else placed.places.web_user


def logs(placed: Placed, found: Sequence[Unit]) -> list[Log]:
    """The log files of each server that has a unit among those `found`."""
    names, site = {unit.name for unit in found}, placed.places.name
    return [
        Log(
            files,
            server_user(server, placed),
            server.rotates,
            f"systemctl kill --kill-who=main --signal={server.reopen} {site}-{server.name}.service"
            if server.reopen
            else "",
        )
        for server in placed.case.servers
        if f"{site}-{server.name}" in names and (files := _log_files(server, placed))
    ]


def _log_files(server: Server, placed: Placed) -> tuple[str, ...]:
    case, places = placed.case, placed.places
    texts = [path.read_text("utf-8") for found in render.server_files(server, case).values() for path in found]
    named = sorted({name for text in texts for name in OTHER_LOG.findall(text)})
    found = [name.replace("{{ logs }}", places.logs) for name in named]
    # One behind another web server has the file for it, too, and does not read it.
    outermost = server == case.stack.servers[-1] and case.settings["access_log"] != NO_LOG
    if outermost and any(ACCESS in text for text in texts):
        found.append(str(case.settings["access_log"]))
    return tuple(found)


def service_context(service: Service, placed: Placed) -> dict[str, Any]:
    """The names that the templates of a service can use on the host."""
    found = {key: f"{service.directory}/{name}" for key, name in service.programs.items()}
    return render.service_context(service, found, placed, Path(placed.places.store) / service.name)


def _asked(address: Address) -> str:
    """The words with which curl asks a server at this address."""
    return f"--unix-socket {address.path} http://localhost/" if address.path else address.url


def _of_server(server: Server, placed: Placed) -> Iterator[Unit]:
    case, places = placed.case, placed.places
    chain = [item.name for item in case.servers]
    index = chain.index(server.name)
    application = index == 0
    context = render.context_of(server, placed)
    env = {key: render.text(text, context, server.name) for key, text in server.env.items()}
    listens = placed.wiring.listens[server.name]
    for number, address in enumerate(listens, 1):
        name = f"{places.name}-{instance_name(server.name, number)}"
        listening = _listening(server, context, address, f"{places.run}/{name}.sock" if application else "")
        if server.reload.pid_file:
            listening["command"] = _start(server, {**context, "foreground": False}, address)
        doubled = application and takeover.is_possible(server, address)
        yield Unit(
            name,
            server.about,
            _start(server, context, address),
            user=server_user(server, placed),
            site=application,
            type=_type(server),
            instance=_asked(address) if len(listens) > 1 and not server.inherits else "",
            **listening,
            loaded=_loaded(server, case) if application else 0,
            added=server.shares if isinstance(server.shares, tuple) else (),
            has_stand_in=doubled,
            ends_tls=server is placed.front and placed.ends_tls,
            capability=LOW_PORTS if server is placed.front and _binds_low_port(placed) else "",
            check=_check(server, context),
            good_status=server.good_status,
            bad_output=server.bad_output,
            loads=_loads(server, context) if application else "",
            after=_before(placed, index),
            reload=tuple(_reload(server, application, context)),
            reconfigures=bool(server.reload.configuration),
            loses=server.reload.loses,
            executes=server.reload.executes,
            pid_file=render.text(server.reload.pid_file, context, server.name),
            renew=_renew(server, name, context) if application and not doubled else "",
            replaced=str(case.settings[server.reload.replaces]) if server.reload.replaces else "",
            stop_signal=f"SIG{server.graceful}",
            env=project_files.with_path({**env, **_of_pool(placed)}, placed) if application else env,
        )


def _before(placed: Placed, index: int) -> str:
    """The units that a server of the chain needs, from its start to the end of its last request."""
    inner = [server.name for server in placed.case.servers[:index]]
    names = inner[-1:] or [service.name for service in placed.case.services]
    return " ".join(f"{placed.places.name}-{name}.service" for name in names)


def _of_pool(placed: Placed) -> dict[str, str]:
    """Variables for servers, but not for commands, of a service between application and database."""
    return {
        name: render.text(text, service_context(service, placed), service.name)
        for service in placed.case.services
        if service.site
        for name, text in service.env.items()
    }


def _listening(server: Server, context: dict[str, Any], address: Address, own: str) -> dict[str, Any]:
    """Where an instance takes connections, as fields of its unit.

    own  the socket file that it makes beside its stand-in, where it makes one itself
    """
    if server.inherits:
        words = server.inherits if isinstance(server.inherits, tuple) else ()
        command = " ".join([_start(server, context, address), *words])
        return {"socket": address.endpoint, "command": command, "own_socket": ""}
    if not address.path or not own:
        return {"socket_file": address.path, "command": _start(server, context, address), "own_socket": ""}
    command = _start(server, context, Address(path=own))
    return {"socket_file": address.path, "command": command, "own_socket": own}


def _start(server: Server, context: dict[str, Any], address: Address) -> str:
    words = render.argv(server.start, {**context, "listen": address}, f"{server.name} start")
    return " ".join(f'"{word}"' if " " in word else word for word in words)


def _type(server: Server) -> str:
    if server.reload.pid_file:
        return "forking"
    return "notify" if server.notify else "exec"


def _loaded(server: Server, case: Case) -> int:
    """The number of processes of an instance that load the application."""
    return 1 if server.instances else int(case.settings["processes"])


def _binds_low_port(placed: Placed) -> bool:
    names = placed.case.settings
    return placed.places.port < FIRST_FREE_PORT or (
        names["redirect"] == "on" and int(names["http_port"]) < FIRST_FREE_PORT
    )


def _loads(server: Server, context: dict[str, Any]) -> str:
    return shlex.join([context["python"], "-c", f"import {context[server.interface].partition(':')[0]}"])


def _check(server: Server, context: dict[str, Any]) -> str:
    return shlex.join(render.argv(server.check, context, f"{server.name} check"))


def _reload(server: Server, application: bool, context: dict[str, Any]) -> Iterator[str]:
    """The commands that reload a server's files, or only the site's code if the server cannot reload files."""
    way = server.reload.configuration or (server.reload.application if application else "")
    if not isinstance(way, str):
        yield " ".join(render.argv(way, context, f"{server.name} reload"))
    elif way:
        # Of a bad file a signal says nothing, and some servers end. A program that reloads says it itself.
        if server.check and not server.good_status:
            yield _check(server, context)
        yield f"kill -{way} $MAINPID"


def _renew(server: Server, name: str, context: dict[str, Any]) -> str:
    if server.reload.loses and not isinstance(server.reload.application, str):
        # Its reload would read its files, too.
        return " ".join(render.argv(server.reload.application, context, f"{server.name} reload"))
    return f"systemctl reload {name}.service" if server.reload.application else ""


def _of_sidecars(placed: Placed) -> Iterator[Unit]:
    about = f"a program of layer {placed.case.layer_name}, beside the servers"
    places, env = placed.places, project_files.with_path({}, placed)
    for name, argv in render.sidecars(placed).items():
        yield Unit(f"{places.name}-{name}", about, " ".join(argv), user=places.user, site=True, env=env)


def _of_workers(placed: Placed, first: bool) -> Iterator[Unit]:
    """The project's workers; `first`: also those of which only one host has one."""
    case, places, env = placed.case, placed.places, project_files.with_path({}, placed)
    for name, worker in case.project.description.workers.items():
        if first or not worker.single:
            words = background.on_host(case.project, worker.command, places.venv)
            start = background.unit_words(words)
            about = f"the project's worker {name}"
            yield Unit(f"{places.name}-worker-{name}", about, start, user=places.user, site=True, env=env, worker=True)


def _of_service(service: Service, placed: Placed) -> Unit:
    """The service where servers and site look for it."""
    case, places = placed.case, placed.places
    start = service.shared if service.name in places.shared else service.start
    argv = render.argv(start, service_context(service, placed), service.name)
    whose = "between the site and its database" if service.site else f"for layer {case.layer_name}"
    return Unit(
        f"{places.name}-{service.name}",
        f"{service.title}, {whose}",
        # systemd needs quotes for an empty argument.
        " ".join(word or '""' for word in argv),
        user=places.user if service.site else places.cache_user,
        secrets=service.site,
        reload=(f"kill -{service.reload} $MAINPID",) if service.reload else (),
        type="notify" if service.notify else "exec",
        stop_signal=f"SIG{service.stop}",
    )
