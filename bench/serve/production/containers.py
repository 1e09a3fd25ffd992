"""Production in containers: an image with the servers' files as on a host, and the files that start the image, for
Compose or Kubernetes. Nothing is built or started.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.serve.catalog.server import Server
from bench.serve.deployment import render
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import LOOPBACK, HostPaths
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import Program, programs
from bench.serve.machine.supervise import Address
from bench.serve.production import image, lock_file, one_host, project_files, templates, units
from bench.serve.production.split import only_on_one_host
from bench.serve.project import background, opened

# The files below deploy/production/containers, of the image and of each form, by the names that they get.
IMAGE = {name: name for name in ("Containerfile", ".dockerignore", "benchapp-alive", "benchapp-probe")}
FILES = {
    "compose": {"compose.yaml": "compose.yaml", "compose.md": "INSTALL.md"},
    "kubernetes": {
        **{name: name for name in ("jobs.yaml", "kustomization.yaml", "secrets.example.yaml", "site.yaml")},
        "extras.example.yaml": "extras.example.yaml",
        "kubernetes.md": "INSTALL.md",
    },
}
# Of a project that has workers.
WORKERS = "workers.yaml"
# With each tool's escape for a dollar sign in a command.
FORMS = {"compose": ("$", "$$"), "kubernetes": ("$(", "$$(")}
# User and group of every container: a number, so that a cluster knows that it is not root.
USER_ID = 10001
# The first requests a page. The second only connects: no Python is started, and load does not fail this probe.
PROBE, ALIVE = "/usr/local/bin/benchapp-probe", "/usr/local/bin/benchapp-alive"
MAINTENANCE_FILE = "maintenance_file"
# Seconds in which load balancers learn that a pod ends, before its front server stops accepting.
DRAIN_S = 5
# The path of the site's secrets in Compose; on a host systemd chooses another.
SECRETS_AT = "/run/secrets"
# The files of a certificate, by the names that a Secret of a cluster has for them: two, or one with both.
CERTIFICATE = {"tls.crt": "fullchain.pem", "tls.key": "privkey.pem"}
JOINED_CERTIFICATE = "tls-combined.pem"
# Mebibytes of memory that a volume may fill, at most an eighth of the size; and of a job of a cluster.
VOLUME_MB, JOB_MB = 64, 512
# Mebibytes of memory that a container is given at the least if no size says it: a process with the application, and
# another server. It may take twice as much.
PROCESS_MB, SERVER_MB = 128, 64
Words = list[str]


@dataclass(frozen=True)
class Container:
    """A server's instance, a layer's sidecar or a service, as the templates read it.

    program      the program, as on a host, where systemd may hold its socket
    reload       the words after `docker compose` for reading a new certificate
    started      exits with 0 after the start; empty: no probe exists
    alive        exits with 0 for a running program, busy or not
    ready        exits with 0 while the site responds through the front and can use its database; only of the front
    ready_path   the page of that probe, under any name, over plain HTTP; empty without one
    health       the healthcheck of Compose: as `alive`, or a response of the site through this container
    memory_mb    the least memory of the container, in MiB
    """

    program: Program
    reload: str = ""
    started: Words | None = None
    alive: Words | None = None
    ready: Words | None = None
    ready_path: str = ""
    health: Words | None = None
    memory_mb: int = SERVER_MB

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def stop_signal(self) -> str:
        """The signal for a graceful end."""
        return f"SIG{self.program.stop}"

    @property
    def command(self) -> Words:
        """The container's command. It removes a stale socket file, because some servers do not start on one."""
        if not self.program.socket_file:
            return self.program.argv
        return ["/bin/sh", "-c", f"rm -f {self.program.socket_file} && exec {shlex.join(self.program.argv)}"]

    @property
    def leaves(self) -> Words:
        """The pre-stop command of a pod: it sends a signal other than SIGTERM and waits for the end."""
        steps = []
        if self.ready:
            steps = [f"sleep {DRAIN_S}"]
        if self.program.stop != "TERM":
            steps += [f"kill -{self.program.stop} 1", f"sleep {self.program.stop_s}"]
        if not steps:
            return []
        return ["/bin/sh", "-c", "; ".join(steps)]

    @property
    def variables(self) -> list[dict[str, str]]:
        """Its own environment, beside the site's, as a cluster's manifests have both."""
        return [{"name": name, "value": value} for name, value in self.program.env.items()]


def write(case: Case, target: Path, form: str) -> list[Path]:
    """Write the files of that form into `target`; returns them, sorted. After a failure, none stays.

    Raises BenchError for values without places, and for servers or a project that no image can have.
    """
    if not case.values.places:
        raise BenchError(f"--format {form} needs the places of a host, which {case.values.name} lacks")
    if reason := image.refusal(case.project):
        raise BenchError(f"{case.project.folder}: --format {form}: {reason}")
    if reason := only_on_one_host(case):
        raise BenchError(f"{case.stack.name} as {form}: {reason}")
    host = one_host.production_places(case.values)
    placed = one_host.in_production(_with_writable_files(case, host), host.bind, private=False)
    if reason := image.uncontainable(placed):
        raise BenchError(f"{case.stack.name} as {form}: {reason}")
    with one_host.clean_target(target.absolute()) as folder:
        written = render.write_files(placed, folder / "conf")
        read = "\n".join(path.read_text("utf-8") for path in written)
        written += project_files.write(placed.case, folder / "conf", image.requirements(placed.case))
        if opened.is_kits(case.project.folder):
            (folder / "conf" / lock_file.LOCK).write_text(image.requirements(placed.case), "utf-8")
            written.append(folder / "conf" / lock_file.LOCK)
        context = _names(placed, read)
        context["json"] = lambda value: json.dumps(value).replace(*FORMS[form])
        files = {f"containers/{source}": name for source, name in {**IMAGE, **FILES[form]}.items()}
        if form == "kubernetes" and context["workers"]:
            files[f"containers/{WORKERS}"] = WORKERS
        for source, name in {**files, "one-host/site.env": "site.env"}.items():
            written.append(templates.write(source, folder / name, context))
    return sorted(written)


def _with_writable_files(case: Case, places: HostPaths) -> Case:
    """The case with the hand-made maintenance file among the sockets: the configuration is read-only.

    Nobody outside of a container reaches the figures on its loopback address, so they are off. Each site has separate
    containers, so that no name of a site is needed.
    """
    values = case.values.changed({"metrics": "off"})
    case = replace(case, values=replace(values, places={**values.places, "name": one_host.KIT}))
    file = Path(case.values.names[MAINTENANCE_FILE])
    if not file.is_relative_to(places.conf):
        return case
    return replace(case, values=case.values.changed({MAINTENANCE_FILE: f"{places.run}/{file.name}"}))


def _names(placed: Placed, read: str) -> dict[str, Any]:
    """The names for the templates: those of the host's files and of the containers.

    read  the text of all files of the servers
    """
    case, host = placed.case, one_host.host_context(placed, units.units(placed))
    containers = _containers(placed)
    in_pod = [container for container in containers if not container.program.worker]
    *inner, front = sorted(in_pod, key=lambda container: bool(container.ready))
    certificate = {}
    if placed.ends_tls:
        certificate = CERTIFICATE
        if joined := placed.front.certificate:
            certificate = {JOINED_CERTIFICATE: joined}
    inner_addresses = chain.from_iterable(placed.listens[server.name] for server in case.servers[:-1])
    cached = case.caches != "nothing"
    kubernetes = "1.33"
    if case.size.is_limited:
        # Limits of a whole pod are newer.
        kubernetes = "1.34"
    names = {
        **host,
        **image.names(case.project, host),
        "own_lock": not opened.is_kits(case.project.folder),
        "cron_jobs": _cron_jobs(placed),
        "containers": containers,
        "inner": inner,
        "workers": [container for container in containers if container.program.worker],
        "front_container": front,
        # Other containers find each other by sockets, and each has its network.
        "shared_network": any(address.port for address in inner_addresses),
        "user_id": USER_ID,
        "kubernetes": kubernetes,
        "ports": _ports(placed),
        "logs_to": _logs(placed, read),
        "certificate": certificate,
        # Each pod has a separate cache, and a write invalidates only its own pod's.
        "cached": cached,
        "drain_s": DRAIN_S,
        "volumes": _volumes(case, cached),
        "job_memory_mb": JOB_MB,
        # The kit's settings read a file, which no child process inherits. Others read their environment.
        "secrets_file": not case.project.recorded,
        "secrets_at": SECRETS_AT,
    }
    if not case.project.recorded:
        names["env"] = {**names["env"], "CREDENTIALS_DIRECTORY": SECRETS_AT}
    return names


def _cron_jobs(placed: Placed) -> list[dict[str, Any]]:
    """The scheduled jobs: name, schedule in cron's syntax, and command words."""
    project, venv = placed.case.project, placed.places.venv
    jobs = []
    if project_files.ends_sessions(project):
        words = background.on_host(project, f"manage.py {project_files.SESSIONS}", venv)
        jobs.append({"name": project_files.SESSIONS, "cron": project_files.KITS["cron"], "words": words})
    for name, job in project.description.jobs.items():
        words = background.on_host(project, job.command, venv)
        jobs.append({"name": f"job-{name}", "cron": job.cron, "words": words})
    return jobs


def _volumes(case: Case, cached: bool) -> dict[str, int]:
    """The mebibytes of each volume in memory: together less than the size, of which a cache may take half."""
    own = VOLUME_MB
    if case.size.is_limited:
        own = min(VOLUME_MB, case.size.burstable_mb // 8)
    store = own
    if cached:
        store = max(own, int(case.settings["cache_memory_mb"]) * 5 // 4)
    return {"run": own, "tmp": own, "store": store}


def _containers(placed: Placed) -> list[Container]:
    """The container of every program: services, then the chain from the inside out, then sidecars and workers."""
    containers = []
    for program in programs(placed):
        if program.server and program.address:
            containers.append(_of_server(program.server, program, program.address, placed))
        elif program.address:
            alive, memory_mb = _alive(program.address), int(placed.case.settings["cache_memory_mb"]) + SERVER_MB
            containers.append(Container(program, started=alive, alive=alive, health=alive, memory_mb=memory_mb))
        else:
            containers.append(Container(program))
    return containers


def _of_server(server: Server, program: Program, address: Address, placed: Placed) -> Container:
    """An instance of a server, with its HTTP probes."""
    case, ends_tls, front = placed.case, placed.ends_tls, server is placed.front
    url = f"http://{case.settings['server_name']}"
    if front and ends_tls:
        url = f"https://{case.settings['server_name']}"
    application = program.site and server.speaks == "http"
    # Health checks get a response under any host name, on the port of plain HTTP.
    plain = not ends_tls or case.settings["redirect"] == "on"
    alive = _alive(address)
    container = Container(program, reload=_reload(program), started=alive, alive=alive, health=alive)
    if program.site:
        container = replace(container, memory_mb=program.loaded * PROCESS_MB)
    healthy = _probe(address, url + case.project.health)
    if application:
        container = replace(container, started=healthy)
    if application or front:
        container = replace(container, health=healthy)
    if front:
        container = replace(container, ready=_probe(address, url + case.project.ready))
    if front and plain and case.project.ready in opened.health_paths(case.project):
        container = replace(container, ready_path=case.project.ready)
    return container


def _probe(address: Address, url: str) -> Words:
    return [PROBE, _place(address), url]


def _alive(address: Address) -> Words:
    return [ALIVE, _place(address)]


def _place(address: Address) -> str:
    return address.path or f"{LOOPBACK}:{address.port}"


def _reload(program: Program) -> str:
    """The words after `docker compose` that make a server reload its certificate."""
    if isinstance(program.reload, str):
        if program.reload:
            return f"kill -s {program.reload} {program.name}"
        return f"restart {program.name}"
    return f"exec {program.name} {shlex.join(program.reload)}"


def _ports(placed: Placed) -> list[dict[str, Any]]:
    """The ports of the front server: name, number, that of the cluster's Service, and what Compose publishes."""
    port, settings, ends_tls = placed.places.port, placed.case.settings, placed.ends_tls
    numbers = [("http", port, 80)]
    if ends_tls:
        numbers = [("https", port, 443)]
    if ends_tls and settings["redirect"] == "on":
        numbers.append(("http", int(settings["http_port"]), 80))
    ports = []
    for name, number, service in numbers:
        published = f"{service}:{number}"
        if port == one_host.PLAIN_PORT and not ends_tls:
            # Only the server in front that terminates TLS may reach a server without TLS.
            published = f"{LOOPBACK}:{port}:{number}"
        ports.append({"name": name, "number": number, "service": service, "published": published})
    return ports


def _logs(placed: Placed, read: str) -> dict[str, str]:
    """The target of each log file of the servers: the container's output for requests, its errors for the others.

    Both are the first process's: /dev/stdout is the server's own, which the server may have closed.
    """
    files = sorted(set(re.findall(rf"{re.escape(placed.places.logs)}/[\w.-]+", read)))
    targets = dict.fromkeys(files, "/proc/1/fd/2")
    requests = placed.case.settings["access_log"]
    if requests in targets:
        targets[requests] = "/proc/1/fd/1"
    return targets
