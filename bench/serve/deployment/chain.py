"""The servers of a deployment, started from the inside out, and the programs that layers run beside them."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bench.serve.catalog.server import Action, Server
from bench.serve.deployment import render, takeover
from bench.serve.deployment.launch import Launcher
from bench.serve.deployment.placed import Placed
from bench.serve.machine import supervise
from bench.serve.machine.supervise import Address, Process
from bench.serve.project import background, run_command

# Longer than all workers of a large project take on a busy machine, each of which imports it.
READY_TIMEOUT_S = 120
# A reload is over when no process came or went for so long. Old ones may finish requests for longer than the second.
RELOADED_S = 1.0
RELOAD_TIMEOUT_S = 30


class Chain:
    """The servers of a case on their addresses.

    placed    the case, where its files are and its servers listen
    url       where clients speak to the outermost one, without a slash at the end
    env       the environment of the application server and of the sidecars
    launcher  starts them
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
        self._listeners = listeners(placed)
        # The sockets that are inherited, and how often other processes have taken an instance's place, by its name.
        self._held: dict[str, socket.socket] = {}
        self._turns = dict.fromkeys(self._listeners, 0)

    @property
    def processes(self) -> list[Process]:
        return [*self.sidecars, *self.servers]

    def start(self) -> None:
        """Start everything and wait for a healthy answer; raises DeploymentError when a server does not come up."""
        self._start_sidecars()
        for server in self._case.servers:
            self._start_server(server)
        with run_command.announced(f"{self._case.name} to answer", READY_TIMEOUT_S):
            supervise.wait_healthy(self.servers, self.url, self._case.project.health, READY_TIMEOUT_S)

    def stop(self) -> None:
        """Stop everything."""
        self._finish_workers()
        supervise.stop(self.processes)
        self.servers.clear()
        self.sidecars.clear()
        for held in self._held.values():
            held.close()
        self._held.clear()

    def entries(self) -> int:
        """The number of entries in the caches of the servers; raises ValueError when one cannot be asked."""
        return sum(_entries_of(server, self._context(server)) for server in self._case.servers if server.entries)

    def _context(self, server: Server) -> dict[str, Any]:
        return render.context_of(server, self.placed)

    def reload(self, changed: Collection[str], only: str = "") -> dict[str, str]:
        """Have the servers take over their files, and the application server the site's code; wait until they have.

        changed  names of files that differ from those read before
        only     the name of the one server that does, all when empty

        Returns what was done, by the server's name. Raises DeploymentError when the site does not come back.
        """
        done = {}
        for server in (server for server in self._case.servers if only in ("", server.name)):
            files = render.server_files(server, self._case).keys() & set(changed)
            way = _way(server, self.placed, bool(files))
            if way is None:
                done[server.name] = "unchanged"
            elif self._doubles(server):
                done[server.name] = self._take_over(server)
            elif way:
                done[server.name] = self._reload_server(server, way)
            else:
                self._restart_server(server)
                done[server.name] = "restarted"
        self._finish_workers()
        supervise.stop(self.sidecars)
        self._start_sidecars()
        supervise.wait_healthy(self.servers, self.url, self._case.project.health, READY_TIMEOUT_S)
        return done

    def _reload_server(self, server: Server, way: Action) -> str:
        """Reload a server in this way, and wait until no process of it comes or goes any more; returns how."""
        instances = self._instances(server)
        before = supervise.children(instances)
        how = self._ask(server, way)
        supervise.wait_settled(instances, before, RELOADED_S, RELOAD_TIMEOUT_S)
        return f"reloaded by {how}"

    def _doubles(self, server: Server) -> bool:
        """True for an application server with room for a second one on the same address."""
        address = self.placed.wiring.listens[server.name][0]
        return server is self._case.servers[0] and takeover.is_possible(server, address)

    def _take_over(self, server: Server) -> str:
        """Start new processes, then have the old ones finish their requests and end; returns the way in words.

        Nobody waits for the slowest request. The old processes stay if the new ones do not load the application.
        """
        processes = 1 if server.instances else int(self._case.settings["processes"])
        for old in self._instances(server):
            self._turns[old.name] += 1
            new = self._start_instance(old.name, beside=True)
            try:
                takeover.wait_loaded(self._loaded(old.name), processes, new.died, READY_TIMEOUT_S)
                self._wait_accepting(server, new)
            except BaseException:
                self._turns[old.name] -= 1
                supervise.stop([new])
                raise
            self.servers[self.servers.index(old)] = new
            try:
                supervise.finish(old, server.graceful, float(self._case.settings["stop_timeout_s"]))
            finally:
                supervise.stop([old])
        return "replaced by new processes"

    def _loaded(self, name: str) -> Path:
        return Path(self.placed.places.run, f"{name}-loaded")

    def ask_application(self) -> bool:
        """Have the application server take over the site's code, without waiting; False when it cannot."""
        server = self._case.servers[0]
        return bool(server.reload.application and self._ask(server, server.reload.application))

    def _ask(self, server: Server, way: Action) -> str:
        """Ask all instances of a server to reload in one way; returns how."""
        if isinstance(way, str):
            for process in self._instances(server):
                process.popen.send_signal(getattr(signal, f"SIG{way}"))
            return f"SIG{way}"
        argv = render.argv(way, self._context(server), f"{server.name} reload")
        self.launcher.run(f"{server.name}-reload", argv)
        return Path(argv[0]).name

    def restart(self, name: str) -> None:
        """Restart one server; raises DeploymentError when it or the site does not come back."""
        self._restart_server(next(server for server in self._case.servers if server.name == name))
        supervise.wait_healthy(self.servers, self.url, self._case.project.health, READY_TIMEOUT_S)

    def _restart_server(self, server: Server) -> None:
        """Restart a server, one instance after another, each when it has finished its requests, as systemd does."""
        for process in self._instances(server):
            supervise.finish(process, server.graceful, float(self._case.settings["stop_timeout_s"]))
            supervise.stop([process])
            self._wait_accepting(server, self._replace(process.name))

    def start_again(self, name: str) -> None:
        """Start a server or sidecar that has ended, without waiting until it serves.

        Raises DeploymentError when its program cannot be executed.
        """
        for place, process in enumerate(self.sidecars):
            if process.name == name:
                self.sidecars[place] = self._start_sidecar(name)
                return
        self._replace(name)

    def _instances(self, server: Server) -> list[Process]:
        return [process for process in self.servers if self._listeners[process.name][0] == server]

    def _finish_workers(self) -> None:
        """Have each of the project's workers finish its job and end."""
        workers = background.here(self._case.project) if self._case.workers else {}
        for process in self.sidecars:
            if process.name in workers and process.popen.poll() is None:
                supervise.finish(process, "TERM", float(self._case.settings["worker_stop_timeout_s"]))

    def _start_sidecars(self) -> None:
        self.sidecars[:] = map(self._start_sidecar, render.sidecars(self.placed))

    def _start_sidecar(self, name: str) -> Process:
        argv = render.sidecars(self.placed)[name]
        return self.launcher.start(
            name, argv, self._case.project.environment(self.env), cwd=Path(self.placed.places.project)
        )

    def _start_server(self, server: Server) -> None:
        """Start every instance of a server, and wait until each accepts connections."""
        for name, (of, _) in self._listeners.items():
            if of == server:
                self.servers.append(self._start_instance(name))
        for process in self._instances(server):
            self._wait_accepting(server, process)

    def _wait_accepting(self, server: Server, process: Process) -> None:
        address = self._listeners[process.name][1]
        own = self._own_address(server, process.name)
        supervise.wait_accepting(process, own, READY_TIMEOUT_S)
        takeover.lead(address, own)

    def _replace(self, name: str) -> Process:
        """Start an instance that has ended, in its place."""
        place = [process.name for process in self.servers].index(name)
        self.servers[place] = self._start_instance(name)
        return self.servers[place]

    def _start_instance(self, name: str, beside: bool = False) -> Process:
        """Start an instance; `beside` another one, each process notes the loaded application in a file."""
        server, _ = self._listeners[name]
        context = self._context(server)
        application = server == self._case.servers[0]
        # Only the application server learns the site's environment.
        env = self._case.project.environment(self.env) if application else self.launcher.clean_env
        env = {**env, **{key: render.text(text, context, server.name) for key, text in server.env.items()}}
        if beside:
            env[takeover.LOADED] = str(self._empty_loaded(name))
        address = self._own_address(server, name)
        argv = render.argv(server.start, {**context, "listen": address}, f"{server.name} start")
        project = Path(self.placed.places.project)
        if not application:
            address.clear()
            return self.launcher.start(name, argv, env, cwd=project)
        argv += takeover.words(server, self._turns[name])
        if not server.inherits:
            address.clear()
            return self.launcher.start(name, argv, env, cwd=project)
        return self.launcher.start(
            name, [*takeover.INHERITING, *argv], env, cwd=project, stdin=self._hold(name, address).fileno()
        )

    def _own_address(self, server: Server, name: str) -> Address:
        """The address of one process of an instance."""
        address = self._listeners[name][1]
        if server != self._case.servers[0]:
            return address
        return takeover.own_address(server, address, self._turns[name])

    def _hold(self, name: str, address: Address) -> socket.socket:
        """The socket that an instance inherits; connections wait there for the next process."""
        if name not in self._held:
            backlog = int(self._case.settings["backlog"])
            self._held[name] = takeover.held_socket(address, backlog, self.launcher.identity)
        return self._held[name]

    def _empty_loaded(self, name: str) -> Path:
        folder = self._loaded(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.launcher.identity.give(folder)
        return folder


def _way(server: Server, placed: Placed, changed: bool) -> Action | None:
    """The way to apply changed files and code to a server: empty for a restart, None if nothing changed."""
    # A certificate is no rendered file: every server that can reads its files again, unless that may lose requests.
    certificate = server is placed.front and placed.ends_tls
    again = certificate or not server.reload.loses
    if changed or (again and server.reload.configuration):
        return server.reload.configuration
    return server.reload.application if server is placed.case.servers[0] else None


def _entries_of(server: Server, context: dict[str, Any]) -> int:
    argv = render.argv(server.entries, context, f"{server.name} entries")
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = re.search(r"\s(\d+)\s", done.stdout)
    if not found:
        raise ValueError(f"{server.name} does not print its entries: {done.stdout}{done.stderr}")
    return int(found[1])


def listeners(placed: Placed) -> dict[str, tuple[Server, Address]]:
    """The server and the address of every instance, by its name, the innermost server's first."""
    return {
        render.instance_name(server.name, number): (server, address)
        for server in placed.case.servers
        for number, address in enumerate(placed.wiring.listens[server.name], 1)
    }
