"""A composition brought up on this machine, and taken down whatever happens."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import paths
from bench.catalog import catalog, compose, sizes
from bench.catalog.compose import Composition
from bench.errors import BenchError, DeploymentError, GlobalFault
from bench.machine import orphans, ports, processes, small_disk, supervise
from bench.machine.cgroups import Group
from bench.machine.identity import worker
from bench.machine.supervise import Address, Process
from bench.project import commands, health, under_test
from bench.serve import database, release, render
from bench.serve.chain import Chain, front_url
from bench.serve.database import Database
from bench.serve.launch import Launcher
from bench.serve.layout import Layout, Places, directories
from bench.serve.release import Releases
from bench.serve.services import Services
from bench.serve.tls import make_certificate


@dataclass
class Running:
    """A deployment that serves.

    ready_s  seconds from the first server started to the first healthy answer
    notes    what a reader of its results must know
    database whose rows it serves; for a private service without the URL, which is in `env`
    group    the control group of its size, None without one
    releases what it serves, where it was asked to serve releases rather than the checkout
    memory_idle_bytes  PSS of every process tree when all had just become ready; None where it cannot be read
    """

    composition: Composition
    layout: Layout
    services: Services
    chain: Chain
    group: Group | None
    ready_s: float
    notes: list[str]
    database: Database
    releases: Releases | None = None
    memory_idle_bytes: dict[str, int | None] = field(init=False)

    def __post_init__(self) -> None:
        self._note_memory()

    @property
    def url(self) -> str:
        """Where clients speak to it, without a slash at the end."""
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
        """How many bytes those logs have together."""
        return sum(path.stat().st_size for path in self.logs.rglob("*") if path.is_file())

    @property
    def store(self) -> Path:
        """The directory of what servers cache in files."""
        return self.layout.store

    @property
    def processes(self) -> list[Process]:
        """Everything that was started and should run now: services, sidecars of layers, servers."""
        return [*self.services.processes, *self.chain.processes]

    @property
    def pids(self) -> dict[str, int]:
        """The root of the process tree of every server and service, by name (`name-2` for a second instance)."""
        return {process.name: process.pid for process in self.processes}

    @property
    def servers(self) -> tuple[str, ...]:
        """The names among `pids` that are servers of the chain: neither services nor sidecars of layers."""
        return tuple(process.name for process in self.chain.servers)

    def empty_layer(self) -> None:
        """Empty what the layers cache: stored pages are removed, caching services and application servers restarted."""
        self.chain.stop()
        self.services.restart_caches()
        self.layout.empty_store()
        self.chain.start()
        self._note_memory()

    def entries(self) -> int:
        """How many entries the caches of its servers have, without files and services."""
        return self.chain.entries()

    def oom_kills(self) -> int | None:
        """How many of its processes the kernel has killed at the memory limit of its size; None without one."""
        return self.group.oom_kills() if self.group else None

    def answers(self) -> bool:
        """Whether the site gives a healthy answer now."""
        return self.chain.answers()

    def died(self) -> DeploymentError | None:
        """Which server or service has ended by itself and why, or None while all run."""
        return next(filter(None, (process.died() for process in self.processes)), None)

    def start_again(self, name: str) -> None:
        """Start a server, service or sidecar that has ended, where it was, without waiting until it serves.

        Raises DeploymentError when its program cannot be executed.
        """
        part = self.services if name in {process.name for process in self.services.processes} else self.chain
        part.start_again(name)

    def without_service(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Stop a service of the deployment, and start it again where it was when the block ends, however it ends."""
        return self.services.stopped(name)

    def hung(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Have a server or service hang until the block ends: connections to it open, and nothing answers on them."""
        return supervise.hung(next(process for process in self.processes if process.name == name))

    @contextmanager
    def on_small_disk(self, folder: Path | None = None) -> Iterator[small_disk.SmallDisk]:
        """Restart the servers with an empty store, or another directory of theirs, on a small disk of its own.

        It is so until the block ends. Raises small_disk.CannotMount where that is not possible.
        """
        folder = folder or self.store
        self.chain.stop()
        try:
            with small_disk.mounted(folder) as disk:
                worker(self.layout.run_dir).give(folder)
                self.chain.start()
                yield disk
        finally:
            self.chain.stop()
            self.chain.start()

    def restart(self, name: str) -> None:
        """Stop a server or service of the deployment and start it again where it was, with all that it has on disk."""
        if name in self.servers:
            self.chain.restart(name)
        else:
            with self.services.stopped(name):
                pass

    @contextmanager
    def again(self, changes: dict[str, Any]) -> Iterator[Running]:
        """The same deployment once more beside this one, on the same database, with some values changed."""
        here = self.composition
        changed = {**here.values.changes, **changes}
        composition = compose.must_compose(here.stack.name, here.layer_name, changed, here.given_env)
        with deployed(composition, database=self._same_database) as running:
            yield running

    @contextmanager
    def beside(self) -> Iterator[Running]:
        """A second web server: the same deployment once more, on the same database and the very same services."""
        with deployed(self.composition, database=self._same_database, shares=self.services) as running:
            yield running

    @property
    def _same_database(self) -> Database:
        return self.database.again(self.env["DATABASE_URL"])

    def _note_memory(self) -> None:
        self.memory_idle_bytes = {name: processes.memory_bytes(pid) for name, pid in self.pids.items()}


def _show_nothing(step: str) -> None:
    pass


@contextmanager
def deployed(
    composition: Composition,
    *,
    database: str | Database | None = None,
    size: str = sizes.UNLIMITED,
    port: int | None = None,
    run_dir: Path | None = None,
    progress: Callable[[str], None] = _show_nothing,
    releases: bool = False,
    shares: Services | None = None,
) -> Iterator[Running]:
    """Bring the composition up, yield it once it serves, and stop all of it at the end.

    database  `sqlite`, the name of a persistent service, or a URL (see serve.database.parse), or one that was parsed
    size      the limit put on services, servers and sidecars together; a name of deploy/values/sizes.toml
    port      the front port on 127.0.0.1; a free one when None
    run_dir   an empty or new directory for rendered files, logs and stored pages; a temporary one when None
    progress  called with each step in words; with nothing before something else shows its progress
    releases  serve a copy of the project, which a new release can replace, rather than the checkout
    shares    the services of another deployment, used instead of own ones

    Raises BenchError when it cannot run here and DeploymentError, with the log that says why, when it does not come up.
    """
    limits = catalog.read().size(size)
    with ExitStack() as cleanup:
        project = cleanup.enter_context(under_test.using(composition.stack.python))
        _must_be_plain(project.folder, project.venv, run_dir or Path(tempfile.gettempdir()))
        orphans.clean()
        group = sizes.group(limits)
        layout = cleanup.enter_context(directories(run_dir, f"{composition.stack.name}~{composition.layer_name}"))
        register = cleanup.enter_context(orphans.Register(layout.scratch))
        if group and limits:
            # Registered before it is made, so that the next command can remove it after a kill.
            register.add_group(group)
            cleanup.callback(group.remove)
            group.create(limits.limits)
        places = layout.places(identity := worker(layout.run_dir), port or ports.free_port())
        copies = Releases(layout, identity) if releases else None
        launcher = Launcher(identity, layout.sockets, layout.logs, register, group)
        yield _brought_up(composition, layout, places, launcher, database, cleanup, progress, copies, shares)


def _must_be_plain(*folders: Path) -> None:
    for folder in folders:
        paths.must_be_plain(folder)


def _brought_up(
    composition: Composition,
    layout: Layout,
    places: Places,
    launcher: Launcher,
    asked: str | Database | None,
    cleanup: ExitStack,
    progress: Callable[[str], None],
    releases: Releases | None,
    shares: Services | None,
) -> Running:
    """Start services and servers, the inner before the outer, and wait until the site answers."""
    chosen = asked if isinstance(asked, Database) else database.parse(asked)
    health.require(under_test.current(), chosen.of_project)
    name = f"{composition.stack.name} with layer {composition.layer_name}"
    progress(f"starting {name}: database and services")
    _prepare_front(composition, layout, places, launcher)
    commands.make_files(launcher.identity)
    given = dict(composition.given_env)
    database.check(chosen, {**composition.values.env, **given} if given else {}, launcher.identity)
    commands.collect_static(launcher.identity)
    commands.link_media(launcher.identity)
    places = releases.begin(places) if releases else places
    services = Services(composition, layout, places, launcher)
    cleanup.callback(services.stop)
    url = _start_services(services, composition, chosen, shares)
    with _global_fault(), under_test.by_the_instrument():
        database.prepare(chosen, url, launcher.identity, progress)
    begun = time.monotonic()
    env = {**commands.site_environment(url, layout.sockets), "BENCHAPP_STATIC_ROOT": places.static_root, **services.env}
    env = {**env, **render.site_env(composition, places), **(release.MARKED if releases else {}), **given}
    wiring = render.wire(composition, places, ports.free_port)
    render.write_files(composition, places, wiring, layout.conf)
    chain = Chain(composition, places, wiring, launcher, env)
    cleanup.callback(chain.stop)
    progress(f"starting {name}: {', '.join(server.name for server in composition.servers)}")
    chain.start()
    took_s, notes = time.monotonic() - begun, _notes(composition, chosen, launcher)
    return Running(composition, layout, services, chain, launcher.group, took_s, notes, chosen, releases)


def _notes(composition: Composition, chosen: Database, launcher: Launcher) -> list[str]:
    """What a reader of its results must know: of layers, the project, its rows, and the user that servers run as."""
    notice = launcher.identity.notice
    of_project = [*under_test.current().notes, *database.notes(chosen)]
    return [*composition.notes, *of_project, *([notice] if notice else [])]


def _prepare_front(composition: Composition, layout: Layout, places: Places, launcher: Launcher) -> None:
    """Check that the front port is free, and make the certificate of a TLS listener."""
    if Address(places.bind, places.port).accepts():
        raise BenchError(f"port {places.port} is in use; name another with --port or leave it out")
    if not front_url(composition, places).startswith("https:"):
        return
    front = composition.servers[-1]
    if not render.has_tls(front, composition):
        raise BenchError(f"{composition.stack.name}: {front.name} has no TLS listener; use listener=plain")
    make_certificate(layout.tls)
    launcher.identity.give_tree(layout.tls)


def _start_services(services: Services, composition: Composition, chosen: Database, shares: Services | None) -> str:
    """Start the database's service and those of the layers, or use those of another; returns the DATABASE_URL."""
    if shares:
        services.share(shares)
        return chosen.url
    if chosen.service:
        with _global_fault():
            services.start(catalog.read().services[chosen.service])
    for service in composition.services:
        services.start(service)
    return services.env.get("DATABASE_URL", chosen.url)


@contextmanager
def _global_fault() -> Iterator[None]:
    """Turn a failure of the database's service into a GlobalFault: without it no deployment comes up."""
    try:
        yield
    except GlobalFault:
        raise
    except BenchError as error:
        raise GlobalFault(str(error)) from None
