"""The systemd units of a production host: the data for their template. The one rule for users is here: files of only
one unit belong to the unit's user.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.serve.catalog.server import Metrics, Server
from bench.serve.deployment import render, takeover
from bench.serve.deployment.case import Case
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import Program, at, programs, server_user
from bench.serve.machine.supervise import Address
from bench.serve.production.split import HostRole
from bench.serve.project import background

# The turns of a unit and of its stand-in.
FIRST, STAND_IN = 0, 1
# Ports below need a capability.
FIRST_FREE_PORT = 1024
LOW_PORTS = "CAP_NET_BIND_SERVICE"
ACCESS, NO_LOG = "{{ access_log }}", "off"
# Other logs, as templates name them.
OTHER_LOG = re.compile(r"(\{\{ logs \}\}/[\w.-]+)")


@dataclass(frozen=True)
class Unit:
    """One systemd unit, as deploy/production/one-host/server.service reads it.

    program       its program, the same as in containers
    command       the command for systemd: with a socket from systemd, or one under a separate name
    type          the sign of the start: `notify`, from the program; `forking`, the end of its first process; `exec`
    check         the configuration test of a server, or empty
    loads         a command line that imports the application, of its server only
    after         units that start before this one and stop after it, or empty
    reload        command lines for a reload, or empty
    executes      the signal for executing its program's file again, or empty
    pid_file      the file with the number of its main process after that, if that is another one
    renew         the command line for running another release; empty: a restart, which loses no request or is the
                  only way
    replaced      the number of its processes that `renew` replaces; empty: all except the main one
    capability    the capability of root that the unit needs, or empty
    socket        the address on which systemd listens for the unit, as for ListenStream=, or empty
    instance      curl's words for this one of several instances that listen by themselves
    own_socket    the socket file of `command`, the target of a link from the program's socket file, or empty
    added         words added to `command` in a stand-in
    has_stand_in  a second unit of the same command can serve beside this one, so that a restart makes no request wait
    stands_in     the unit that this one replaces during a restart, or empty
    """

    program: Program
    name: str
    command: str
    type: str = "exec"
    check: str = ""
    loads: str = ""
    after: str = ""
    reload: tuple[str, ...] = ()
    executes: str = ""
    pid_file: str = ""
    renew: str = ""
    replaced: str = ""
    capability: str = ""
    socket: str = ""
    instance: str = ""
    own_socket: str = ""
    added: tuple[str, ...] = ()
    has_stand_in: bool = False
    stands_in: str = ""

    @property
    def stand_in(self) -> Unit:
        """The unit that serves during this one's restart."""
        name = f"{self.name}-standin"
        command = " ".join([self.command, *self.added])
        unit = replace(self, name=name, stands_in=self.name, has_stand_in=False, command=command)
        if not self.own_socket:
            return unit
        own = self.own_socket.replace(self.name, name)
        return replace(unit, command=self.command.replace(self.own_socket, own), own_socket=own)

    @property
    def stop_signal(self) -> str:
        """The signal for a stop, as for KillSignal=."""
        return f"SIG{self.program.stop}"

    @property
    def stopped_by(self) -> str:
        """The regular ends of a stopped unit, as for SuccessExitStatus=."""
        return f"{self.stop_signal} {int(signal.Signals[self.stop_signal])}"


@dataclass(frozen=True)
class Log:
    """The log files of one server.

    user     of the unit that writes them
    rotates  whether the server rotates them itself
    reopen   the command for writing new files, or empty
    """

    files: tuple[str, ...]
    user: str
    rotates: bool
    reopen: str


def units(placed: Placed, share: HostRole | None = None) -> list[Unit]:
    """A unit for each program, and for each exporter of figures: all, or those of a host."""
    result = []
    for program in programs(placed):
        if share and not share.runs(program):
            continue
        if program.server:
            result.append(_of_server(program, program.server, placed))
        else:
            result.append(_of_other(program, placed))
    for server, metrics in with_metrics((share or placed.case).servers, placed.case):
        if metrics.start:
            result.append(_of_exporter(server, metrics.start, placed))
    return result


def with_metrics(servers: Sequence[Server], case: Case) -> list[tuple[Server, Metrics]]:
    """The servers that have figures for monitoring, each with these, with `metrics` on."""
    if case.settings["metrics"] != "on":
        return []
    return [(server, server.metrics) for server in servers if server.metrics]


def _of_exporter(server: Server, start: tuple[str, ...], placed: Placed) -> Unit:
    """The exporter of a server's figures, as the user of the server."""
    places = placed.places
    context = {**render.site_context(placed), "run": places.run_of(server.name)}
    words = render.argv(start, context, f"{server.name} metrics")
    about, stop_s = f"the figures of {server.name} for Prometheus", placed.case.settings["stop_timeout_s"]
    program = Program(f"{server.name}-metrics", about, words, server_user(server, placed), "TERM", stop_s)
    return replace(_of_other(program, placed), after=f"{places.name}-{server.name}.service")


def logs(placed: Placed, units: Sequence[Unit]) -> list[Log]:
    """The log files of each server with a unit among these."""
    logged = []
    names = {unit.name for unit in units}
    for server in placed.case.servers:
        name, files, reopen = f"{placed.places.name}-{server.name}", _log_files(server, placed), ""
        if server.reopen:
            reopen = f"systemctl kill --kill-who=main --signal={server.reopen} {name}.service"
        if name in names and files:
            logged.append(Log(files, server_user(server, placed), server.rotates, reopen))
    return logged


def _log_files(server: Server, placed: Placed) -> tuple[str, ...]:
    case, text = placed.case, ""
    for files in render.server_files(server, case).values():
        text += "\n".join(path.read_text("utf-8") for path in files)
    named = sorted(set(OTHER_LOG.findall(text)))
    files_of_logs = [name.replace("{{ logs }}", placed.places.logs) for name in named]
    # A web server behind another has the file, too, and does not read it.
    outermost = server == case.stack.servers[-1] and case.settings["access_log"] != NO_LOG
    if outermost and ACCESS in text:
        files_of_logs.append(str(case.settings["access_log"]))
    return tuple(files_of_logs)


def _of_other(program: Program, placed: Placed) -> Unit:
    """The unit of a program other than a server."""
    unit = Unit(
        program, f"{placed.places.name}-{program.name}", background.unit_words(program.argv), type=_type(program)
    )
    if program.reload:
        unit = replace(unit, reload=(f"kill -{program.reload} $MAINPID",))
    return unit


def _of_server(program: Program, server: Server, placed: Placed) -> Unit:
    """The unit of an instance of a server."""
    places, context = placed.places, render.context_of(server, placed)
    name = f"{places.name}-{program.name}"
    own = ""
    if program.site:
        own = f"{places.run}/{name}.sock"
    command, socket, own_socket = _listening(program, server, placed, own)
    doubled = program.site and takeover.is_possible(server, program.address or Address())
    several = len(placed.listens[server.name]) > 1
    added: tuple[str, ...] = ()
    instance = renew = replaced = capability = loads = ""
    if several and program.address and not server.inherits:
        instance = _curl_words(program.address)
    if doubled and not server.inherits:
        added = takeover.words(server, STAND_IN)
    if program.site:
        loads = shlex.join([context["python"], "-c", f"import {context[server.interface].partition(':')[0]}"])
    if program.site and not doubled:
        renew = _renew(program, server, name)
    if server.reload.replaces:
        replaced = str(placed.case.settings[server.reload.replaces])
    if server is placed.front and _binds_low_port(placed):
        capability = LOW_PORTS
    return Unit(
        program,
        name,
        command,
        type="forking" if server.reload.pid_file else _type(program),
        socket=socket,
        own_socket=own_socket,
        instance=instance,
        added=added,
        has_stand_in=doubled,
        capability=capability,
        check=shlex.join(program.check),
        loads=loads,
        after=" ".join(f"{places.name}-{other}.service" for other in program.after),
        reload=tuple(_reload(program, server)),
        executes=server.reload.executes,
        pid_file=render.text(server.reload.pid_file, context, server.name),
        renew=renew,
        replaced=replaced,
    )


def _curl_words(address: Address) -> str:
    """Curl's words for a request to a server at this address."""
    if address.path:
        return f"--unix-socket {address.path} http://localhost/"
    return address.url


def _listening(program: Program, server: Server, placed: Placed, own: str) -> tuple[str, str, str]:
    """The command of an instance, the address on which systemd listens for the instance, and the command's own socket
    file; an empty text without one.

    own  a socket file for this unit only, beside that of its stand-in
    """
    address = program.address or Address()
    if server.inherits:
        return background.unit_words([*program.argv, *takeover.words(server, FIRST)]), address.endpoint, ""
    own_socket = ""
    if own and address.path:
        own_socket = own
        address = Address(path=own)
    moved = at(program, address, placed, foreground=not server.reload.pid_file)
    return background.unit_words(moved.argv), "", own_socket


def _type(program: Program) -> str:
    """The sign of the start of a program in the foreground."""
    if program.notify:
        return "notify"
    return "exec"


def _binds_low_port(placed: Placed) -> bool:
    names, redirected_at = placed.case.settings, int(placed.case.settings["http_port"])
    return placed.places.port < FIRST_FREE_PORT or (names["redirect"] == "on" and redirected_at < FIRST_FREE_PORT)


def _reload(program: Program, server: Server) -> Iterator[str]:
    """The commands that reload a server's files, or only the site's code for a server without such a reload."""
    way = program.reload or program.renew or ""
    if not isinstance(way, str):
        yield background.unit_words(way)
    elif way:
        # A signal reports no bad file, and some servers end. A reload command reports one itself.
        if program.check and not server.good_status:
            yield shlex.join(program.check)
        yield f"kill -{way} $MAINPID"


def _renew(program: Program, server: Server, name: str) -> str:
    if server.reload.loses and program.renew and not isinstance(program.renew, str):
        # A reload would read the configuration files, too.
        return " ".join(program.renew)
    if not program.renew:
        return ""
    return f"systemctl reload {name}.service"
