"""A case in its places: with the paths of its files, and the addresses of its servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bench.serve.catalog.server import Server
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import LOOPBACK, HostPaths
from bench.serve.machine.supervise import Address


@dataclass(frozen=True)
class Placed:
    """A case, the places of its files, and the addresses of its servers.

    listens  the addresses of each server's instances, by the server's name; empty until `wired`: services and the
             site's environment do not need them
    behind   the instances of a server for the next outer one, on all hosts, if different from `listens`
    """

    case: Case
    places: HostPaths
    listens: Mapping[str, list[Address]] = field(default_factory=dict)
    behind: Mapping[str, list[Address]] = field(default_factory=dict)

    def upstreams(self, server: str) -> list[Address]:
        """The addresses of a server's instances for the next outer server."""
        return self.behind.get(server) or self.listens[server]

    def wired(self, ports: Callable[[], int]) -> Placed:
        """The same with an address for each server: the outermost has the front port, the others a Unix socket or a
        port of `ports()`.
        """
        listens: dict[str, list[Address]] = {}
        for server in self.case.servers:
            if server is self.front:
                listens[server.name] = [Address(host=self.places.bind, port=self.places.port)]
                continue
            count = 1
            if server.instances:
                count = int(self.case.settings[server.instances])
            listens[server.name] = [_inner_address(server, self.places, index, ports) for index in range(count)]
        return replace(self, listens=listens)

    @property
    def front(self) -> Server:
        """The outermost server."""
        return self.case.servers[-1]

    @property
    def ends_tls(self) -> bool:
        """True if the server in front is reached over TLS."""
        return self.case.values.names["listener"] == "tls" and self.front.tls

    @property
    def url(self) -> str:
        """The URL of the case for clients, without a slash at the end."""
        settings, host = self.case.settings, self.places.bind
        if settings["scheme"] == "https" and settings["strict_sni"] == "on" and host == LOOPBACK:
            # A client that connects by address names no host in the handshake. The certificate has this name as well.
            host = "localhost"
        return f"{settings['scheme']}://{host}:{self.places.port}"


def _inner_address(server: Server, places: HostPaths, index: int, ports: Callable[[], int]) -> Address:
    if server.listen == "tcp":
        return Address(host="127.0.0.1", port=ports())
    if server.instances:
        return Address(path=f"{places.run}/{server.name}-{index + 1}.sock")
    return Address(path=f"{places.run}/{server.name}.sock")
