"""A server of stacks and layers: one supervised program, its files and its commands."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bench import paths

SERVERS = paths.DEPLOY / "servers"
Action = str | tuple[str, ...]
# What is rendered by Jinja2 ends so; all other files are read as they are.
TEMPLATE = ".j2"


def source(folder: Path, name: str) -> Path | None:
    """The source in `folder` of the file `name`: the template of that name, or the file itself; None without one."""
    for path in (folder / f"{name}{TEMPLATE}", folder / name):
        if path.is_file():
            return path
    return None


class Reload(Struct, frozen=True, forbid_unknown_fields=True):
    """Reload of a server under load: the name of a signal to the main process, such as "HUP", or an argv (templates).
    Without a reload the server restarts.

    configuration  the server's configuration files and certificates; of an application server the site's code as well
    application    a new version of the site's code; of application servers only
    replaces       name of the value with the number of processes that `application` replaces; empty: all workers
    loses          the reason why `configuration` can lose requests, or empty
    executes       the signal on which the main process executes the program's file again, as after an upgrade of its
                   package; empty: a restart
    pid_file       the file in which the new main process writes its number (template), while the old one drains;
                   empty: the process stays the same. systemd starts the server in the background, with `foreground`
                   false in the templates of `start`
    """

    configuration: Action = ""
    application: Action = ""
    replaces: str = ""
    loses: str = ""
    executes: str = ""
    pid_file: str = ""

    def __post_init__(self) -> None:
        for key, action in (("configuration", self.configuration), ("application", self.application)):
            if isinstance(action, str) and action:
                _must_be_signal(action, f"reload.{key}")
        if self.executes:
            _must_be_signal(self.executes, "reload.executes")


class Metrics(Struct, frozen=True, forbid_unknown_fields=True):
    """The place of a server's own figures with `metrics` on, and the exporter of a status page.

    url       on the loopback address (template); about: the form of the figures
    packages  the Debian packages of the exporter; services: units of these packages that the kit's unit replaces
    start     argv of the exporter (templates); empty: the server has the figures itself
    """

    url: str
    about: str = "Prometheus"
    packages: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    start: tuple[str, ...] = ()


class Break(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault of `benchapp faults` with more effect on visitors than expected, and why; printed with all results. Of a
    stack or a server: only with one of these layers; empty means with any.
    """

    fault: str
    reason: str
    layers: tuple[str, ...] = ()


class Declaration(Struct, frozen=True, forbid_unknown_fields=True):
    """A check that a stack, a layer or a server does not support, and why; printed with all results.

    standalone     of a layer: only without another layer, which may well support the check
    server         of a layer: only if the chain has that server
    stacks         of a layer: only on these stacks; empty means on all
    unless_behind  of a server: only without one of these servers in front
    """

    check: str
    reason: str
    standalone: bool = False
    server: str = ""
    stacks: tuple[str, ...] = ()
    unless_behind: tuple[str, ...] = ()


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """One supervised program of a stack: a `[[server]]`, over the `server.toml` of its folder in deploy/servers.

    Texts marked as templates can use the names of docs/adding-a-stack.md.

    Identity
    name         unique in the stack; also the name of the folder in deploy/servers
    about        one line for people
    speaks       the protocol of requests: http or a gateway protocol, such as fastcgi
    interface    the application's interface, of an application server: wsgi or asgi
    worker_class the server's name for its kind of worker: with one thread and, if different, with several; `tune`
                 tries a stack of the same servers with another class, too
    keepalive    whether the server keeps a connection from the next outer server open between requests
    tls          whether its configuration can listen with TLS
    prefix_headers  headers of any client from which the server takes SCRIPT_NAME, a prefix of all links; `verify`
                    sends them
    upstream_modules  the server's names for protocols to the next inner server: { http = "proxy" }

    Program
    programs     names to look for, the first found wins: in the virtual environment, PATH, the system's `sbin`
    search       more directories to look in (globs)
    version      argv that prints the version
    distribution instead of `version`: the Python distribution of the server, whose version is read without a start
    modules      files to load, by short names: globs (templates), the first match wins; all must be found
    hint         how to install missing parts, if `packages` does not have all

    Running
    config       the main configuration file, a template; empty if the command line has all settings
    files        further files, templates as well
    start        argv that runs the server in the foreground, a template an item
    check        argv of the server's configuration test, templates; empty without one
    good_status  the check's exit status for a good file
    bad_output   a regular expression; a match in the check's output means a bad file whatever the exit status
    listen       "tcp" (loopback) or "unix"; the outermost server always listens on the front port
    instances    name of the value with the number of instances, each with a separate address; empty: one
    env          environment of this server only
    reload       a change of configuration or of the site's code without a restart
    graceful     the signal on which the server drains and ends; production's units send it
    inherits     true if the server takes its socket from systemd, or the words added to `start` for that
    shares       true if a second one of the same user can listen on the same ports (SO_REUSEPORT), or the words
                 added to `start` of the second one
    notify       the server tells systemd when it serves (Type=notify)
    reopen       the signal for opening the access log again; empty: the log is copied and emptied
    rotates      the server rotates its access log itself
    entries      argv that prints the number of cache entries, the first number after a space; empty without a cache

    On a production host
    packages     the Debian packages of the server
    services     units of these packages that the kit's own units replace
    directory    the packages' directory of the program; one of `requirements` is in the virtual environment
    build_packages  packages that only `host` needs; an image does not keep them
    requirements the Python distributions of the server; by default its `distribution`
    host         commands to run once (templates)
    host_modules the place where those commands put a module, by its short name (templates)
    certificate  the file below {{ tls }} with certificate and key together; empty: fullchain.pem and privkey.pem
    sysctls      kernel settings that the server needs, by their names in sysctl(8)
    listener     of a layer: only with this value of `listener`; empty: with each
    doors        ports for other requests of the site from another host than for pages, by name; on
                 one host each is a Unix socket, SERVER-DOOR.sock
    metrics      the server's figures for monitoring, if any
    one_host     the reason why the server cannot be in a chain over several hosts, or empty

    Known limitations
    declares     checks of `verify` that a chain with the server does not pass, for lack of a setting
    breaks       faults with more effect than expected on a chain with the server
    """

    name: str
    programs: tuple[str, ...]
    speaks: str
    start: tuple[str, ...]
    config: str = ""
    files: tuple[str, ...] = ()
    tls: bool = False
    prefix_headers: tuple[str, ...] = ()
    interface: str = "wsgi"
    worker_class: tuple[str, ...] = ()
    modules: dict[str, list[str]] = {}
    hint: str = ""
    packages: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    directory: str = "/usr/sbin"
    build_packages: tuple[str, ...] = ()
    certificate: str = ""
    host: tuple[str, ...] = ()
    host_modules: dict[str, str] = {}
    listen: Literal["tcp", "unix"] = "tcp"
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
    shares: bool | tuple[str, ...] = False
    notify: bool = False
    entries: tuple[str, ...] = ()
    reopen: str = ""
    rotates: bool = False
    reload: Reload = Reload()
    declares: tuple[Declaration, ...] = ()
    breaks: tuple[Break, ...] = ()
    doors: dict[str, int] = {}
    metrics: Metrics | None = None
    one_host: str = ""
    listener: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if not self.programs or not self.start:
            raise ValueError(f"server {self.name}: programs and start must not be empty")
        _must_be_signal(self.graceful, f"server {self.name}: graceful")
        if self.reopen:
            _must_be_signal(self.reopen, f"server {self.name}: reopen")

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of all files of the server."""
        return (*filter(None, [self.config]), *self.files)


def _must_be_signal(name: str, where: str) -> None:
    if f"SIG{name}" not in signal.Signals.__members__:
        raise ValueError(f"{where} is {name!r}; use a signal's name, such as QUIT")
