"""What the playbook has deployed on the hosts of an inventory, as a file on each of them says it; and how this machine
and the load hosts ask their front: by its address, under the site's name."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from shlex import quote
from urllib.parse import urlsplit

import msgspec

from bench.errors import BenchError
from bench.measure.load import Job
from bench.serve.catalog import catalog, values
from bench.serve.machine.http import CLOSE, VisitError, ask
from bench.serve.machine.http import TIMEOUT_S as VISIT_S
from bench.serve.production.hosts import RENDERED, Deployed
from bench.serve.production.inventory import TRUST, WEB, Host, Inventory, front_of
from bench.serve.project.under_test import UnderTest
from bench.verify.hosts import ssh

# The copy of RENDERED that says that a host's servers have read it.
LOADED = "loaded"
TIMEOUT_S = 20.0
PLAYBOOK = "run the playbook (docs/hosts.md)"
_END = "-- end of the file"
# What those who end TLS before a front say of a client.
FORWARDED = {"X-Forwarded-Proto": "https"}


def read(inventory: Inventory) -> Deployed:
    """What the front and the web hosts have; raises BenchError when that is not one whole thing."""
    asked = [host for host in inventory.hosts if WEB in host.groups or host == front_of(inventory)]
    with ThreadPoolExecutor(len(asked)) as pool:
        found = list(pool.map(_of_host, asked))
    first, deployed = asked[0], found[0]
    for host, other in zip(asked, found, strict=True):
        if other != deployed:
            both = f"{host.name} has {other.words}, {first.name} has {deployed.words}"
            raise BenchError(f"{both}; {PLAYBOOK} again, so that all hosts have the same")
    return deployed


def must_be(deployed: Deployed, stacks: Iterable[str], layers: Iterable[str], option: str = "--stack") -> None:
    """Raise BenchError unless these stacks and layers, where some are given, are what is deployed.

    option  what names the stack on the command line
    """
    known = catalog.read()
    for word, wanted, there, look in (
        (option, stacks, deployed.stack, known.stack),
        ("--layer", layers, deployed.layer, known.joined_layers),
    ):
        for name in wanted:
            look(name)
            if name != there:
                raise BenchError(f"{word} {name}: the hosts have {deployed.words}; deploy it there first")


def file_of(host: Host, *paths: str) -> list[str]:
    """The texts of files on a host, empty where there is none; raises BenchError when it cannot be reached."""
    # Each text ends with a line of its own.
    script = ssh.AS_ROOT + "".join(f"$sudo cat {quote(path)} 2> /dev/null; echo; echo {_END}\n" for path in paths)
    return ssh.run(host, script, TIMEOUT_S, "its files").split(f"\n{_END}\n")[:-1]


def conf() -> str:
    """The directory of a host's configuration."""
    return str(catalog.read().values[values.PRODUCTION].places["conf"])


def _of_host(host: Host) -> Deployed:
    rendered, loaded = file_of(host, f"{conf()}/{RENDERED}", f"{conf()}/{LOADED}")
    if not rendered.strip():
        raise BenchError(f"{host.name}: nothing is deployed there: {PLAYBOOK}")
    if rendered != loaded:
        raise BenchError(f"{host.name}: its servers have not read its newest files: {PLAYBOOK} again")
    try:
        _, line = rendered.strip().splitlines()
        return msgspec.json.decode(line, type=Deployed)
    except (ValueError, msgspec.DecodeError):
        raise BenchError(f"{host.name}: an older version rendered its files: render anew and {PLAYBOOK}") from None


@dataclass(frozen=True)
class DeployedHosts:
    """The hosts, what is deployed on them, and how their front is asked.

    trust  certificates (PEM) that are trusted beside those of each host
    """

    project: UnderTest
    inventory: Inventory
    deployed: Deployed
    trust: str = ""

    @property
    def address(self) -> str:
        """Where the front is, as the other hosts reach it."""
        return front_of(self.inventory).address

    def static_names(self) -> dict[str, str]:
        """The hashed name of every static file by its plain one, as the front has them."""
        host, path = front_of(self.inventory), f"{self.deployed.static_root}/staticfiles.json"
        (text,) = file_of(host, path)
        try:
            names: dict[str, str] = json.loads(text)["paths"]
        except (ValueError, KeyError):
            raise BenchError(f"{host.name}: {path} names no static files; run the playbook again") from None
        return names

    def job(self, job: Job) -> Job:
        """The load, made at the front."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self._headers.items())
        headers = tuple(f"{line}{lines}" for line in job.headers or ("",) * len(job.paths))
        return replace(job, connect=f"{self.address}:{self.deployed.port}", trust=self.trust, headers=headers)

    def get(self, path: str) -> bytes:
        """The body at `path`. Raises VisitError unless the status is 200."""
        body, answer = ask(self._connection, path, {**self._headers, **CLOSE})
        if answer.status != 200:
            advice = (
                "; the front believes X-Forwarded-Proto of `trusted_proxies` alone: render with load hosts among them"
            )
            redirects = self.deployed.behind and answer.status in (301, 302, 307, 308)
            raise VisitError(f"GET {path}: status {answer.status}, not 200{advice if redirects else ''}")
        return body

    @property
    def _headers(self) -> dict[str, str]:
        return FORWARDED if self.deployed.behind else {}

    def _connection(self) -> http.client.HTTPConnection:
        name = urlsplit(self.deployed.url).netloc
        connection = http.client.HTTPConnection(name, timeout=VISIT_S)
        connection.sock = socket.create_connection((self.address, self.deployed.port), VISIT_S)
        if self._tls:
            try:
                connection.sock = self._tls.wrap_socket(connection.sock, server_hostname=name)
            except ssl.SSLCertVerificationError as error:
                why = f"the certificate of {self.address} is not trusted ({error.verify_message})"
                raise OSError(f"{why}; name the one that signed it as {TRUST} in the inventory") from None
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if not self.deployed.url.startswith("https:"):
            return None
        context = ssl.create_default_context()
        if self.trust:
            context.load_verify_locations(cadata=self.trust)
        return context
