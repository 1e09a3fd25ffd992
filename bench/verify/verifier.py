"""Verify one deployment after another."""

from __future__ import annotations

import sys

from bench import paths
from bench.host.identity import worker
from bench.project import commands, description
from bench.results.records import Outcome
from bench.serve.deployment import Running
from bench.verify.site import DatabaseChanged, Site, prepare
from bench.verify.suite import Progress, Selection, Subject, run_suite
from bench.verify.wire import Target


class Verifier:
    """Verifies one deployment after another of the same database; the expected pages are rendered once."""

    def __init__(self, selection: Selection):
        self.selection = selection
        self._site: Site | None = None

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """One Outcome a check; raises BenchError when the site's own commands fail.

        When another program changed the rows meanwhile, the deployment is verified once more with new expected pages;
        the second time DatabaseChanged is raised.
        """
        try:
            return run_suite(self._subject(running), self.selection, progress)
        except DatabaseChanged as changed:
            print(f"{changed}; it is verified again", file=sys.stderr, flush=True)
        self._site = None
        running.empty_layer()
        return run_suite(self._subject(running), self.selection, progress)

    def _subject(self, running: Running) -> Subject:
        if self._site is None:
            url = running.env["DATABASE_URL"]
            env = commands.site_environment(url, paths.VAR)
            self._site = prepare(
                url,
                env,
                paths.PYTHON,
                paths.MANAGE,
                prefix=worker().prefix,
                description=description.read(paths.PROJECT).description,
                static=commands.static_root(),
            )
        composition = running.composition
        return Subject(
            Target.parse(running.url),
            self._site,
            composition.stack.name,
            composition.layer_name,
            running.env,
            {item.check: item.reason for item in composition.declares},
            running,
        )
