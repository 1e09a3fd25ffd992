"""Hosts with a deployment. Load hosts and this machine reach the front by its address, under the site's name."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass, replace
from functools import cached_property

from bench.errors import BenchError
from bench.measure.load import LoadJob
from bench.serve.machine import http
from bench.serve.production.inventory import TRUST, Inventory, front_of
from bench.serve.production.several_hosts import Deployed
from bench.serve.project.opened import UnderTest
from bench.verify.hosts.host_record import FORWARDED, file_of


@dataclass(frozen=True)
class DeployedHosts:
    """The hosts, their deployment, and the connection to their front.

    trust  additional trusted certificates (PEM)
    """

    project: UnderTest
    inventory: Inventory
    deployed: Deployed
    trust: str = ""

    @property
    def address(self) -> str:
        """The front's address for the other hosts."""
        return front_of(self.inventory).address

    def static_names(self) -> dict[str, str]:
        """The hashed name of every static file by its plain one, as on the front."""
        host, path = front_of(self.inventory), f"{self.deployed.static_root}/staticfiles.json"
        (text,) = file_of(host, path)
        try:
            names: dict[str, str] = json.loads(text)["paths"]
        except (ValueError, KeyError):
            raise BenchError(f"{host.name}: {path} names no static files; run the playbook again") from None
        return names

    def job(self, job: LoadJob) -> LoadJob:
        """The load, made at the front."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self._headers.items())
        headers = tuple(f"{line}{lines}" for line in job.headers or ("",) * len(job.paths))
        return replace(job, connect=f"{self.address}:{self.deployed.port}", trust=self.trust, headers=headers)

    def get(self, path: str) -> bytes:
        """The body at `path`. Raises VisitError unless the status is 200."""
        try:
            response = http.visit(self._target, path)
        except ssl.SSLCertVerificationError as error:
            why = f"the certificate of {self.address} is not trusted ({error.verify_message})"
            raise http.VisitError(
                f"GET {path}: {why}; name the one that signed it as {TRUST} in the inventory"
            ) from None
        if response.status != 200:
            advice = ""
            if self.deployed.behind and response.status in (301, 302, 307, 308):
                why = "the front believes X-Forwarded-Proto of `trusted_proxies` only"
                advice = f"; {why}: add the load hosts and render again"
            raise http.VisitError(f"GET {path}: status {response.status}, not 200{advice}")
        return response.body

    @property
    def _headers(self) -> dict[str, str]:
        if not self.deployed.behind:
            return {}
        return FORWARDED

    @cached_property
    def _target(self) -> http.Target:
        """The front at its address, under the site's name."""
        tls = self._tls
        route = http.Route(self.address, self.deployed.port, tls is not None, tuple(self._headers.items()), tls)
        return replace(http.Target.parse(self.deployed.url), via=route)

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if not self.deployed.url.startswith("https:"):
            return None
        context = ssl.create_default_context()
        if self.trust:
            context.load_verify_locations(cadata=self.trust)
        return context
