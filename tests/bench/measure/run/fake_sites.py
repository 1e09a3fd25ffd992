"""Deployments of a tiny site in this process, for the tests of runs: quick, and wrong on request.

As a program, `python -m bench run` on such deployments: `python -m tests.bench.measure.run.fake_sites`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

from bench import paths
from bench.cli import run
from bench.errors import BenchError, DeploymentError, GlobalFault
from bench.measure.records.records import Plan
from bench.measure.run import guards
from bench.measure.run.local import LocalTestBed
from bench.measure.run.plan import Measurement, Resolve
from bench.serve.deployment.case import CannotRun, Case
from bench.serve.deployment.database import Database
from bench.serve.machine.processes import MachineLoad
from bench.serve.project.opened import UnderTest
from bench.verify.outcome import Outcome
from tests.bench.measure.load.load_target import target
from tests.cases import bare, kit

STATIC = {"small.txt": "small.0.txt", "site.css": "site.1.css", "site.js": "site.2.js", "logo.svg": "logo.3.svg"}
PAGE = b"""<a href="/posts/7/">a</a> <a href="/posts/8/">b</a> <a href="/authors/3/">c</a>
<a href="/posts/page/40/">Last</a> <a href="/authors/page/9/">Last</a> <a href="/comments/page/99/">Last</a>"""


# A page takes time: a load tool that never waits would keep both cores busy in every trial.
PAUSE_S = 0.05

# The machine's other work is not the question in most tests.
UNGUARDED = [word for name in guards.BOUNDS for word in ("--guard", f"{name}=off")]
QUICK = ["--duration", "1", "--rounds", "1", "--workload", "home", "--layer", "none", *UNGUARDED]


def rendered(run_dir: Path, text: str) -> Path:
    """Make the directory of a deployment, with files of this text; returns its logs."""
    paths.must_be_plain(run_dir)
    logs = run_dir / "logs"
    logs.mkdir(parents=True)
    for folder in ("conf", "store"):
        (run_dir / folder).mkdir()
        (run_dir / folder / "file").write_text(text)
    (logs / "server.log").write_text("it began\n")
    return logs


def fake_case(stack: str, layer: str) -> Case:
    """A stack of one server without TLS, with a layer that caches pages; only the names exist."""
    server = SimpleNamespace(name=f"server of {stack}", tls=False)
    of_stack = SimpleNamespace(
        name=stack, python=stack.partition("@python=")[2], ref="", servers=(server,), folders=(), values={}
    )
    of_layer = SimpleNamespace(name=layer, servers=(), caches="pages", files=lambda server: {})
    return bare(of_stack, of_layer, database=Database("sqlite", is_created=True))


def fake_running(case: Case, **more: object) -> SimpleNamespace:
    """A deployment whose server is this process."""
    usual = {"pids": {"server": os.getpid()}, "servers": ("server",), "memory_idle_bytes": {"server": 4096}, "env": {}}
    usual |= {"ready_s": 0.5, "oom_kills": lambda: None, "is_healthy": lambda: True}
    return SimpleNamespace(case=case, **usual | more)


class FakeSites:
    """Stacks `one`, `two`, ... on a tiny site, with planned failures.

    log         actions in order: up, verify, empty, down with the names
    misfits     (stack, layer) -> the reason not to run here
    refuses     stacks that do not come up
    unreadable  stacks with unreadable files -> the problem
    wrong       stacks with wrong responses
    dies        number of deaths of a stack's server in its first trial
    bare        stacks with pages without links
    changes     stacks with pages that change a second after verification
    load        load by other processes
    database_gone  the reason for an unusable database
    """

    def __init__(self, log: Path | None = None) -> None:
        self.log: list[str] = []
        self.file = log
        self.misfits: dict[tuple[str, str], str] = {}
        self.refuses: set[str] = set()
        self.wrong: set[str] = set()
        self.dies: dict[str, int] = {}
        self.bare: set[str] = set()
        self.changes: set[str] = set()
        self.database_gone = ""
        self.gone_after_failure = ""
        self.unreadable: dict[str, str] = {}
        self.log_of_failures: list[str] = []
        self.load = MachineLoad(0.0, "other processes take 0% of this machine")

    @property
    def bed(self) -> type[LocalTestBed]:
        """The test bed of these sites, used by a command instead of this machine."""
        sites = self

        class FakeTestBed(LocalTestBed):
            deployed = staticmethod(sites.deployed)
            machine_load = staticmethod(lambda: sites.load)
            programs = staticmethod(sites.programs)

            @staticmethod
            def resolver(project: UnderTest, plan: Plan, rows: Database) -> Resolve:
                return sites.resolver(plan, rows)

            def exclusive_database(self) -> nullcontext[None]:
                return nullcontext()

            def check(self) -> None:
                sites.check_database()

            def verify(self, running: SimpleNamespace) -> list[Outcome]:
                return sites.verify(running)

            def queries_per_request(self, item: Measurement, addresses: tuple[str, ...]) -> float | None:
                return sites.queries_per_request()

            def static_names(self) -> dict[str, str]:
                return STATIC

            def rows(self, running: SimpleNamespace) -> tuple[int, int]:
                return sites.rows()

            def settle(self, running: SimpleNamespace) -> None:
                """The tiny site is in this process, which stays on its cores."""

        return FakeTestBed

    def note(self, words: str) -> None:
        self.log.append(words)
        if self.file:
            with self.file.open("a") as file:
                file.write(words + "\n")

    def resolver(self, plan: Plan, rows: Database) -> Resolve:
        return partial(self.resolve, rows=rows)

    def resolve(self, stack: str, layer: str, rows: Database) -> Case | CannotRun:
        if (stack, layer) in self.misfits:
            return CannotRun(self.misfits[stack, layer])
        return replace(fake_case(stack, layer), database=rows, notes=(f"{stack} is small",))

    @contextmanager
    def deployed(self, case: Case, *, run_dir: Path, **how) -> Iterator[SimpleNamespace]:
        stack, layer = case.stack.name, case.layer_name
        logs = rendered(run_dir, f"{stack} {layer}")
        if stack in self.unreadable:
            raise BenchError(self.unreadable[stack])
        if stack in self.refuses:
            self.log_of_failures.append(stack)
            raise DeploymentError(f"server exited with status 1: {stack} is tired", logs / "server.log")
        with target(PAUSE_S) as site:
            site.body = PAGE if stack not in self.bare else b"nothing to see"
            self.note(f"up {stack} {layer}")
            dying = self.dies.get(stack, 0) > 0
            if dying:
                self.dies[stack] -= 1
                site.broken.set()
            try:
                yield fake_running(
                    case,
                    url=site.url,
                    logs=logs,
                    notes=[f"{stack} is small", "the machine is odd"],
                    site=site,
                    stack=stack,
                    layer=layer,
                    empty_layer=lambda: self.note(f"empty {stack} {layer}"),
                    died=lambda: (
                        DeploymentError("server was killed by SIGKILL", logs / "server.log") if dying else None
                    ),
                )
            finally:
                self.note(f"down {stack} {layer}")

    def verify(self, running: SimpleNamespace) -> list[Outcome]:
        self.note(f"verify {running.stack} {running.layer}")
        if running.stack in self.changes:
            # As the real one has by now: to look at the project later takes longer than the page lasts.
            assert kit().facts
            threading.Timer(1.0, setattr, (running.site, "body", b"another page")).start()
        good = running.stack not in self.wrong
        return [
            Outcome(running.stack, running.layer, "status", True, "200", "200"),
            Outcome(running.stack, running.layer, "content", good, "a page", "a page" if good else "another page"),
        ]

    def queries_per_request(self) -> float | None:
        return 2.5

    def rows(self) -> tuple[int, int]:
        return 1234, 7

    def check_database(self) -> None:
        if self.database_gone:
            raise GlobalFault(self.database_gone)
        if self.gone_after_failure and self.log_of_failures:
            raise GlobalFault(self.gone_after_failure)

    def programs(self, cases, database_label: str) -> dict[str, str]:
        return {"server": "1.0"}


def change(path: Path, **fields: object) -> None:
    """Change fields of a record in JSON."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def arguments(words: Sequence[str], command: ModuleType = run) -> argparse.Namespace:
    """The parsed arguments of a command."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


if __name__ == "__main__":
    log = os.environ.get("FAKE_SITES_LOG")
    sys.exit(run.main(arguments(sys.argv[1:]), FakeSites(Path(log) if log else None).bed))
