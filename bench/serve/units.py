"""The systemd units of a production host: the data that their template reads."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import programs
from bench.catalog.manifest import Server, Service
from bench.machine.supervise import Address
from bench.serve import overlaid, render
from bench.serve.case import Case
from bench.serve.layout import Places
from bench.serve.render import Wiring, instance_name

# Where Debian puts the programs of services.
DEBIAN_PROGRAMS = Path("/usr/bin")
# Ports below need a capability.
FIRST_FREE_PORT = 1024
LOW_PORTS = "CAP_NET_BIND_SERVICE"


@dataclass(frozen=True)
class Unit:
    """One systemd unit, as deploy/common/systemd/server.service reads it.

    user               who it runs as
    start, check       command lines; `check` is the configuration test of a server, or empty
    good_status        the exit status of `check` for a good configuration
    bad_output         a regular expression that finds a bad one in its output, or empty
    loads              a command line that imports the application, of its server alone
    after              the unit to start before it, or empty
    reload             command lines that reload it, none where it cannot
    reconfigures       whether those have it read its own files again, not only the site's code
    loses              why those can lose requests, or empty: they lose none
    renew              the command line that has it run another release, or empty: it is restarted, which loses no
                       request, or there is no other way
    replaced           how many of its processes that replaces, as a number, or empty: all but the main one
    environment_files  files with the site's environment, for those that may read it
    credentials        files that systemd hands to its user alone, as LoadCredential= says it: the site's secrets
    state              directories below /var/lib that are its user's alone
    capability         what root can and it needs, too, or empty
    type               when systemd takes it as started: `notify`, when it says so, or `exec`
    socket             where systemd listens for it, as ListenStream= says it, or empty
    inherits           words added to `start` so that it takes that socket
    instance           the words with which curl asks it, where it is one of several that listen by themselves
    socket_files       the socket file that it makes itself and leaves behind when it is killed, if any
    """

    name: str
    about: str
    start: str
    user: str
    check: str = ""
    good_status: int = 0
    bad_output: str = ""
    loads: str = ""
    after: str = ""
    reload: tuple[str, ...] = ()
    reconfigures: bool = False
    loses: str = ""
    renew: str = ""
    replaced: str = ""
    stop_signal: str = "SIGTERM"
    env: dict[str, str] = field(default_factory=dict)
    environment_files: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    capability: str = ""
    type: str = "exec"
    socket: str = ""
    inherits: tuple[str, ...] = ()
    instance: tuple[str, ...] = ()
    socket_files: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What systemd starts."""
        return " ".join((self.start, *self.inherits))

    @property
    def sockets(self) -> list[str]:
        """The unit of its socket, if it has one."""
        return [f"{self.name}.socket"] if self.socket else []

    @property
    def stopped_by(self) -> str:
        """How it may end when it is stopped, as SuccessExitStatus= says it."""
        return f"{self.stop_signal} {int(signal.Signals[self.stop_signal])}"


def units(case: Case, places: Places, wiring: Wiring) -> list[Unit]:
    """A unit for each instance of a server, each sidecar of a layer and each service."""
    return [
        *(unit for server in case.servers for unit in _of_server(server, case, places, wiring)),
        *_of_sidecars(case, places),
        *(_of_service(service, case, places) for service in case.services),
    ]


def service_context(service: Service, case: Case, places: Places) -> dict[str, Any]:
    """The names that the templates of a service can use on the host."""
    found = {
        key: str(programs.find([name], service.search) or DEBIAN_PROGRAMS / name)
        for key, name in service.programs.items()
    }
    return render.service_context(service, found, case, places, Path(places.store) / service.name)


def _asked(address: Address) -> str:
    """The words with which curl asks a server at this address."""
    return f"--unix-socket {address.path} http://localhost/" if address.path else address.url


def _of_server(server: Server, case: Case, places: Places, wiring: Wiring) -> Iterator[Unit]:
    chain = [item.name for item in case.servers]
    index = chain.index(server.name)
    front = server is case.servers[-1]
    context = render.context_of(server, case, places, wiring)
    env = {key: render.text(text, context, server.name) for key, text in server.env.items()}
    for number, address in enumerate(wiring.listens[server.name], 1):
        name = f"benchapp-{instance_name(server.name, number)}"
        yield Unit(
            name,
            server.about,
            " ".join(render.argv(server.start, {**context, "listen": address}, f"{server.name} start")),
            user=places.user if index == 0 else web_user(case, places),
            environment_files=environment_files(case, places) if index == 0 else (),
            credentials=credentials(case, places) if index == 0 else (),
            state=_state(places) if index == 0 else (),
            type="notify" if server.notify else "exec",
            socket=address.endpoint if server.inherits else "",
            inherits=server.inherits if isinstance(server.inherits, tuple) else (),
            instance=(_asked(address),) if len(wiring.listens[server.name]) > 1 and not server.inherits else (),
            socket_files=(address.path,) if address.path and not server.inherits else (),
            capability=LOW_PORTS if front and _binds_low_port(case, places) else "",
            check=_check(server, context),
            good_status=server.good_status,
            bad_output=server.bad_output,
            loads=_loads(server, context) if index == 0 else "",
            after=f"benchapp-{chain[index - 1]}.service" if index else "",
            reload=tuple(_reload(server, index == 0, context)),
            reconfigures=bool(server.reload.configuration),
            loses=server.reload.loses,
            renew="" if index or server.inherits else _renew(server, name, context),
            replaced=str(case.settings[server.reload.replaces]) if server.reload.replaces else "",
            stop_signal=f"SIG{server.graceful}",
            env=overlaid.with_path(case, env, places) if index == 0 else env,
        )


def environment_files(case: Case, places: Places) -> tuple[str, ...]:
    """Where the site's environment comes from."""
    # Settings that are laid over others know the environment alone.
    secrets = (f"{places.conf}/secrets.env",) if case.project.overlaid else ()
    return (f"{places.conf}/site.env", *secrets)


def credentials(case: Case, places: Places) -> tuple[str, ...]:
    """What the site reads itself, so that no child process and no look at a process's environment shows it."""
    return () if case.project.overlaid else (f"secrets.env:{places.conf}/secrets.env",)


def _state(places: Places) -> tuple[str, ...]:
    return (Path(places.data).name,)


def web_user(case: Case, places: Places) -> str:
    """Who the outermost server runs as: the application's user where one server is both, or where a layer needs it."""
    one = len(case.servers) == 1 or any(layer.same_user for layer in case.layers)
    return places.user if one else places.web_user


def _binds_low_port(case: Case, places: Places) -> bool:
    names = case.settings
    return places.port < FIRST_FREE_PORT or (names["redirect"] == "on" and int(names["http_port"]) < FIRST_FREE_PORT)


def checked(found: list[Unit]) -> list[Unit]:
    """The units whose server has a test of its files, and the application's, whose test is that it can be imported."""
    loads = next((unit for unit in found if unit.loads), None)
    alone = [replace(loads, name="application", check=loads.loads, good_status=0, bad_output="")] if loads else []
    return [unit for unit in found if unit.check] + alone


def _loads(server: Server, context: dict[str, Any]) -> str:
    return shlex.join([context["python"], "-c", f"import {context[server.interface].partition(':')[0]}"])


def _check(server: Server, context: dict[str, Any]) -> str:
    return shlex.join(render.argv(server.check, context, f"{server.name} check"))


def _reload(server: Server, application: bool, context: dict[str, Any]) -> Iterator[str]:
    """The commands that reload a server: its files, or the site's code alone where it cannot reload those."""
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


def _of_sidecars(case: Case, places: Places) -> Iterator[Unit]:
    about = f"a program of layer {case.layer_name}, beside the servers"
    for name, argv in render.sidecars(case, places).items():
        yield Unit(
            f"benchapp-{name}",
            about,
            " ".join(argv),
            user=places.user,
            env=overlaid.with_path(case, {}, places),
            environment_files=environment_files(case, places),
            credentials=credentials(case, places),
            state=_state(places),
        )


def _of_service(service: Service, case: Case, places: Places) -> Unit:
    """The service where servers and site look for it."""
    start = service.shared if service.name in places.shared else service.start
    argv = render.argv(start, service_context(service, case, places), service.name)
    return Unit(
        f"benchapp-{service.name}",
        f"{service.title}, for layer {case.layer_name}",
        # systemd needs quotes for an empty argument.
        " ".join(word or '""' for word in argv),
        user=places.cache_user,
        type="notify" if service.notify else "exec",
        stop_signal=f"SIG{service.stop}",
    )
