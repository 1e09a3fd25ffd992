"""The rest of the instrument, as a run uses it: resolve, serve, verify, and query the project."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import msgspec

from bench.errors import BenchError, GlobalFault
from bench.measure.records import records
from bench.measure.records.records import Plan
from bench.measure.run.plan import Resolve
from bench.serve.catalog import catalog, values
from bench.serve.deployment import database, deployment, survey
from bench.serve.deployment.case import resolve
from bench.serve.deployment.database import Database
from bench.serve.deployment.deployment import Running
from bench.serve.machine import cpu_affinity, http
from bench.serve.machine.processes import machine_load
from bench.serve.project import commands
from bench.serve.project.opened import UnderTest
from bench.verify.outcome import Outcome
from bench.verify.suite import Progress, Selection
from bench.verify.verifier import Verifier

# What tells a page that was rendered from one that a cache had.
HTML, RENDER_ID = "text/html", "X-Render-Id"


class Instrument:
    """What a run needs of the other packages; tests replace it by a quick fake.

    thorough  whether deployments are verified with the checks that take seconds too
    """

    # What other packages do for any project.
    deployed = staticmethod(deployment.deployed)
    machine_load = staticmethod(machine_load)
    programs = staticmethod(survey.versions)

    def __init__(self, project: UnderTest, thorough: bool = False) -> None:
        self.project = project
        self._verifier = Verifier(project, Selection(thorough=thorough, unsafe=False))
        # What is known of queries: they are counted once for a layer, or for a stack with it.
        self._queries: dict[tuple[object, ...], Any] = {}

    def resolver(self, plan: Plan, rows: Database) -> Resolve:
        """Finds cases without limits, with the plan's values and environment; raises BenchError for unknown names."""
        changes, env = values.parse_changes(list(plan.changes)), values.environment(list(plan.env))
        return partial(resolve, self.project, database=rows, changes=changes, env=env)

    def database_alone(self, rows: Database) -> AbstractContextManager[None]:
        """The database of a run for this process alone, as long as the context lasts."""
        return database.in_use(self.project, rows, alone=True)

    def verify(self, running: Running, progress: Progress | None = None) -> list[Outcome]:
        """Every check of the suite; those left out are named as such."""
        return self._verifier.verify(running, progress)

    def queries_per_request(
        self, running: Running, case: records.CaseRecord, addresses: tuple[str, ...]
    ) -> float | None:
        """Database queries of a request to these addresses, on average; None when they cannot be counted.

        They are counted outside the requests that are measured.
        """
        project, known = running.case.project, self._queries
        files = project.names["static_url"]
        pages = tuple(dict.fromkeys(address for address in addresses if not address.startswith(files)))
        of_layer, of_stack = (case.layer, pages), (case.stack, case.layer, pages)
        if of_layer not in known:
            known[of_layer] = count_queries(project, running.env, pages) if pages else {}
        if of_stack not in known:
            known[of_stack] = answered_by_a_cache(running.url, pages)
        counts, cached = known[of_layer], known[of_stack]
        if counts is None or cached is None:
            return None
        rendered = set(pages) - cached
        total: int = sum(counts[page]["warm"] for page in addresses if page in rendered)
        return round(total / len(addresses), 3)

    def static_names(self) -> dict[str, str]:
        """Collected names of the static files by their plain ones."""
        return commands.static_names(self.project)

    def rows(self, running: Running) -> tuple[int | None, int | None]:
        """How many rows the project has, and from which seed they were made, None when that is not known."""
        return commands.rows(self.project, running.env["DATABASE_URL"], self.project.worker())

    def settle(self, pinned: cpu_affinity.Cores | None, running: Running) -> None:
        """Move the processes to their cores: services to theirs, the others to the stack's."""
        services = catalog.read().services
        for name, pid in running.pids.items():
            cpu_affinity.move(pinned, cpu_affinity.SERVICES if name in services else cpu_affinity.STACK, [pid])

    def check_database(self, rows: Database) -> None:
        """Raise GlobalFault when a database that the user named cannot be used; others are checked later."""
        project = self.project
        if not rows.made:
            try:
                if (path := database.sqlite_path(project, rows.url)) is not None:
                    database.check_sqlite(project, path, project.worker())
                commands.check(project, rows.url, {}, project.worker(), again=True)
            except BenchError as error:
                raise GlobalFault(f"the database cannot be used: {error}") from None


def count_queries(project: UnderTest, env: dict[str, str], pages: Iterable[str]) -> dict[str, dict[str, int]] | None:
    """Page -> its queries with an empty cache (`cold`) and with a filled one (`warm`); None when the command fails.

    The site's own command renders the pages in its own process, in this environment.
    """
    try:
        printed = commands.manage(project, ["countqueries", *pages], env["DATABASE_URL"], project.worker(), env=env)
        return msgspec.json.decode(printed, type=dict[str, dict[str, int]])
    except (BenchError, msgspec.DecodeError, KeyError):
        return None


def answered_by_a_cache(url: str, pages: Iterable[str]) -> set[str] | None:
    """The pages whose second answer came from a cache; None when one of them was not answered.

    An answer with the render id of the one before, or with none, came from a cache and cost no query.
    """
    found = set()
    for page in pages:
        try:
            first, second = (http.headers(url, page) for _ in range(2))
        except http.VisitError:
            return None
        is_page, rendered = HTML in (second.get("Content-Type") or ""), second.get(RENDER_ID)
        if is_page and rendered in (None, first.get(RENDER_ID)):
            found.add(page)
    return found
