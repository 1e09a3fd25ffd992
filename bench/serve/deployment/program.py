"""The programs of a placed case, each with its way to start, check, reload and stop.

One derivation serves this machine, the units of a host, and containers. Nothing is started here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bench.serve.catalog.manifest import Service
from bench.serve.catalog.server import Action, Server
from bench.serve.deployment import render
from bench.serve.deployment.placed import Placed
from bench.serve.machine.supervise import Address
from bench.serve.project import background
from bench.serve.project.description import Worker

PATH = "PYTHONPATH"
# Below `conf`: the packages that production lays over another project.
PACKAGES = "python"
# Files and connections that a program may have open. Default of many systems: 1024.
OPEN_FILES = 65536


@dataclass(frozen=True)
class Program:
    """A program of a case: a service, an instance of a server, a layer's sidecar or a worker of the project.

    name       the server's, `name-2` for its second instance; or that of the service, sidecar or worker
    about      one line for people
    argv       runs the program in the foreground
    user       the name of its user
    stop       the signal for a graceful end, such as QUIT
    stop_s     the longest graceful end, in seconds
    env        its own variables, beside the common ones of programs or of the site
    site       whether it is one of the site's processes, with the site's environment and secrets
    secrets    whether it has the site's user, environment and secrets without being part of a release
    server     the declaration of an instance of a server; service, worker: likewise
    address    the address for connections; None: nowhere that others know
    probe      argv that exits with 0 once the program serves; empty: an accepted connection is enough
    check      argv of the configuration test; empty without one
    reload     the way to read its files again; empty: restart
    renew      the way to load another release of the site; empty: restart; None: runs nothing of the site
    notify     whether the program tells systemd when it serves
    ends_tls   whether the program reads the private key
    loaded     the number of its processes that load the application
    after      the programs needed from its start to the end of its last request
    """

    name: str
    about: str
    argv: list[str]
    user: str
    stop: str
    stop_s: int
    env: dict[str, str] = field(default_factory=dict)
    site: bool = False
    secrets: bool = False
    server: Server | None = None
    service: Service | None = None
    worker: Worker | None = None
    address: Address | None = None
    probe: list[str] = field(default_factory=list)
    check: list[str] = field(default_factory=list)
    reload: Action = ""
    renew: Action | None = None
    notify: bool = False
    ends_tls: bool = False
    loaded: int = 0
    after: tuple[str, ...] = ()

    @property
    def socket_file(self) -> str:
        """The socket file that a server makes itself and leaves behind when killed; some refuse to start on one."""
        makes_socket = self.server and self.address and not self.server.inherits
        if makes_socket and self.address:
            return self.address.path
        return ""


def programs(placed: Placed) -> list[Program]:
    """All programs in the order of their start: services, the chain from the inside out, then what runs beside it."""
    main_programs = [of_service(service, placed) for service in placed.case.services]
    for server in placed.case.servers:
        main_programs += of_server(server, placed)
    return [*main_programs, *_sidecars(placed), *_workers(placed)]


def of_service(service: Service, placed: Placed) -> Program:
    """The program of a service, at the address that servers and site know."""
    case, places = placed.case, placed.places
    context = render.service_context(service, placed)
    start = service.start
    if service.name in places.shared:
        start = service.shared
    whose, user = f"for layer {case.layer_name}", places.cache_user
    if service.site:
        whose, user = "between the site and its database", places.user
    return Program(
        service.name,
        f"{service.title}, {whose}",
        render.argv(start, context, f"{service.name} start"),
        user,
        service.stop,
        case.settings["stop_timeout_s"],
        secrets=service.site,
        service=service,
        address=render.service_address(service, places),
        probe=render.argv(service.probe, context, f"{service.name} probe"),
        reload=service.reload,
        notify=service.notify,
    )


def of_server(server: Server, placed: Placed) -> Iterator[Program]:
    """The program of each instance of a server."""
    case, context = placed.case, render.context_of(server, placed)
    application = server is case.servers[0]
    env = {key: render.text(text, context, server.name) for key, text in server.env.items()}
    renew: Action | None = None
    loaded = 0
    if application:
        env = with_path({**env, **_of_services(placed, site=True)}, placed)
        renew = _action(server, server.reload.application, context)
        loaded = 1
        if not server.instances:
            loaded = int(case.settings["processes"])
        after = tuple(service.name for service in case.services)
    else:
        after = instance_names(case.servers[case.servers.index(server) - 1], placed)
    for number, address in enumerate(placed.listens[server.name], 1):
        yield Program(
            render.instance_name(server.name, number),
            server.about,
            _start_words(server, context, address),
            server_user(server, placed),
            server.graceful,
            case.settings["stop_timeout_s"],
            env=env,
            site=application,
            server=server,
            address=address,
            check=render.argv(server.check, context, f"{server.name} check"),
            reload=_action(server, server.reload.configuration, context),
            renew=renew,
            notify=server.notify,
            ends_tls=server is placed.front and placed.ends_tls,
            loaded=loaded,
            after=after,
        )


def at(program: Program, address: Address, placed: Placed, *, foreground: bool = True) -> Program:
    """The same instance of a server at another address, or started in the background."""
    if program.server is None:
        return program
    context = {**render.context_of(program.server, placed), "foreground": foreground}
    return replace(program, argv=_start_words(program.server, context, address), address=address)


def _start_words(server: Server, context: dict[str, Any], address: Address) -> list[str]:
    return render.argv(server.start, {**context, "listen": address}, f"{server.name} start")


def instance_names(server: Server, placed: Placed) -> tuple[str, ...]:
    """The names of a server's instances."""
    count = len(placed.listens[server.name])
    return tuple(render.instance_name(server.name, number) for number in range(1, count + 1))


def server_user(server: Server, placed: Placed) -> str:
    """The user of a server: one for the application, another for web servers; one for both if a layer needs that."""
    case = placed.case
    application = server is case.servers[0] or any(layer.same_user for layer in case.layers)
    if application:
        return placed.places.user
    return placed.places.web_user


def _action(server: Server, action: Action, context: dict[str, Any]) -> Action:
    if isinstance(action, str):
        return action
    return tuple(render.argv(action, context, f"{server.name} reload"))


def site_env(placed: Placed) -> dict[str, str]:
    """The environment of the site's processes and commands, from services, values, stack and layers."""
    return {**_of_services(placed, site=False), **render.site_env(placed)}


def _of_services(placed: Placed, *, site: bool) -> dict[str, str]:
    """The environment that services give.

    site  only of services between application and database, for servers and not for commands; else of all others
    """
    variables: dict[str, str] = {}
    for service in placed.case.services:
        if service.site == site:
            variables |= service_env(service, placed)
    return variables


def service_env(service: Service, placed: Placed) -> dict[str, str]:
    """The environment that a service gives to the application server."""
    context = render.service_context(service, placed)
    return {key: render.text(text, context, f"{service.name} env") for key, text in service.env.items()}


def with_path(env: dict[str, str], placed: Placed) -> dict[str, str]:
    """The environment of one of the site's processes, with the folders of the project's modules on its path, followed
    by the packages that production lays over another project.
    """
    project, places = placed.case.project, placed.places
    if not project.overlaid:
        return env
    folders = [env.get(PATH), project.project.from_manage.get(PATH)]
    if not places.here:
        folders.append(f"{places.conf}/{PACKAGES}")
    path = ":".join(filter(None, folders))
    if path:
        return {**env, PATH: path}
    return env


def _sidecars(placed: Placed) -> Iterator[Program]:
    """The programs that layers run beside the servers."""
    case, context = placed.case, render.site_context(placed)
    about = f"a program of layer {case.layer_name}, beside the servers"
    for name, words in case.sidecars.items():
        argv = render.argv(words, context, f"{case.layer_name} sidecar")
        yield _of_site(name, about, argv, case.settings["stop_timeout_s"], placed)


def _workers(placed: Placed) -> Iterator[Program]:
    """The project's workers, if the case has them."""
    case = placed.case
    if not case.workers:
        return
    stop_s = case.settings["worker_stop_timeout_s"]
    for name, worker in case.project.description.workers.items():
        if placed.places.here:
            argv = background.here(case.project, name, worker.command)
        else:
            argv = background.on_host(case.project, worker.command, placed.places.venv)
        program = _of_site(f"worker-{name}", f"the project's worker {name}", argv, stop_s, placed)
        yield replace(program, worker=worker)


def _of_site(name: str, about: str, argv: list[str], stop_s: int, placed: Placed) -> Program:
    """A program among the site's processes without connections."""
    return Program(name, about, argv, placed.places.user, "TERM", stop_s, env=with_path({}, placed), site=True)
