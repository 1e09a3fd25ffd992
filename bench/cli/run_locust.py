"""`run --inventory FILE --tool locust --locustfile FILE`: a locustfile of yours on the load hosts, and no trials."""

from __future__ import annotations

import argparse
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench.cli.stops import until_stopped
from bench.errors import BenchError
from bench.fleet import locust, session
from bench.fleet.inventory import LOAD
from bench.fleet.locust import Wanted
from bench.fleet.trials import DeployedHosts
from bench.interrupt import Interrupts
from bench.measure.begin import DURATION_S, LEVEL, Request
from bench.measure.printer import say
from bench.measure.trial import now
from bench.project import under_test
from bench.report.locust import cells
from bench.results.folder import Folder, read_run
from bench.results.locust import LocustFigures
from bench.results.records import LoadTool

TOOL = "locust"
# The locustfile says what is asked and how often; it runs once.
REFUSED = ("workload", "mode", "rate", "rounds", "warmup", "capacity", "think", "margin", "guard", "dry_run")
NOTES = ("a locustfile was run by Locust alone: there are no trials, and nothing was verified",)


def main(args: argparse.Namespace, request: Request, site: DeployedHosts) -> int:
    """Run it; returns 0, or 130 or 143 when stopped by a signal. Without figures nothing is left of a new run."""
    for name in REFUSED:
        if getattr(args, name) not in (None, [], False):
            raise BenchError(f"--tool locust runs a locustfile once; leave out --{name.replace('_', '-')}")
    if args.resume and args.to:
        raise BenchError(f"--resume {args.resume}: the figures go into that run; leave out --to")
    if args.locustfile is None:
        raise BenchError("--tool locust runs a locustfile of yours; add --locustfile FILE")
    if len(request.levels) > 1:
        raise BenchError("--tool locust runs once; give one --level, the number of users")
    users = request.levels[0] if request.levels else LEVEL
    wanted = wanted_of(args.locustfile, site, users, request.duration_s or DURATION_S)
    with ExitStack() as failed:
        folder = _joined(args.resume, site) if args.resume else _begun(request, site, users, failed)

        def go(_: Interrupts) -> int:
            _run(folder, site, wanted)
            failed.pop_all()
            return 0

        with folder.locked():
            return until_stopped("run", folder.directory, go, "begin again")


def wanted_of(locustfile: Path, site: DeployedHosts, users: int, seconds: int) -> Wanted:
    """What Locust shall do with the front; raises BenchError. All users begin within the first second."""
    front, target = site.front, site.front.target
    scheme, _, name = front.deployed.url.partition("://")
    usual = {"https": 443, "http": 80}[scheme] == front.deployed.port
    url = front.deployed.url if usual else f"{scheme}://{name.partition(':')[0]}:{front.deployed.port}"
    headers = dict(line.split(": ", 1) for line in target.headers.splitlines())
    return Wanted(locustfile, url, users, users, seconds, front.address, front.trust, headers)


def _begun(request: Request, site: DeployedHosts, users: int, failed: ExitStack) -> Folder:
    """The folder of a new run without trials, which is removed when the stack ends."""
    run = session.begin(replace(request, levels=(users,)), site)
    folder, info = run.journal.folder, run.journal.info
    failed.callback(shutil.rmtree, folder.directory, ignore_errors=True)
    plan = replace(info.plan, workloads=(), rounds=0, warmup_s=0.0, guards=None)
    hosts = tuple(note for note in info.notes if note.startswith("hosts: "))
    folder.write_info(replace(info, plan=plan, cases=(), notes=(*NOTES, *hosts)))
    return folder


def _joined(directory: Path, site: DeployedHosts) -> Folder:
    """The folder of a run on the same hosts, whose report shows Locust's figures beside its own; raises BenchError."""
    session.require_same(directory, read_run(directory), site)
    site.front.get(under_test.current().ready)
    return Folder(directory)


def _run(folder: Folder, site: DeployedHosts, wanted: Wanted) -> None:
    """Run the locustfile; its figures go into the folder."""
    hosts = site.inventory.of(LOAD)
    before = read_run(folder.directory)
    raw = folder.raw / f"locust-{len(before.locust) + 1}"
    say(f"Locust: {wanted.locustfile.name} for {wanted.seconds} s from {', '.join(host.name for host in hosts)}")
    found = replace(
        locust.run(hosts, wanted, raw), deployed=site.front.deployed.words, raw=str(raw.relative_to(folder.directory))
    )
    folder.append_locust(found)
    if not before.trials:
        tool = LoadTool(TOOL, found.version, fallback=False)
        folder.write_environment(replace(before.environment, load_tool=tool))
        folder.write_info(replace(before.info, finished_at=now()))
    for line in _summary(found):
        say(line)
    say(f"next: python -m bench report {folder.directory}")


def _summary(found: LocustFigures) -> list[str]:
    every = cells(found.requests[-1])
    times = f"p50 {every[4]} ms, p99 {every[6]} ms"
    return [f"As Locust counts: {every[0]} requests, {every[1]} failed, {every[2]} requests/s; {times}"]
