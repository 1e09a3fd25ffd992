"""The record of a deployment in a file on each host of an inventory, and the way of requests from here and from load
hosts to the front: by its address, under the site's name."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from shlex import quote

import msgspec

from bench.errors import BenchError
from bench.serve.catalog import catalog, values
from bench.serve.production.inventory import WEB, Host, Inventory, front_of
from bench.serve.production.several_hosts import RENDERED, Deployed
from bench.verify.hosts import ssh

# The copy of RENDERED written after a host's servers have read their configuration.
LOADED = "loaded"
TIMEOUT_S = 20.0
PLAYBOOK = "run the playbook (docs/hosts.md)"
_END = "-- end of the file"
# Headers about a client from whatever terminates TLS in front.
FORWARDED = {"X-Forwarded-Proto": "https"}


def read(inventory: Inventory) -> Deployed:
    """The deployment on the front and the web hosts; raises BenchError if incomplete or inconsistent."""
    hosts = [host for host in inventory.hosts if WEB in host.groups or host == front_of(inventory)]
    with ThreadPoolExecutor(len(hosts)) as pool:
        deployments = list(pool.map(_of_host, hosts))
    first, deployed = hosts[0], deployments[0]
    for host, other in zip(hosts, deployments, strict=True):
        if other != deployed:
            both = f"{host.name} has {other.words}, {first.name} has {deployed.words}"
            raise BenchError(f"{both}; {PLAYBOOK} again, so that all hosts have the same")
    return deployed


def must_be(deployed: Deployed, stacks: Iterable[str], layers: Iterable[str], option: str = "--stack") -> None:
    """Raise BenchError unless these stacks and layers, if given, are deployed.

    option  the option for the stack on the command line
    """
    known = catalog.read()
    for word, wanted, there, lookup in (
        (option, stacks, deployed.stack, known.stack),
        ("--layer", layers, deployed.layer, known.joined_layers),
    ):
        for name in wanted:
            lookup(name)
            if name != there:
                raise BenchError(f"{word} {name}: the hosts have {deployed.words}; deploy it there first")


def file_of(host: Host, *paths: str) -> list[str]:
    """The texts of files on a host, empty if absent; raises BenchError if the host cannot be reached."""
    # Each text ends with an extra line.
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
        raise BenchError(f"{host.name}: an older version rendered its files: render again and {PLAYBOOK}") from None
