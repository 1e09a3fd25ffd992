"""Stacks, layers and services as their manifests declare them: typed, checked when read.

A manifest is `deploy/stacks/<name>/stack.toml`, `deploy/layers/<name>/layer.toml` or
`deploy/services/<name>/service.toml`. A server that several stacks use keeps what is the same everywhere (its
programs, how it is started and checked) in `deploy/common/<server>/server.toml`; the stack's own entry wins. A stack
with `base = "<stack>"` takes over the manifest and the files of another; its own keys and files win.
"""

from __future__ import annotations

import dataclasses
import signal
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import paths
from bench.errors import BenchError

NO_LAYER = "none"
FRONT = "front"
SCOPES = ("app", "server", FRONT)
CACHED = ("nothing", "parts", "pages")
LISTENS = ("tcp", "unix")


@dataclass(frozen=True)
class Server:
    """One supervised program of a stack.

    name       unique in its stack; also the dialect whose layer snippets and common snippets it reads
    programs   names to look for, first found wins
    search     more directories to look in (globs), after the virtual environment and PATH
    version    argv that prints the version
    distribution  instead of `version`: the Python distribution that brings it
    config     its main configuration file, in the stack's folder, a template; empty when its command line says all
    modules    files it loads, by a short name each: globs (templates), first match wins; all must be found
    hint       how to install what is missing, where `make servers` is not the whole answer
    packages   the Debian packages it comes in, the one whose service has its name first; for production's install note
    host       commands to run once on a production host (templates)
    host_modules  where those commands put a module on the host, by the module's short name (templates)
    speaks     the protocol it serves: http or one of the gateway protocols
    keepalive  whether it keeps a connection from the server before it open between requests
    upstream_modules  what it calls the protocols it can speak to the next inner server, by `speaks` of that server
    listen     "tcp" (loopback) or "unix"; the outermost server always listens on TCP
    start      argv that runs it in the foreground, a template an item
    check      argv of its own configuration test, or empty
    good_status  the check's exit status for a good file; 0 but for one server
    bad_output a regular expression that, found in the check's output, means a bad file whatever the exit status
    instances  name of the value that says how many of it to start, each with its own address; empty for one
    env        environment of this server alone
    graceful   the signal on which it finishes the requests under way and ends; production's units send it
    proxied    the Unix socket (a template) where what ends TLS before it speaks the PROXY protocol; empty: none
    about      one line for people
    """

    name: str
    programs: tuple[str, ...]
    speaks: str
    start: tuple[str, ...]
    config: str = ""
    modules: dict[str, list[str]] = field(default_factory=dict)
    hint: str = ""
    packages: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    host_modules: dict[str, str] = field(default_factory=dict)
    listen: str = "tcp"
    keepalive: bool = False
    upstream_modules: dict[str, str] = field(default_factory=dict)
    search: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    distribution: str = ""
    check: tuple[str, ...] = ()
    good_status: int = 0
    bad_output: str = ""
    instances: str = ""
    env: dict[str, str] = field(default_factory=dict)
    graceful: str = "TERM"
    proxied: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if self.listen not in LISTENS:
            raise ValueError(f"server {self.name}: listen is {self.listen!r}; use one of {', '.join(LISTENS)}")
        if not self.programs or not self.start:
            raise ValueError(f"server {self.name}: programs and start must not be empty")
        if f"SIG{self.graceful}" not in signal.Signals.__members__:
            raise ValueError(f"server {self.name}: graceful is {self.graceful!r}; use a signal's name, such as QUIT")


@dataclass(frozen=True)
class Declaration:
    """A check that a stack or layer does not support, and why; printed wherever results are.

    standalone  of a layer: only where it is not joined with another, which may well support it
    server      of a layer: only where the chain has that server
    stacks      of a layer: only on these stacks; empty means on all
    """

    check: str
    reason: str
    standalone: bool = False
    server: str = ""
    stacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stack:
    """A chain of servers, `servers[0]` the application server, `servers[-1]` the one clients speak to.

    folders  where its files are: its own folder, then that of its base, and of the base's base
    base     the stack whose manifest and files it takes over, or empty
    env      environment of the application server
    values   values that must differ from deploy/values for this stack
    reason   why they must, or what else cannot be as in the other stacks; printed in the report
    """

    name: str
    folders: tuple[Path, ...]
    title: str
    about: str
    servers: tuple[Server, ...]
    base: str = ""
    env: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    declares: tuple[Declaration, ...] = ()

    def __post_init__(self) -> None:
        if not self.servers:
            raise ValueError("it has no [[server]]")
        if len({server.name for server in self.servers}) != len(self.servers):
            raise ValueError("two servers have the same name")
        if self.values and not self.reason:
            raise ValueError("[values] that differ need a `reason`")


@dataclass(frozen=True)
class Layer:
    """A caching strategy laid over a stack.

    scope         app (settings only), server (a snippet for a server of the chain), front (a server before the chain)
    services      services it uses; one that is not installed is replaced by `without` when that names it
    without       per service: `note` for people, `env` to use instead, other values of `invalidation` and `coalesces`
    env           environment of the application server
    sidecars      programs run beside the servers, in the application server's environment: argv (templates) by name
    servers       of scope front only: the servers put before the chain, the outermost last
    modules       files that a server of the chain loads for this layer: by the server's name, globs by a short name
    packages      Debian packages that a server of the chain needs for this layer, by the server's name
    caches        what it caches: `pages`, `parts` of pages that are rendered for each visitor, or `nothing`
    invalidation  how a write invalidates stale pages; empty when it does not, and only the time to live ends them
    coalesces     what makes one of many requests for the same missing page render it; empty: each renders it
    """

    name: str
    folder: Path
    title: str
    scope: str
    about: str
    services: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    without: dict[str, dict[str, Any]] = field(default_factory=dict)
    sidecars: dict[str, list[str]] = field(default_factory=dict)
    servers: tuple[Server, ...] = ()
    modules: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    packages: dict[str, list[str]] = field(default_factory=dict)
    caches: str = "pages"
    invalidation: str = ""
    coalesces: str = ""
    declares: tuple[Declaration, ...] = ()

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise ValueError(f"scope is {self.scope!r}; use one of {', '.join(SCOPES)}")
        if self.caches not in CACHED:
            raise ValueError(f"caches is {self.caches!r}; use one of {', '.join(CACHED)}")
        if bool(self.servers) != (self.scope == FRONT):
            raise ValueError("a layer of scope front has a [[server]], and no other layer has")

    def snippets(self, server: str) -> dict[str, Path]:
        """Template files for that server by name; each fills the point it is named after: `<server>.pages.conf`."""
        return {path.name: path for path in sorted(self.folder.glob(f"{server}.*"))}


@dataclass(frozen=True)
class Service:
    """A backing service beside the chain.

    programs    by a short name each, so that templates can say `{{ programs.initdb }}`; all must be found
    config      its configuration file (a template in its folder), or empty
    prepare     argv run once, before the first start, when `data` is empty
    start       argv that runs it in the foreground
    created     argv run once, after the first start
    probe       argv that exits 0 when it serves; without one, its socket accepting a connection is enough
    env         environment it gives to the application server
    persistent  True when its data directory under var/ is reused
    packages    the Debian packages it comes in, for production's install note
    stop        the signal that stops it soon and cleanly
    """

    name: str
    folder: Path
    title: str
    programs: dict[str, str]
    start: tuple[str, ...]
    search: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    config: str = ""
    prepare: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    persistent: bool = False
    packages: tuple[str, ...] = ()
    stop: str = "TERM"


def read_stack(path: Path) -> Stack:
    """The stack that `path` (a stack.toml) declares.

    Raises BenchError naming the file for anything missing, unknown or of the wrong type, and for a base that is no
    stack or leads back to this one.
    """
    table, folders = _over_base(path)
    servers, declares = _servers(table, path), _declarations(table, path)
    return build(
        Stack,
        {**table, "name": path.parent.name, "folders": folders, "servers": servers, "declares": declares},
        path,
    )


def _over_base(path: Path, variants: tuple[str, ...] = ()) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """The table of a stack.toml laid over that of its base, and the folders of both, its own first.

    `variants` are the stacks whose bases led here.
    """
    table, name = read_toml(path), path.parent.name
    base = table.get("base")
    if base is None:
        return table, (path.parent,)
    known = sorted(item.parent.name for item in path.parents[1].glob("*/stack.toml"))
    if base not in known:
        raise BenchError(f"{path}: base = {base!r}: no such stack; there are: {', '.join(known)}")
    if base in (*variants, name):
        raise BenchError(f"{path}: its base leads back to itself: {' -> '.join((*variants, name, base))}")
    inherited, folders = _over_base(path.parents[1] / base / "stack.toml", (*variants, name))
    servers = {server["name"]: server for server in inherited.get("server", [])}
    for entry in table.get("server", []):
        server = entry.get("name")
        if server not in servers:
            raise BenchError(f"{path}: [[server]] {server!r}: {base} has no such server; it has {', '.join(servers)}")
        servers[server] = {**servers[server], **entry}
    tables = {key: {**inherited.get(key, {}), **table.get(key, {})} for key in ("env", "values")}
    own = {key: value for key, value in inherited.items() if key not in ("title", "about")}
    return {**own, **table, **tables, "server": list(servers.values())}, (path.parent, *folders)


def read_layer(path: Path) -> Layer:
    """The layer that `path` (a layer.toml) declares; raises BenchError naming the file when it is wrong."""
    table = read_toml(path)
    servers, declares = _servers(table, path), _declarations(table, path)
    return build(
        Layer,
        {**table, "name": path.parent.name, "folder": path.parent, "servers": servers, "declares": declares},
        path,
    )


def read_service(path: Path) -> Service:
    """The service that `path` (a service.toml) declares; raises BenchError naming the file when it is wrong."""
    return build(Service, {**read_toml(path), "name": path.parent.name, "folder": path.parent}, path)


def read_toml(path: Path) -> dict[str, Any]:
    """The table in `path`; raises BenchError naming the file and line when it is not TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BenchError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise BenchError(f"{path}: cannot be read: {error.strerror}") from None


def build(kind: type, table: dict[str, Any], path: Path) -> Any:
    """An instance of the dataclass `kind` from `table`, with every key and type checked."""
    known = {item.name: item for item in dataclasses.fields(kind)}
    for key in table:
        if key not in known:
            raise BenchError(f"{path}: unknown key {key!r}; known keys: {', '.join(known)}")
    for name, item in known.items():
        optional = item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
        if name not in table and not optional:
            raise BenchError(f"{path}: {kind.__name__.lower()} needs {name!r}")
    converted = {key: _convert(value, str(known[key].type), key, path) for key, value in table.items()}
    try:
        return kind(**converted)
    except ValueError as error:
        raise BenchError(f"{path}: {error}") from None


def _convert(value: Any, type_name: str, key: str, path: Path) -> Any:
    if type_name.startswith("tuple[str") and isinstance(value, list):
        value = tuple(value)
    expected = {"str": str, "bool": bool, "Path": Path, "int": int}.get(type_name)
    if type_name.startswith("tuple"):
        expected = tuple
    elif type_name.startswith("dict"):
        expected = dict
    if expected is not None and not isinstance(value, expected):
        raise BenchError(f"{path}: {key} must be {_words(type_name)}, not {value!r}")
    if type_name.startswith("tuple[str") and not all(isinstance(item, str) for item in value):
        raise BenchError(f"{path}: {key} must be a list of strings, not {list(value)!r}")
    return value


def _words(type_name: str) -> str:
    if type_name.startswith("tuple"):
        return "a list of strings"
    if type_name.startswith("dict"):
        return "a table"
    return {"str": "a string", "bool": "true or false"}.get(type_name, type_name)


def _servers(table: dict[str, Any], path: Path) -> tuple[Server, ...]:
    """The [[server]] entries, each over what its server.toml in deploy/common says."""
    servers = []
    for entry in table.pop("server", []):
        common = paths.DEPLOY / "common" / str(entry.get("name", "")) / "server.toml"
        defaults = read_toml(common) if entry.get("name") and common.is_file() else {}
        servers.append(build(Server, {**defaults, **entry}, path))
    return tuple(servers)


def _declarations(table: dict[str, Any], path: Path) -> tuple[Declaration, ...]:
    return tuple(build(Declaration, entry, path) for entry in table.pop("declares", []))
