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
    """The file in `folder` of which `name` is made: the template of that name, or the file itself; None without one."""
    for path in (folder / f"{name}{TEMPLATE}", folder / name):
        if path.is_file():
            return path
    return None


class Reload(Struct, frozen=True, forbid_unknown_fields=True):
    """Reload of a server under load: the name of a signal to the main process, such as "HUP", or an argv
    (templates). Without a reload the server restarts.

    configuration  its own configuration files and certificates; of an application server the site's code as well
    application    a new version of the site's code; of application servers only
    replaces       name of the value that is how many processes below the main one `application` replaces; empty: all
    loses          why `configuration` can lose requests; empty: it loses none
    executes       the signal on which its main process executes the program's file again, as an upgrade of its package
                   wants; empty: it is restarted for that
    pid_file       where the new main process writes its number (template), while the one before finishes its requests;
                   empty: it stays the same process. systemd starts it in the background, with `foreground` false in
                   the templates of `start`
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
    """Where a server's own figures are with `metrics` on, and the exporter that makes them of its status page.

    url       on the loopback address; about: their form
    packages  the Debian packages of the exporter; services: those that they bring, in whose place is the kit's unit
    start     argv of the exporter (templates); empty: the server has the figures itself
    """

    url: str
    about: str = "Prometheus"
    packages: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    start: tuple[str, ...] = ()


class Break(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault of `bench faults` of which visitors notice more than is expected, and why; printed wherever results are.
    Of a stack or a server: only with one of these layers; empty means with any."""

    fault: str
    reason: str
    layers: tuple[str, ...] = ()


class Declaration(Struct, frozen=True, forbid_unknown_fields=True):
    """A check that a stack, a layer or a server does not support, and why; printed wherever results are.

    standalone     of a layer: only where it is not joined with another, which may well support it
    server         of a layer: only where the chain has that server
    stacks         of a layer: only on these stacks; empty means on all
    unless_behind  of a server: not where one of these servers stands before it, between the clients and it
    """

    check: str
    reason: str
    standalone: bool = False
    server: str = ""
    stacks: tuple[str, ...] = ()
    unless_behind: tuple[str, ...] = ()


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """One supervised program of a stack: a `[[server]]`, over the `server.toml` of its folder in deploy/servers.

    Texts that are marked as templates can use the names of docs/adding-a-stack.md.

    What it is
    name         unique in its stack; also the name of its folder in deploy/servers
    about        one line for people
    speaks       the protocol it serves: http or a gateway protocol, such as fastcgi
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
    hint         how to install what is missing, where its `packages` are not all

    How it runs
    config       its main configuration file, a template; empty if its command line has all settings
    files        further files that it reads, templates as well
    start        argv that runs it in the foreground, a template an item
    check        argv of its own configuration test, templates; empty: it has none
    good_status  the check's exit status for a good file
    bad_output   a regular expression; a match in the check's output means a bad file whatever the exit status
    listen       "tcp" (loopback) or "unix"; the outermost server always listens on the front port
    instances    name of the value that is how many of it to start, each with its own address; empty: one
    env          environment of this server only
    reload       how it takes over a changed configuration or a new version of the site without a restart
    graceful     the signal on which it finishes the requests under way and ends; production's units send it
    inherits     true where it takes its socket from systemd, or the words added to `start` so that it does
    shares       true where a second one of the same user can listen on its ports beside it (SO_REUSEPORT), or the words
                 added to `start` of the second one
    notify       it tells systemd when it serves (Type=notify)
    reopen       the signal on which it opens its access log again; empty: the log is copied and emptied
    rotates      it rotates its access log itself
    entries      argv that prints how many entries its cache has, the first number after a space; empty: it has no cache

    On a production host
    packages     the Debian packages it comes in
    services     the services that those bring and start, in whose place the kit's own units are
    directory    where they put its program; what has a `distribution` or `requirements` is in the virtual environment
    build_packages  those that only `host` needs; an image does not keep them
    requirements the Python distributions it needs; by default its `distribution`
    host         commands to run once (templates)
    host_modules where those commands put a module, by its short name (templates)
    certificate  the file below {{ tls }} in which it reads certificate and key together; empty: it reads fullchain.pem
                 and privkey.pem
    sysctls      kernel settings that it needs, by their names in sysctl(8)
    listener     of a layer: only with this value of `listener`; empty: with each
    doors        ports at which the site reaches it from another host for something else than pages, by a name each; on
                 one host each is a Unix socket, SERVER-DOOR.sock
    metrics      its own figures for monitoring; without it it has none
    one_host     why it cannot be in a chain over several hosts; empty: it can

    What is known of it
    declares     checks of `verify` that a chain with it does not pass, since it cannot and has no setting for it
    breaks       faults that a chain with it does not stand as expected
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
        """The names of all files that it reads."""
        return (*filter(None, [self.config]), *self.files)


def _must_be_signal(name: str, where: str) -> None:
    if f"SIG{name}" not in signal.Signals.__members__:
        raise ValueError(f"{where} is {name!r}; use a signal's name, such as QUIT")
