"""The servers of a deployment, started from the inside out, and the programs that layers run beside them."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from bench.serve.catalog.server import Action, Server
from bench.serve.deployment import render, takeover
from bench.serve.deployment.launch import Launcher
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import Program, at, programs
from bench.serve.machine import supervise
from bench.serve.machine.supervise import Address, Process
from bench.serve.project import run_command

# Longer than all workers of a large project need on a busy machine: each imports the project.
READY_TIMEOUT_S = 120
# A reload is over when no process came or went for so long. Old ones may finish requests for longer than the second.
RELOADED_S = 1.0
RELOAD_TIMEOUT_S = 30


class Chain:
    """The servers of a case on their addresses.

    placed    the case, with the places of its files and the addresses of its servers
    url       the URL of the outermost server for clients, without a slash at the end
    env       the environment of the application server and of the sidecars
    launcher  starts the programs
    servers   the running servers, the innermost first
    sidecars  the running programs of layers, and the project's workers
    """

    def __init__(self, placed: Placed, launcher: Launcher, env: dict[str, str]):
        self.placed = placed
        self.url = placed.url
        self.env = env
        self.servers: list[Process] = []
        self.sidecars: list[Process] = []
        self.launcher = launcher
        self._case = placed.case
        self._programs = {program.name: program for program in programs(placed)}
        # The inherited sockets, and the number of replacements of each instance, by its name.
        self._sockets: dict[str, socket.socket] = {}
        self._turns = dict.fromkeys(self._programs, 0)

    @property
    def processes(self) -> list[Process]:
        return [*self.sidecars, *self.servers]

    def start(self) -> None:
        """Start everything and wait for a healthy response; raises DeploymentError for a failed server."""
        self._start_sidecars()
        for server in self._case.servers:
            self._start_server(server)
        with run_command.announced(f"{self._case.name} to respond", READY_TIMEOUT_S):
            self._wait_healthy()

    def stop(self) -> None:
        """Stop everything."""
        self._finish_workers()
        supervise.stop(self.processes)
        self.servers.clear()
        self.sidecars.clear()
        for held in self._sockets.values():
            held.close()
        self._sockets.clear()

    def entries(self) -> int:
        """The number of entries in the caches of the servers; raises ValueError for an unreachable one."""
        return sum(_entries_of(server, self.placed) for server in self._case.servers if server.entries)

    def reload(self, changed: Collection[str], only: str = "") -> dict[str, str]:
        """Have the servers read their files again, and the application server the site's code; wait for the end.

        changed  names of files that differ from the last read ones
        only     the name of the one server to reload, all when empty

        Returns the action taken, by the server's name. Raises DeploymentError when the site does not come back.
        """
        done = {}
        for server in self._case.servers:
            if only not in ("", server.name):
                continue
            files = render.server_files(server, self._case).keys() & set(changed)
            program = self._programs[server.name]
            way = _way(program, server, bool(files))
            if way is None:
                done[server.name] = "unchanged"
            elif program.site and takeover.is_possible(server, program.address or Address()):
                done[server.name] = self._take_over(server)
            elif way:
                done[server.name] = self._reload_server(server, way)
            else:
                self._restart_server(server)
                done[server.name] = "restarted"
        self._finish_workers()
        supervise.stop(self.sidecars)
        self._start_sidecars()
        self._wait_healthy()
        return done

    def _wait_healthy(self) -> None:
        supervise.wait_healthy(self.servers, self.url, self._case.project.health, READY_TIMEOUT_S)

    def _reload_server(self, server: Server, way: Action) -> str:
        """Reload a server, and wait until none of its processes comes or goes any more; returns how."""
        instances = self._instances(server)
        before = supervise.children(instances)
        how = self._request_reload(server, way)
        supervise.wait_settled(instances, before, RELOADED_S, RELOAD_TIMEOUT_S)
        return f"reloaded by {how}"

    def _take_over(self, server: Server) -> str:
        """Start new processes, then have the old ones finish their requests and end; returns the way in words.

        Nobody waits for the slowest request. If the new processes do not load the application, the old ones stay.
        """
        for old in self._instances(server):
            program = self._programs[old.name]
            self._turns[old.name] += 1
            new = self._start(program, beside=True)
            try:
                takeover.wait_loaded(self._loaded(old.name), program.loaded, new.died, READY_TIMEOUT_S)
                self._wait_accepting(new)
            except BaseException:
                self._turns[old.name] -= 1
                supervise.stop([new])
                raise
            self.servers[self.servers.index(old)] = new
            try:
                supervise.finish(old, program.stop, program.stop_s)
            finally:
                supervise.stop([old])
        return "replaced by new processes"

    def _loaded(self, name: str) -> Path:
        return Path(self.placed.places.run, f"{name}-loaded")

    def reload_application(self) -> bool:
        """Have the application server reload the site's code, without waiting; False without a way to do so."""
        server = self._case.servers[0]
        way = self._programs[server.name].renew
        return bool(way and self._request_reload(server, way))

    def _request_reload(self, server: Server, way: Action) -> str:
        """Request a reload of all instances of a server in one way; returns how."""
        if isinstance(way, str):
            for process in self._instances(server):
                process.popen.send_signal(getattr(signal, f"SIG{way}"))
            return f"SIG{way}"
        self.launcher.run(f"{server.name}-reload", list(way))
        return Path(way[0]).name

    def restart(self, name: str) -> None:
        """Restart one server; raises DeploymentError when the server or the site does not come back."""
        self._restart_server(next(server for server in self._case.servers if server.name == name))
        self._wait_healthy()

    def _restart_server(self, server: Server) -> None:
        """Restart a server, one instance after another, each after the end of its requests, as systemd does."""
        for process in self._instances(server):
            program = self._programs[process.name]
            supervise.finish(process, program.stop, program.stop_s)
            supervise.stop([process])
            self._wait_accepting(self._replace(self.servers, process.name))

    def start_again(self, name: str) -> None:
        """Start an ended server or sidecar, without waiting until it serves.

        Raises DeploymentError when its program cannot be executed.
        """
        running = self.servers
        if name in [process.name for process in self.sidecars]:
            running = self.sidecars
        self._replace(running, name)

    def _instances(self, server: Server) -> list[Process]:
        """The running instances of a server."""
        return [process for process in self.servers if self._programs[process.name].server == server]

    def _finish_workers(self) -> None:
        """Have each of the project's workers finish its job and end."""
        for process in self.sidecars:
            program = self._programs[process.name]
            if program.worker and process.popen.poll() is None:
                supervise.finish(process, program.stop, program.stop_s)

    def _start_sidecars(self) -> None:
        self.sidecars.clear()
        for program in self._programs.values():
            if not program.server and not program.service:
                self.sidecars.append(self._start(program))

    def _start_server(self, server: Server) -> None:
        """Start every instance of a server, and wait until each accepts connections."""
        for program in self._programs.values():
            if program.server == server:
                self.servers.append(self._start(program))
        for process in self._instances(server):
            self._wait_accepting(process)

    def _wait_accepting(self, process: Process) -> None:
        program = self._programs[process.name]
        own = self._own(program)
        if program.address and own.address:
            supervise.wait_accepting(process, own.address, READY_TIMEOUT_S)
            takeover.lead(program.address, own.address)

    def _replace(self, running: list[Process], name: str) -> Process:
        """Start an ended program, in its place among the running ones."""
        place = [process.name for process in running].index(name)
        running[place] = self._start(self._programs[name])
        return running[place]

    def _start(self, program: Program, *, beside: bool = False) -> Process:
        """Start a program; `beside` another one, each process notes the loaded application in a file."""
        # Only the site's processes learn its environment.
        env = self.launcher.clean_env
        if program.site:
            env = self._case.project.environment(self.env)
        if beside:
            env[takeover.LOADED] = str(self._empty_loaded(program.name))
        started, project = self._own(program), Path(self.placed.places.project)
        if program.site and program.server and program.server.inherits and started.address:
            held = self._hold(program.name, started.address)
            started = replace(started, argv=[*takeover.INHERITING, *started.argv])
            return self.launcher.start(started, env, cwd=project, stdin=held.fileno())
        if started.address:
            started.address.clear()
        return self.launcher.start(started, env, cwd=project)

    def _own(self, program: Program) -> Program:
        """The program at the address and with the words of this turn: two may serve beside each other."""
        if not program.site or program.server is None or program.address is None:
            return program
        turn = self._turns[program.name]
        own = at(program, takeover.own_address(program.server, program.address, turn), self.placed)
        return replace(own, argv=[*own.argv, *takeover.words(program.server, turn)])

    def _hold(self, name: str, address: Address) -> socket.socket:
        """The socket that an instance inherits; connections wait in its queue for the next process."""
        if name not in self._sockets:
            backlog = int(self._case.settings["backlog"])
            self._sockets[name] = takeover.listening_socket(address, backlog, self.launcher.identity)
        return self._sockets[name]

    def _empty_loaded(self, name: str) -> Path:
        folder = self._loaded(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.launcher.identity.give(folder)
        return folder


def _way(program: Program, server: Server, changed: bool) -> Action | None:
    """The way to apply changed files and code to a server: empty for a restart, None if nothing changed."""
    # A certificate is no rendered file: every server with a lossless reload reads its files again.
    again = program.ends_tls or not server.reload.loses
    if changed or (again and program.reload):
        return program.reload
    return program.renew


def _entries_of(server: Server, placed: Placed) -> int:
    argv = render.argv(server.entries, render.context_of(server, placed), f"{server.name} entries")
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    match = re.search(r"\s(\d+)\s", done.stdout)
    if not match:
        raise ValueError(f"{server.name} does not print its entries: {done.stdout}{done.stderr}")
    return int(match[1])
