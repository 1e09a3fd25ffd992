"""Verify one deployment after another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from bench import printer
from bench.serve.deployment.deployment import Running
from bench.serve.deployment.render import names_used
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest
from bench.verify.changing import notes
from bench.verify.context import Accounts, Context, target_of
from bench.verify.outcome import Outcome
from bench.verify.site import DatabaseChanged, Site, command_env, described_accounts, discover_site, prepare
from bench.verify.suite import Progress, Selection, run_suite


class Verifier:
    """Verifies one deployment after another of the same database; each Python renders the expected pages once."""

    def __init__(self, project: UnderTest, selection: Selection, write: bool = False, options: Sequence[str] = ()):
        """`write` lets checks write to a project's own database; a copy or a private database may always be written to.
        `options` serve the same site again, at the size of its case.

        Raises BenchError if the project names accounts that do not exist.
        """
        if (login := project.description.login) and login.users_env:
            described_accounts(login.users_env, {**os.environ, **project.project.env}, count=len(login.users_env))
        self.selection = selection
        self.write = write
        self.options = tuple(options)
        # By the interpreter and the folder of what is served.
        self._sites: dict[tuple[Path, Path], Site] = {}

    @property
    def notes(self) -> list[str]:
        """Notes on the project's pages for the reader of the outcomes."""
        return list(dict.fromkeys(chain.from_iterable(map(notes, self._sites.values()))))

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """One Outcome a check; raises BenchError if the site's own commands fail.

        When another program changed the rows meanwhile, the deployment is verified once more with new expected pages;
        the second time DatabaseChanged is raised.
        """
        try:
            return self._verified(running, progress)
        except DatabaseChanged as changed:
            printer.aside(f"{changed}; it is verified again")
        self._sites.clear()
        running.empty_layer()
        return self._verified(running, progress)

    def _verified(self, running: Running, progress: Progress | None) -> list[Outcome]:
        """Outcomes of one run of the suite; knowledge of pages that change by themselves is kept."""
        context, project = self._context(running), running.case.project
        outcomes = run_suite(context, self.selection, progress)
        if project.description.write:
            # The described write stays: pages of the next deployment are others.
            self._sites.clear()
        else:
            known = (project.python, project.folder)
            self._sites[known] = replace(self._sites[known], pages=context.site.pages)
        return outcomes

    def _context(self, running: Running) -> Context:
        case = running.case
        project = case.project
        url = running.env["DATABASE_URL"]
        known = (project.python, project.folder)
        if known not in self._sites:
            commands.warm_up(project)
            self._sites[known] = prepare(discover_site(project, case.database, url, self.write))
        # The same database is at the socket of each deployment in turn.
        site = replace(
            self._sites[known],
            env=command_env(project, url),
            sends_uploads="media_url" in names_used(case),
        )
        env = project.environment(running.env)
        options = self.options
        if case.size.is_limited:
            options = ("--size", case.size.name, *options)
        return Context(
            target_of(running),
            site,
            case.layers,
            Accounts(site, env),
            env,
            case.stack.name,
            {item.check: item.reason for item in case.declares},
            options,
            running=running,
        )
