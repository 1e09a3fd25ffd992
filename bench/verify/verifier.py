"""Verify one deployment after another."""

from __future__ import annotations

from bench import paths
from bench.host.identity import worker
from bench.project import commands
from bench.results.records import Outcome
from bench.serve.deployment import Running
from bench.verify.site import Site, prepare
from bench.verify.suite import Progress, Selection, Subject, run_suite
from bench.verify.wire import Target


class Verifier:
    """Verifies one deployment after another of the same database; the expected pages are rendered once."""

    def __init__(self, selection: Selection):
        self.selection = selection
        self._site: Site | None = None

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """One Outcome a check; raises BenchError when the site's own commands fail."""
        if self._site is None:
            url = running.env["DATABASE_URL"]
            env = commands.site_environment(url, paths.VAR)
            self._site = prepare(url, env, paths.PYTHON, paths.MANAGE, prefix=worker().prefix)
        composition = running.composition
        subject = Subject(
            Target.parse(running.url),
            self._site,
            composition.stack.name,
            composition.layer_name,
            running.env,
            {item.check: item.reason for item in composition.declares},
            running,
        )
        return run_suite(subject, self.selection, progress)
