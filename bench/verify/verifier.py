"""Verify one deployment after another."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.project import commands
from bench.project.under_test import UnderTest
from bench.results.records import Outcome
from bench.serve.deployment import Running
from bench.verify.site import DatabaseChanged, Site, described_accounts, learn, permitted, prepare
from bench.verify.suite import Progress, Selection, Subject, run_suite
from bench.verify.wire import Target


class Verifier:
    """Verifies one deployment after another of the same database; each Python renders the expected pages once."""

    def __init__(self, project: UnderTest, selection: Selection, write: bool = False):
        """`write` lets checks write to a project's own database; a copy and a private one they may always.

        Raises BenchError when the project names accounts that are not there.
        """
        if (login := project.description.login) and login.users_env:
            described_accounts(login.users_env, {**os.environ, **project.project.env}, count=len(login.users_env))
        self.selection = selection
        self.write = write
        self._sites: dict[Path, Site] = {}

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """One Outcome a check; raises BenchError when the site's own commands fail.

        When another program changed the rows meanwhile, the deployment is verified once more with new expected pages;
        the second time DatabaseChanged is raised.
        """
        try:
            found = run_suite(self._subject(running), self.selection, progress)
            if running.case.project.description.write:
                # The described write stays: pages of the next deployment are others.
                self._sites.clear()
            return found
        except DatabaseChanged as changed:
            print(f"{changed}; it is verified again", file=sys.stderr, flush=True)
        self._sites.clear()
        running.empty_layer()
        return run_suite(self._subject(running), self.selection, progress)

    def _subject(self, running: Running) -> Subject:
        case = running.case
        project = case.project
        if project.python not in self._sites:
            commands.warm_up(project)
            env = commands.site_environment(project, running.env["DATABASE_URL"], project.var)
            site = learn(
                None,
                project.environment(env),
                project.python,
                project.manage_py,
                prefix=project.worker().prefix,
                description=project.description,
                static=project.static_root,
                static_url=project.names["static_url"],
            )
            self._sites[project.python] = prepare(permitted(site, project, case.database, self.write))
        return Subject(
            Target.parse(running.url),
            self._sites[project.python],
            case.stack.name,
            case.layers,
            project.environment(running.env),
            {item.check: item.reason for item in case.declares},
            running,
        )
