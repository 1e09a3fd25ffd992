"""A case brought up on this machine, and taken down whatever happens."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import paths
from bench.errors import BenchError, DeploymentError, GlobalFault
from bench.serve.catalog import catalog, sizes
from bench.serve.deployment import database, render
from bench.serve.deployment.backing_services import Services
from bench.serve.deployment.case import CannotRun, Case
from bench.serve.deployment.chain import Chain
from bench.serve.deployment.launch import Launcher
from bench.serve.deployment.layout import Layout, directories
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import site_env
from bench.serve.deployment.releases import MARKED, Releases
from bench.serve.deployment.tls import make_certificate
from bench.serve.machine import http, orphans, ports, processes, small_disk, supervise
from bench.serve.machine.cgroups import Group
from bench.serve.machine.supervise import Address, Process
from bench.serve.project import commands, health


@dataclass
class Running:
    """A deployment that serves.

    ready_s  seconds from the first server started to the first healthy response
    notes    notes for readers of the results
    releases the releases of the project, if the deployment serves releases instead of the checkout
    memory_idle_bytes  PSS of every process tree when all had just become ready; None if unknown
    """

    services: Services
    chain: Chain
    ready_s: float
    notes: list[str]
    releases: Releases | None = None
    memory_idle_bytes: dict[str, int | None] = field(init=False)

    def __post_init__(self) -> None:
        self._note_memory()

    @property
    def case(self) -> Case:
        return self.chain.placed.case

    @property
    def layout(self) -> Layout:
        return self.chain.launcher.layout

    @property
    def group(self) -> Group | None:
        """The control group of its size, None without one."""
        return self.chain.launcher.group

    @property
    def url(self) -> str:
        """The URL for clients, without a slash at the end."""
        return self.chain.url

    @property
    def env(self) -> dict[str, str]:
        """The environment of the application server."""
        return self.chain.env

    @property
    def logs(self) -> Path:
        """The directory of the logs of servers and services."""
        return self.layout.logs

    def log_bytes(self) -> int:
        """The total size of the logs in bytes."""
        return sum(path.stat().st_size for path in self.logs.rglob("*") if path.is_file())

    @property
    def store(self) -> Path:
        """The directory of pages that servers cache in files."""
        return self.layout.store

    @property
    def processes(self) -> list[Process]:
        """All started processes that should run now: services, sidecars of layers, servers."""
        return [*self.services.processes, *self.chain.processes]

    @property
    def pids(self) -> dict[str, int]:
        """The root of the process tree of every server and service, by name (`name-2` for a second instance)."""
        return {process.name: process.pid for process in self.processes}

    @property
    def servers(self) -> tuple[str, ...]:
        """The names among `pids` of servers of the chain: neither services nor sidecars of layers."""
        return tuple(process.name for process in self.chain.servers)

    def empty_layer(self) -> None:
        """Empty the layers' caches: remove stored pages, restart caching services and application servers."""
        self.chain.stop()
        self.services.restart_caches()
        self.layout.empty_store()
        self.chain.start()
        self._note_memory()

    def entries(self) -> int:
        """The number of entries in the caches of its servers, without files and services."""
        return self.chain.entries()

    def oom_kills(self) -> int | None:
        """The number of processes killed by the kernel at the memory limit of its size; None without one."""
        if not self.group:
            return None
        return self.group.oom_kills()

    def is_healthy(self) -> bool:
        """True if the site gives a healthy response now."""
        return http.status(self.url, self.case.project.health) in http.HEALTHY

    def died(self) -> DeploymentError | None:
        """The name of a server or service that has ended by itself, with the reason; None while all run."""
        return next(filter(None, (process.died() for process in self.processes)), None)

    def start_again(self, name: str) -> None:
        """Start an ended server, service or sidecar, without waiting until it serves.

        Raises DeploymentError if its program cannot be executed.
        """
        if name in {process.name for process in self.services.processes}:
            self.services.start_again(name)
        else:
            self.chain.start_again(name)

    def hung(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Have a server or service hang until the block ends: connections open, no response."""
        return supervise.hung(next(process for process in self.processes if process.name == name))

    @contextmanager
    def on_small_disk(self, folder: Path) -> Iterator[small_disk.SmallDisk]:
        """Restart the servers with an empty directory, such as the store, on a separate small disk, until the block
        ends.

        Raises small_disk.CannotMount if no disk can be mounted.
        """
        self.chain.stop()
        try:
            with small_disk.mounted(folder) as disk:
                self.case.project.worker(self.layout.run_dir).give(folder)
                self.chain.start()
                yield disk
        finally:
            self.chain.stop()
            self.chain.start()

    def restart(self, name: str) -> None:
        """Restart a server or service of the deployment at the same addresses, with its files."""
        if name in self.servers:
            self.chain.restart(name)
        else:
            with self.services.stopped(name):
                pass

    @contextmanager
    def again(self, changes: dict[str, Any], **env: str) -> Iterator[Running]:
        """The same deployment once more beside this one, on the same database, with some values changed.

        env  more environment of the site
        """
        values = replace(self.case.values, user_env={**self.case.user_env, **env})
        changed = replace(self.case, values=values).changed(changes)
        if isinstance(changed, CannotRun):
            raise BenchError(f"{self.case.name} cannot run here: {changed.reason}")
        with deployed(self._on_same_database(changed)) as running:
            yield running

    @contextmanager
    def beside(self) -> Iterator[Running]:
        """A second web server: the same deployment once more, on the same database and the very same services."""
        with deployed(self._on_same_database(self.case), shares=self.services) as running:
            yield running

    def _on_same_database(self, case: Case) -> Case:
        return replace(case, database=self.case.database.again(self.env["DATABASE_URL"]), size=sizes.UNLIMITED)

    def _note_memory(self) -> None:
        self.memory_idle_bytes = {name: processes.memory_bytes(pid) for name, pid in self.pids.items()}


def _show_nothing(step: str) -> None:
    pass


@contextmanager
def deployed(
    case: Case,
    *,
    port: int | None = None,
    run_dir: Path | None = None,
    progress: Callable[[str], None] = _show_nothing,
    releases: bool = False,
    shares: Services | None = None,
) -> Iterator[Running]:
    """Bring the case up, yield the running deployment, and stop everything at the end.

    port      the front port on 127.0.0.1; a free one when None
    run_dir   an empty or new directory for rendered files, logs and stored pages; a temporary one when None
    progress  called with each step in words
    releases  serve a copy of the project, which a new release can replace, rather than the checkout
    shares    the services of another deployment, used instead of own ones

    Raises BenchError for a case that cannot run here, and DeploymentError, with the log of the reason, for a case that
    does not come up.
    """
    project = case.project
    with ExitStack() as cleanup:
        paths.must_be_plain(project.folder, project.venv, run_dir or Path(tempfile.gettempdir()))
        orphans.clean()
        group = sizes.group(case.size)
        layout = cleanup.enter_context(directories(project, run_dir, f"{case.stack.name}~{case.layer_name}"))
        register = cleanup.enter_context(orphans.Register(layout.scratch))
        if group:
            # Registered before it is made, so that the next command can remove it after a kill.
            register.add_group(group)
            cleanup.callback(group.remove)
            group.create(case.size.limits)
        identity = project.worker(layout.run_dir)
        placed = Placed(case, layout.places(project, identity, port or ports.free_port()))
        copies = None
        if releases:
            copies = Releases(project, layout, identity)
        launcher = Launcher(identity, layout, register, group)
        yield _brought_up(placed, launcher, cleanup, progress, copies, shares)


def _brought_up(
    placed: Placed,
    launcher: Launcher,
    cleanup: ExitStack,
    progress: Callable[[str], None],
    releases: Releases | None,
    shares: Services | None,
) -> Running:
    """Start services and servers, the inner before the outer, and wait until the site responds."""
    case = placed.case
    project, chosen = case.project, case.database
    # The commit's pages were inspected before the rows were migrated to the commit.
    health.require_page(project, chosen.of_project and project.base is None)
    progress(f"starting {case.name}: database and services")
    _prepare_front(placed, launcher)
    commands.make_files(project, launcher.identity)
    tried = {}
    if case.user_env:
        tried = {**render.site_env(placed), **case.user_env}
    database.check(project, chosen, tried, launcher.identity)
    commands.collect_static(project, launcher.identity)
    commands.link_media(project, launcher.identity)
    if releases:
        placed = replace(placed, places=releases.begin(placed.places))
    services = Services(placed, launcher)
    cleanup.callback(services.stop)
    url = _start_services(services, case, shares)
    with _global_fault():
        database.prepare(project.by_the_instrument, chosen, url, launcher.identity, progress)
        progress(f"starting {case.name}: its first page")
        broken = health.require(project, url, case.user_env, launcher.identity)
    begun = time.monotonic()
    env = _site_env(placed, launcher.layout, url, marked=releases is not None)
    placed = placed.wired(ports.free_port)
    render.write_files(placed, launcher.layout.conf)
    chain = Chain(placed, launcher, env)
    cleanup.callback(chain.stop)
    progress(f"starting {case.name}: {', '.join(server.name for server in case.servers)}")
    with _naming_silent_caches(case):
        chain.start()
    took_s, notes = time.monotonic() - begun, [*_notes(case, launcher), *broken]
    return Running(services, chain, took_s, notes, releases)


@contextmanager
def database_only(case: Case, progress: Callable[[str], None] = _show_nothing) -> Iterator[str]:
    """The URL of the case's database, brought up and filled without any server, until the block ends."""
    project, chosen = case.project, case.database
    with ExitStack() as cleanup:
        layout = cleanup.enter_context(directories(project, None, "database"))
        register = cleanup.enter_context(orphans.Register(layout.scratch))
        identity = project.worker(layout.run_dir)
        launcher = Launcher(identity, layout, register)
        commands.make_files(project, identity)
        placed = Placed(case, layout.places(project, identity, ports.free_port()))
        services = Services(placed, launcher)
        cleanup.callback(services.stop)
        url = _start_services(services, replace(case, services=()), None)
        database.prepare(project.by_the_instrument, chosen, url, identity, progress)
        yield url


def _site_env(placed: Placed, layout: Layout, url: str, *, marked: bool) -> dict[str, str]:
    """The environment of the application server; with `marked` each page names the release that rendered the page."""
    env = commands.site_environment(placed.case.project, url, layout.sockets)
    env["BENCHAPP_STATIC_ROOT"] = placed.places.static_root
    env |= site_env(placed)
    if marked:
        env |= MARKED
    return {**env, **placed.case.user_env}


def _notes(case: Case, launcher: Launcher) -> list[str]:
    """Notes for readers of the results: on layers, the project, its rows, and the user of the servers."""
    notes = [*case.notes, *case.project.notes, *database.notes(case.project, case.database)]
    if launcher.identity.notice:
        notes.append(launcher.identity.notice)
    return notes


def _prepare_front(placed: Placed, launcher: Launcher) -> None:
    """Check that the front port is free, and make the certificate of a TLS listener."""
    places = placed.places
    if Address(places.bind, places.port).accepts():
        raise BenchError(f"port {places.port} is in use; name another with --port or leave it out")
    if not placed.url.startswith("https:"):
        return
    if not placed.front.tls:
        raise BenchError(f"{placed.case.stack.name}: {placed.front.name} has no TLS listener; use listener=plain")
    make_certificate(launcher.layout.tls)
    launcher.identity.give_tree(launcher.layout.tls)


def _start_services(services: Services, case: Case, shares: Services | None) -> str:
    """Start the database's service and those of the layers, or use those of another; returns the DATABASE_URL."""
    chosen = case.database
    if shares:
        services.share(shares)
        return chosen.url
    if chosen.service:
        with _global_fault():
            filled = database.is_filled(case.project.by_the_instrument, chosen)
            services.start(catalog.read().services[chosen.service], is_empty=not filled)
    for service in case.services:
        services.start(service)
    return services.database_url


@contextmanager
def _naming_silent_caches(case: Case) -> Iterator[None]:
    """Add the project's caches that do not respond to a failure: its pages may need them."""
    try:
        yield
    except DeploymentError as error:
        lines = health.silent_caches(case.project).values()
        if not lines:
            raise
        raise DeploymentError("; ".join([error.message, *lines]), error.log) from None


@contextmanager
def _global_fault() -> Iterator[None]:
    """Turn a failure of the database's service into a GlobalFault: no deployment comes up without a database."""
    try:
        yield
    except GlobalFault:
        raise
    except BenchError as error:
        raise GlobalFault(str(error)) from None
