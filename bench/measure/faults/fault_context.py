"""The context of a fault: the deployment, its supervisor, its releases, and notes."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bench.errors import BenchError
from bench.measure.faults.observe import FaultTimeline
from bench.serve.deployment.case import Case
from bench.serve.deployment.deployment import Running
from bench.serve.deployment.releases import Releases
from bench.serve.deployment.supervisor import Supervisor
from bench.serve.machine import supervise
from bench.serve.machine.http import BadResponse, Target
from bench.verify.context import Accounts, Context, target_of
from bench.verify.mismatch import Figure, Finding, Mismatch, NotTried
from bench.verify.site import Site
from bench.verify.wire import Connection

# The word for the version in the files of a release; bench/serve/inside/release.py.
FIRST = "release-1"
# Mark of pages if the project's settings are not the release's; bench/serve/inside/visitor_pages.py.
OUTSIDE = "outside"
FILES = (
    "bench/serve/inside/release.py",
    "bench/serve/inside/templates/probes/mark.html",
    "bench/serve/inside/static/probes/release.css",
)
# Time limit for a dead process to run again; a database recovers first.
BACK_S = 15.0
NONE: Mapping[str, str] = {}
BROKEN = 'raise ImportError("this release is broken on purpose")\n'


class FaultNotApplicable(Exception):
    """The fault cannot be made here, and why."""


# The name of what is killed or hangs.
Which = Callable[[Case], str]


def application(case: Case) -> str:
    """The application server."""
    return case.servers[0].name


def front(case: Case) -> str:
    """The server in front, for clients."""
    return case.servers[-1].name


def instances(name: str, processes: Iterable[str]) -> list[str]:
    """The processes of a server among these, by name: a server may have several instances."""
    return list(filter(re.compile(rf"{name}(-\d+)?").fullmatch, processes))


def status_of(target: Target, path: str, limit_s: float, headers: Mapping[str, str] = NONE) -> str:
    """The result of a GET: `200`, `503 with Retry-After` or the reason for no response within so many seconds."""
    try:
        with Connection(target, timeout_s=limit_s) as connection:
            response = connection.exchange("GET", path, headers)
    except (BadResponse, OSError) as error:
        return str(error) or type(error).__name__
    if response.header("Retry-After"):
        return f"{response.status} with Retry-After"
    return str(response.status)


class Versions:
    """The releases of a deployment, numbered.

    word    the mark of the served release on its pages
    served  folder of the served release
    """

    def __init__(self, releases: Releases, word: str = FIRST):
        self._releases = releases
        self._number = 1
        self.word = word
        self.served = releases.current.resolve()

    def new(self, broken: bool = False) -> Path:
        """A new release, with static files collected, beside the served one; a `broken` one cannot be imported.

        Raises BenchError if it cannot be made, FaultNotApplicable if no page differs from the served release's.
        """
        if self.word == OUTSIDE:
            project = self._releases.project.project
            raise FaultNotApplicable(
                f"the settings {project.settings} are imported from outside of {project.folder}: a new version of that "
                "folder would not be served"
            )
        self._number += 1
        word = f"release-{self._number}"

        def change(folder: Path) -> None:
            for name in FILES:
                text = (folder / name).read_text("utf-8")
                (folder / name).write_text(text.replace(FIRST, word), "utf-8")

        folder = self._releases.add(str(self._number), change)
        self._releases.collect_static(folder)
        if broken:
            (folder / "bench" / "serve" / "inside" / "__init__.py").write_text(BROKEN, "utf-8")
        return folder

    def switch(self, folder: Path) -> None:
        """Serve this release from the next reload on."""
        self._releases.switch(folder)
        self.served, self.word = folder, f"release-{folder.name}"


class Workers:
    """Counts ended processes of the servers, except their masters; call `update` often enough."""

    def __init__(self, running: Running):
        self.ended = 0
        self._running = running
        self._processes = supervise.children(running.chain.servers)

    def update(self) -> int:
        """Count processes ended since the last look; returns the total."""
        now = supervise.children(self._running.chain.servers)
        self.ended += len(self._processes - now)
        self._processes = now
        return self.ended


@dataclass
class FaultContext:
    """One fault in progress.

    site          the project's URLs and commands
    rate          requests a second of the visitors
    round, rounds  number of this round, from 1, and of all rounds
    operator      the operator's part
    servers       the action on each server, or its end
    figures       of this fault only; the unit is in the name
    wrong         sentences on defects besides the visitors' responses
    """

    running: Running
    supervisor: Supervisor
    versions: Versions
    site: Site
    rate: int = 0
    round: int = 1
    rounds: int = 1
    moments: FaultTimeline = field(default_factory=FaultTimeline)
    operator: str = "nothing"
    servers: dict[str, str] = field(default_factory=dict)
    figures: dict[str, float | None] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def target(self) -> Target:
        """Target of single requests."""
        return Target.parse(self.running.url)

    @cached_property
    def context(self) -> Context:
        """The deployment as a context of `verify`."""
        case = self.running.case
        env = case.project.environment(self.running.env)
        accounts = Accounts(self.site, env)
        return Context(target_of(self.running), self.site, case.layers, accounts, env, running=self.running)

    def note(self, findings: Iterable[Finding]) -> None:
        """Add figures and mismatches of `verify`.

        Raises FaultNotApplicable for a NotTried.
        """
        try:
            for finding in findings:
                if isinstance(finding, NotTried):
                    raise finding
                if isinstance(finding, Figure):
                    self.figures[finding.name] = finding.value
                elif isinstance(finding, Mismatch):
                    self.wrong.append(f"{finding.expected}: {finding.got}")
        except NotTried as reason:
            raise FaultNotApplicable(str(reason)) from None
        except (BadResponse, OSError) as error:
            self.wrong.append(str(error) or type(error).__name__)

    @contextmanager
    def cause(self) -> Iterator[None]:
        """Time the fault from its beginning; afterwards the site recovers."""
        self.moments.struck = time.monotonic()
        try:
            yield
        finally:
            self.moments.over = time.monotonic()

    def wait(self, seconds: float, until: Callable[[], object] = lambda: False) -> bool:
        """Let the supervisor work for so many seconds, or until `until` holds; returns whether it holds."""
        return self.supervisor.wait(until, seconds)

    def expect(self, path: str, wanted: str, limit_s: float, figure: str, headers: Mapping[str, str] = NONE) -> None:
        """Request a page, note its time as a figure, and any difference of its response.

        wanted  the result in the words of `status_of`, within so many seconds
        """
        begun = time.monotonic()
        response = status_of(self.target, path, limit_s, headers)
        took_s = time.monotonic() - begun
        self.figures[figure] = round(took_s, 3)
        if response != wanted:
            self.wrong.append(f"GET {path}: {response} after {took_s:.1f} s, not {wanted} within {limit_s:g} s")

    @contextmanager
    def hung(self, names: Iterable[str]) -> Iterator[None]:
        """Have these processes hang until the block ends."""
        with ExitStack() as hanging:
            for name in names:
                hanging.enter_context(self.running.hung(name))
            yield

    def kill(self, name: str) -> None:
        """Kill the main process of a server or service."""
        os.kill(self.running.pids[name], signal.SIGKILL)

    def wait_started(self, name: str) -> None:
        """Wait until the supervisor has restarted the process that died in this fault. Raises BenchError on failure."""

        def started() -> bool:
            since = (death for death in self.supervisor.deaths if death.at_s >= self.moments.struck)
            return any(death.name == name and death.again_s for death in since)

        if not self.wait(BACK_S, started):
            raise BenchError(f"{name} was not started again within {BACK_S:g} s")
        self.servers[name] = "started again"

    def reload(self, changed: Collection[str], only: str = "") -> None:
        """Have the servers, or `only` one, take over changed files and code.

        Raises DeploymentError if the site does not come back.
        """
        self.servers |= self.running.chain.reload(changed, only)
        self.operator = "reload"
