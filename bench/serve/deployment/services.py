"""The backing services of a deployment: the cluster of its database, caches."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import programs
from bench.errors import BenchError
from bench.serve.catalog import compatibility
from bench.serve.catalog.manifest import Service
from bench.serve.deployment import render
from bench.serve.deployment.launch import Launcher
from bench.serve.deployment.layout import Layout
from bench.serve.deployment.placed import Placed
from bench.serve.machine import supervise
from bench.serve.machine.lock import exclusive
from bench.serve.machine.supervise import Address, Process

READY_TIMEOUT_S = 30
# A database may have much to write before it stops.
STOP_TIMEOUT_S = 20


@dataclass(frozen=True)
class _Started:
    """A service that was started, with everything that a restart needs.

    lock  the file that the service holds locked until it has ended, by its descriptor
    """

    service: Service
    context: dict[str, Any]
    lock: tuple[int, ...]
    process: Process


class Services:
    """The services of a deployment, in the order in which they were started.

    A persistent service has its data under `var/<name>/`, which one program can serve at a time: the deployment holds a
    lock there, and so does the service itself, which may outlive a killed instrument for a moment.

    env  what the services give to the application server's environment
    """

    def __init__(self, placed: Placed, layout: Layout, launcher: Launcher):
        self.env: dict[str, str] = {}
        self._placed, self._layout, self._launcher = placed, layout, launcher
        self._started: dict[str, _Started] = {}
        self._stopped: set[str] = set()
        self._locks = ExitStack()

    @property
    def processes(self) -> list[Process]:
        """All but those that are stopped for a while on purpose."""
        return [started.process for name, started in self._started.items() if name not in self._stopped]

    def start(self, service: Service, *, anew: bool = False) -> None:
        """Start the service and wait until it serves; with `anew` the data that it has is removed before.

        Raises BenchError when it cannot or does not.
        """
        if compatibility.missing_programs(service):
            raise BenchError(compatibility.not_installed(service))
        found = {key: str(programs.find([name], service.search)) for key, name in service.programs.items()}
        folder, lock = self._data_folder(service)
        if anew and service.persistent:
            shutil.rmtree(folder / "data", ignore_errors=True)
            (folder / "created").unlink(missing_ok=True)
        context = render.service_context(service, found, self._placed, folder / "data")
        render.write_service_files(service, context, self._layout.conf)
        if not (folder / "data").exists():
            self._run(service, service.prepare, context)
        self._launch(service, context, lock)
        if service.created and not (folder / "created").exists():
            self._run(service, service.created, context)
            (folder / "created").touch()
        self.env |= {key: render.text(text, context, f"{service.name} env") for key, text in service.env.items()}

    def share(self, others: Services) -> None:
        """Use the services of another deployment, as a second web server does: their sockets are linked to."""
        for started in others._started.values():
            socket = Path(started.context["socket"])
            (self._layout.sockets / socket.name).symlink_to(socket)
        self.env |= others.env

    def restart_caches(self) -> None:
        """Restart the services whose data is in memory, empty, on the same addresses."""
        for started in list(self._started.values()):
            if not started.service.persistent:
                supervise.stop([started.process])
                self._launch(started.service, started.context, started.lock)

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """Stop a service, and start it again on the same address when the block ends, however it ends."""
        started = self._started[name]
        self._stopped.add(name)
        supervise.stop([started.process])
        try:
            yield
        finally:
            self._stopped.remove(name)
            self._launch(started.service, started.context, started.lock)

    def start_again(self, name: str) -> None:
        """Start a service that has ended, without waiting until it serves.

        Raises DeploymentError when its program cannot be executed.
        """
        started = self._started[name]
        self._start(started.service, started.context, started.lock)

    def stop(self) -> None:
        """Stop all services and release their locks."""
        supervise.stop(self.processes, STOP_TIMEOUT_S)
        self._locks.close()

    def _data_folder(self, service: Service) -> tuple[Path, tuple[int, ...]]:
        """The folder of the service's data, and the lock that protects one that outlives the deployment."""
        if not service.persistent:
            return self._layout.sockets, ()
        folder = self._placed.case.project.var / service.name
        folder.mkdir(parents=True, exist_ok=True)
        self._launcher.identity.give(folder)
        lock = self._locks.enter_context(exclusive(folder / "lock", f"{service.name} ({folder})"))
        return folder, (lock.fileno(),)

    def _start(self, service: Service, context: dict[str, Any], lock: tuple[int, ...]) -> Process:
        argv = render.argv(service.start, context, f"{service.name} start")
        env = self._launcher.clean_env
        if service.site:
            env["DATABASE_URL"] = self.env.get("DATABASE_URL", self._placed.case.database.url)
        process = self._launcher.start(service.name, argv, env, stop_signal=service.stop, pass_fds=lock)
        self._started[service.name] = _Started(service, context, lock, process)
        return process

    def _launch(self, service: Service, context: dict[str, Any], lock: tuple[int, ...]) -> None:
        """Start it and wait until it serves."""
        self._start(service, context, lock)
        self.wait_serving(service.name)

    def wait_serving(self, name: str) -> None:
        """Wait until a service that was started serves; raises DeploymentError when it does not."""
        started = self._started[name]
        service, context, process = started.service, started.context, started.process
        if service.probe:
            probe = render.argv(service.probe, context, f"{service.name} probe")
            supervise.wait_command(process, probe, self._launcher.clean_env, READY_TIMEOUT_S)
        else:
            supervise.wait_accepting(process, Address(path=context["socket"]), READY_TIMEOUT_S)

    def _run(self, service: Service, words: tuple[str, ...], context: dict[str, Any]) -> None:
        if words:
            self._launcher.run(service.name, render.argv(words, context, f"{service.name} manifest"))
