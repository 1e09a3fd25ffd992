"""The split of a case over the hosts of an inventory: roles and addresses.

The stack's outermost server, and a layer's servers in front, are on the host of group `front`; all inner servers are on
each host of group `web`; services are on the host of group `cache`. A single web host has the roles of missing groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.errors import BenchError
from bench.serve.catalog import catalog
from bench.serve.catalog.manifest import Service, Stack
from bench.serve.catalog.server import Server
from bench.serve.deployment.case import Case
from bench.serve.deployment.placed import Placed
from bench.serve.deployment.program import Program
from bench.serve.machine.supervise import Address
from bench.serve.production.inventory import CACHE, DB, FRONT, WEB, Host, Inventory

# The first port of application servers for a front on another host; the next instance has the next port.
FIRST_PORT = 8001


@dataclass(frozen=True)
class HostRole:
    """The role of one host: its servers and services.

    servers   the servers of the chain on this host, the innermost first
    services  the services of the layer on this host
    first     True for the first web host, which does the work that only one may do
    """

    host: Host
    servers: tuple[Server, ...]
    services: tuple[Service, ...]
    first: bool = False

    @property
    def application(self) -> bool:
        """True for a host with the site."""
        return WEB in self.host.groups

    def runs(self, program: Program) -> bool:
        """True if the program runs on this host."""
        if program.server:
            return program.server in self.servers
        if program.service:
            return program.service in self.services
        single = program.worker is not None and program.worker.single
        return self.application and (self.first or not single)


@dataclass(frozen=True)
class Split:
    """A case over the hosts of an inventory; raises BenchError, with the reason, for a case that cannot be split so."""

    case: Case
    inventory: Inventory

    def __post_init__(self) -> None:
        if reason := self._unsupported():
            raise BenchError(reason)

    @property
    def web(self) -> tuple[Host, ...]:
        return self.inventory.of(WEB)

    @property
    def front(self) -> Host:
        """The host of the outermost server."""
        return self._one(FRONT)

    @property
    def cache(self) -> Host:
        """The host of the layer's services."""
        return self._one(CACHE)

    @property
    def database(self) -> Host | None:
        """The host of the database; None for the only web host's own."""
        return next(iter(self.inventory.of(DB)), None)

    @property
    def split(self) -> bool:
        """True if the application and the web server are on different hosts."""
        return {*self.web} != {self.front}

    @property
    def outer(self) -> tuple[Server, ...]:
        """The servers of the front: the stack's outermost one, and the layers' servers in front."""
        return self.case.servers[len(self.case.stack.servers) - 1 :]

    @property
    def inner(self) -> tuple[Server, ...]:
        """The servers of a web host, the last of which gets the front's requests."""
        return self.case.stack.servers[:-1]

    @property
    def shares(self) -> list[HostRole]:
        """The role of each host with servers or services, in the order of setup."""
        wanted = [self.database, *self.web, self.front]
        if self.case.services:
            wanted.insert(1, self.cache)
        roles = []
        for host in dict.fromkeys(filter(None, wanted)):
            servers: list[Server] = []
            if host in self.web:
                servers += self.inner
            if host == self.front:
                servers += self.outer
            services: tuple[Service, ...] = ()
            if host == self.cache:
                services = self.case.services
            roles.append(HostRole(host, tuple(servers), services, host == self.web[0]))
        return roles

    @property
    def idle(self) -> tuple[Host, ...]:
        """The hosts of the case's groups without a role."""
        used = [share.host for share in self.shares]
        return tuple(host for host in self.inventory.of(CACHE) if host not in used)

    def shared(self, placed: Placed) -> Placed:
        """The same with the addresses of services and doors for other hosts."""
        shared = {}
        if {*self.web, self.front} != {self.cache}:
            shared = {service.name: Address(self.cache.address, service.port) for service in self.case.services}
        if self.split:
            for server in self.outer:
                shared |= {door: Address(self.front.address, port) for door, port in server.doors.items()}
        return replace(placed, places=replace(placed.places, shared=shared))

    def addressed_from(self, host: Host, placed: Placed, without: Host | None = None) -> Placed:
        """The same with the servers' addresses from that host's view; `without` a drained web host."""
        if not self.split:
            return placed
        inner_name = self.inner[-1].name
        numbers = range(len(placed.listens[inner_name]))
        every, behind = {}, []
        for web in self.web:
            every[web] = [Address(web.address, FIRST_PORT + number) for number in numbers]
            if web != without:
                behind += every[web]
        listens = {**placed.listens, inner_name: every.get(host, every[self.web[0]])}
        return replace(placed, listens=listens, behind={inner_name: behind})

    def reached(self, share: HostRole, placed: Placed) -> dict[int, list[Host]]:
        """The ports of a host open to other hosts, with the allowed hosts, for the firewall."""
        users_by_port: dict[int, list[Host]] = {}
        if self.split and share.application:
            users_by_port |= {address.port: [self.front] for address in placed.listens[self.inner[-1].name]}
        for name, address in placed.places.shared.items():
            if address.host == share.host.address:
                # The web server may read the cache itself; only the site uses a door.
                door = any(name in server.doors for server in self.outer)
                users = [*self.web]
                if not door and self.front not in users:
                    users.append(self.front)
                users_by_port[address.port] = users
        return users_by_port

    def _one(self, group: str) -> Host:
        return next(iter(self.inventory.of(group)), self.web[0])

    def _unsupported(self) -> str:
        """The reason why the case cannot be split so, or an empty string."""
        if reason := only_on_one_host(self.case):
            return reason
        needed = {CACHE: self.case.services, FRONT: self.outer, DB: True}
        missing = [group for group, wanted in needed.items() if wanted and not self.inventory.of(group)]
        if len(self.web) > 1 and missing:
            problem = f"{self.inventory.path}: {len(self.web)} web hosts, and none in group {missing[0]}"
            return f"{problem}; name one that serves them all"
        if len(self.web) > 1 and self.front in self.web:
            problem = (
                f"{self.inventory.path}: {self.front.name} is in group {FRONT} and one of {len(self.web)} web hosts"
            )
            return f"{problem}: a deploy to it would stop the front; take it out of group {WEB}"
        if not self.split:
            return ""
        return self._one_host_reason()

    def _one_host_reason(self) -> str:
        """The reason why layers or stack have to be on one host, with the names of others, or an empty string."""
        known, refusal = catalog.read(), "not over several hosts:"
        for layer in self.case.layers:
            if layer.one_host:
                can = ", ".join(name for name, other in known.layers.items() if not other.one_host)
                return f"layer {layer.name}: {refusal} {layer.one_host}; layers that can: {can}"
        stack = self.case.stack
        if reason := why_single_host(stack):
            can = ", ".join(name for name, other in known.stacks.items() if not why_single_host(other))
            return f"{stack.name}: {refusal} {reason}; stacks that can: {can}"
        return ""


def only_on_one_host(case: Case) -> str:
    """The reason why a service of a case can only be on the host of the site, or an empty string."""
    for service in case.services:
        if service.site:
            return (
                f"{service.title} of pool={service.name} is for one host; run one beside the database, name it in "
                f"DATABASE_URL, and give --env BENCHAPP_POOL={service.name}"
            )
    return ""


def why_single_host(stack: Stack) -> str:
    """The reason why the servers of a stack have to be on one host, or an empty string."""
    if len(stack.servers) == 1:
        return "its one server is web server and application in one"
    for server in stack.servers[-2:]:
        if server.one_host:
            return f"{server.name}: {server.one_host}"
    return ""
