"""`run --inventory FILE`: measure what the playbook has deployed on the hosts, with load from the group `load`."""

from __future__ import annotations

import argparse
import ssl
from pathlib import Path

from bench.cli.stops import until_stopped
from bench.errors import BenchError
from bench.fleet import host_record, session
from bench.fleet.front import Front
from bench.fleet.trials import DeployedHosts
from bench.interrupt import Interrupts
from bench.measure.begin import Request
from bench.measure.printer import Printer, say
from bench.measure.progress import RunProgress, case_words
from bench.production import inventory
from bench.production.inventory import TRUST, Host, front_of
from bench.results.folder import resume_command

# Options that have no say in what is deployed elsewhere, with the value that they have without being given.
REFUSED: dict[str, object] = {
    **dict.fromkeys(("size", "database", "project", "until", "budget")),
    **{name: [] for name in ("env", "set", "python")},
    "keep_going": False,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--inventory`."""
    parser.add_argument(
        "--inventory",
        type=Path,
        metavar="FILE",
        help="what is deployed on the hosts of an Ansible inventory",
    )


def main(args: argparse.Namespace, request: Request) -> int:
    """Measure; returns 0, 1 when a trial failed or nothing was measured, 130 or 143 when stopped by a signal."""
    for name, usual in REFUSED.items():
        if getattr(args, name) not in (usual, None):
            option = name.replace("_", "-")
            raise BenchError(f"--inventory measures what is deployed on the hosts; leave out --{option}")
    if args.tool:
        raise BenchError("--inventory has its own load tool; leave out --tool")
    hosts = inventory.read(args.inventory)
    found = host_record.read(hosts)
    front = front_of(hosts)
    site = DeployedHosts(request.project, hosts, Front(found, front.address, _trusted(front)))
    host_record.must_be(found, request.stacks, request.layers)
    if args.dry_run:
        return _print_plan(request, site)
    run = session.resume(args.resume, site) if args.resume else session.begin(request, site)
    folder, info = run.journal.folder, run.journal.info
    then = f"resume with: {resume_command(folder.directory, info)}"

    def go(_: Interrupts) -> int:
        return run.go()

    with folder.locked():
        return until_stopped("run", folder.directory, go, then)


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


def _print_plan(request: Request, site: DeployedHosts) -> int:
    """Print what a run would do, without writing anything or making load."""
    info, ledger = session.planned(request, site)
    for case in info.cases:
        say(f"case: {case_words(case)}")
    RunProgress(Printer(), info, ledger.trials_left).announce(session.load_of(info.plan).tool.name, ledger)
    return 0
