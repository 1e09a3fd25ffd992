"""What a fault works with: the deployment, its supervisor, its releases, and what to note."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bench.errors import BenchError
from bench.measure.faults.observe import FaultTimeline
from bench.serve.deployment.case import Case
from bench.serve.deployment.deployment import Running
from bench.serve.deployment.release import Releases
from bench.serve.deployment.supervisor import Supervisor
from bench.serve.machine import supervise
from bench.verify.context import Accounts, Context, target_of
from bench.verify.finding import Figure, Finding, Mismatch, NotTried
from bench.verify.site import Site
from bench.verify.wire import BadAnswer, Connection, Target

# The word for the version in the files of a release; bench/serve/inside/release.py.
FIRST = "release-1"
# What pages say instead where the project's settings are not those of the release; bench/serve/inside/visits.py.
OUTSIDE = "outside"
FILES = (
    "bench/serve/inside/release.py",
    "bench/serve/inside/templates/probes/mark.html",
    "bench/serve/inside/static/probes/release.css",
)
# How long what died may take until it runs again; a database recovers first.
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
    """The server that clients speak to."""
    return case.servers[-1].name


def status_of(target: Target, path: str, limit_s: float, headers: Mapping[str, str] = NONE) -> str:
    """What GET gets: `200`, `503 with Retry-After` or why no response comes within so many seconds."""
    try:
        with Connection(target, timeout_s=limit_s) as connection:
            answer = connection.exchange("GET", path, headers)
    except (BadAnswer, OSError) as error:
        return str(error) or type(error).__name__
    return f"{answer.status} with Retry-After" if answer.header("Retry-After") else str(answer.status)


class Versions:
    """The releases of a deployment, numbered.

    word    of the one that is served, which its pages say
    served  its folder
    """

    def __init__(self, releases: Releases, word: str = FIRST):
        self._releases = releases
        self._made = 1
        self.word = word
        self.served = releases.current.resolve()

    def new(self, broken: bool = False) -> Path:
        """A new release, its static files collected, beside the one that is served; a `broken` one cannot be imported.

        Raises BenchError if it cannot be made, FaultNotApplicable if no page would tell it from the one that is served.
        """
        if self.word == OUTSIDE:
            project = self._releases.project.project
            raise FaultNotApplicable(
                f"the settings {project.settings} are imported from outside of {project.folder}: a new version of that "
                "folder would not be served"
            )
        self._made += 1
        word = f"release-{self._made}"

        def change(folder: Path) -> None:
            for name in FILES:
                text = (folder / name).read_text("utf-8")
                (folder / name).write_text(text.replace(FIRST, word), "utf-8")

        folder = self._releases.add(str(self._made), change)
        self._releases.collect_static(folder)
        if broken:
            (folder / "bench" / "serve" / "inside" / "__init__.py").write_text(BROKEN, "utf-8")
        return folder

    def switch(self, folder: Path) -> None:
        """Have that release served from the next reload on."""
        self._releases.switch(folder)
        self.served, self.word = folder, f"release-{folder.name}"


class Workers:
    """Counts the processes of the servers that have ended, beside their masters; `look` often enough."""

    def __init__(self, running: Running):
        self.ended = 0
        self._running = running
        self._seen = supervise.children(running.chain.servers)

    def look(self) -> int:
        """Count those that have ended since the last look; how many there are in all."""
        now = supervise.children(self._running.chain.servers)
        self.ended += len(self._seen - now)
        self._seen = now
        return self.ended


@dataclass
class FaultContext:
    """One fault under way.

    site          the project's URLs and commands
    rate          requests a second of the visitors
    round, rounds  which one this is, from 1, and how many there are
    operator      what the operator had to do
    servers       what was done to each server, or what became of it
    figures       of this fault alone; the unit is in the name
    wrong         sentences about what was wrong besides the visitors' answers
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
        """Where the site is asked by hand."""
        return Target.parse(self.running.url)

    @cached_property
    def context(self) -> Context:
        """The deployment as functions of `verify` ask it."""
        case = self.running.case
        env = case.project.environment(self.running.env)
        accounts = Accounts(self.site, env)
        return Context(target_of(self.running), self.site, case.layers, accounts, env, running=self.running)

    def note(self, found: Iterable[Finding]) -> None:
        """Take over figures, and sentences about what is wrong, that functions of `verify` find.

        Raises FaultNotApplicable if they say that it cannot be tried.
        """
        try:
            for finding in found:
                if isinstance(finding, NotTried):
                    raise finding
                if isinstance(finding, Figure):
                    self.figures[finding.name] = finding.value
                elif isinstance(finding, Mismatch):
                    self.wrong.append(f"{finding.expected}: {finding.got}")
        except NotTried as reason:
            raise FaultNotApplicable(str(reason)) from None
        except (BadAnswer, OSError) as error:
            self.wrong.append(str(error) or type(error).__name__)

    @contextmanager
    def cause(self) -> Iterator[None]:
        """The fault, from the moment it begins; after it the site recovers."""
        self.moments.struck = time.monotonic()
        try:
            yield
        finally:
            self.moments.over = time.monotonic()

    def wait(self, seconds: float, until: Callable[[], object] = lambda: False) -> bool:
        """Let the supervisor work for so long, or until it holds; returns whether it does."""
        return self.supervisor.wait(until, seconds)

    def expect(self, path: str, wanted: str, limit_s: float, figure: str, headers: Mapping[str, str] = NONE) -> None:
        """Ask for a page, note how long it took under the name of a figure, and what is wrong with its response.

        wanted  as `got` says it, within so many seconds
        """
        begun = time.monotonic()
        answer = status_of(self.target, path, limit_s, headers)
        took_s = time.monotonic() - begun
        self.figures[figure] = round(took_s, 3)
        if answer != wanted:
            self.wrong.append(f"GET {path}: {answer} after {took_s:.1f} s, not {wanted} within {limit_s:g} s")

    def kill(self, name: str) -> None:
        """Kill the main process of a server or service."""
        os.kill(self.running.pids[name], signal.SIGKILL)

    def wait_started(self, name: str) -> None:
        """Wait until the supervisor has started again what died in this fault. Raises BenchError if it does not."""

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
