"""The backing services of a deployment: the cluster of its database, caches."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.serve.catalog import compatibility
from bench.serve.catalog.manifest import Service
from bench.serve.deployment import render
from bench.serve.deployment.launch import Launcher
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import Program, of_service, service_env
from bench.serve.machine import supervise
from bench.serve.machine.lock import exclusive
from bench.serve.machine.supervise import Process

DATABASE_URL = "DATABASE_URL"
READY_TIMEOUT_S = 30
# A database may have much to write before it stops.
STOP_TIMEOUT_S = 20


@dataclass(frozen=True)
class _Started:
    """A started service, with everything for a restart.

    lock  the file that the service holds locked until its end, by its descriptor
    """

    program: Program
    lock: tuple[int, ...]
    process: Process


class Services:
    """The services of a deployment, in the order of their start.

    A persistent service has its data under `var/<name>/`, which one program can serve at a time: the deployment holds a
    lock on the folder, and so does the service itself, which may outlive a killed instrument for a moment.

    database_url  the URL of the site's database; that of its service after the start
    """

    def __init__(self, placed: Placed, launcher: Launcher):
        self.database_url = placed.case.database.url
        self._placed, self._layout, self._launcher = placed, launcher.layout, launcher
        self._started: dict[str, _Started] = {}
        self._stopped: set[str] = set()
        self._locks = ExitStack()

    @property
    def processes(self) -> list[Process]:
        """All services except those stopped for a while on purpose."""
        return [started.process for name, started in self._started.items() if name not in self._stopped]

    def start(self, service: Service, *, is_empty: bool = False) -> None:
        """Start the service and wait until it serves; with `is_empty`, remove its old data first.

        Raises BenchError on failure.
        """
        if compatibility.missing_programs(service):
            raise BenchError(compatibility.not_installed(service))
        context = render.service_context(service, self._placed)
        data = Path(context["data"])
        created, lock = data.with_name("created"), self._lock(service, data.parent)
        if is_empty and service.persistent:
            shutil.rmtree(data, ignore_errors=True)
            created.unlink(missing_ok=True)
        render.write_service_files(service, context, self._layout.conf)
        if not data.exists():
            self._run(service, service.prepare, context)
        self._launch(of_service(service, self._placed), lock)
        if service.created and not created.exists():
            self._run(service, service.created, context)
            created.touch()
        self.database_url = service_env(service, self._placed).get(DATABASE_URL, self.database_url)

    def share(self, others: Services) -> None:
        """Use the services of another deployment, as a second web server does, by links to their sockets."""
        for started in others._started.values():
            if address := started.program.address:
                socket = Path(address.path)
                (self._layout.sockets / socket.name).symlink_to(socket)

    def restart_caches(self) -> None:
        """Restart the services with data in memory, empty, on the same addresses."""
        for started in list(self._started.values()):
            service = started.program.service
            if service and not service.persistent:
                supervise.stop([started.process])
                self._launch(started.program, started.lock)

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
            self._launch(started.program, started.lock)

    def start_again(self, name: str) -> None:
        """Start an ended service, without waiting until it serves.

        Raises DeploymentError when its program cannot be executed.
        """
        started = self._started[name]
        self._start(started.program, started.lock)

    def stop(self) -> None:
        """Stop all services and release their locks."""
        supervise.stop(self.processes, STOP_TIMEOUT_S)
        self._locks.close()

    def _lock(self, service: Service, folder: Path) -> tuple[int, ...]:
        """The lock on the folder of data that outlives the deployment."""
        if not service.persistent:
            return ()
        folder.mkdir(parents=True, exist_ok=True)
        self._launcher.identity.give(folder)
        lock = self._locks.enter_context(exclusive(folder / "lock", f"{service.name} ({folder})"))
        return (lock.fileno(),)

    def _start(self, program: Program, lock: tuple[int, ...]) -> None:
        env = self._launcher.clean_env
        if program.secrets:
            env[DATABASE_URL] = self.database_url
        process = self._launcher.start(program, env, stop_signal=program.stop, pass_fds=lock)
        self._started[program.name] = _Started(program, lock, process)

    def _launch(self, program: Program, lock: tuple[int, ...]) -> None:
        """Start the service and wait until it serves."""
        self._start(program, lock)
        self.wait_serving(program.name)

    def wait_serving(self, name: str) -> None:
        """Wait until a started service serves; raises DeploymentError on failure."""
        started = self._started[name]
        process, probe, address = started.process, started.program.probe, started.program.address
        if probe:
            supervise.wait_command(process, probe, self._launcher.clean_env, READY_TIMEOUT_S)
        elif address:
            supervise.wait_accepting(process, address, READY_TIMEOUT_S)

    def _run(self, service: Service, words: tuple[str, ...], context: dict[str, Any]) -> None:
        if words:
            self._launcher.run(service.name, render.argv(words, context, f"{service.name} manifest"))
