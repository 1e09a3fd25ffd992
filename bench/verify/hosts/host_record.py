"""What the playbook has deployed on the hosts of an inventory, as a file on each of them says it; and how this machine
and the load hosts ask their front: by its address, under the site's name."""

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
