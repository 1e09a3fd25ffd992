"""What a fault works with: the deployment, its supervisor, its releases, and what to note."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

from bench.errors import BenchError
from bench.project import commands
from bench.serve.deployment import Running
from bench.serve.release import Releases
from bench.serve.supervisor import Death, Supervisor
from bench.verify.site import Site

# The word for the version in the files of a release; bench/inside/release.py.
FIRST = "release-1"
# What pages say instead where the project's settings are not those of the release; bench/inside/visits.py.
OUTSIDE = "outside"
FILES = ("bench/inside/release.py", "bench/inside/templates/probes/mark.html", "bench/inside/static/probes/release.css")
BROKEN = 'raise ImportError("this release is broken on purpose")\n'


class CannotFault(Exception):
    """The fault cannot be made here, and why."""


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

        Raises BenchError when it cannot be made, CannotFault where no page would tell it from the one that is served.
        """
        if self.word == OUTSIDE:
            project = self._releases.project.project
            raise CannotFault(
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
            (folder / "bench" / "inside" / "__init__.py").write_text(BROKEN, "utf-8")
        return folder

    def switch(self, folder: Path) -> None:
        """Have that release served from the next reload on."""
        self._releases.switch(folder)
        self.served, self.word = folder, f"release-{folder.name}"


class Scene:
    """One fault under way.

    site          the project's URLs and commands
    rate          requests a second of the visitors
    round, rounds  which one this is, from 1, and how many there are
    struck, over  when the fault began, and when its cause was over, by time.monotonic(); see `strike`
    deployed      when a deploy was complete; None without one
    operator      what the operator had to do
    servers       what was done to each server, or what became of it
    figures       of this fault alone; the unit is in the name
    wrong         sentences about what was wrong besides the visitors' answers
    """

    def __init__(
        self,
        running: Running,
        supervisor: Supervisor,
        versions: Versions,
        site: Site,
        rate: int = 0,
        rounds: tuple[int, int] = (1, 1),
    ):
        self.running, self.supervisor, self.versions, self.rate = running, supervisor, versions, rate
        self.site = site
        self.round, self.rounds = rounds
        self.struck = self.over = 0.0
        self.deployed: float | None = None
        self.operator = "nothing"
        self.servers: dict[str, str] = {}
        self.figures: dict[str, float | None] = {}
        self.wrong: list[str] = []
        self._deaths_before = len(supervisor.deaths)

    @property
    def deaths(self) -> list[Death]:
        """What has ended by itself since this fault was prepared."""
        return self.supervisor.deaths[self._deaths_before :]

    def strike(self) -> None:
        """The fault begins; its cause is over at once, unless `end` says when."""
        self.struck = self.over = time.monotonic()

    def end(self) -> None:
        """The cause of the fault is over: from now on the site recovers."""
        self.over = time.monotonic()

    def wait(self, seconds: float, until: Callable[[], object] = lambda: False) -> bool:
        """Let the supervisor work for so long, or until it holds; returns whether it does."""
        return self.supervisor.wait(until, seconds)

    def kill(self, name: str) -> None:
        """Kill the main process of a server or service with SIGKILL; the supervisor starts it again."""
        os.kill(self.running.pids[name], signal.SIGKILL)

    def reload(self, changed: Collection[str], only: str = "") -> None:
        """Have the servers, or `only` one, take over changed files and code, and note what the operator had to do.

        Raises DeploymentError when the site does not come back.
        """
        self.servers |= self.running.chain.reload(changed, only)
        restarted = "restarted" in self.servers.values()
        self.operator = "restart" if restarted else "reload"

    def invalidate(self) -> None:
        """Empty what the layers cache, as a deploy does. Raises BenchError when the site's command fails."""
        env, project = self.running.env, self.running.case.project
        if self.running.case.caches == "pages":
            commands.manage(project, ["invalidatepages"], env["DATABASE_URL"], project.worker(), env=env)

    def deploy(self, folder: Path) -> None:
        """Have a release served: switch, reload, invalidate. Raises BenchError when that fails."""
        self.versions.switch(folder)
        try:
            self.reload((), only=self.running.case.servers[0].name)
            self.invalidate()
        except BenchError:
            self.operator = "repair"
            raise
        self.deployed = time.monotonic()
        self.end()
