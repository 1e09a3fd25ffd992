"""A composition brought up on this machine, and taken down whatever happens."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import paths, programs
from bench.catalog import catalog, compose, sizes
from bench.catalog.compose import Composition
from bench.catalog.manifest import Service
from bench.catalog.sizes import Size
from bench.errors import BenchError, DeploymentError, GlobalFault
from bench.host import http, orphans, ports, processes, supervise
from bench.host.cgroups import Group
from bench.host.identity import Identity, worker
from bench.host.shared_service import Kept
from bench.host.supervise import Address, Process
from bench.project import commands
from bench.serve import database, render
from bench.serve.database import Database
from bench.serve.render import Places

READY_TIMEOUT_S = 30
HEALTH = "/healthz"


@dataclass
class Running:
    """A deployment that serves.

    url      where clients speak to it, without a slash at the end
    ready_s  seconds from the first program started to the first healthy answer
    pids     the root of the process tree of every server and service, by name (`name-2` for a second instance)
    logs     the directory of their logs
    notes    what a reader of its results must know
    env      the environment of the application server
    store    the directory of what servers keep in files
    memory_idle_bytes  PSS of each of these trees when all had just become ready; None where it cannot be read
    """

    composition: Composition
    url: str
    ready_s: float
    pids: dict[str, int]
    logs: Path
    notes: list[str]
    env: dict[str, str]
    conf: Path
    store: Path
    memory_idle_bytes: dict[str, int | None]
    _parts: _Parts = field(repr=False)

    def empty_layer(self) -> None:
        """Empty what the layers hold: stored pages are removed, caching services and application servers restarted."""
        self._parts.empty()
        self.pids = self._parts.pids()
        self.memory_idle_bytes = self._parts.memory()

    @property
    def servers(self) -> tuple[str, ...]:
        """The names among `pids` that are servers of the chain: neither services nor what layers run beside."""
        return tuple(process.name for process in self._parts.servers)

    def oom_kills(self) -> int | None:
        """How many of its processes the kernel has killed at the memory limit of its size; None without one."""
        return self._parts.group.oom_kills() if self._parts.group else None

    def answers(self) -> bool:
        """Whether the site gives a healthy answer now."""
        return self._parts.answers()

    def died(self) -> DeploymentError | None:
        """Which server or service has ended by itself and why, or None while all run."""
        return next(filter(None, (process.died() for process in self._parts.watched())), None)

    @contextmanager
    def without_service(self, name: str) -> Iterator[None]:
        """Stop a service of the deployment, and start it again where it was when the block ends, however it ends."""
        self._parts.stop_service(name)
        try:
            yield
        finally:
            self._parts.start_service(name)
            self.pids = self._parts.pids()

    @contextmanager
    def hung_service(self, name: str) -> Iterator[None]:
        """Have a service of the deployment hang: it takes connections and answers nothing until the block ends."""
        self._parts.signal_service(name, signal.SIGSTOP)
        try:
            yield
        finally:
            self._parts.signal_service(name, signal.SIGCONT)

    @contextmanager
    def again(self, changes: dict[str, Any]) -> Iterator[Running]:
        """The same deployment once more beside this one, on the same database, with some values changed."""
        here = self.composition
        changed = {**here.values.changes, **changes}
        composition = compose.must_compose(here.stack.name, here.layer_name, changed, here.given_env)
        with deployed(composition, database=self.env["DATABASE_URL"]) as running:
            yield running


@contextmanager
def deployed(
    composition: Composition,
    *,
    database: str | None = None,
    size: str = sizes.UNLIMITED,
    port: int | None = None,
    run_dir: Path | None = None,
) -> Iterator[Running]:
    """Bring the composition up, yield it once it serves, and stop all of it in the end.

    database  `sqlite`, the name of a service that keeps data, or a URL; see serve.database.parse
    size      the limit put on services, servers and what layers run, together; a name of deploy/sizes.toml
    port      the front port on 127.0.0.1; a free one when None
    run_dir   an empty or new directory for rendered files, logs and stored pages; a temporary one when None

    Raises BenchError when it cannot run here and DeploymentError, with the log that says why, when it does not come up.
    """
    limits = catalog.read().size(size)
    for path in (paths.PROJECT, paths.VENV, run_dir or Path(tempfile.gettempdir())):
        paths.must_be_plain(path)
    orphans.clean()
    group = sizes.group(limits)
    with contextlib.ExitStack() as cleanup:
        temporary = run_dir is None
        if temporary:
            run_dir = Path(tempfile.mkdtemp(prefix="benchapp-"))
            cleanup.callback(shutil.rmtree, run_dir, ignore_errors=True)
        parts = _Parts(composition, run_dir.absolute(), port, temporary, group)
        cleanup.callback(parts.stop)
        parts.limit(limits)
        try:
            yield parts.bring_up(database)
        except DeploymentError as error:
            if not temporary:
                raise
            raise _with_kept_log(error, parts.logs, f"{composition.stack.name}~{composition.layer_name}") from None


def _with_kept_log(error: DeploymentError, logs: Path, name: str) -> DeploymentError:
    """The error with its logs moved out of a run directory that is about to be removed."""
    kept = paths.VAR / "logs" / name
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(logs, kept)
    return error.moved(kept) if error.log and error.log.parent == logs else error


class _Parts:
    """What a deployment is made of, and the order it starts and stops in."""

    def __init__(
        self,
        composition: Composition,
        run_dir: Path,
        port: int | None,
        temporary: bool,
        group: Group | None = None,
    ):
        self.composition = composition
        self.values = composition.values
        render.fresh_directory(run_dir)
        worker().give(run_dir)
        self.identity: Identity = worker(run_dir)
        # What serves runs inside the size's group; what only prepares runs outside.
        self.group = group
        self.inside = replace(self.identity, prefix=(*group.join, *self.identity.prefix)) if group else self.identity
        self.sockets = _socket_folder(run_dir)
        self.register = orphans.Register(run_dir if temporary else self.sockets)
        self.conf, self.logs = run_dir / "conf", run_dir / "logs"
        self.places = bench_places(run_dir, self.sockets, self.identity, port or ports.free_port())
        for folder in (self.conf, self.logs, Path(self.places.store), self.sockets):
            folder.mkdir(parents=True, exist_ok=True)
            self.identity.give(folder)
        self.beside: list[Process] = []
        self.servers: list[Process] = []
        self.services: list[tuple[Process, Service, dict[str, Any]]] = []
        self.kept: list[Kept] = []
        self.env: dict[str, str] = {}
        self.clean_env = commands.clean_environment(self.sockets)

    def limit(self, size: Size | None) -> None:
        """Make the group of the size; it is written down first, so that it is removed whatever happens."""
        if self.group and size:
            self.register.add_group(self.group)
            self.group.create(size.limits)

    def answers(self) -> bool:
        return http.status(self.url, HEALTH) == 200

    def bring_up(self, asked: str | None) -> Running:
        """Start services and servers, the inner before the outer, and wait until the site answers."""
        chosen, env = database.parse(asked), dict(self.composition.given_env)
        self._check_port()
        database.try_at_the_door(chosen, {**self.values.env, **env} if env else {}, self.identity)
        if self._all_values()["listener"] == "tls":
            self._make_certificate()
        commands.collect_static(self.identity)
        url = self._start_services(chosen)
        with _global_fault(True):
            database.prepare(chosen, url, self.identity)
        started = time.monotonic()
        self.env = {**self._site_env(url), **env}
        self.wiring = render.wire(self.composition.servers, self.places, self._all_values(), ports.free_port)
        render.write_files(self.composition, self.places, self.wiring, self.values, self.conf)
        self._start_all()
        return Running(
            composition=self.composition,
            url=self.url,
            ready_s=time.monotonic() - started,
            pids=self.pids(),
            logs=self.logs,
            notes=self._notes(),
            env=self.env,
            conf=self.conf,
            memory_idle_bytes=self.memory(),
            store=Path(self.places.store),
            _parts=self,
        )

    @property
    def url(self) -> str:
        scheme = "https" if self._all_values()["listener"] == "tls" else "http"
        return f"{scheme}://{self.places.bind}:{self.places.port}"

    def processes(self) -> list[Process]:
        return [*(item[0] for item in self.services), *self.beside, *self.servers]

    def watched(self) -> list[Process | Kept]:
        """All that must run for the site to be served, what others may have started included."""
        return [*self.kept, *self.processes()]

    def pids(self) -> dict[str, int]:
        return {process.name: process.pid for process in self.watched()}

    def memory(self) -> dict[str, int | None]:
        return {name: processes.memory_bytes(pid) for name, pid in self.pids().items()}

    def stop(self) -> None:
        """Stop everything and leave no process, socket or register entry behind."""
        supervise.stop(self.processes())
        for kept in self.kept:
            kept.leave()
        if self.group:
            self.group.remove()
        shutil.rmtree(self.sockets, ignore_errors=True)
        self.register.close()

    def empty(self) -> None:
        """Stop the servers, empty store and caching services, and start again on the same addresses."""
        supervise.stop([*self.beside, *self.servers])
        self.beside.clear()
        self.servers.clear()
        for item in list(self.services):
            process, service, context = item
            supervise.stop([process])
            self.services.remove(item)
            self._launch_service(service, context)
        for path in Path(self.places.store).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._start_all()

    def stop_service(self, name: str) -> None:
        supervise.stop([self._service(name)[0]])

    def start_service(self, name: str) -> None:
        item = self._service(name)
        self.services.remove(item)
        self._launch_service(*item[1:])

    def signal_service(self, name: str, number: signal.Signals) -> None:
        """Send a signal to all processes of the service."""
        os.killpg(self._service(name)[0].pid, number)

    def _service(self, name: str) -> tuple[Process, Service, dict[str, Any]]:
        return next(item for item in self.services if item[1].name == name)

    def _check_port(self) -> None:
        if Address(self.places.bind, self.places.port).accepts():
            raise BenchError(f"port {self.places.port} is in use; name another with --port or leave it out")

    def _make_certificate(self) -> None:
        front = self.composition.servers[-1]
        if not render.has_tls(front, self.composition):
            raise BenchError(f"{self.composition.stack.name}: {front.name} has no TLS listener; use listener=plain")
        openssl = programs.find(["openssl"])
        if openssl is None:
            raise BenchError("openssl not found: it makes the certificate for listener=tls; install openssl")
        folder = Path(self.places.tls)
        folder.mkdir(exist_ok=True)
        key, certificate = folder / "privkey.pem", folder / "fullchain.pem"
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
        argv = [str(openssl), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        argv += ["-days", "30", "-keyout", str(key), "-out", str(certificate), *subject]
        subprocess.run(argv, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        # Some servers read both from one file.
        (folder / "both.pem").write_bytes(certificate.read_bytes() + key.read_bytes())
        self.identity.give_tree(folder)

    def _start_services(self, chosen: Database) -> str:
        """Start the database's service and the layers' services; returns the DATABASE_URL."""
        known = catalog.read().services
        url = chosen.url
        for service in [*([known[chosen.service]] if chosen.service else []), *self.composition.services]:
            with _global_fault(service.name == chosen.service):
                context = self._start_service(service)
            env = {key: render.text(text, context, f"{service.name} env") for key, text in service.env.items()}
            url = env.get("DATABASE_URL", url)
            self.env.update(env)
        return url

    def _start_service(self, service: Service) -> dict[str, Any]:
        if missing := compose.missing_programs(service):
            raise BenchError(f"service {service.name}: program not installed: {', '.join(missing)}; {compose.INSTALL}")
        found = {key: str(programs.find([name], service.search)) for key, name in service.programs.items()}
        if service.persistent:
            return self._join_service(service, found)
        context = render.service_context(service, found, self.places, self.values, self.sockets / "data")
        _write_config(service, context, self.conf)
        self._launch_service(service, context)
        return context

    def _join_service(self, service: Service, found: dict[str, str]) -> dict[str, Any]:
        """Use the service that others may have started, or start it."""
        kept = Kept(service.name, self.inside, alone=self.group is not None)
        self.kept.append(kept)
        with kept.entering() as runs:
            places = replace(self.places, run=str(kept.run), conf=str(kept.folder))
            context = render.service_context(service, found, places, self.values, kept.folder / "data")
            if not runs:
                self._start_kept(kept, service, context)
        return context

    def _start_kept(self, kept: Kept, service: Service, context: dict[str, Any]) -> None:
        _write_config(service, context, kept.folder)
        if service.prepare and not (kept.folder / "data").exists():
            self._run_once(service, service.prepare, context)
        env = commands.clean_environment(kept.run)
        kept.start(render.argv(service.start, context, f"{service.name} start"), service.stop, env)
        probe = render.argv(service.probe, context, f"{service.name} probe")
        supervise.wait_command(kept, probe, env, READY_TIMEOUT_S)
        if service.created and not (kept.folder / "created").exists():
            self._run_once(service, service.created, context)
            (kept.folder / "created").touch()

    def _launch_service(self, service: Service, context: dict[str, Any]) -> None:
        argv = render.argv(service.start, context, f"{service.name} start")
        process = self._start(service.name, argv, self.clean_env, stop_signal=service.stop)
        self.services.append((process, service, context))
        if service.probe:
            probe = render.argv(service.probe, context, f"{service.name} probe")
            supervise.wait_command(process, probe, self.clean_env, READY_TIMEOUT_S)
        else:
            supervise.wait_accepting(process, Address(path=context["socket"]), READY_TIMEOUT_S)

    def _run_once(self, service: Service, words: tuple[str, ...], context: dict[str, Any]) -> None:
        argv = render.argv(words, context, f"{service.name} manifest")
        log = self.logs / f"{service.name}.log"
        with log.open("ab") as output:
            done = subprocess.run(
                [*self.identity.prefix, *argv],
                env=self.clean_env,
                cwd=self.sockets,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        if done.returncode != 0:
            raise DeploymentError(f"{service.name}: {Path(argv[0]).name} failed: {supervise.last_line(log)}", log)

    def _site_env(self, url: str) -> dict[str, str]:
        context = {**self._all_values(), **vars(self.places)}
        templates = {**self.values.env, **self.composition.env}
        rendered = {key: render.text(text, context, f"environment {key}") for key, text in templates.items()}
        return {
            **commands.site_environment(url, self.sockets),
            "BENCHAPP_CACHE_SECONDS": str(self.values.names["cache_seconds"]),
            **self.env,
            **rendered,
        }

    def _all_values(self) -> dict[str, Any]:
        return render.settings(self.composition, self.values)

    def _start_all(self) -> None:
        context = {**self._all_values(), **vars(self.places), "python": self.places.python}
        for name, words in self.composition.sidecars.items():
            argv = render.argv(words, context, f"{self.composition.layer_name} beside")
            self.beside.append(self._start(name, argv, self.env, cwd=paths.PROJECT))
        self._start_servers()

    def _start_servers(self) -> None:
        servers = self.composition.servers
        for index, server in enumerate(servers):
            context = render.context_of(server, self.composition, self.places, self.wiring, self.values)
            env = self.env if index == 0 else self.clean_env
            env = {**env, **{key: render.text(text, context, server.name) for key, text in server.env.items()}}
            for number, address in enumerate(self.wiring.listens[server.name], 1):
                argv = render.argv(server.start, {**context, "listen": address}, f"{server.name} start")
                name = render.instance_name(server.name, number)
                self.servers.append(self._start(name, argv, env, cwd=paths.PROJECT))
            for process, address in zip(self.servers[-number:], self.wiring.listens[server.name], strict=True):
                supervise.wait_accepting(process, address, READY_TIMEOUT_S)
        supervise.wait_healthy(self.servers, self.url, HEALTH, READY_TIMEOUT_S)

    def _start(
        self, name: str, argv: list[str], env: dict[str, str], cwd: Path | None = None, stop_signal: str = "TERM"
    ) -> Process:
        process = supervise.start(
            name,
            argv,
            env=env,
            cwd=cwd or self.sockets,
            log=self.logs / f"{name}.log",
            identity=self.inside,
            stop_signal=stop_signal,
        )
        self.register.add(process.pid)
        return process

    def _notes(self) -> list[str]:
        shared = [f"{kept.name} is shared with another stack that is up" for kept in self.kept if kept.joined]
        notice = self.identity.notice
        return [*self.composition.notes, *shared, *([notice] if notice else [])]


def _write_config(service: Service, context: dict[str, Any], folder: Path) -> None:
    if service.config:
        source = service.folder / service.config
        (folder / service.config).write_text(render.text(source.read_text("utf-8"), context, str(source)), "utf-8")


def bench_places(run_dir: Path, sockets: Path, identity: Identity, port: int) -> Places:
    """The places of a deployment on this machine: all in its run directory."""
    return Places(
        project=str(paths.PROJECT),
        venv=str(paths.VENV),
        static_root=str(commands.static_root()),
        conf=str(run_dir / "conf"),
        run=str(sockets),
        logs=str(run_dir / "logs"),
        store=str(run_dir / "store"),
        tls=str(run_dir / "tls"),
        user=identity.user,
        group=str(identity.gid),
        bind="127.0.0.1",
        port=port,
    )


@contextlib.contextmanager
def _global_fault(is_one: bool) -> Iterator[None]:
    """Without its database no deployment comes up, whatever its stack."""
    try:
        yield
    except GlobalFault:
        raise
    except BenchError as error:
        if is_one:
            raise GlobalFault(str(error)) from None
        raise


def _socket_folder(run_dir: Path) -> Path:
    folder = run_dir / "run"
    if len(str(folder)) <= supervise.LONGEST_SOCKET_FOLDER:
        return folder
    return Path(tempfile.mkdtemp(prefix="benchapp-run-", dir="/tmp"))
