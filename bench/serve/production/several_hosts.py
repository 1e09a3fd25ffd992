"""Write the files of each host of an inventory, and the playbook that installs them. No host is contacted."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from bench.errors import BenchError
from bench.serve.catalog.names import NO_LIMIT
from bench.serve.deployment import render
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import LOOPBACK
from bench.serve.deployment.placed import Placed
from bench.serve.production import one_host, templates, units
from bench.serve.production.inventory import ALIVE_S, ARGUMENTS, Host, Inventory
from bench.serve.production.split import HostRole, Split
from bench.serve.production.units import Unit

# Below deploy/production/several-hosts: the playbook and the files of its tasks, which go as they are.
PLAYBOOK = "*.yml"
FIREWALL = ("firewall.nft", "benchapp-firewall.service")
DATABASE = ("benchapp-database", *(f"database/{name}.conf" for name in ("pg_hba", "postgresql", "postgresql.service")))
READY = "benchapp-ready"
# Files of a production host that only some hosts have; INSTALL.md is what the playbook does instead.
OF_APPLICATION = ("benchapp-deploy", "benchapp-loaded", "benchapp-manage", "benchapp-rollback", "pages.py", "site.env")
UNITS, SCRIPTS = "/etc/systemd/system", "/usr/local/sbin"
# The files rendered for a host.
RENDERED = "rendered"
# Names below the rendered directory.
HOSTS, VARIABLES, DRAINED = "hosts", "host_vars", "drained"


@dataclass(frozen=True)
class Deployed:
    """The deployment on all hosts together.

    url         of the site, without a path: its scheme and its name
    port        of the front
    behind      whether the front takes plain HTTP from a server that terminates TLS
    access_log  of the front
    static_root the folder of static files on the front
    cache_seconds  the time to live of cached pages
    """

    stack: str
    layer: str
    size: str
    url: str
    port: int
    behind: bool
    access_log: str
    static_root: str
    cache_seconds: int

    @property
    def line(self) -> str:
        """The line of the file."""
        return msgspec.json.encode(self).decode() + "\n"

    @property
    def words(self) -> str:
        """The stack with its layer, in words."""
        words = f"{self.stack} with layer {self.layer}"
        if self.size == NO_LIMIT:
            return words
        return f"{words}, size {self.size}"


def write(case: Case, inventory: Inventory, target: Path) -> list[Path]:
    """Write the files of all hosts into `target`; returns them, sorted. After a failure, none is left.

    `target` holds `playbook.yml`, the files of each host in `hosts/HOST`, as below its root, the playbook's variables
    in `host_vars`, and in `drained/HOST` the changed files of the front while that web host is drained.
    """
    if not case.values.places:
        raise BenchError(f"--inventory needs the places of a host, which {case.values.name} lacks")
    if case.values.places.get("name", one_host.KIT) != one_host.KIT:
        raise BenchError(f"--inventory renders one site; leave places.name = {one_host.KIT!r}")
    if case.project.overlaid:
        raise BenchError("--inventory is for a project with its own settings: add --plain, or set reads_environment")
    split = Split(case, inventory)
    with one_host.clean_target(target.absolute()) as folder:
        return sorted(_Writing(split, folder).write())


class _Writing:
    """Writes the files of all hosts; `placed` has the shared places and addresses."""

    def __init__(self, split: Split, folder: Path):
        # As on one host: the address of a stack without TLS does not matter here.
        placed = one_host.in_production(split.case, LOOPBACK)
        if placed.places.port == one_host.PLAIN_PORT and split.split:
            front = split.outer[-1].name
            raise BenchError(
                f"{front} does not terminate TLS, and no server before it is on its host; use --set listener=behind"
            )
        if split.split:
            # The web server and the application, of which a layer may want one user, are on two hosts.
            layers = tuple(structs.replace(layer, same_user="") for layer in placed.case.layers)
            placed = replace(placed, case=replace(placed.case, layers=layers))
        self.split, self.folder, self.placed = split, folder, split.shared(placed)

    def write(self) -> list[Path]:
        """All files."""
        written: list[Path] = []
        for share in self.split.shares:
            written += self._host(share)
        if len(self.split.web) > 1:
            for web in self.split.web:
                written += self._drained(web)
        written += [self._write_variables(host, {"runs": False}) for host in self.split.idle]
        of_playbook = sorted((templates.FOLDER / "several-hosts").glob(PLAYBOOK))
        playbook = [shutil.copy(path, self.folder) for path in of_playbook]
        return [*written, *map(Path, playbook)]

    def _host(self, share: HostRole) -> list[Path]:
        """The files of one host, and the variables of the playbook for it."""
        placed = self.split.addressed_from(share.host, self.placed)
        root = self.folder / HOSTS / share.host.name
        target = _below(root, self.placed.places.conf)
        target.mkdir(parents=True)
        host_units = units.units(placed, share)
        # All hosts have the same users.
        users = dict.fromkeys(unit.program.user for unit in units.units(placed))
        context = self._context(share, placed, host_units) | {"users": list(users)}
        left_out = [one_host.NOTE, one_host.INSTALL, one_host.FIREWALL]
        if not share.application:
            left_out += OF_APPLICATION
        files = []
        for source, name, of_file in one_host.files(context):
            if name not in left_out:
                files.append((f"one-host/{source}", name, of_file))
        # Files only for one of several hosts: its firewall, the setup of the database, the requests to its servers.
        own: list[str] = []
        if context["reached"]:
            own += FIREWALL
        if share.host == self.split.database:
            own += DATABASE
        if context["ready_at"]:
            own.append(READY)
        files += [(f"several-hosts/{Path(name).name}", name, context) for name in own]
        written = render.write_files(placed, target, share.servers)
        written += [templates.write(source, _place(root, target, name), of_file) for source, name, of_file in files]
        digest = target / RENDERED
        digest.write_text(_digest(written, root) + self._deployed().line, "utf-8")
        variables = self._variables(share, context, host_units)
        variables["unit_files"] = sorted(path.name for path in written if path.is_relative_to(_below(root, UNITS)))
        return [*written, digest, self._write_variables(share.host, variables)]

    def _write_variables(self, host: Host, variables: dict[str, Any]) -> Path:
        """Write the playbook's variables of a host, and its connection settings for Ansible."""
        connection = {
            # Copying takes half of a task's time otherwise.
            "ansible_pipelining": True,
            # A connection kept from an earlier run otherwise waits for minutes for a host that is gone.
            ARGUMENTS[-1]: f"{host.extra} -o ServerAliveInterval={ALIVE_S}".strip(),
        }
        path = self.folder / VARIABLES / f"{host.name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**connection, **variables}, indent=2) + "\n", "utf-8")
        return path

    def _context(self, share: HostRole, placed: Placed, of_host: list[Unit]) -> dict[str, Any]:
        """The names for the templates of a host's files, those of one host's among them."""
        context = one_host.host_context(placed, of_host)
        reached = []
        for port, hosts in self.split.reached(share, placed).items():
            reached.append((port, [host.address for host in hosts]))
        context["ready_at"] = []
        if share.application and self.split.split:
            # The host's own servers are requested, not the front.
            inner = self.split.inner[-1]
            context |= {"ready_at": placed.listens[inner.name], "speaks": inner.speaks}
            context |= {"ready_now": "benchapp-ready 0", "ready_soon": "benchapp-ready", "page_status": ""}
        if not share.application:
            context |= {"release_commands": [], "build_commands": []}
        if not share.first:
            # The daily jobs of only one host.
            context |= {"jobs": [], "backed_up": []}
        if share.host != self.split.front:
            context |= {"ends_tls": False, "webroot": ""}
        web_addresses = [host.address for host in self.split.web]
        return context | {"host": share.host, "reached": reached, "web_addresses": web_addresses}

    def _deployed(self) -> Deployed:
        """The deployment, the same on all hosts."""
        case, places = self.placed.case, self.placed.places
        https = case.values.env.get("BENCHAPP_HTTPS") == "1"
        scheme = "http"
        if self.placed.ends_tls:
            scheme = "https"
        return Deployed(
            stack=case.stack.name,
            layer=case.layer_name,
            size=case.size.name,
            url=f"{scheme}://{case.settings['server_name']}",
            port=places.port,
            behind=https and not self.placed.ends_tls,
            access_log=str(case.values.names["access_log"]),
            static_root=places.static_root,
            cache_seconds=case.settings["cache_seconds"],
        )

    def _drained(self, web: Host) -> list[Path]:
        """The files of the front that differ while a web host is drained."""
        target = _below(self.folder / DRAINED / web.name, self.placed.places.conf)
        whole_front = _below(self.folder / HOSTS / self.split.front.name, self.placed.places.conf)
        placed = self.split.addressed_from(self.split.front, self.placed, without=web)
        changed = []
        for path in render.write_files(placed, target, self.split.outer):
            if path.read_bytes() == (whole_front / path.name).read_bytes():
                path.unlink()
            else:
                changed.append(path)
        return changed

    def _variables(self, share: HostRole, context: dict[str, Any], of_host: list[Unit]) -> dict[str, Any]:
        """The playbook's variables of a host."""
        database_address = ""
        if self.split.database:
            database_address = self.split.database.address
        packages = one_host.packages(share.servers, share.services, self.split.case.layers)
        packages += chain.from_iterable(server.build_packages for server in share.servers)
        packages += one_host.metrics_packages(share.servers, self.placed.case)
        stopped = one_host.distribution_services(share.servers, self.placed.case)
        stopped += [service.packages[0] for service in share.services if service.packages]
        return {
            "runs": True,
            "packages": list(dict.fromkeys(packages)),
            "distribution_services": stopped,
            "units": [unit.name for unit in of_host],
            "sockets": [f"{unit.name}.socket" for unit in of_host if unit.socket],
            "timers": [job["unit"] for job in context["jobs"]],
            "applications": [unit.name for unit in of_host if unit.program.site],
            "stand_ins": [unit.name for unit in of_host if unit.has_stand_in],
            "reloads": [unit.name for unit in of_host if unit.reload],
            "firewall": bool(context["reached"]),
            "conf": context["conf"],
            "current": context["project"],
            "static_root": context["static_root"],
            "data": context["data"],
            "database_address": database_address,
            "front_host": self.split.front.name,
            "drains": len(self.split.web) > 1,
            "tls": context["ends_tls"],
            "certificates": context["tls"],
            "ready_now": context["ready_now"],
            "ready_soon": context["ready_soon"],
        }


# Targets on a host of rendered files outside of its `conf`, by a pattern of their names.
ELSEWHERE = {
    "systemd/*": UNITS,
    "timers/*": UNITS,
    "benchapp-firewall.service": UNITS,
    "benchapp-*": SCRIPTS,
    "sysusers.conf": "/etc/sysusers.d/benchapp.conf",
    "tmpfiles.conf": "/etc/tmpfiles.d/benchapp.conf",
    "logrotate.conf": "/etc/logrotate.d/benchapp",
    "apt.conf": "/etc/apt/apt.conf.d/benchapp.conf",
    "sysctl.conf": "/etc/sysctl.d/benchapp.conf",
}


def _place(root: Path, conf: Path, name: str) -> Path:
    """The path of a host's file, below `root`."""
    for pattern, place in ELSEWHERE.items():
        if not fnmatch(name, pattern):
            continue
        if not place.endswith((".conf", "/benchapp")):
            place = f"{place}/{Path(name).name}"
        return _below(root, place)
    return conf / name


def _digest(files: list[Path], root: Path) -> str:
    """A digest of a host's files, for the host's record of the version that its servers have read."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return f"{digest.hexdigest()}\n"


def _below(root: Path, place: str) -> Path:
    return root / place.lstrip("/")
