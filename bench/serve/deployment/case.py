"""The case: a project served by a stack with layers, at a size, on a database. A command resolves the case once, and
passes it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs

from bench import paths, programs
from bench.errors import BenchError
from bench.serve.catalog import catalog, compatibility, values
from bench.serve.catalog.manifest import CACHED, Layer, Service, Stack
from bench.serve.catalog.names import NO_LAYER
from bench.serve.catalog.server import Declaration, Server
from bench.serve.catalog.sizes import UNLIMITED, Size
from bench.serve.catalog.values import AUTO, BENCH, Values
from bench.serve.deployment import workers
from bench.serve.deployment.database import AS_IS, NO_DATABASE, Database, parse, rows_at
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest, refusal

# The value `pool` that is part of Django.
POOL_OF_DJANGO = "django"
# Its variable, and a database for settings that are only read.
POOL, NO_SERVER = "BENCHAPP_POOL", "postgresql://127.0.0.1:1/none"
OWN_CACHE = "it uses the cache of the given CACHE_URL"


@dataclass(frozen=True)
class CannotRun:
    """The reason why a stack with a layer cannot run here."""

    reason: str


@dataclass(frozen=True)
class Case:
    """One case to serve and measure, resolved and frozen.

    project    the project, with the Python that serves it
    stack      the chain of its servers
    layers     the layers over the stack, as used here: another cache may stand in for a missing one
    manifests  the same layers as in their manifests
    size       the limit of stack, layers and services together
    database   the database with the rows
    values     the file of values, with the user's changes and environment
    programs   the program of each server, by the server's name
    modules    the modules of each server with loadable modules, by the server's name
    services   the services to start
    env        the application server's environment for stack and layers, as templates
    notes      notes for a reader of the results, such as a replaced service
    declares   the checks that stack, servers or layers declare as not supported
    workers    whether the project's workers run beside the servers
    """

    project: UnderTest
    stack: Stack
    layers: tuple[Layer, ...]
    size: Size
    database: Database
    values: Values
    programs: Mapping[str, Path] = field(default_factory=dict)
    modules: Mapping[str, dict[str, str]] = field(default_factory=dict)
    services: tuple[Service, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    declares: tuple[Declaration, ...] = ()
    manifests: tuple[Layer, ...] = ()
    workers: bool = False

    @property
    def name(self) -> str:
        """For people: `STACK with layer LAYER`."""
        return f"{self.stack.name} with layer {self.layer_name}"

    @property
    def user_env(self) -> dict[str, str]:
        return dict(self.values.user_env)

    def changed(self, changes: Mapping[str, Any]) -> Case | CannotRun:
        """The same with some values changed."""
        values = self.values.changed({**self.values.changes, **changes})
        return _resolved(replace(self, values=values, notes=()))

    @property
    def settings(self) -> dict[str, Any]:
        """The names for templates: values of the file, the stack and the user, and names derived from them."""
        names, env = self._names, {**self.values.env, **self.user_env}
        flags = {"https_only": int(env.get("BENCHAPP_HTTPS") == "1"), "probed": env.get("BENCHAPP_PROBES") == "1"}
        return {**names, **values.derived(names), **flags}

    @property
    def _names(self) -> dict[str, Any]:
        return {**self.values.names, **self.stack.values, **self.values.changes}

    @property
    def breaks(self) -> dict[str, str]:
        """Faults with more effect on visitors than expected, each with the reason; the stack's own reason wins."""
        names = {layer.name for layer in self.layers}
        of_layers = chain.from_iterable(layer.breaks for layer in self.layers)
        of_servers = chain.from_iterable(server.breaks for server in self.servers)
        reasons: dict[str, str] = {}
        for item in (*of_layers, *of_servers, *self.stack.breaks):
            if not item.layers or names & set(item.layers):
                reasons[item.fault] = item.reason
        return reasons

    @property
    def threads(self) -> int:
        """The number of concurrent requests of the application server: processes times threads."""
        return int(self.settings["processes"]) * int(self.settings["threads"])

    @property
    def sidecars(self) -> dict[str, tuple[str, ...]]:
        """The programs that the layers run beside the servers, by name."""
        argv_by_name: dict[str, tuple[str, ...]] = {}
        for layer in self.layers:
            for name, argv in layer.sidecars.items():
                argv_by_name[name] = tuple(argv)
        return argv_by_name

    @property
    def servers(self) -> tuple[Server, ...]:
        """The chain: the servers of the stack, then the layers' servers in front, the outermost last."""
        return compatibility.chain(self.stack, self.layers, self._names["listener"])

    @property
    def web_server_has_static_files(self) -> bool:
        """True if a web server of the stack, and not the application, serves the static files."""
        return self.env.get("BENCHAPP_WHITENOISE") == "0"

    @property
    def caches(self) -> str:
        """The kind of content in the layers' caches: `pages`, `parts` of pages, or `nothing`."""
        kinds = {layer.caches for layer in self.layers}
        return max(kinds, key=CACHED.index, default="nothing")

    @property
    def layer_name(self) -> str:
        return "+".join(layer.name for layer in self.layers)


def resolve(
    project: UnderTest,
    stack: str,
    layer: str = NO_LAYER,
    *,
    size: str = UNLIMITED.name,
    database: Database | None = None,
    chosen: Values | None = None,
) -> Case | CannotRun:
    """The case of these names, or the reason why no such case can run here.

    layer     one, or several joined with `+`
    database  from `serve.database.parse`; None for the project's usual one
    chosen    the values, with the user's; a cache in the user's environment replaces the service for layers

    Raises BenchError for an unknown name.
    """
    known = catalog.read()
    served_stack, layers, limits = known.stack(stack), known.joined_layers(layer), known.size(size)
    # An early error, before anything is planned: all served files are in these folders.
    paths.must_be_plain(project.folder, project.venv, project.var)
    if reason := compatibility.stack_problem(served_stack, layers) or refusal(project, served_stack, layers):
        return CannotRun(reason)
    rows = database or parse(project, None)
    served = project.served_by(served_stack.python).at(served_stack.ref)
    chosen = chosen or known.values[BENCH]
    return _resolved(Case(served, served_stack, layers, limits, rows_at(served, rows), chosen, manifests=layers))


def must_resolve(
    project: UnderTest,
    stack: str,
    layer: str = NO_LAYER,
    *,
    changes: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    **how: Any,
) -> Case:
    """Like `resolve`, with the user's values and environment; raises BenchError with the reason if the case cannot run
    here.
    """
    chosen = catalog.read().of_user(changes or {}, env or {})
    case = resolve(project, stack, layer, chosen=chosen, **how)
    if isinstance(case, CannotRun):
        raise BenchError(f"{stack} with layer {layer} cannot run here: {case.reason}")
    return case


def for_files(project: UnderTest, stack: str, layer: str, chosen: Values, size: str = UNLIMITED.name) -> Case:
    """The case under these values, whether or not its programs are installed here.

    A missing program is assumed at Debian's path. Raises BenchError for a layer that does not fit.
    """
    known = catalog.read()
    served_stack, layers = known.stack(stack), known.joined_layers(layer)
    if reason := compatibility.stack_problem(served_stack, layers) or refusal(project, served_stack, layers):
        raise BenchError(f"{stack} with layer {layer}: {reason}")
    env = dict(served_stack.env)
    for each in layers:
        env.update(each.env)
    case = Case(project, served_stack, layers, known.size(size), NO_DATABASE, chosen, env=env)
    return with_services_for_files(_with_programs(_with_workers(case))[0])


def with_services_for_files(case: Case) -> Case:
    """The case with the services named by its values, as in the Debian release of the values, installed here or not."""
    known = catalog.read()
    names: dict[str, None] = {}
    for layer in case.layers:
        names |= dict.fromkeys(compatibility.services_of(layer, case.settings))
    names |= dict.fromkeys(_pool_services(case))
    release = case.settings["debian"]
    return replace(case, services=tuple(known.service(name).in_debian(release) for name in names))


def _resolved(case: Case) -> Case | CannotRun:
    """The case with its programs and services, or the reason for a missing one."""
    case, missing = _with_programs(_with_workers(case))
    if missing:
        return CannotRun(missing[0])
    return _with_services(case)


def _with_programs(case: Case) -> tuple[Case, list[str]]:
    """The case with the programs of its servers and their modules, and the reason for each missing program.

    Missing programs are assumed at Debian's paths.
    """
    paths_by_server: dict[str, Path] = {}
    modules: dict[str, dict[str, str]] = {}
    missing: list[str] = []
    venvs = case.project.servers_in
    for server in case.servers:
        install = compatibility.how_to_install(server)
        program = programs.find(server.programs, server.search, venvs)
        if program is None and not case.project.installs and compatibility.is_installed_later(server):
            program = case.project.venv / "bin" / server.programs[0]
        if program is None:
            missing.append(f"{compatibility.NOT_INSTALLED}: {' or '.join(server.programs)}; {install}")
        paths_by_server[server.name], modules[server.name] = program or Path(server.directory) / server.programs[0], {}
        for name, globs in compatibility.modules_of(server, case.layers).items():
            path = programs.module(globs, venvs)
            if path is None:
                reason = f"{server.name} has no module {name}; {install}"
                if case.stack.python:
                    reason = f"{server.name} has its module {name} for one Python, which is not {case.stack.python}"
                missing.append(reason)
            modules[server.name][name] = path or globs[0]
    return replace(case, programs=paths_by_server, modules=modules), missing


def _with_services(case: Case) -> Case | CannotRun:
    """The case with its services, or with replacements of services that are not installed."""
    known, stack = catalog.read(), case.stack
    services: dict[str, Service] = {}
    env, notes, own, used = dict(stack.env), [], [], []
    for manifest in case.manifests:
        layer = compatibility.in_own_cache(manifest, case.user_env)
        if layer is not manifest:
            own.append(f"{layer.name}: {OWN_CACHE}")
        env.update(layer.env)
        here = layer
        for name in compatibility.services_of(layer, case.settings):
            service = compatibility.as_installed(known.service(name))
            if not compatibility.missing_programs(service):
                services[name] = service
            elif name in layer.without:
                instead = layer.without[name]
                env.update(instead.get("env", {}))
                notes.append(f"{layer.name}: {instead['note']}")
                here = structs.replace(here, **compatibility.fallback_facts(instead))
            else:
                return CannotRun(compatibility.not_installed(service))
        used.append(here)
    if reason := _no_pool(case):
        return CannotRun(reason)
    for name in _pool_services(case):
        services[name] = known.service(name)
        if compatibility.missing_programs(services[name]):
            return CannotRun(compatibility.not_installed(services[name]))
    if stack.reason:
        notes.append(f"{stack.name}: {stack.reason}")
    return replace(
        case,
        layers=tuple(used),
        services=tuple(services.values()),
        env=env,
        notes=(*case.notes, *notes, *own),
        declares=compatibility.declared(tuple(used), stack),
    )


def _with_workers(case: Case) -> Case:
    """The case with a number in place of `processes = auto`, and a note with the reason for the number."""
    if case.settings["processes"] != AUTO:
        return case
    own = case.stack.values.get("processes")
    if own not in (None, AUTO):
        return replace(case, values=case.values.changed({"processes": own}))
    if case.values.places and not case.size.is_limited:
        raise BenchError("processes=auto: nothing is known of the host; give --size, or a number of processes")
    worker_mb = case.project.facts.worker_mb or workers.USUAL_WORKER_MB
    number, reason = workers.fitting(case.size, worker_mb, int(case.settings["threads"]))
    return replace(case, values=case.values.changed({"processes": number}), notes=(*case.notes, reason))


def _pool_services(case: Case) -> list[str]:
    """The service between the site and its database for the value `pool`, if a service."""
    pool = case.settings["pool"]
    if pool in catalog.read().services:
        return [pool]
    return []


def _no_pool(case: Case) -> str:
    """The reason why the database of a case has no such pool, or an empty string."""
    pool, chosen = case.settings["pool"], case.database
    if pool not in (POOL_OF_DJANGO, *_pool_services(case)) or chosen is NO_DATABASE:
        return ""
    is_postgresql = bool(chosen.service) or chosen.url.startswith("postg")
    if chosen.label == AS_IS and pool == POOL_OF_DJANGO:
        is_postgresql = "postg" in case.project.facts.databases["default"]
    if not is_postgresql:
        return f"pool={pool}: it is for PostgreSQL: give --database postgresql, or the URL of a database"
    if pool == POOL_OF_DJANGO and case.project.installs:
        return _refused_pool(case)
    return ""


def _refused_pool(case: Case) -> str:
    """The reason why the settings of a case's project refuse Django's pool, or an empty string."""
    project, env = case.project, {POOL: POOL_OF_DJANGO, **case.user_env}
    url = case.database.url
    if case.database.service:
        url = NO_SERVER
    question = ("pool", project.python, url, tuple(sorted(env.items())))
    return project.once(question, lambda: _refusal_of_pool(project, url, env))


def _refusal_of_pool(project: UnderTest, url: str, env: dict[str, str]) -> str:
    identity = project.worker()
    commands.make_files(project, identity)
    try:
        commands.check(project, url, env, identity, settings_only=True)
    except BenchError as error:
        return f"{error}, for {project.python}"
    return ""
