"""The servers of a deployment, started from the inside out, and the programs that layers run beside them."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Collection
from pathlib import Path

from bench import paths
from bench.catalog.compose import Composition
from bench.catalog.manifest import Action, Server
from bench.host import http, supervise
from bench.host.supervise import Address, Process
from bench.serve import render
from bench.serve.launch import Launcher
from bench.serve.layout import Places
from bench.serve.render import Wiring

READY_TIMEOUT_S = 30
# A reload is over when no process came or went for so long. Old ones may finish requests for longer than the second.
RELOADED_S = 1.0
RELOAD_TIMEOUT_S = 20
HEALTH = "/healthz"


class Chain:
    """The servers of a composition on their addresses.

    url       where clients speak to the outermost one, without a slash at the end
    env       the environment of the application server and of the sidecars
    places    where its files are
    wiring    the addresses of its servers
    launcher  starts them
    servers   the running servers, the innermost first
    sidecars  the running programs of layers
    """

    def __init__(
        self, composition: Composition, places: Places, wiring: Wiring, launcher: Launcher, env: dict[str, str]
    ):
        self.url = front_url(composition, places)
        self.env = env
        self.wiring = wiring
        self.servers: list[Process] = []
        self.sidecars: list[Process] = []
        self._composition, self.places, self.launcher = composition, places, launcher

    @property
    def processes(self) -> list[Process]:
        return [*self.sidecars, *self.servers]

    def start(self) -> None:
        """Start everything and wait for a healthy answer; raises DeploymentError when a server does not come up."""
        self._start_sidecars()
        for index in range(len(self._composition.servers)):
            self._start_server(index)
        supervise.wait_healthy(self.servers, self.url, HEALTH, READY_TIMEOUT_S)

    def stop(self) -> None:
        """Stop everything."""
        supervise.stop(self.processes)
        self.servers.clear()
        self.sidecars.clear()

    def entries(self) -> int:
        """How many entries the caches of the servers have; raises ValueError when one cannot be asked."""
        total = 0
        for server in filter(lambda server: server.entries, self._composition.servers):
            context = render.context_of(server, self._composition, self.places, self.wiring)
            argv = render.argv(server.entries, context, f"{server.name} entries")
            done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            found = re.search(r"\s(\d+)\s", done.stdout)
            if not found:
                raise ValueError(f"{server.name} does not print its entries: {done.stdout}{done.stderr}")
            total += int(found[1])
        return total

    def reload(self, changed: Collection[str]) -> dict[str, str]:
        """Have the servers take over their files, and the application server the site's code; wait until they have.

        changed  names of files that differ from those read before

        Returns what was done, by the server's name. Raises DeploymentError when the site does not come back.
        """
        done = {}
        for index, server in enumerate(self._composition.servers):
            files = render.server_files(server, self._composition).keys() & set(changed)
            ways = [server.reload.application] if index == 0 else []
            # A certificate is no rendered file: every server that can reads its files again.
            if files or server.reload.configuration:
                ways.append(server.reload.configuration)
            if not ways:
                done[server.name] = "unchanged"
            elif all(ways):
                done[server.name] = self._reload_server(server, tuple(dict.fromkeys(ways)))
            else:
                self._restart_server(index)
                done[server.name] = "restarted"
        supervise.stop(self.sidecars)
        self._start_sidecars()
        supervise.wait_healthy(self.servers, self.url, HEALTH, READY_TIMEOUT_S)
        return done

    def _reload_server(self, server: Server, ways: tuple[Action, ...]) -> str:
        """Reload a server in these ways, and wait until no process of it comes or goes any more; returns how."""
        context = render.context_of(server, self._composition, self.places, self.wiring)
        instances = self._instances(server)
        how = []
        for way in ways:
            if isinstance(way, str):
                how.append(f"SIG{way}")
                for process in instances:
                    process.popen.send_signal(getattr(signal, how[-1]))
            else:
                argv = render.argv(way, context, f"{server.name} reload")
                how.append(Path(argv[0]).name)
                self.launcher.run(f"{server.name}-reload", argv)
        supervise.wait_settled(instances, RELOADED_S, RELOAD_TIMEOUT_S)
        return f"reloaded by {' and '.join(how)}"

    def restart(self, name: str) -> None:
        """Restart one server; raises DeploymentError when it or the site does not come back."""
        self._restart_server([server.name for server in self._composition.servers].index(name))
        supervise.wait_healthy(self.servers, self.url, HEALTH, READY_TIMEOUT_S)

    def _restart_server(self, index: int) -> None:
        """Restart a server, one instance after another."""
        server = self._composition.servers[index]
        for number, address in enumerate(self.wiring.listens[server.name], 1):
            place = [process.name for process in self.servers].index(render.instance_name(server.name, number))
            supervise.stop([self.servers[place]])
            self.servers[place] = self._start_instance(index, number, address)
            supervise.wait_accepting(self.servers[place], address, READY_TIMEOUT_S)

    def _instances(self, server: Server) -> list[Process]:
        count = len(self.wiring.listens[server.name])
        names = {render.instance_name(server.name, number) for number in range(1, count + 1)}
        return [process for process in self.servers if process.name in names]

    def answers(self) -> bool:
        """Whether the site gives a healthy answer now."""
        return http.status(self.url, HEALTH) == 200

    def _start_sidecars(self) -> None:
        commands = render.sidecars(self._composition, self.places)
        self.sidecars[:] = [
            self.launcher.start(name, argv, self.env, cwd=paths.PROJECT) for name, argv in commands.items()
        ]

    def _start_server(self, index: int) -> None:
        """Start every instance of a server, and wait until each accepts connections."""
        started = []
        for number, address in enumerate(self.wiring.listens[self._composition.servers[index].name], 1):
            process = self._start_instance(index, number, address)
            self.servers.append(process)
            started.append((process, address))
        for process, address in started:
            supervise.wait_accepting(process, address, READY_TIMEOUT_S)

    def _start_instance(self, index: int, number: int, address: Address) -> Process:
        server = self._composition.servers[index]
        context = render.context_of(server, self._composition, self.places, self.wiring)
        # Only the application server learns the site's environment.
        env = self.env if index == 0 else self.launcher.clean_env
        env = {**env, **{key: render.text(text, context, server.name) for key, text in server.env.items()}}
        argv = render.argv(server.start, {**context, "listen": address}, f"{server.name} start")
        return self.launcher.start(render.instance_name(server.name, number), argv, env, cwd=paths.PROJECT)


def front_url(composition: Composition, places: Places) -> str:
    """Where clients speak to the composition, without a slash at the end."""
    scheme = composition.settings["scheme"]
    return f"{scheme}://{places.bind}:{places.port}"
