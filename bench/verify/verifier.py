"""Verify one deployment after another."""

from __future__ import annotations

from collections.abc import Iterable

from bench import paths
from bench.host.identity import worker
from bench.project import commands
from bench.serve.deployment import Running
from bench.verify.outcome import Outcome
from bench.verify.site import Site, prepare
from bench.verify.suite import LOAD_S, Progress, verify_url


class Verifier:
    """Verifies one deployment after another of the same database; the site is asked for its answers once."""

    def __init__(
        self, only: Iterable[str] = (), load_s: float = LOAD_S, *, groups: Iterable[str] = (), thorough: bool = False
    ):
        self.only = tuple(only)
        self.groups = tuple(groups)
        self.load_s = load_s
        self.thorough = thorough
        self._site: Site | None = None

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """One Outcome a check; raises BenchError when the site's own commands fail."""
        if self._site is None:
            url = running.env["DATABASE_URL"]
            env = commands.site_environment(url, paths.VAR)
            self._site = prepare(url, env, paths.PYTHON, paths.MANAGE, prefix=worker().prefix)
        composition = running.composition
        return verify_url(
            running.url,
            self._site,
            stack=composition.stack.name,
            layer=composition.layer_name,
            env=running.env,
            declared={item.check: item.reason for item in composition.declares},
            only=self.only,
            groups=self.groups,
            load_s=self.load_s,
            thorough=self.thorough,
            running=running,
            progress=progress,
        )
