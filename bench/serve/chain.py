"""The servers of a deployment, started from the inside out, and the programs that layers run beside them."""

from __future__ import annotations

import re
import subprocess

from bench import paths
from bench.catalog.compose import Composition
from bench.host import http, supervise
from bench.host.supervise import Process
from bench.serve import render
from bench.serve.launch import Launcher
from bench.serve.layout import Places
from bench.serve.render import Wiring

READY_TIMEOUT_S = 30
HEALTH = "/healthz"


class Chain:
    """The servers of a composition on their addresses.

    url       where clients speak to the outermost one, without a slash at the end
    env       the environment of the application server and of the sidecars
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
        self._composition, self._places, self._launcher = composition, places, launcher

    @property
    def processes(self) -> list[Process]:
        return [*self.sidecars, *self.servers]

    def start(self) -> None:
        """Start everything and wait for a healthy answer; raises DeploymentError when a server does not come up."""
        for name, argv in render.sidecars(self._composition, self._places).items():
            self.sidecars.append(self._launcher.start(name, argv, self.env, cwd=paths.PROJECT))
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
            context = render.context_of(server, self._composition, self._places, self.wiring)
            argv = render.argv(server.entries, context, f"{server.name} entries")
            done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            found = re.search(r"\s(\d+)\s", done.stdout)
            if not found:
                raise ValueError(f"{server.name} does not print its entries: {done.stdout}{done.stderr}")
            total += int(found[1])
        return total

    def answers(self) -> bool:
        """Whether the site gives a healthy answer now."""
        return http.status(self.url, HEALTH) == 200

    def _start_server(self, index: int) -> None:
        """Start every instance of a server, and wait until each accepts connections."""
        server = self._composition.servers[index]
        context = render.context_of(server, self._composition, self._places, self.wiring)
        # Only the application server learns the site's environment.
        env = self.env if index == 0 else self._launcher.clean_env
        env = {**env, **{key: render.text(text, context, server.name) for key, text in server.env.items()}}
        started = []
        for number, address in enumerate(self.wiring.listens[server.name], 1):
            argv = render.argv(server.start, {**context, "listen": address}, f"{server.name} start")
            process = self._launcher.start(render.instance_name(server.name, number), argv, env, cwd=paths.PROJECT)
            self.servers.append(process)
            started.append((process, address))
        for process, address in started:
            supervise.wait_accepting(process, address, READY_TIMEOUT_S)


def front_url(composition: Composition, places: Places) -> str:
    """Where clients speak to the composition, without a slash at the end."""
    scheme = composition.settings["scheme"]
    return f"{scheme}://{places.bind}:{places.port}"
