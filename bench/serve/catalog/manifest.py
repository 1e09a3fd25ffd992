"""Stacks, layers and services from their manifests: typed, checked when read.

A manifest is `deploy/stacks/<name>/stack.toml`, `deploy/layers/<name>/layer.toml` or
`deploy/services/<name>/service.toml`. Keys of a server that are the same in all stacks are in
`deploy/servers/<server>/server.toml`; the stack's own entry wins, also over the entry of its `base`, another stack. The
classes below, and those of `bench/serve/catalog/server.py`, describe every key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, structs

from bench.errors import BenchError
from bench.serve.catalog.names import NO_LAYER
from bench.serve.catalog.server import SERVERS, Break, Declaration, Metrics, Reload, Server, source
from bench.serve.catalog.toml import decode, read_toml

Cached = Literal["nothing", "parts", "pages"]
CACHED = get_args(Cached)  # the least first
HISTORIC = "historic"
# Kind of a layer -> the place of its cache.
PLACES = {
    "outer": "in a server, following the headers of pages",
    "django": "inside Django, in middleware",
    "templates": "inside Django, in the site's own code",
}


class Stack(Struct, frozen=True, forbid_unknown_fields=True):
    """A chain of servers that serves the project: a `stack.toml`.

    name     the name of its folder; folders: the folders of its files: its own, then those of its `base`
    title    a name for people
    about    one sentence on the purpose of the stack
    base     the stack whose manifest and files this one extends
    servers  the `[[server]]`s, the application server first, the one that clients speak to last
    env      environment of the application server
    values   values of deploy/values that must differ for this stack; `reason` must say why
    reason   the reason for these values, or for another difference from other stacks; every report prints it
    production  `no, because ...` for a stack that nobody should deploy: `render` refuses it
    python   the version of another Python than the instrument's, such as 3.13; only of a variant
    ref      the commit of the served project, as a label; only of a variant
    era      `historic` for a stack that only published benchmarks had: commands use it only by name
    declares checks of `verify` that the stack cannot pass by its nature
    breaks   faults of `benchapp faults` with more effect on visitors than expected (docs/faults.md)
    """

    name: str
    folders: tuple[Path, ...]
    title: str
    about: str
    servers: tuple[Server, ...] = msgspec.field(name="server")
    base: str = ""
    env: dict[str, str] = {}
    values: dict[str, Any] = {}
    reason: str = ""
    production: str = ""
    python: str = ""
    ref: str = ""
    era: Literal["", "historic"] = ""
    declares: tuple[Declaration, ...] = ()
    breaks: tuple[Break, ...] = ()

    def __post_init__(self) -> None:
        if not self.servers:
            raise ValueError("it has no [[server]]")
        if len({server.name for server in self.servers}) != len(self.servers):
            raise ValueError("two servers have the same name")
        # The name of a variant has the values.
        if self.values and not self.reason and "@" not in self.name:
            raise ValueError("[values] that differ need a `reason`")


class Layer(Struct, frozen=True, forbid_unknown_fields=True):
    """A caching strategy laid over a stack: a `layer.toml`.

    name          the name of its folder; folder: the folder of its files
    title         a name for people
    about         one sentence on the layer's work
    scope         app (settings only), server (a file over a file of a server of the chain), front (a server before it)
    services      services of the layer; `without` may name the replacement of a missing one
    without       per service: `note` for people, `env` to use instead, other values of `invalidation` and `coalesces`
    env           environment of the application server
    sidecars      programs run beside the servers, in the application server's environment: argv (templates) by name
    servers       of scope front only: the servers put before the chain, the outermost last
    modules       files that a server of the chain loads for this layer: by the server's name, globs by a short name
    packages      Debian packages that a server of the chain needs for this layer, by the server's name
    bodies        stores only the body of a page, so only pages with common headers
    renews        in the second half of a page's time to live a request has the page rendered again in the background
    caches        `pages`, `parts` of pages that are rendered for each visitor, or `nothing`
    invalidation  how a write invalidates stale pages; empty if only the time to live ends them
    coalesces     how one of many requests for the same missing page renders it; empty: each renders it
    same_user     the reason why web server and application have to run as one user, or empty
    several_hosts  the promise about a write on one of several web hosts; `verify --inventory` proves it
    one_host      or else the reason why the layer needs servers on one host
    hosts_expire  on several web hosts only the time to live ends a stale page
    kind          the place of caching, one of PLACES; empty without caching
    unsafe        stacks and pages with which one visitor may get another's page, and the alternative; or empty
    in_site       the reason why only a site with the layer in its own code can be served; empty: any project can
    declares      checks of `verify` that the layer cannot pass by its nature
    breaks        faults with more effect on visitors than expected
    """

    name: str
    folder: Path
    title: str
    scope: Literal["app", "server", "front"]
    about: str
    services: tuple[str, ...] = ()
    env: dict[str, str] = {}
    without: dict[str, dict[str, Any]] = {}
    sidecars: dict[str, list[str]] = {}
    servers: tuple[Server, ...] = msgspec.field(name="server", default=())
    modules: dict[str, dict[str, list[str]]] = {}
    packages: dict[str, list[str]] = {}
    bodies: bool = False
    renews: bool = False
    caches: Cached = "pages"
    invalidation: str = ""
    coalesces: str = ""
    same_user: str = ""
    several_hosts: str = ""
    one_host: str = ""
    hosts_expire: bool = False
    kind: Literal["", "outer", "django", "templates"] = ""
    unsafe: str = ""
    in_site: str = ""
    declares: tuple[Declaration, ...] = ()
    breaks: tuple[Break, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.several_hosts) == bool(self.one_host):
            raise ValueError(
                "it needs several_hosts (what it promises of a write on one of several web hosts) "
                "or one_host (why it cannot)"
            )
        if bool(self.servers) != (self.scope == "front"):
            raise ValueError("a layer of scope front has a [[server]], and no other layer has")

    @property
    def is_none(self) -> bool:
        """True for the layer `none`, which caches nothing."""
        return self.name == NO_LAYER

    def files(self, server: Server) -> dict[str, Path]:
        """The layer's files that replace parts of a server's files, by name."""
        sources = {name: source(self.folder, name) for name in server.file_names}
        return {name: path for name, path in sources.items() if path}


class InRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """A service in one release of Debian: its `title`, `programs` and `packages`."""

    title: str
    programs: dict[str, str]
    packages: tuple[str, ...]


class Service(Struct, frozen=True, forbid_unknown_fields=True):
    """A backing service beside the chain: a `service.toml`.

    name        the name of its folder; folder: the folder of its files
    title       a name for people
    programs    by short names, so that templates can say `{{ programs.initdb }}`; all must be found
    search      more directories to look in (globs)
    version     argv that prints the version
    config      the configuration file (a template in the folder), or empty
    files       more files of the folder that the service reads, unchanged
    site        runs as the site's user, with the site's environment and secrets
    socket      the file name of the Unix socket, if not named after the service
    prepare     argv run once, before the first start, when `data` is empty; created: once, after the first start
    start       argv that runs the service in the foreground
    shared      argv in place of `start` for other hosts, too; port: the TCP port there
    probe       argv that exits 0 while the service serves; without one, an accepted connection on the socket is enough
    env         environment for the application server
    persistent  True if the data directory under var/ is reused
    packages    the Debian packages, for production; requirements: the Python distributions of the service's clients
    directory   the folder of the programs in these packages
    reload      the signal for reading files again, or empty
    stop        the signal for a soon and clean stop; notify: the service tells systemd when it serves
    debian      other forms in releases of Debian, by the release's number
    """

    name: str
    folder: Path
    title: str
    programs: dict[str, str]
    start: tuple[str, ...]
    shared: tuple[str, ...] = ()
    port: int = 0
    search: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    config: str = ""
    files: tuple[str, ...] = ()
    site: bool = False
    socket: str = ""
    prepare: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()
    env: dict[str, str] = {}
    persistent: bool = False
    packages: tuple[str, ...] = ()
    directory: str = "/usr/bin"
    requirements: tuple[str, ...] = ()
    reload: str = ""
    stop: str = "TERM"
    notify: bool = False
    debian: dict[str, InRelease] = {}

    def in_debian(self, release: int | str) -> Service:
        """The service as this release of Debian has it."""
        other = self.debian.get(str(release))
        if other:
            return structs.replace(self, **structs.asdict(other))
        return self


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """A release of Debian, a target of production's files: a table of deploy/values/debian.toml.

    number    the value of `debian`
    codename  such as bookworm
    systemd   the version, as python is
    packages  the versions of the packages of servers and services
    """

    number: int
    codename: str
    systemd: str
    python: str
    packages: dict[str, str]

    @property
    def title(self) -> str:
        return f"Debian {self.number} ({self.codename})"


# The type of each table inside a manifest, by its key.
PARTS: dict[str, type[Struct]] = {
    "server": Server,
    "declares": Declaration,
    "reload": Reload,
    "metrics": Metrics,
    "breaks": Break,
    "debian": InRelease,
}


def read_stack(path: Path) -> Stack:
    """The stack declared in `path` (a stack.toml).

    Raises BenchError naming the file for a key that is missing, unknown or of the wrong type, and for a base that does
    not exist or leads back to this stack.
    """
    table, folders = _over_base(path)
    return decode(_with_common(table), Stack, path, PARTS, name=path.parent.name, folders=folders)


def _over_base(path: Path, variants: tuple[str, ...] = ()) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """The table of a stack.toml merged over its base's, and the folders of both, the stack's own first.

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
    """The layer declared in `path` (a layer.toml); raises BenchError naming a wrong file."""
    return decode(_with_common(read_toml(path)), Layer, path, PARTS, name=path.parent.name, folder=path.parent)


def read_service(path: Path) -> Service:
    """The service declared in `path` (a service.toml); raises BenchError naming a wrong file."""
    return decode(read_toml(path), Service, path, PARTS, name=path.parent.name, folder=path.parent)


def read_releases(path: Path) -> dict[int, Release]:
    """Every release by its number; raises BenchError naming a wrong file."""
    tables = read_toml(path)
    return {int(number): decode(table, Release, path, number=int(number)) for number, table in tables.items()}


def _with_common(table: dict[str, Any]) -> dict[str, Any]:
    """The table with each [[server]] over its server.toml in deploy/servers."""
    servers = []
    for entry in table.get("server", []):
        common = SERVERS / str(entry.get("name", "")) / "server.toml"
        defaults = {}
        if entry.get("name") and common.is_file():
            defaults = read_toml(common)
        servers.append({**defaults, **entry})
    return {**table, "server": servers}
