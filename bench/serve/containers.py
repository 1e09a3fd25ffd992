"""Production in containers: an image with the servers' files as a host gets them, and what starts it, for Compose or
Kubernetes. Nothing is built or started."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import paths
from bench.catalog.manifest import Server
from bench.errors import BenchError
from bench.machine.supervise import Address
from bench.serve import export, overlaid, project_image, render, units
from bench.serve.case import Case
from bench.serve.layout import LOOPBACK, Places
from bench.serve.render import Wiring, instance_name
from bench.serve.units import Unit

# Each with the text that keeps its tool from replacing what follows a dollar sign in a command.
FORMS = {"compose": ("$", "$$"), "kubernetes": ("$(", "$$(")}
TEMPLATES = paths.DEPLOY / "common" / "containers"
# User and group of every container: a number, by which a cluster sees that it is not root.
USER_ID = 10001
PROBE = "/usr/local/bin/benchapp-probe"
MAINTENANCE_FILE = "maintenance_file"
# Seconds in which load balancers learn that a pod ends, before its front server stops accepting.
DRAIN_S = 5
# The files of a certificate, by the names that a Secret of a cluster has for them: two, or one with both.
CERTIFICATE = {"tls.crt": "fullchain.pem", "tls.key": "privkey.pem"}
JOINED_CERTIFICATE = "tls-combined.pem"
# Jobs of a cluster that run a command which not every project has.
LEFT_OUT = ("sessions.yaml",)

Words = tuple[str, ...]


@dataclass(frozen=True)
class Container:
    """A server's instance, a layer's sidecar or a service, as the templates read it: its commands and `env` are JSON.

    What not every container has is a tuple, so that templates need no conditions.

    command      that of its systemd unit; it opens its socket itself
    env          its own environment, beside the site's
    site         for those that get the site's environment and secrets
    certificate  for the one that reads it
    after        the containers that must be well before it starts
    stop_signal  the signal on which it finishes the requests under way
    reload       what has it read a new certificate: words after `docker compose`
    alive        exits with 0 while it is well
    ready        exits with 0 while the site answers through it and can use its database; of the front server alone
    health       the healthcheck of Compose: as `alive`, or that the site answers through it
    leaves       what a pod runs before it sends SIGTERM
    """

    name: str
    about: str
    command: str
    env: Words = ()
    site: tuple[bool, ...] = ()
    certificate: tuple[bool, ...] = ()
    after: Words = ()
    stop_signal: str = "SIGTERM"
    reload: str = ""
    alive: Words = ()
    ready: Words = ()
    health: Words = ()
    leaves: Words = ()


def write(case: Case, target: Path, form: str) -> list[Path]:
    """Write the files of that form into `target`; returns them, sorted. When one cannot be written, none stays.

    Raises BenchError for values without places, for a server that no image can have, and for a project that none can
    serve.
    """
    if not case.values.places:
        raise BenchError(f"--as {form} needs the places of a host: use --values production")
    if reason := project_image.refusal(case.project):
        raise BenchError(f"{case.project.folder}: --as {form}: {reason}")
    host = export.production_places(case.values)
    case, places, wiring = export.in_production(_with_writable_files(case, host), host.bind)
    if reason := uncontainable(case, places):
        raise BenchError(f"{case.stack.name} as {form}: {reason}")
    with export.whole(target.absolute()) as folder:
        written = render.write_files(case, places, wiring, folder / "conf")
        read = "\n".join(path.read_text("utf-8") for path in written)
        written += overlaid.write(case, folder / "conf", project_image.drivers(case.project))
        context = _Context(case, places, wiring, form, read).names()
        left_out = set(LEFT_OUT) - {f"{name}.yaml" for name in context["jobs"]}
        for source in sorted([*(TEMPLATES / "image").iterdir(), *(TEMPLATES / form).iterdir()]):
            if source.name in left_out:
                continue
            path = folder / source.name
            path.write_text(render.text(source.read_text("utf-8"), context, str(source)), "utf-8")
            path.chmod(source.stat().st_mode)
            written.append(path)
    return sorted(written)


def _with_writable_files(case: Case, places: Places) -> Case:
    """The case with the file that is made by hand among the sockets: the configuration is read-only."""
    file = Path(case.values.names[MAINTENANCE_FILE])
    if not file.is_relative_to(places.conf):
        return case
    return replace(case, values=case.values.changed({MAINTENANCE_FILE: f"{places.run}/{file.name}"}))


def uncontainable(case: Case, places: Places) -> str:
    """Why no image can have these servers, or an empty string: each comes from Debian or from requirements.lock."""
    locked = re.findall(r"(?m)^([\w.-]+)==", (paths.PROJECT / "requirements.lock").read_text("utf-8"))
    for server in case.servers:
        if not server.packages and not case.programs[server.name].is_relative_to(places.venv):
            return f"{server.name} is in no Debian package and not in the virtual environment, so no image can have it"
        if server.distribution and server.distribution not in locked:
            return f"{server.name} is not in requirements.lock, so no image can have it"
    return ""


@dataclass(frozen=True)
class _Context:
    """What the templates of one form can name.

    read  the text of all files that the servers read
    """

    case: Case
    places: Places
    wiring: Wiring
    form: str
    read: str

    def names(self) -> dict[str, Any]:
        """The names: those of the host's files and of the containers."""
        found = units.units(self.case, self.places, self.wiring)
        host = export.host_context(self.case, self.places, self.wiring, found)
        containers = self._containers({unit.name: unit for unit in found}, host["ends_tls"])
        *inner, front = sorted(containers, key=lambda container: bool(container.ready))
        joined = self.case.servers[-1].certificate
        certificate = {JOINED_CERTIFICATE: joined} if joined else CERTIFICATE
        cached = self.case.caches != "nothing"
        return {
            **host,
            **project_image.names(self.case.project, host),
            "jobs": ["sessions"] if "clearsessions" in host["timers"] else [],
            "containers": containers,
            "inner": inner,
            "front": front,
            "user_id": USER_ID,
            "sizes": [self.case.size] if self.case.size.is_limited else [],
            # Limits of a whole pod are newer.
            "kubernetes": "1.34" if self.case.size.is_limited else "1.33",
            "ports": self._ports(host["ends_tls"]),
            "logs_to": self._logs(),
            "certificate": list(certificate.items()) if host["ends_tls"] else [],
            # A cache of its own in each pod: a write is seen by that of its pod alone.
            "replicas": 1 if cached else 2,
            "cached": cached,
            "drain_s": DRAIN_S,
        }

    def _containers(self, found: dict[str, Unit], ends_tls: bool) -> list[Container]:
        """The container of every unit: services, then the chain from the inside out, then what runs beside it."""
        containers = []
        for service in self.case.services:
            context = units.service_context(service, self.case, self.places)
            alive = self._probe(Address(path=context["socket"]))
            containers.append(self._container(found.pop(f"benchapp-{service.name}"), alive=alive, health=alive))
        before = tuple(container.name for container in containers)
        for index, server in enumerate(self.case.servers):
            chain = []
            for number, address in enumerate(self.wiring.listens[server.name], 1):
                unit = found.pop(f"benchapp-{instance_name(server.name, number)}")
                of_server = self._of_server(index, address, ends_tls)
                chain.append(self._container(unit, **of_server, after=before, reload=_reload(server, unit)))
            containers += chain
            before = tuple(container.name for container in chain)
        return [*containers, *map(self._container, found.values())]

    def _of_server(self, index: int, address: Address, ends_tls: bool) -> dict[str, Any]:
        """The probes and the certificate of an instance of a server; those that ask speak HTTP to it."""
        front = index == len(self.case.servers) - 1
        url = f"{'https' if front and ends_tls else 'http'}://{self.case.settings['server_name']}"
        application = index == 0 and self.case.servers[0].speaks == "http"
        project = self.case.project
        return {
            "alive": self._probe(address, url + project.health if application else ""),
            "health": self._probe(address, url + project.health if application or front else ""),
            "ready": self._probe(address, url + project.ready) if front else (),
            "certificate": (True,) if front and ends_tls else (),
        }

    def _container(
        self, unit: Unit, alive: Words = (), ready: Words = (), health: Words = (), **more: Any
    ) -> Container:
        variables: Any = unit.env
        if self.form == "kubernetes":
            variables = [{"name": name, "value": value} for name, value in unit.env.items()]
        return Container(
            unit.name.removeprefix("benchapp-"),
            unit.about,
            self._json(_command(unit)),
            env=(self._json(variables),) if variables else (),
            site=(True,) if unit.environment_files else (),
            stop_signal=unit.stop_signal,
            alive=(self._json(alive),) if alive else (),
            ready=(self._json(ready),) if ready else (),
            health=(self._json(["CMD", *health]),) if health else (),
            leaves=self._leaves(unit.stop_signal, bool(ready)),
            **more,
        )

    def _probe(self, address: Address, url: str = "") -> Words:
        at = address.path or f"{LOOPBACK}:{address.port}"
        return (PROBE, at, url) if url else (PROBE, at)

    def _leaves(self, stop_signal: str, front: bool) -> Words:
        """The command with which a pod has a server finish: a signal that is not SIGTERM, and the wait for its end."""
        steps = [f"sleep {DRAIN_S}"] if front else []
        if stop_signal != "SIGTERM":
            signal, wait_s = stop_signal.removeprefix("SIG"), self.case.settings["stop_timeout_s"]
            steps += [f"kill -{signal} 1", f"sleep {wait_s}"]
        return (self._json(["/bin/sh", "-c", "; ".join(steps)]),) if steps else ()

    def _ports(self, ends_tls: bool) -> list[dict[str, Any]]:
        """The ports of the front server: name, number, that of the cluster's Service, and what Compose publishes."""
        port, settings = self.places.port, self.case.settings
        found = [("https", port, 443)] if ends_tls else [("http", port, 80)]
        if ends_tls and settings["redirect"] == "on":
            found.append(("http", int(settings["http_port"]), 80))
        # Only the server that ends TLS for it may reach one that cannot.
        own = f"{LOOPBACK}:{port}" if port == export.PLAIN_PORT and not ends_tls else ""
        return [
            {"name": name, "number": number, "service": service, "published": f"{own or service}:{number}"}
            for name, number, service in found
        ]

    def _logs(self) -> dict[str, str]:
        """Where each log file of the servers goes: requests to the container's output, the others to its errors.

        Those are its first process's: /dev/stdout is that of the server itself, which may have closed it.
        """
        files = sorted(set(re.findall(rf"{re.escape(self.places.logs)}/[\w.-]+", self.read)))
        requests = self.case.settings["access_log"]
        return {file: f"/proc/1/fd/{1 if file == requests else 2}" for file in files}

    def _json(self, value: Any) -> str:
        return json.dumps(value).replace(*FORMS[self.form])


def _reload(server: Server, unit: Unit) -> str:
    """What has a server read its certificate again: words after `docker compose`."""
    name = unit.name.removeprefix("benchapp-")
    if isinstance(server.reload.configuration, str):
        return f"kill -s {server.reload.configuration} {name}" if server.reload.configuration else f"restart {name}"
    return f"exec {name} {unit.reload[-1]}"


def _command(unit: Unit) -> list[str]:
    """What a container runs; a killed server leaves its socket file behind, on which some do not start."""
    if not unit.socket_files:
        return shlex.split(unit.start)
    return ["/bin/sh", "-c", f"rm -f {shlex.join(unit.socket_files)} && exec {unit.start}"]
