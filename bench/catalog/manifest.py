"""Stacks, layers and services as their manifests declare them: typed, checked when read.

A manifest is `deploy/stacks/<name>/stack.toml`, `deploy/layers/<name>/layer.toml` or
`deploy/services/<name>/service.toml`. What is the same of a server in all stacks is in
`deploy/servers/<server>/server.toml`; the stack's own entry wins, also over that of its `base`, another stack. The
classes below describe every key.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench import paths
from bench.catalog.toml import decode, read_toml
from bench.errors import BenchError
from bench.results.records import NO_LAYER

SERVERS = paths.DEPLOY / "servers"
FRONT = "front"
SCOPES = ("app", "server", FRONT)
KINDS = ("", "outer", "django", "templates")
CACHED = ("nothing", "parts", "pages")  # the least first
LISTENS = ("tcp", "unix")
HISTORIC = "historic"
Action = str | tuple[str, ...]


class Reload(Struct, frozen=True, forbid_unknown_fields=True):
    """How a server takes over what changed while it serves: a signal's name for its main process, such as "HUP", or an
    argv (templates). Without one it is restarted.

    configuration  its own configuration files and certificates; of an application server the site's code as well
    application    a new version of the site's code; of application servers only
    replaces       name of the value that is how many processes below the main one `application` replaces; empty: all
    loses          why `configuration` can lose requests; empty: it loses none
    """

    configuration: Action = ""
    application: Action = ""
    replaces: str = ""
    loses: str = ""

    def __post_init__(self) -> None:
        for key, action in (("configuration", self.configuration), ("application", self.application)):
            if isinstance(action, str) and action:
                _must_be_signal(action, f"reload.{key}")


class Break(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault of `bench faults` of which visitors notice more than is expected, and why; printed wherever results are.
    Of a stack or a server: only with one of these layers; empty means with any."""

    fault: str
    reason: str
    layers: tuple[str, ...] = ()


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that bound what a worker may take, each with what happens without it, and where they are documented."""

    settings: dict[str, str] = {}
    link: str = ""


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """One supervised program of a stack: a `[[server]]`, over the `server.toml` of its folder in deploy/servers.

    Texts that are marked as templates can use the names of docs/adding-a-stack.md.

    What it is
    name         unique in its stack; also the name of its folder in deploy/servers
    about        one line for people
    speaks       the protocol it serves: http, uwsgi, fastcgi, scgi
    interface    how an application server calls the application: wsgi or asgi
    worker_class what it calls its kind of worker: with one thread and, where that is another, with several; `tune`
                 tries a stack of the same servers with another class, too
    keepalive    whether it keeps a connection from the next outer server open between requests
    tls          whether its configuration can listen with TLS
    upstream_modules  what it calls the protocols that it speaks to the next inner server: { http = "proxy" }

    Its program
    programs     names to look for, the first found wins: in the virtual environment, PATH, the system's `sbin`
    search       more directories to look in (globs)
    version      argv that prints the version
    distribution instead of `version`: the Python distribution that brings it, whose version is read without starting it
    modules      files it loads, by a short name each: globs (templates), the first match wins; all must be found
    hint         how to install what is missing, where `make servers` is not the whole answer

    How it runs
    config       its main configuration file, a template; empty where its command line has all settings
    files        further files that it reads, templates as well
    start        argv that runs it in the foreground, a template an item
    check        argv of its own configuration test, templates; empty: it has none
    good_status  the check's exit status for a good file
    bad_output   a regular expression; a match in the check's output means a bad file whatever the exit status
    listen       "tcp" (loopback) or "unix"; the outermost server always listens on the front port
    instances    name of the value that is how many of it to start, each with its own address; empty: one
    env          environment of this server alone
    reload       how it takes over a changed configuration or a new version of the site without a restart
    graceful     the signal on which it finishes the requests under way and ends; production's units send it
    inherits     true where it takes its socket from systemd, or the words added to `start` so that it does: a restart
                 then loses no request
    notify       it tells systemd when it serves (Type=notify)
    reopen       the signal on which it opens its access log anew; empty: the log is copied and emptied
    rotates      it rotates its access log itself
    entries      argv that prints how many entries its cache has, the first number after a space; empty: it has no cache

    On a production host
    packages     the Debian packages it comes in, the one whose service has its name first
    build_packages  those that only `host` needs; an image does not keep them
    requirements the Python distributions it needs; by default its `distribution`
    host         commands to run once (templates)
    host_modules where those commands put a module, by its short name (templates)
    certificate  the file below {{ tls }} in which it reads certificate and key together; empty: it reads fullchain.pem
                 and privkey.pem
    sysctls      kernel settings that it needs, by their names in sysctl(8)
    doors        ports at which the site reaches it from another host for something else than pages, by a name each; on
                 one host each is a Unix socket, SERVER-DOOR.sock
    proxied      the Unix socket (a template) for the PROXY protocol of a server that terminates TLS; empty: none
    one_host     why it cannot be in a chain over several hosts; empty: it can

    What is known of it
    breaks       faults that a chain with it does not stand as expected
    limits       what `doctor` looks for where a project brings a configuration of its own
    """

    name: str
    programs: tuple[str, ...]
    speaks: str
    start: tuple[str, ...]
    config: str = ""
    files: tuple[str, ...] = ()
    tls: bool = False
    interface: str = "wsgi"
    worker_class: tuple[str, ...] = ()
    modules: dict[str, list[str]] = {}
    hint: str = ""
    packages: tuple[str, ...] = ()
    build_packages: tuple[str, ...] = ()
    certificate: str = ""
    host: tuple[str, ...] = ()
    host_modules: dict[str, str] = {}
    listen: str = "tcp"
    keepalive: bool = False
    upstream_modules: dict[str, str] = {}
    search: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    distribution: str = ""
    requirements: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    good_status: int = 0
    bad_output: str = ""
    instances: str = ""
    env: dict[str, str] = {}
    sysctls: dict[str, int] = {}
    graceful: str = "TERM"
    inherits: bool | tuple[str, ...] = False
    notify: bool = False
    entries: tuple[str, ...] = ()
    reopen: str = ""
    rotates: bool = False
    reload: Reload = Reload()
    breaks: tuple[Break, ...] = ()
    limits: Limits = Limits()
    doors: dict[str, int] = {}
    one_host: str = ""
    proxied: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if self.listen not in LISTENS:
            raise ValueError(f"server {self.name}: listen is {self.listen!r}; use one of {', '.join(LISTENS)}")
        if not self.programs or not self.start:
            raise ValueError(f"server {self.name}: programs and start must not be empty")
        _must_be_signal(self.graceful, f"server {self.name}: graceful")
        if self.reopen:
            _must_be_signal(self.reopen, f"server {self.name}: reopen")

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of all files that it reads."""
        return (*filter(None, [self.config]), *self.files)


def _must_be_signal(name: str, where: str) -> None:
    if f"SIG{name}" not in signal.Signals.__members__:
        raise ValueError(f"{where} is {name!r}; use a signal's name, such as QUIT")


class Declaration(Struct, frozen=True, forbid_unknown_fields=True):
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


class Stack(Struct, frozen=True, forbid_unknown_fields=True):
    """A chain of servers that serves the project: a `stack.toml`.

    name     the name of its folder; folders: where its files are: its own, then those of its `base`
    title    a name for people
    about    one sentence that says why the stack exists
    base     the stack whose manifest and files it takes over
    servers  its `[[server]]`s, the application server first, the one that clients speak to last
    env      environment of the application server
    values   values of deploy/values that must differ for this stack; `reason` must say why
    reason   why they must, or what else cannot be as in the other stacks; every report prints it
    production  `no, because ...` for a stack that nobody should deploy: `render --values production` refuses it
    python   the version of another Python than the instrument's that serves it, such as 3.13; only of a variant
    era      `historic` for one that only published benchmarks had: commands take it where it is named, not by default
    declares checks of `verify` that it cannot pass by its nature
    breaks   faults of `bench faults` of which visitors notice more than is expected (docs/faults.md)
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
    era: str = ""
    declares: tuple[Declaration, ...] = ()
    breaks: tuple[Break, ...] = ()

    def __post_init__(self) -> None:
        if self.era not in ("", HISTORIC):
            raise ValueError(f"era is {self.era!r}; use {HISTORIC}, or leave it out")
        if not self.servers:
            raise ValueError("it has no [[server]]")
        if len({server.name for server in self.servers}) != len(self.servers):
            raise ValueError("two servers have the same name")
        if self.values and not self.reason:
            raise ValueError("[values] that differ need a `reason`")


class Layer(Struct, frozen=True, forbid_unknown_fields=True):
    """A caching strategy laid over a stack: a `layer.toml`.

    name          the name of its folder; folder: where its files are
    title         a name for people
    about         one sentence on what it does
    scope         app (settings only), server (a file over that of a server of the chain), front (a server before it)
    services      services it uses; one that is not installed is replaced by `without` when that names it
    without       per service: `note` for people, `env` to use instead, other values of `invalidation` and `coalesces`
    env           environment of the application server
    sidecars      programs run beside the servers, in the application server's environment: argv (templates) by name
    servers       of scope front only: the servers put before the chain, the outermost last
    modules       files that a server of the chain loads for this layer: by the server's name, globs by a short name
    packages      Debian packages that a server of the chain needs for this layer, by the server's name
    bodies        it stores the body of a page alone, so only pages without headers of their own
    caches        what it caches: `pages`, `parts` of pages that are rendered for each visitor, or `nothing`
    invalidation  how a write invalidates stale pages; empty when it does not, and only the time to live ends them
    coalesces     what makes one of many requests for the same missing page render it; empty: each renders it
    same_user     why web server and application have to run as one user; empty: they need not
    several_hosts  what it promises of a write on one of several web hosts; `verify --inventory` proves it
    one_host      or else why it cannot be laid over servers on several hosts
    hosts_expire  on several web hosts the time to live alone ends a stale page
    kind          where it caches: `outer`, in a server, by what pages say; `django`, in the project's middleware; or
                  `templates`, in the site's own code
    in_site       why only a site that has it in its own code can be served with it; empty: any project can
    declares      checks of `verify` that it cannot pass by its nature
    breaks        faults of which visitors notice more than is expected
    """

    name: str
    folder: Path
    title: str
    scope: str
    about: str
    services: tuple[str, ...] = ()
    env: dict[str, str] = {}
    without: dict[str, dict[str, Any]] = {}
    sidecars: dict[str, list[str]] = {}
    servers: tuple[Server, ...] = msgspec.field(name="server", default=())
    modules: dict[str, dict[str, list[str]]] = {}
    packages: dict[str, list[str]] = {}
    bodies: bool = False
    caches: str = "pages"
    invalidation: str = ""
    coalesces: str = ""
    same_user: str = ""
    several_hosts: str = ""
    one_host: str = ""
    hosts_expire: bool = False
    kind: str = ""
    in_site: str = ""
    declares: tuple[Declaration, ...] = ()
    breaks: tuple[Break, ...] = ()

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise ValueError(f"scope is {self.scope!r}; use one of {', '.join(SCOPES)}")
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}; use one of {', '.join(KINDS[1:])}")
        if self.caches not in CACHED:
            raise ValueError(f"caches is {self.caches!r}; use one of {', '.join(CACHED)}")
        if bool(self.several_hosts) == bool(self.one_host):
            raise ValueError(
                "it needs several_hosts (what it promises of a write on one of several web hosts) "
                "or one_host (why it cannot)"
            )
        if bool(self.servers) != (self.scope == FRONT):
            raise ValueError("a layer of scope front has a [[server]], and no other layer has")

    @property
    def is_none(self) -> bool:
        """Whether it is the layer `none`: nothing is cached."""
        return self.name == NO_LAYER

    def files(self, server: Server) -> dict[str, Path]:
        """Its files that lie over those of a server, by name."""
        return {name: self.folder / name for name in server.file_names if (self.folder / name).is_file()}


class Service(Struct, frozen=True, forbid_unknown_fields=True):
    """A backing service beside the chain: a `service.toml`.

    name        the name of its folder; folder: where its files are
    title       a name for people
    programs    by a short name each, so that templates can say `{{ programs.initdb }}`; all must be found
    search      more directories to look in (globs)
    version     argv that prints the version
    config      its configuration file (a template in its folder), or empty
    prepare     argv run once, before the first start, when `data` is empty; created: once, after the first start
    start       argv that runs it in the foreground
    shared      argv in place of `start` where it is for other hosts, too; port: the TCP port there
    probe       argv that exits 0 when it serves; without one, its socket accepting a connection is enough
    env         environment it gives to the application server
    persistent  True when its data directory under var/ is reused
    packages    the Debian packages it comes in, for production; requirements: the Python distributions of its clients
    stop        the signal that stops it soon and cleanly; notify: it tells systemd when it serves
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
    prepare: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()
    env: dict[str, str] = {}
    persistent: bool = False
    packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    stop: str = "TERM"
    notify: bool = False


# The type of each table inside a manifest, by its key.
PARTS: dict[str, type[Struct]] = {"server": Server, "declares": Declaration, "reload": Reload, "breaks": Break}


def read_stack(path: Path) -> Stack:
    """The stack that `path` (a stack.toml) declares.

    Raises BenchError naming the file for a key that is missing, unknown or of the wrong type, and for a base that
    does not exist or leads back to this stack.
    """
    table, folders = _over_base(path)
    return decode(_with_common(table), Stack, path, PARTS, name=path.parent.name, folders=folders)


def _over_base(path: Path, variants: tuple[str, ...] = ()) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """The table of a stack.toml merged over that of its base, and the folders of both, its own first.

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
    return decode(_with_common(read_toml(path)), Layer, path, PARTS, name=path.parent.name, folder=path.parent)


def read_service(path: Path) -> Service:
    """The service that `path` (a service.toml) declares; raises BenchError naming the file when it is wrong."""
    return decode(read_toml(path), Service, path, PARTS, name=path.parent.name, folder=path.parent)


def _with_common(table: dict[str, Any]) -> dict[str, Any]:
    """The table with each [[server]] over its server.toml in deploy/servers."""
    servers = []
    for entry in table.get("server", []):
        common = SERVERS / str(entry.get("name", "")) / "server.toml"
        defaults = read_toml(common) if entry.get("name") and common.is_file() else {}
        servers.append({**defaults, **entry})
    return {**table, "server": servers}
