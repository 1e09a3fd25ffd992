"""Write a case's files into a directory: for this machine, or for a production host with systemd units and an install
note. Nothing is started.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from bench import paths
from bench.errors import BenchError
from bench.serve.catalog import catalog, compatibility
from bench.serve.catalog.manifest import Layer, Release, Service
from bench.serve.catalog.server import Server
from bench.serve.catalog.values import Values
from bench.serve.deployment import render
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import LOOPBACK, HostPaths, Layout, empty, fresh_directory
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import OPEN_FILES, server_user, site_env
from bench.serve.machine import ports
from bench.serve.production import limits_table, project_files, templates, units
from bench.serve.production.units import Unit
from bench.serve.project import opened, run_command

# The address of a stack without a TLS listener in production.
PLAIN_PORT = 8000
# The parent of each StateDirectory=.
STATE = Path("/var/lib")

# Longer than most balancers hold an idle connection: AWS 60 s.
# https://docs.aws.amazon.com/elasticloadbalancing/latest/application/edit-load-balancer-attributes.html
BALANCER_IDLE_S = 65

# Requests of the web server. Not over HTTP/2, in which curl 7.88 may fail at a good response.
# https://github.com/curl/curl/issues/10634
CURL = "curl --http1.1 --silent --show-error --fail --output /dev/null --max-time 10"
# As a server in front would that terminates TLS.
PAGE_STATUS = "curl --http1.1 --silent --output /dev/null --max-time 60 --write-out '%{http_code}'"
PAGE_STATUS += " --header 'X-Forwarded-Proto: https'"

# The beginning of a server's command that installs packages of a release.
PIP = "$venv/bin/pip "

# Files of deploy/production/one-host. Below the rendered directory the name of the site takes the place of the kit's.
KIT = "benchapp"
# No hyphen: `shop-*` would be the units of `shop-two`, too. Names of users have at most 32 characters.
SITE_NAME = "[a-z][a-z0-9]{0,19}"
NOTE, INSTALL = "INSTALL.md", "benchapp-install"
SCRIPTS = (
    *("benchapp-check", "benchapp-updated", "benchapp-deploy", "benchapp-loaded", "benchapp-manage"),
    *("benchapp-rollback", "benchapp-status"),
)
RESTORE = "benchapp-restore"
FIREWALL = "nftables.conf"
PAGES = "pages.py"
ALERT = "benchapp-alert@.service"
SETTINGS = ("site.env", "sysusers.conf", "tmpfiles.conf", "apt.conf")


def write(case: Case, target: Path) -> list[Path]:
    """Write the files into `target`; returns them, sorted. After a failure, none is left behind.

    The units of a production host are limited to the size of the case.
    """
    with clean_target(target.absolute()) as folder:
        if case.values.places:
            return sorted(write_for_host(case, folder))
        return sorted(write_for_this_machine(case, folder, ports.free_port()))


@contextmanager
def clean_target(target: Path) -> Iterator[Path]:
    """`target`, made or empty; after a failure of the block, empty again.

    Raises BenchError for a directory with content, or one that cannot be made or written.
    """
    was_there = fresh_directory(target)
    try:
        yield target
    except BaseException as error:
        empty(target)
        if not was_there:
            target.rmdir()
        if isinstance(error, OSError):
            raise BenchError(f"{target}: cannot be written: {error.strerror}; name another directory") from None
        raise


def write_for_this_machine(case: Case, target: Path, port: int) -> list[Path]:
    """The servers' files, with places on this machine."""
    paths.must_be_plain(case.project.folder, case.project.venv, case.project.var, target)
    case, _ = with_listener(case)
    layout = Layout(target, target / "run")
    placed = _wired(Placed(case, layout.places(case.project, case.project.worker(), port)))
    return render.write_files(placed, layout.conf)


def write_for_host(case: Case, target: Path, left_out: Collection[str] = ()) -> list[Path]:
    """All files of a production host, except for those `left_out`."""
    placed = in_production(case, LOOPBACK)
    context = host_context(placed, units.units(placed))
    own = []
    for template, name, names in files(context):
        if name not in left_out:
            own.append(templates.write(f"one-host/{template}", target / name, names))
    of_services = write_service_files(placed, target)
    of_project = project_files.write(placed.case, target)
    return [*render.write_files(placed, target), *of_services, *own, *of_project]


def write_service_files(placed: Placed, target: Path) -> list[Path]:
    """The files of services, each written into `target`."""
    written: list[Path] = []
    for service in placed.case.services:
        written += render.write_service_files(service, render.service_context(service, placed), target)
    return written


def production_places(values: Values) -> HostPaths:
    """The `[places]` of the values; raises BenchError for a missing or unknown one, or one without a plain path."""
    site = values.places.get("name", KIT)
    if not re.fullmatch(SITE_NAME, str(site)):
        form = "a lower-case letter, then up to 19 lower-case letters and digits"
        raise BenchError(f"places.name = {site!r}: use {form}")
    for name, place in values.places.items():
        if name not in ("bind", "port", "inner_port", "metrics_bind") and (odd := paths.odd_characters(Path(place))):
            raise BenchError(f"places.{name} = {place!r}: not every file can have {odd} in it; use another name")
    try:
        return HostPaths(**values.places)
    except TypeError as error:
        raise BenchError(f"deploy/values/{values.name}.toml [places]: {str(error).partition('() ')[2]}") from None


def with_listener(case: Case) -> tuple[Case, bool]:
    """The case with values that its outermost server can serve; and whether another server must terminate TLS."""
    values, front = case.values, case.servers[-1]
    if values.places and values.names["listener"] == "plain":
        # No server terminates TLS: a site that requires HTTPS would redirect every client to itself forever.
        values = replace(values.changed({"redirect": "off"}), env={**values.env, "BENCHAPP_HTTPS": "0"})
    if values.names["listener"] == "behind":
        # The server in front, and else the site, redirect what came to it over plain HTTP.
        values = values.changed({"redirect": "off", **_with_keepalive_for_a_balancer(values)})
    terminated = values.names["listener"] == "tls" and not front.tls
    if terminated:
        # A server without TLS does not redirect to HTTPS either.
        values = values.changed({"redirect": "off"})
    return replace(case, values=values), terminated


def _with_keepalive_for_a_balancer(values: Values) -> dict[str, Any]:
    """The time-out of idle connections, unless the user set one: longer than a load balancer's, so no request meets a
    closing connection.
    """
    if "client_keepalive_s" in values.changes:
        return {}
    return {"client_keepalive_s": max(BALANCER_IDLE_S, values.names["client_keepalive_s"])}


def in_production(case: Case, bind: str, private: bool = True) -> Placed:
    """The case as in production, in its places and with the addresses of its servers.

    bind     the address of a stack behind another server that terminates TLS
    private  whether each server has a separate directory below `run`, which servers of one user do not need
    """
    case, terminated = with_listener(replace(case, workers=True))
    places = replace(production_places(case.values), private=private)
    case = _with_host_programs(case, places)
    if terminated:
        case = replace(case, env={**case.env, "BENCHAPP_BEHIND_PROXY": "1"})
        places = replace(places, bind=bind, port=PLAIN_PORT)
    return _wired(Placed(case, places))


def _wired(placed: Placed) -> Placed:
    return placed.wired(count(placed.places.inner_port).__next__)


def _with_host_programs(case: Case, places: HostPaths) -> Case:
    """The case with programs and modules at the host's paths, whatever is installed here."""
    programs: dict[str, Path] = {}
    modules: dict[str, dict[str, str]] = {}
    for server in case.servers:
        # In the virtual environment, or where its Debian package puts it.
        folder = server.directory
        if server.distribution or server.requirements:
            folder = f"{places.venv}/bin"
        programs[server.name] = Path(folder, server.programs[0])
        debian_modules = {name: first for name, (first, *_) in compatibility.modules_of(server, case.layers).items()}
        # Commands on the host build some modules.
        texts = {**debian_modules, **server.host_modules}
        modules[server.name] = {name: render.text(text, places.names, server.name) for name, text in texts.items()}
    return replace(case, programs=programs, modules=modules)


def files(context: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A host's own files, units and scripts: the template in deploy/production/one-host, the name, and its context.

    context  from host_context
    """
    names = [NOTE, INSTALL, FIREWALL, *SCRIPTS, PAGES, *SETTINGS]
    if context["ends_tls"]:
        names.append("benchapp-certificate")
    if context["backed_up"]:
        names += [project_files.BACKUPS, RESTORE]
    if context["rotated"]:
        names.append("logrotate.conf")
    if context["sysctls"]:
        names.append("sysctl.conf")
    site = context["name"]
    for name in names:
        yield name, name.replace(KIT, site), context
    for name in (f"{KIT}.target", f"{KIT}.slice", ALERT):
        yield name, f"systemd/{name.replace(KIT, site)}", context
    for unit in context["units"]:
        yield "server.service", f"systemd/{unit.name}.service", {**context, "unit": unit}
        if unit.socket:
            yield "server.socket", f"systemd/{unit.name}.socket", {**context, "unit": unit}
        if unit.has_stand_in:
            yield "server.service", f"systemd/{unit.stand_in.name}.service", {**context, "unit": unit.stand_in}
    for job in context["jobs"]:
        for kind in ("service", "timer"):
            yield f"job.{kind}", f"timers/{job['unit']}.{kind}", {**context, "job": job}


def host_context(placed: Placed, of_host: list[Unit]) -> dict[str, Any]:
    """The names for the templates of a host's files."""
    case, places = placed.case, placed.places
    front, data = case.servers[-1], Path(places.data)
    description = case.project.description
    pages = list(dict.fromkeys([description.start, *description.public]))
    ready = f"{CURL} {curl_options(placed, opened.health_paths(case.project)[-1])}"
    unlogged = ""
    if front not in case.stack.servers and not front.listener:
        # It terminates TLS and has no log.
        unlogged = front.name
    state = ""
    if STATE in data.parents:
        state = str(data.relative_to(STATE))
    return {
        **case.settings,
        **places.names,
        **project_files.names(placed),
        **_of_users(placed, of_host),
        **_of_packages(placed),
        **_of_front(placed),
        "title": case.stack.title,
        "release": (release := catalog.read().releases[case.settings["debian"]]),
        "versions": _versions(case, release),
        "stack": case.stack.name,
        "layer": case.layer_name,
        "size": case.size,
        "open_files": OPEN_FILES,
        "units": of_host,
        "unlogged": unlogged,
        "workers": " ".join(unit.name for unit in of_host if unit.program.worker),
        "services": [f"{places.name}-{service.name}" for service in case.services],
        "chosen_cache": any(compatibility.CHOSEN_CACHE in layer.services for layer in case.layers),
        "ready_now": ready,
        "pages": pages,
        "page_words": shlex.join(pages),
        "page_status": f"{PAGE_STATUS} {curl_options(placed, '')}",
        "build_user": f"{places.group}-build",
        # Not curl's own `--retry`: a 502 with Retry-After, from the web server, ends it or has it wait as long.
        "ready_soon": f'timeout 30 sh -c "until {ready}; do sleep 1; done"',
        "https": case.values.env.get("BENCHAPP_HTTPS") == "1",
        "env": _site_env(placed),
        **_of_environment(placed),
        # systemd makes and opens a directory there by itself; for one elsewhere tmpfiles.d and ReadWritePaths= do.
        "state": state,
        # Only for the note, which renders several times.
        "where": partial(limits_table.rows, placed),
    }


def _of_environment(placed: Placed) -> dict[str, list[str]]:
    """The files with the environment of the site's processes, and the files handed over as credentials.

    The kit's settings read the secrets from a file: no child process inherits a credential. Others read variables.
    """
    conf = placed.places.conf
    if placed.case.project.recorded:
        return {"site_files": [f"{conf}/site.env", f"{conf}/secrets.env"], "site_credentials": []}
    return {"site_files": [f"{conf}/site.env"], "site_credentials": [f"secrets.env:{conf}/secrets.env"]}


def _versions(case: Case, release: Release) -> list[str]:
    """The release's versions of programs that the files depend on, such as `systemd 252`."""
    versions = [f"systemd {release.systemd}", f"Python {release.python}"]
    for name in packages(case.servers, case.services, case.layers):
        if name in release.packages:
            versions.append(f"{name} {release.packages[name]}")
    return versions


def _of_users(placed: Placed, of_host: list[Unit]) -> dict[str, Any]:
    """The users of the host's files.

    same_user    the reason for one user of web server and application, empty for two users
    reader       the group that may read uploads: the web server's, or the application's without one
    front        the outermost server: its unit, and its file with certificate and key
    server_logs  the log files of each server with their user; rotated: those for the host to rotate
    private      the directory of each server with a unit of the host, with its user
    """
    case, places, front = placed.case, placed.places, placed.front
    user = server_user(front, placed)
    names = {unit.name for unit in of_host}
    servers = [server for server in case.servers if f"{places.name}-{server.name}" in names]
    same_user = ""
    if user == places.user:
        same_user = "; ".join(layer.same_user for layer in case.layers if layer.same_user) or "one server is both"
    return {
        "users": list(dict.fromkeys(unit.program.user for unit in of_host)),
        "same_user": same_user,
        "reader": server_user(case.stack.servers[-1], placed),
        "front": {"unit": f"{places.name}-{front.name}", "certificate": front.certificate},
        "private": [(places.run_of(server.name), server_user(server, placed)) for server in servers],
        "server_logs": (logs := units.logs(placed, of_host)),
        "rotated": [log for log in logs if not log.rotates],
    }


def _of_packages(placed: Placed) -> dict[str, Any]:
    """Packages for the servers and their one-time commands; `build_commands` install packages of a release."""
    case, places = placed.case, placed.places
    of_release = _host_commands(replace(placed, places=replace(places, project="$release", venv="$venv")))
    build_packages: list[str] = []
    made_on_host: list[str] = []
    sysctls: dict[str, int] = {}
    for server in case.servers:
        build_packages += server.build_packages
        made_on_host += [render.text(words, places.names, server.name) for words in server.host_modules.values()]
        sysctls |= server.sysctls
    return {
        "packages": [*packages(case.servers, case.services, case.layers), *metrics_packages(case.servers, case)],
        "metrics_of": _figures(placed),
        "build_packages": build_packages,
        **_services_in_place(placed),
        "made_on_host": made_on_host,
        "sysctls": sysctls,
        "host_commands": _host_commands(placed),
        "build_commands": [words for words in of_release if words.startswith(PIP)],
        "release_commands": [words for words in of_release if not words.startswith(PIP)],
    }


def _of_front(placed: Placed) -> dict[str, Any]:
    """Names for templates about the outermost server.

    webroot     the directory for responses to a certificate authority over plain HTTP, or empty
    maintained  whether a file switches the site off
    listens6    whether a server listens on IPv6, too
    """
    settings, ends_tls = placed.case.settings, placed.ends_tls
    used = render.names_used(placed.case)
    webroot = ""
    if ends_tls and settings["redirect"] == "on" and "acme_webroot" in used:
        webroot = settings["acme_webroot"]
    return {
        "ends_tls": ends_tls,
        "webroot": webroot,
        "maintained": settings["maintenance"] == "on" and "maintenance_file" in used,
        "listens6": settings["bind6"] != "off" and bool(used & {"binds", "binds6"}),
    }


def curl_options(placed: Placed, path: str) -> str:
    """The words for curl to request a page of the host's own web server."""
    places, name = placed.places, placed.case.settings["server_name"]
    if placed.ends_tls:
        # Without a certificate authority: this is the host itself.
        return f"--insecure --resolve {name}:{places.port}:{LOOPBACK} https://{name}:{places.port}{path}"
    return f"--header 'Host: {name}' http://{places.bind}:{places.port}{path}"


def _services_in_place(placed: Placed) -> dict[str, list[str]]:
    """The distribution's services that the kit's units replace: some would hold the ports of the site, others be idle.

    A server of a site on a loopback address is idle: another server in front may have the ports.
    """
    case = placed.case
    servers = distribution_services(case.servers, case)
    # Debian names the service of a cache as its package.
    caches = list(chain.from_iterable(service.packages for service in case.services))
    if placed.places.bind == LOOPBACK:
        return {"port_services": [], "idle_services": [*servers, *caches]}
    return {"port_services": servers, "idle_services": caches}


def distribution_services(servers: Sequence[Server], case: Case) -> list[str]:
    """The services started by packages of the servers and of their exporters, each once."""
    services: list[str] = []
    for server in servers:
        services += server.services
    for _, metrics in units.with_metrics(servers, case):
        services += metrics.services
    return list(dict.fromkeys(services))


def _figures(placed: Placed) -> list[tuple[str, str, str]]:
    """The name of each server with figures for monitoring, their URL and their form."""
    context = render.site_context(placed)
    figures = []
    for server, metrics in units.with_metrics(placed.case.servers, placed.case):
        figures.append((server.name, render.text(metrics.url, context, f"{server.name} metrics"), metrics.about))
    return figures


def metrics_packages(servers: Sequence[Server], case: Case) -> list[str]:
    """The Debian packages of the servers' exporters."""
    names: list[str] = []
    for _, metrics in units.with_metrics(servers, case):
        names += metrics.packages
    return names


def packages(servers: Sequence[Server], services: Sequence[Service], layers: Sequence[Layer]) -> list[str]:
    """The Debian packages of servers, of services and of the layers' needs of the servers, each once."""
    named: list[str] = []
    for server in servers:
        named += server.packages
    for service in services:
        named += service.packages
    for layer in layers:
        for server in servers:
            named += layer.packages.get(server.name, [])
    return list(dict.fromkeys(named))


def _host_commands(placed: Placed) -> list[str]:
    """The commands to run once on the host for the servers."""
    project = project_files.names(placed)
    commands: list[str] = []
    for server in placed.case.servers:
        context = {}
        if server.host:
            context = {**project, **render.context_of(server, placed)}
        commands += [render.text(words, context, server.name) for words in server.host]
    return commands


def _site_env(placed: Placed) -> dict[str, str]:
    """The environment of the site on the host, without its secrets."""
    case = placed.case
    # Each release collects its static files below itself, so no variable names one folder for all.
    django = {run_command.SETTINGS: case.project.project.settings}
    env = project_files.environment({**django, **site_env(placed)}, placed)
    env |= case.user_env
    # systemd, compose and kubectl parse the file differently; quoting that only some understand stays out.
    # https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#EnvironmentFile=
    for name, value in env.items():
        if value != value.strip() or value[:1] in ("'", '"') or re.search(r"[\\\n]|\s#", value):
            raise BenchError(
                f"{name}: its value begins or ends with a space or a quote, or has a backslash, a line end or a "
                "comment in it, which not every reader of site.env takes as it is; write it on the host"
            )
    return env
