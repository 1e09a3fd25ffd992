"""`run --inventory FILE`: measure what the playbook has deployed on the hosts, with load from the group `load`."""

from __future__ import annotations

import argparse
import ssl
from pathlib import Path

from bench.cli import asked
from bench.errors import BenchError
from bench.hosts import host_record
from bench.hosts.front import Front
from bench.hosts.place import DeployedHosts
from bench.measure.plan import Request
from bench.production import inventory
from bench.production.inventory import TRUST, Host, front_of

# Options that have no say in what is deployed elsewhere.
REFUSED = (
    *("--size", "--database", "--project", "--until", "--budget"),
    *("--env", "--set", "--python", "--keep-going"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--inventory`."""
    parser.add_argument(
        "--inventory",
        type=Path,
        metavar="FILE",
        help="what is deployed on the hosts of an Ansible inventory",
    )


def deployed(args: argparse.Namespace, request: Request) -> DeployedHosts:
    """The hosts that are to be measured; raises BenchError for options that have no say, and for other deployments."""
    asked.refuse(args, REFUSED, "--inventory measures what is deployed on the hosts")
    asked.refuse(args, ["--tool"], "--inventory has its own load tool")
    hosts = inventory.read(args.inventory)
    found = host_record.read(hosts)
    front = front_of(hosts)
    site = DeployedHosts(request.project, hosts, Front(found, front.address, _trusted(front)))
    host_record.must_be(found, request.stacks, request.layers)
    return site


def _trusted(front: Host) -> str:
    """The certificates in the file that the inventory names for the front; raises BenchError when there are none."""
    path = front.trust
    if path is None:
        return ""
    try:
        text = path.read_text("utf-8")
        ssl.create_default_context().load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.filename else "no certificates in PEM"
        raise BenchError(f"{TRUST} of {front.name} is {path}: {why}; name a file such as fullchain.pem") from None
    return text
